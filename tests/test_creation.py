"""Factories against torch: values, dtypes, strides, arguments, errors."""

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch

CALLS = {
    "complex numbers as bools": lambda t: [t.tensor([1j, 0], dtype=t.bool), t.tensor(0j, dtype=t.bool)],
    "scalar_tensor of what does not fit": lambda t: t.scalar_tensor(1e40),
    "scalar_tensor of a complex number": lambda t: t.scalar_tensor(1j, dtype=t.float32),
    "zeros of no size": lambda t: t.zeros(),
    "vander of bools": lambda t: [t.vander(t.tensor([True, False]), n) for n in (None, 3)],
    **{
        f"what numpy expanded, {i}": lambda t, a=a: [t.from_numpy(a), t.as_tensor(a) + 1]
        for i, a in enumerate(
            (
                np.broadcast_to(np.arange(3.0), (2, 3)),
                np.broadcast_to(np.arange(6.0).reshape(2, 1, 3), (2, 4, 3)),
                np.broadcast_to(np.float32(3), (2, 3)),
                np.broadcast_to(np.zeros((1, 0)), (2, 0)),
            )
        )
    },
    **{
        f"numpy's memory order, {name}": lambda t, a=a: [
            t.from_numpy(a),
            t.from_numpy(a) + 1,
            t.from_numpy(a)[1:].flatten(),
            t.tensor(a),
            t.as_tensor(a, dtype=t.int16),
            t.asarray(a),
        ]
        for name, a in {
            "cast when turned": np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).astype(np.float32),
            "copied when turned": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2).copy(order="K"),
            "a part of that": np.arange(24).reshape(2, 3, 4).transpose(1, 0, 2).copy(order="K")[1:, :, ::2],
            "columns first": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
            "turned": np.arange(6.0).reshape(2, 3).T,
            "gaps": np.arange(24.0).reshape(2, 3, 4)[:, ::2],
            "gaps of a buffer": np.ndarray((3, 4), np.uint8, bytearray(range(64)), 2, (16, 2)),
            "expanded in a buffer": np.ndarray((2, 3), np.uint8, bytearray(range(64)), 8, (0, 2)),
        }.items()
    },
    **{
        f"numpy's {n!r} as {d}": lambda t, n=n, d=d: t.tensor([n, 1], dtype=getattr(t, d))
        for n in (
            np.int64(300),
            np.int64(-200),
            np.float64(1e10),
            np.float64(1.5),
            np.float32(2),
            np.bool_(True),
            np.int16(-1),
        )
        for d in ("uint8", "int8", "int32", "bool", "float16")
    },
    "an array's numbers that do not fit": lambda t: t.tensor([np.array([300, 1])], dtype=t.uint8),
    "a number of numpy that is no integer": lambda t: t.tensor(np.float32(2), dtype=t.int64),
    "a number of numpy that does not fit": lambda t: t.as_tensor(np.int64(300), dtype=t.uint8),
    "numpy's steps backwards": lambda t: t.tensor(np.arange(3.0)[::-1]),
    "numpy's steps backwards, of another dtype": lambda t: t.as_tensor(np.arange(3.0)[::-1], dtype=t.int32),
    "tensor of lists": lambda t: t.tensor([[1, 2], [3, 4]]),
    "tensor of mixed": lambda t: t.tensor([1, 2.5, True]),
    "tensor of bools": lambda t: t.tensor([[True], [False]]),
    "tensor of complex": lambda t: t.tensor([1, 2j]),
    "tensor of nothing": lambda t: t.tensor([]),
    "tensor of empty rows": lambda t: t.tensor([[], []]),
    "tensor of a number": lambda t: t.tensor(3),
    "tensor of numpy": lambda t: t.tensor(np.arange(3, dtype=np.int16)),
    "tensor of numpy numbers": lambda t: t.tensor([np.float64(1), np.float64(2)]),
    "tensor of a numpy number": lambda t: t.tensor(np.float32(1)),
    "tensor of arrays": lambda t: t.tensor([np.zeros(2), np.ones(2)]),
    "tensor of tensors": lambda t: t.tensor([t.tensor(1), t.tensor(2.5)]),
    "tensor of ranges": lambda t: t.tensor([range(3), range(3)]),
    "tensor with dtype": lambda t: t.tensor([1.7, -2.7], dtype=t.int32),
    "tensor half": lambda t: t.tensor([1, 2], dtype=t.float16),
    "tensor ragged": lambda t: t.tensor([[1, 2], [3]]),
    "tensor of strings": lambda t: t.tensor(["a"]),
    "tensor of None": lambda t: t.tensor(None),
    "tensor of None in a list": lambda t: t.tensor([None]),
    "tensor of a dict": lambda t: t.tensor({}),
    "tensor too large": lambda t: t.tensor(2**70),
    "as_tensor": lambda t: [t.as_tensor([1, 2]), t.as_tensor(np.ones(2)), t.as_tensor(t.ones(2), dtype=t.int8)],
    "asarray": lambda t: t.asarray([1.0, 2.0]),
    "zeros": lambda t: [t.zeros(2, 3), t.zeros((2, 3)), t.zeros([]), t.zeros(()), t.zeros(0), t.zeros(size=(2,))],
    "zeros of a negative size": lambda t: t.zeros(-1),
    "zeros of floats": lambda t: t.zeros(1.5),
    "ones": lambda t: [t.ones(2, dtype=t.int8), t.ones(2, dtype=t.bool), t.ones(1, 2, requires_grad=True)],
    "ones of ints with gradient": lambda t: t.ones(2, dtype=t.int64, requires_grad=True),
    "full": lambda t: [
        t.full((2,), 3),
        t.full((2,), 3.0),
        t.full((2,), True),
        t.full((), 1j),
        t.full((2,), 3, dtype=t.float16),
    ],
    "arange": lambda t: [
        t.arange(3),
        t.arange(3.0),
        t.arange(1, 4),
        t.arange(1, 2, 0.25),
        t.arange(5, 0, -2),
        t.arange(0),
    ],
    "arange with dtype": lambda t: t.arange(3, dtype=t.float64),
    "arange wrong way": lambda t: t.arange(3, 0),
    "arange step 0": lambda t: t.arange(0, 3, 0),
    "range of floats": lambda t: t.arange(0, 1, 0.1),
    "linspace": lambda t: [t.linspace(0, 1, 5), t.linspace(0, 10, 1), t.linspace(0, 1, 0), t.linspace(5, -5, 4)],
    "linspace of ints": lambda t: t.linspace(0, 10, 4, dtype=t.int64),
    "linspace of bools": lambda t: [t.linspace(*ends, 1, dtype=t.bool) for ends in ((-2.0, -3), (0, 3), (0.5, 3))],
    "linspace of two bools": lambda t: t.linspace(0, 1, 2, dtype=t.bool),
    "linspace negative": lambda t: t.linspace(0, 1, -1),
    "linspace of tensors": lambda t: [
        t.linspace(t.tensor(2.7), 9, 3, dtype=t.int64),
        t.logspace(0.5, t.tensor(True), 3),
        t.linspace(t.tensor(1j), 2, 3),
    ],
    "linspace of ends without data": lambda t: [
        (x.device.type, x.shape, x.dtype)
        for x in (
            t.linspace(0, t.tensor(3.0, device="meta"), 3, device="cpu"),
            t.logspace(t.tensor(1, device="meta"), 3, 3),
        )
    ],
    "linspace of complex ends": lambda t: t.linspace(t.tensor(1j), 2, 3, dtype=t.float32),
    "logspace": lambda t: [t.logspace(0, 2, 3), t.logspace(0, 3, 4, base=2)],
    "eye": lambda t: [t.eye(3), t.eye(2, 3), t.eye(0), t.eye(2, dtype=t.int64)],
    "eye negative": lambda t: t.eye(-1),
    "like": lambda t: [t.zeros_like(t.ones(2, 3).t()), t.ones_like(t.tensor([1])), t.full_like(t.zeros(2), 3)],
    "like with dtype": lambda t: t.zeros_like(t.ones(2), dtype=t.int32),
    "like keeps strides": lambda t: t.ones_like(t.zeros(2, 3, 4, 5).to(memory_format=t.channels_last)).stride(),
    "new": lambda t: [t.ones(1).double().new_zeros(2), t.tensor([1]).new_tensor([2.7]), t.ones(1).new_full((2,), 3)],
    "new_ones": lambda t: t.zeros(1).half().new_ones(2, 3),
    "empty": lambda t: [t.empty(2, 3).shape, t.empty(2, 3).stride(), t.empty((2, 0)).numel()],
    "empty_strided": lambda t: t.empty_strided((2, 3), (1, 2)).stride(),
    "cat keeps channels_last": lambda t: [
        t.cat([x, x], 1).stride() for x in (t.ones(2, 2, 2, 2), t.ones(2, 2, 2, 2).to(memory_format=t.channels_last))
    ],
    "channels_last": lambda t: t.empty(2, 3, 4, 5, memory_format=t.channels_last).stride(),
    "tril": lambda t: [t.tril_indices(3, 3), t.triu_indices(2, 4, 1)],
    "complex": lambda t: [t.complex(t.ones(2), t.zeros(2)), t.polar(t.ones(2), t.zeros(2))],
    "meshgrid": lambda t: t.meshgrid(t.arange(2), t.arange(3), indexing="ij"),
    "cartesian": lambda t: t.cartesian_prod(t.arange(2), t.arange(2)),
    "scalar_tensor": lambda t: t.scalar_tensor(3),
    "from_numpy": lambda t: [
        t.from_numpy(np.ones(2)),
        t.from_numpy(np.array(3)),
        t.from_numpy(np.zeros((0, 2), np.uint8)),
    ],
    "frombuffer": lambda t: t.frombuffer(bytearray(b"\x01\x02\x03\x04"), dtype=t.int16),
    "heaviside": lambda t: t.heaviside(t.tensor([-1.0, 0.0, 2.0]), t.tensor(0.5)),
    "device": lambda t: t.zeros(2, device="cpu"),
    "wrong device": lambda t: t.zeros(2, device="gpu"),
    "wrong dtype": lambda t: t.zeros(2, dtype="float32"),
    "range of ints": lambda t: [t.range(0, 3, dtype=d) for d in (t.uint8, t.int32, t.int64, t.float32)],
    "range into ints": lambda t: t.range(0, 3, 1, out=t.zeros(2, 2, dtype=t.int32)),
    "range cut to ints": lambda t: [t.range(5.5, 0, -1.5, dtype=t.int16), t.range(0.9, 3.1, 1, dtype=t.int64)],
    "arange cut to ints": lambda t: [
        t.arange(*ends, dtype=d)
        for d in (t.uint8, t.int8, t.int16, t.int32, t.int64)
        for ends in ((0.5, 4, 1.5), (0.9, 3.1, 1), (5.5, 0, -1.5), (-0.5, 3.5))
    ],
    "arange of steps below 1": lambda t: [t.arange(0, 1, 0.3, dtype=d) for d in (t.uint8, t.int32)],
    "arange of steps below 1 in int64": lambda t: t.arange(0, 1, 0.3, dtype=t.int64),
}
HISTORIES = [{}, {"requires_grad": False}, {"requires_grad": True}, {"copy": True}]


