"""The three maps of a convolution on the CPU: their forms, and PyTorch's numbers for geometries of all kinds."""

import jax
import numpy as np
import pytest

import jtorch
from jtorch.ops import conv

torch = pytest.importorskip("torch")

DRAW = np.random.default_rng(0)

# (spatial size, kernel, options)
GEOMETRIES = [
    ((9, 8), (3, 3), {}),
    ((9, 8), (3, 3), {"padding": 1}),
    ((9, 8), (3, 2), {"padding": (2, 0), "stride": (2, 3)}),
    ((9, 8), (2, 2), {"stride": 2}),  # the last row is under no window
    ((11, 10), (2, 3), {"stride": 3}),
    ((9, 9), (3, 3), {"dilation": 2, "padding": 1}),
    ((9, 9), (3, 3), {"dilation": (1, 2), "stride": 2, "padding": 3}),  # more padding than the kernel reaches
    ((8, 7), (5, 3), {"padding": "same"}),
    ((9, 8), (1, 1), {"stride": 2}),
    ((4, 4), (3, 3), {"padding": 1}),
    ((9, 8), (3, 3), {"groups": 2, "padding": 1}),
    ((13,), (5,), {"stride": 2, "padding": 2}),
    ((13,), (3,), {"dilation": 3}),
    ((5, 6, 7), (3, 2, 3), {"stride": (1, 2, 2), "padding": 1}),
    ((7, 5, 4), (3, 1, 1), {"stride": (2, 1, 3), "dilation": (2, 1, 1), "padding": (3, 0, 0)}),
    # kernels that cover a dimension
    ((9, 8), (3, 8), {}),
    ((9, 8), (9, 3), {"stride": (2, 3)}),
    ((9, 8), (9, 3), {"padding": (0, 1), "dilation": (1, 2)}),
    ((9, 8), (9, 8), {"stride": 2}),
    ((9, 8), (3, 8), {"groups": 2}),
    ((9, 8), (3, 8), {"padding": (1, 0), "stride": (1, 9)}),
    ((3, 9), (3, 3), {"padding": "same"}),  # three positions in the covered dimension
    ((9, 8), (9, 2), {"dilation": 1, "padding": "valid"}),
    ((7,), (7,), {}),
    ((5, 6, 7), (5, 2, 7), {"stride": 2}),
    ((5, 6, 7), (2, 6, 3), {}),
]


def gradients(lib, x, w, n, options):
    x, w = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
    out = getattr(lib.nn.functional, f"conv{n}d")(x, w, **options)
    first = lib.autograd.grad((out * out.detach()).sum(), (x, w), create_graph=True)
    second = lib.autograd.grad(sum((g * g).sum() for g in first), (x, w))
    return [t.detach().numpy() for t in (out, *first, *second)]


