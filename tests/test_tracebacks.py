"""What is shown of an error: the lines down to the call, and the words."""

import traceback

import pytest

import jtorch
from jtorch import config, tracebacks

x = jtorch.ones(2, 3)
a = jtorch.ones(2, 3, requires_grad=True)

CALLS = {
    "a function": lambda: jtorch.nn.functional.linear(x, jtorch.ones(4, 5)),
    "an operator": lambda: x + jtorch.ones(7),
    "a product": lambda: x @ jtorch.ones(2, 2),
    "a list": lambda: jtorch.cat([x, jtorch.ones(3, 4)]),
    "a view": lambda: x.transpose(0, 5),
    "in place": lambda: a.add_(1),
    "in place, of another shape": lambda: jtorch.ones(3).add_(jtorch.ones(4)),
    "in place, of another dtype": lambda: jtorch.ones(3, dtype=jtorch.long).sub_(jtorch.ones(3)),
    "a word": lambda: x.norm("foo"),
    "a value": lambda: jtorch.nn.functional.one_hot(jtorch.tensor([5]), 3),
    "a module": lambda: jtorch.nn.Linear(2, 3)(x),
    "transformed": lambda: jtorch.vmap(lambda row: row @ jtorch.ones(2, 2))(x),
    "recorded again": lambda: jtorch.utils.checkpoint.checkpoint(lambda y: y @ jtorch.ones(2, 2), a, use_reentrant=False),
}  # fmt: skip


# Of functions written by hand.
OWN = {
    "a view": lambda: x.view(4),
    "one by one": lambda: x.permute(0, 0),
    "an index": lambda: x[5],
    "a list as indices": lambda: x[[0, 9]],
    "a write": lambda: x.__setitem__(0, jtorch.ones(7)),
    "an operator in place": lambda: x.__iadd__(jtorch.ones(4)),
    "a copy": lambda: jtorch.ones(2).copy_(jtorch.ones(3)),
    "a device": lambda: x.to("nowhere"),
    "a number": lambda: x.item(),
    "a condition": lambda: bool(x),
    "an array": lambda: a.numpy(),
    "numbers": lambda: jtorch.tensor([[1], [1, 2]]),
    "a size": lambda: jtorch.zeros(-1),
    "an extreme": lambda: jtorch.ones(0).max(),
    "a factor": lambda: jtorch.linalg.cholesky(-jtorch.eye(2)),
    "draws": lambda: jtorch.multinomial(jtorch.zeros(2), 1),
}


def shown(call):
    with pytest.raises((RuntimeError, IndexError, ValueError)) as caught:
        call()
    error = caught.value
    assert error.__context__ is None and error.__cause__ is None and not getattr(error, "__notes__", [])
    return traceback.extract_tb(error.__traceback__), "".join(traceback.format_exception(error))


@pytest.fixture
def plain(monkeypatch):
    monkeypatch.setattr(config, "full_tracebacks", False)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_errors_of_calls_end_where_the_call_is(call, plain):
    frames, text = shown(call)
    files = [frame.filename for frame in frames if "override" not in frame.filename]  # once there is a subclass
    assert not any(part in file for file in files for part in ("<jtorch", "dispatch", "operators"))
    assert "JAX" not in text


@pytest.mark.parametrize("call", OWN.values(), ids=OWN)
def test_errors_end_at_the_line_of_the_call(call, plain):
    frames, _ = shown(call)
    assert frames[-1].filename == __file__


def test_what_ends_a_program(plain):
    """An error that nothing has cut is cut when it is shown, and so is what it came of; a layer's lines stay."""
    with pytest.raises(ValueError) as caught:
        try:
            jtorch.set_default_dtype(3)
        except TypeError as error:
            raise ValueError from error
    cause = caught.value.__cause__
    assert traceback.extract_tb(cause.__traceback__)[-1].filename != __file__
    tracebacks.end_at_program(caught.value)
    assert traceback.extract_tb(cause.__traceback__)[-1].filename == __file__
    with pytest.raises(RuntimeError) as caught:
        jtorch.nn.Linear(2, 3)(x)
    tracebacks.end_at_program(caught.value)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename.endswith("linear.py")


def test_frames_of_the_program_stay(plain):
    class Handled(jtorch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return jtorch.ones(2) + jtorch.ones(3)

    frames, _ = shown(lambda: jtorch.sin(x.as_subclass(Handled)))
    assert frames[-1].name == "__torch_function__"


def test_errors_that_no_check_raises_keep_their_frames(plain, monkeypatch):
    def broken(*args, **kwargs):
        return {}["nothing"]

    monkeypatch.setattr("jtorch.dispatch.call.make_plan", broken)
    with pytest.raises(KeyError) as caught:
        jtorch.sin(jtorch.ones(3, 1, 4, 1, 5))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "broken"


def test_all_frames_are_shown_on_request(monkeypatch):
    monkeypatch.setattr(config, "full_tracebacks", True)
    frames, _ = shown(CALLS["a product"])
    assert any("dispatch" in frame.filename for frame in frames)