@pytest.mark.parametrize("name", CALLS)
def test_factories(name):
    both(CALLS[name])


PYTHON_TYPES = [
    "zeros(1, dtype=float)", "empty(1, dtype=bool)", "tensor(1, dtype=complex)", "arange(3, dtype=float)", "full((1,), 1, dtype=int)",
    "as_tensor([1], dtype=float)", "ones(1).new_zeros(1, dtype=int)", "zeros_like(torch.ones(1), dtype=float)", "ones(1).to(float)",
    "ones(2).sum(dtype=float)", "softmax(torch.ones(2), 0, dtype=float)", "nn.Linear(1, 1, dtype=float).weight",
    "nn.Linear(1, 1).to(float).weight", "randn(2, dtype=float)", "ones(2).cumsum(0, dtype=int)",
]  # fmt: skip


@pytest.mark.parametrize("call", PYTHON_TYPES)
def test_python_types_as_dtypes(call):
    """float is double, whatever the default dtype is."""
    mine, its = (eval(f"torch.{call}", {"torch": t}) for t in (jtorch, torch))
    assert str(mine.dtype) == str(its.dtype)


@pytest.mark.parametrize(
    "call",
    ["finfo(float)", "finfo(complex)", "iinfo(int)", "finfo(int)", "iinfo(float)", "iinfo(bool)", "finfo(3)", "promote_types(float, int)",
     "can_cast(float, int)"],
)  # fmt: skip
def test_questions_about_python_types(call):
    said = []
    for t in (jtorch, torch):
        try:
            said.append(str(eval(f"torch.{call}", {"torch": t})))
        except TypeError as error:
            said.append(str(error))
    assert said[0] == said[1]


