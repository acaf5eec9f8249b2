"""Constants that a region makes itself: replays have them, each as it was."""

import subprocess
import sys
import warnings

import pytest

import jtorch

# constants that a region makes of numbers it has, by the number k
LITERALS = {
    "tensor": lambda x, k: x * jtorch.tensor([1.0, k]), "0-d": lambda x, k: x * jtorch.tensor(float(k)), "as_tensor": lambda x, k: x + jtorch.as_tensor([k, 1]),
    "scalar": lambda x, k: x + jtorch.scalar_tensor(k), "new": lambda x, k: x + x.new_tensor([k, 2.0]), "index": lambda x, k: x[[k % 2, 0]],
    "written to": lambda x, k: jtorch.tensor([1.0, k]).add_(x),
}  # fmt: skip


@pytest.mark.parametrize("case", LITERALS)
def test_constants_made_of_numbers(case):
    fn = LITERALS[case]
    compiled = jtorch.compile(fn)
    for k in (1, 1, 1, 2, 2, 1, 3):
        x = jtorch.tensor([0.5, 2.0]) * (k + 1)
        assert compiled(x, k).tolist() == fn(x, k).tolist()
    assert compiled._region.used


def test_copies_are_no_constants():
    kept = jtorch.tensor([1.0, 2.0])

    def copied(x):
        return x + jtorch.tensor(kept)

    compiled, x = jtorch.compile(copied), jtorch.ones(2)
    for k in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert compiled(x).tolist() == (x + kept).tolist()
        kept.mul_(k + 2)


def test_values_that_two_tensors_share_are_told_apart():
    one = jtorch.tensor([1.0, 2.0])
    two = one.clone()
    compiled = jtorch.compile(lambda x: x * one)
    for k in range(6):
        two.add_(k)
        assert compiled(jtorch.full((2,), 1.0 + k)).tolist() == [1.0 + k, 2.0 + 2 * k]
        if k == 4:
            one.mul_(1)
    assert compiled._region.used


def test_functions_are_known_where_classes_are_asked():
    """Public functions look for such classes first, by other code than their own."""
    text = """if True:
        import jtorch

        class Asked(jtorch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs)

        f = jtorch.compile(lambda x, k: x * jtorch.tensor([1.0, k]))
        for k in (1, 1, 1, 2, 1):
            assert f(jtorch.ones(2), k).tolist() == [1, k]
        from jtorch.compile import aside, proof

        assert f._region.used
        assert all(code.co_filename != "<jtorch override>" for code in (*aside.ASKING, *proof._LITERAL))
    """
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