@pytest.mark.parametrize("batch, channels", [(1, 4), (3, 4), (5, 18)])
@pytest.mark.parametrize("size, kernel, options", GEOMETRIES, ids=str)
def test_gradients(size, kernel, options, batch, channels):
    x = DRAW.standard_normal((batch, channels, *size))
    w = DRAW.standard_normal((6, channels // options.get("groups", 1), *kernel))
    got, want = (gradients(lib, x, w, len(size), options) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


FEW = [
    ((9, 8), (3, 3), {"padding": 1}),
    ((9, 8), (3, 2), {}),
    ((9, 8), (3, 3), {"padding": 4}),  # more than the kernel reaches
    ((9, 9), (3, 3), {"dilation": (1, 2), "padding": (0, 2)}),
    ((8, 7), (5, 3), {"padding": "same"}),
    ((11, 10), (6, 5), {"padding": 2}),  # more taps than are written out
    ((13,), (5,), {"padding": 2}),
    ((5, 6, 7), (3, 2, 3), {"padding": 1}),
]


@pytest.mark.parametrize("channels, features", [(8, 3), (2, 1), (3, 8)])
@pytest.mark.parametrize("size, kernel, options", FEW, ids=str)
def test_few_features(size, kernel, options, channels, features):
    x, w = DRAW.standard_normal((3, channels, *size)), DRAW.standard_normal((features, channels, *kernel))
    got, want = (gradients(lib, x, w, len(size), options) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_few_features_write_no_windows():
    """XLA's convolutions do, in three to four times as long."""
    geo = conv.geometry((3, 3), 1, 1, 1, 1)
    x, w, g = (np.zeros(s, np.float32) for s in ((5, 16, 12, 12), (3, 16, 3, 3), (5, 3, 12, 12)))
    maps = (
        lambda: conv._forward(x, w, None, geo),
        lambda: conv._input_grad(x, np.swapaxes(w, 0, 1), g.shape, geo),
        lambda: conv._weight_grad(x, g, w.shape, geo),
    )
    for one in maps:
        names = {e.primitive.name for e in jax.make_jaxpr(one)().eqns}
        assert "dot_general" in names and "conv_general_dilated" not in names


@pytest.mark.parametrize("size, kernel, options", GEOMETRIES, ids=str)
def test_large_images(size, kernel, options, monkeypatch):
    """The weight's gradient strip by strip."""
    for name, bound in (("WHOLE_BYTES", 0), ("STRIP", 13)):
        monkeypatch.setattr(conv, name, bound)
    geo = conv.geometry(kernel, *(options.get(k, d) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1))), 1)
    x = DRAW.standard_normal((2, 4, *size))
    g = DRAW.standard_normal((2, 6, *geo.out(size, kernel)))
    got = conv._weight_grad(x, g, (6, 4, *kernel), geo)
    by_jax = jax.linear_transpose(
        lambda w: conv._lax_conv(x, w, geo), jax.ShapeDtypeStruct((6, 4, *kernel), np.float64)
    )
    np.testing.assert_allclose(got, by_jax(g)[0], rtol=1e-9, atol=1e-9)


COVERING = [(size, kernel, options) for size, kernel, options in GEOMETRIES if any(map(int.__eq__, size, kernel))]


@pytest.mark.parametrize("size, kernel, options", COVERING, ids=str)
def test_kernels_that_cover_a_dimension(size, kernel, options):
    """With a bias, channels last and float32; and transposed, from one position in such a dimension."""
    n = len(size)

    def run(lib, name, x, w, b, **options):
        x, w, b = (lib.tensor(a.astype(np.float32), requires_grad=True) for a in (x, w, b))
        y = x.to(memory_format=lib.channels_last) if n == 2 else x
        out = getattr(lib.nn.functional, f"{name}{n}d")(y, w, b, **options)
        grads = lib.autograd.grad((out * out.detach()).sum(), (x, w, b))
        return [t.detach().numpy() for t in (out, *grads)]

    groups = options.get("groups", 1)
    w, b = DRAW.standard_normal((6, 4 // groups, *kernel)), DRAW.standard_normal(6)
    cases = [("conv", DRAW.standard_normal((3, 4, *size)), w, b, options)]
    if isinstance(options.get("padding", 0), int | tuple):
        small = [1 if s == k else 3 for s, k in zip(size, kernel)]
        x, b = DRAW.standard_normal((3, 6, *small)), DRAW.standard_normal(4)
        cases.append(("conv_transpose", x, w, b, options))
    for name, *arrays, options in cases:
        got, want = (run(lib, name, *arrays, **options) for lib in (jtorch, torch))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("stride, batch", [(1, 3), (1, 32), (2, 3), (2, 32)])
def test_dimensions_are_in_the_order_of_the_cpu(stride, batch):
    """In a loop XLA's CPU compiler leaves others as they are, and they take 20 times as long."""
    geo = conv.geometry((3, 3), stride, 1, 1, 1)
    x, w = np.zeros((batch, 16, 12, 12), np.float32), np.zeros((12, 16, 3, 3), np.float32)
    g = np.zeros((batch, 12, *geo.out((12, 12), (3, 3))), np.float32)
    maps = (
        lambda: conv._forward(x, w, None, geo),
        lambda: conv._input_grad(g, w, x.shape, geo),
        lambda: conv._weight_grad(x, g, w.shape, geo),
    )
    for one in maps:
        [eqn] = [e for e in jax.make_jaxpr(one)().eqns if e.primitive.name == "conv_general_dilated"]
        assert tuple(eqn.params["dimension_numbers"]) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


def test_space_is_layers():
    """XLA's CPU runtime takes 3 to 250 times as long with three spatial dimensions."""
    geo = conv.geometry((3, 2, 3), (1, 2, 2), 1, 1, 1)
    x, w = np.zeros((3, 16, 6, 8, 9), np.float32), np.zeros((8, 16, 3, 2, 3), np.float32)
    g = np.zeros((3, 8, *geo.out((6, 8, 9), (3, 2, 3))), np.float32)
    maps = (
        lambda: conv._forward(x, w, None, geo),
        lambda: conv._input_grad(g, w, x.shape, geo),
        lambda: conv._weight_grad(x, g, w.shape, geo),
    )
    for one in maps:
        [eqn] = [e for e in jax.make_jaxpr(one)().eqns if e.primitive.name == "conv_general_dilated"]
        assert len(eqn.params["window_strides"]) == 2


MANY = [
    ((6, 5), (3, 3), {"groups": 8, "padding": 1}, 16, 24),
    ((7, 5), (3, 2), {"groups": 8, "stride": 2}, 8, 16),  # one channel a group, two features
    ((9,), (3,), {"groups": 10, "dilation": 2}, 20, 10),
    ((4, 5, 3), (2, 2, 2), {"groups": 7, "padding": 1}, 14, 7),
    ((5, 5), (1, 1), {"groups": 9}, 18, 27),
]


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("size, kernel, options, channels, features", MANY, ids=str)
def test_many_groups(size, kernel, options, channels, features, batch):
    x = DRAW.standard_normal((batch, channels, *size))
    w = DRAW.standard_normal((features, channels // options["groups"], *kernel))
    got, want = (gradients(lib, x, w, len(size), options) for lib in (jtorch, torch))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_many_groups_are_one_program():
    """Each with a kernel of its own takes XLA seconds to compile."""

    def sizes(channels, groups):
        geo = conv.geometry((3, 3), 1, 1, 1, groups)
        x, w = np.zeros((2, channels, 9, 9), np.float32), np.zeros((channels, channels // groups, 3, 3), np.float32)
        maps = (
            lambda: conv._forward(x, w, None, geo),
            lambda: conv._input_grad(x, w, x.shape, geo),
            lambda: conv._weight_grad(x, x, w.shape, geo),
        )
        return [len(jax.make_jaxpr(one)().eqns) for one in maps]

    assert sizes(64, 16) == sizes(64, 32)  # of a few channels
    assert sizes(160, 8) == sizes(160, 16)


@pytest.mark.parametrize("allowed, precision", [(True, "HIGH"), (False, "HIGHEST")])
def test_convolutions_of_accelerators_round_as_pytorch_lets_them(allowed, precision, monkeypatch):
    monkeypatch.setattr(conv, "on_cpu", lambda: False)
    x, w = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    with jtorch.backends.cudnn.flags(allow_tf32=allowed):
        assert jtorch.backends.cudnn.allow_tf32 is allowed
        graph = str(jax.make_jaxpr(jax.grad(lambda x, w: conv.conv2d.fn(x, w).sum(), (0, 1)))(x, w))
    assert (
        graph.count("conv_general_dilated[")
        == graph.count(f"precision=(Precision.{precision}, Precision.{precision})")
        > 1
    )
    assert jtorch.backends.cudnn.allow_tf32


def test_integers_are_convolved_as_floats_where_xla_convolves_no_integers(monkeypatch):
    x, w = DRAW.integers(-(2**40), 2**40, (2, 4, 9, 8)), DRAW.integers(-9, 9, (6, 4, 3, 3))
    want = jtorch.nn.functional.conv2d(jtorch.tensor(x), jtorch.tensor(w)).numpy()
    monkeypatch.setattr(conv, "on_cpu", lambda: False)
    assert "conv_general_dilated[" in str(made := jax.make_jaxpr(conv.conv2d.fn)(x, w))
    assert all(e.invars[0].aval.dtype == np.float64 for e in made.eqns if "conv_general" in e.primitive.name)
    np.testing.assert_array_equal(jax.jit(conv.conv2d.fn)(x, w), want)


def test_integers_are_convolved_back_as_floats_on_tpus(monkeypatch):
    """XLA has no products of 64-bit integers for them."""
    x, w = DRAW.integers(-(2**40), 2**40, (2, 4, 9, 8)), DRAW.integers(-9, 9, (4, 6, 3, 3))
    want = jtorch.nn.functional.conv_transpose2d(jtorch.tensor(x), jtorch.tensor(w), stride=2).numpy()
    monkeypatch.setattr(conv, "on_cpu", lambda: False)
    monkeypatch.setattr(conv, "on_tpu", lambda: True)
    back = lambda x, w: conv.conv_transpose2d.fn(x, w, stride=2)
    assert "dot_general" not in str(jax.make_jaxpr(back)(x, w))
    np.testing.assert_array_equal(jax.jit(back)(x, w), want)


@pytest.mark.parametrize(
    "op, sizes", [("conv1d", (40,)), ("conv2d", (9, 8)), ("conv_transpose1d", (40,)), ("conv_transpose2d", (9, 8))]
)
@pytest.mark.parametrize("largest", [conv.LARGEST, 20000])
def test_doubles_are_convolved_as_products(op, sizes, largest, monkeypatch):
    """XLA's CPU compiler writes loops of its own for most of them. Large ones go a batch of images at a time."""
    monkeypatch.setattr(conv, "LARGEST", largest)
    x, w = DRAW.standard_normal((6, 20, *sizes)), DRAW.standard_normal((20, 20, *[3] * len(sizes)))
    both = lambda x, w: jax.vjp(lambda x, w: getattr(conv, op).fn(x, w, stride=2), x, w)
    made = lambda x, w: (lambda y, pull: (y, *pull(y)))(*both(x, w))
    text = str(jax.make_jaxpr(made)(x, w))
    assert "conv_general_dilated[" not in text
    x_, w_ = (torch.from_numpy(a).requires_grad_() for a in (x, w))
    y = getattr(torch.nn.functional, op)(x_, w_, stride=2)
    want = y, *torch.autograd.grad(y, (x_, w_), y)
    for a, b in zip(jax.jit(made)(x, w), want):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-10, atol=1e-10)