WITHOUT_OPERANDS = {
    "arange": lambda t, **more: t.arange(37, **more),
    "linspace": lambda t, **more: t.linspace(0, 1, 37, **more),
    "logspace": lambda t, **more: t.logspace(0, 1, 37, **more),
    "eye": lambda t, **more: t.eye(37, **more),
    "tril_indices": lambda t, **more: t.tril_indices(37, 37, **more),
    "window": lambda t, **more: t.hann_window(37, **more),
    "frequencies": lambda t, **more: t.fft.fftfreq(37, **more),
    "random": lambda t, **more: t.rand(37, **more),
    "permutation": lambda t, **more: t.randperm(37, **more),
}


@pytest.mark.parametrize("first", ["cpu", "meta"])
@pytest.mark.parametrize("name", WITHOUT_OPERANDS)
def test_devices_in_turn(name, first):
    """What has been made on one device is made on another when that is asked for, or is the default."""

    def program(t):
        devices = [first, "meta" if first == "cpu" else "cpu"] * 2
        asked = [WITHOUT_OPERANDS[name](t, device=d).device.type for d in devices]
        default = []
        for d in devices:
            with t.device(d):
                default.append(WITHOUT_OPERANDS[name](t).device.type)
        return asked, default

    both(program)


@pytest.mark.filterwarnings("ignore:torch.asarray")
@pytest.mark.parametrize("options", HISTORIES, ids=str)
def test_asarray_keeps_the_history_unless_told_otherwise(options):
    def made(t):
        leaf = t.ones(2, requires_grad=True)
        for given in (leaf, leaf * 2, t.ones(2)):
            for dtype in (None, t.float64):
                got = t.asarray(given, dtype=dtype, **options)
                yield got.requires_grad, got.is_leaf, got is given, got.dtype.itemsize

    assert list(made(jtorch)) == list(made(torch))


