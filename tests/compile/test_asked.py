"""torch.compile as programs steer it: stances, and custom operators that are one opaque call."""

import numpy as np
import pytest

import jtorch
from jtorch.compiler import set_stance
from tests.oracle import torch


@pytest.fixture
def told():
    """A compiled function whose result says whether it was compiled."""

    @jtorch.compile
    def fn(x):
        return x + 1 if jtorch.compiler.is_compiling() else x - 1

    fn(jtorch.zeros(3))
    yield lambda n=3: fn(jtorch.zeros(n)).tolist()[0]
    set_stance("default")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_is_compiling(backend):
    def told(x):
        return x + 1 if jtorch.compiler.is_compiling() else x - 1

    @jtorch.compiler.disable
    def aside(x):
        return told(x)

    x = jtorch.zeros(2)
    for _ in range(3):
        assert jtorch.compile(told, backend=backend)(x).tolist() == [1, 1]
    both = jtorch.compile(lambda x: (told(x), aside(x)), backend=backend)
    for _ in range(3):
        assert [t.tolist() for t in both(x)] == [[1, 1], [-1, -1]]
        with jtorch.autocast("cpu"):
            assert both(x)[0].tolist() == [1, 1]
    assert told(x).tolist() == [-1, -1]
    assert aside.__name__ == "aside"

    def fails(x):
        raise ValueError("from inside")

    with pytest.raises(ValueError, match="from inside"):
        jtorch.compile(fails, backend=backend)(x)
    assert not jtorch.compiler.is_compiling()


def test_stances(told):
    assert told() == 1
    with set_stance("force_eager"):
        assert told() == -1
    assert set_stance("force_eager")(told)() == -1
    assert told() == 1
    set_stance("force_eager")
    assert told() == -1
    set_stance("eager_on_recompile")
    assert [told(), told(4), told(4), told()] == [1, -1, -1, 1]
    set_stance("eager_then_compile")
    assert [told(), told(4), told(4)] == [1, -1, 1]
    set_stance("fail_on_recompile")
    assert told() == 1
    with pytest.raises(RuntimeError, match="Detected recompile when torch.compile stance is 'fail_on_recompile'"):
        told(5)


def test_a_stance_is_refused_where_it_cannot_hold(told):
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'lazy'"):
        set_stance("lazy")

    @jtorch.compile
    def inside(x):
        with set_stance("force_eager"):
            return x + 1

    with pytest.raises(RuntimeError, match="set_stance"):
        inside(jtorch.zeros(2))


def test_the_kernel_of_a_custom_operator_breaks_no_graph():
    ran = []

    @jtorch.library.custom_op("tests_asked::sin", mutates_args=())
    def sin(x: jtorch.Tensor) -> jtorch.Tensor:
        ran.append(1)
        return jtorch.from_numpy(np.sin(x.numpy()))

    @jtorch.library.custom_op("tests_asked::sin_to", mutates_args={"out"})
    def sin_to(x: jtorch.Tensor, out: jtorch.Tensor) -> None:
        np.sin(x.numpy(), out=out.numpy())

    @jtorch.compile(fullgraph=True)
    def whole(x):
        out = jtorch.empty(3)
        sin_to(x, out)
        return sin(x * 2) + out

    for n in range(1, 4):
        x = jtorch.arange(3.0) + n
        jtorch.testing.assert_close(whole(x), (x * 2).sin() + x.sin())
        assert len(ran) == n

    checked = jtorch.library.opcheck(sin_to, (jtorch.ones(3), jtorch.empty(3)))
    assert set(checked.values()) == {"SUCCESS"}
    assert sin_to(jtorch.ones(3, device="meta"), jtorch.empty(3, device="meta")) is None

    @jtorch.compile(fullgraph=True)
    def broken(x):
        return sin(x).sum().item()

    with pytest.raises(RuntimeError, match="breaks at"):
        broken(jtorch.ones(3))


class Entry:
    is_global = True


def test_what_programs_ask_to_be_left_out():
    """Regions have no guards of PyTorch's, so that nothing is left out; the functions answer as PyTorch's do."""
    named = "skip_all_guards_unsafe", "skip_guard_on_globals_unsafe", "keep_tensor_guards_unsafe"
    for name in (*named, "skip_guard_on_all_nn_modules_unsafe", "skip_guard_on_inbuilt_nn_modules_unsafe"):
        assert getattr(jtorch.compiler, name)([]) == getattr(torch.compiler, name)([])
    for name in named:
        assert getattr(jtorch.compiler, name)([Entry]) == [False]

    @jtorch.compiler.nested_compile_region
    def inner(x):
        return x * 2

    assert jtorch.compile(inner)(jtorch.ones(2)).tolist() == [2.0, 2.0]
    assert jtorch._dynamo.exc.Unsupported is jtorch._dynamo.Unsupported