def test_writes_to_a_turned_array():
    """What astype makes of a turned array is turned too, and owns its memory, which is shared."""

    def program(t):
        array = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1).astype(np.float32)
        x = t.from_numpy(array)
        array[0, 0, 1] = 99
        x[1, 1, 2] = -5
        image = t.ones(1, 2, 3, 2).to(memory_format=t.channels_last).numpy()
        t.from_numpy(image)[0, 1, 2, 1] = 7
        return x, array, image

    both(program)


def test_a_tensor_in_a_list_must_fit():
    """PyTorch says the same, but after other tests of one process that it has no length."""
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
        jtorch.tensor([jtorch.tensor(300), 1], dtype=jtorch.uint8)


MADE = {
    "arange to a word": lambda t: t.arange("a"),
    "arange between words": lambda t: t.arange(1, "a"),
    "arange to a complex number": lambda t: t.arange(0, 1j),
    "arange by a complex number": lambda t: t.arange(0, 1, 1j),
    "arange to a tensor": lambda t: t.arange(t.tensor(3)),
    "an array as another dtype": lambda t: t.asarray(np.ones(1), dtype=t.float32, copy=False),
    "a tensor as another dtype": lambda t: t.asarray(t.ones(1), dtype=t.float64, copy=False),
    "an array elsewhere": lambda t: t.asarray(np.ones(1), device="meta", copy=False),
    "an array as it is": lambda t: t.asarray(np.ones(1), dtype=t.float64, copy=False),
    "limits of None": lambda t: t.finfo(None),
    "limits that are equal": lambda t: [t.finfo(t.float32) == t.finfo(), t.iinfo(t.int8) == t.iinfo(t.int16)],
    "limits as keys": lambda t: {t.iinfo(t.int32): 1},
    "limits written": lambda t: setattr(t.finfo(t.float32), "eps", 1),
    "limits of other kinds": lambda t: t.finfo(t.float32) == t.iinfo(t.int32),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name):
    both(MADE[name])


def test_linspace_elsewhere_than_the_default_device():
    def program(t):
        with t.device("meta"):
            return t.linspace(0, t.tensor(3.0, device="cpu"), 4, device="cpu")

    both(program)
