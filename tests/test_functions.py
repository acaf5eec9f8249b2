"""The generated functions: namespaces, aliases, names, documentation."""

import inspect
import pickle

import numpy as np
import pytest

import jtorch
from jtorch import functions
from jtorch.ops import registry
from tests import oracle
from tests.oracle import both

torch = oracle.torch


def test_aliases_are_the_same_op():
    for alias, name in registry.ALIASES.items():
        spaces = {"torch": jtorch, "Tensor": jtorch.Tensor}
        for target in registry.OPS.get(name, registry.VIEWS.get(name, registry.COMPOSITES.get(name))).targets:
            space, _, last = target.rpartition(".")
            if last == alias and space in spaces:
                assert hasattr(spaces[space], alias), target


@pytest.mark.parametrize("space", ["nn.functional", "linalg", "fft", "special"])
def test_namespaces(space):
    holder = jtorch
    for part in space.split("."):
        holder = getattr(holder, part)
    names = [
        t.rpartition(".")[2]
        for r in (*registry.OPS.values(), *registry.VIEWS.values(), *registry.COMPOSITES.values())
        for t in r.targets
        if t.rpartition(".")[0] == space
    ]
    missing = [n for n in names if not hasattr(holder, n)]
    assert names and not missing, missing


def test_functions_look_like_functions():
    assert jtorch.exp.__name__ == "exp"
    assert jtorch.Tensor.exp_.__name__ == "exp_"
    assert jtorch.exp.__doc__ == registry.OPS["exp"].doc
    assert "input" in inspect.signature(jtorch.exp).parameters
    assert jtorch.exp is jtorch.exp


def test_function_and_method_agree():
    def program(t):
        x = t.linspace(0.1, 2, 6).view(2, 3)
        names = [
            "exp",
            "log",
            "sum",
            "mean",
            "t",
            "abs",
            "sin",
            "cumsum",
            "softmax",
            "std",
            "argmax",
            "unsqueeze",
            "flip",
        ]
        extra = {"cumsum": (1,), "softmax": (0,), "unsqueeze": (1,), "flip": ((0,),)}
        return [(getattr(t, n)(x, *extra.get(n, ())), getattr(x, n)(*extra.get(n, ()))) for n in names]

    both(program)


def test_in_place_functions():
    both(
        lambda t: [
            t.relu_(t.tensor([-1.0, 1.0])),
            t.nn.functional.relu_(t.tensor([-1.0])),
            t.exp_(t.zeros(2)),
            t.sqrt_(t.ones(1)),
        ]
    )


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        getattr(jtorch, "frobnicate")  # noqa: B009


def test_addbmm_in_place_grows():
    def program(t):
        x, y = t.ones(1), t.ones(2, 2)
        same = x.addbmm_(t.ones(2, 2, 3), t.ones(2, 3, 2)) is x
        return same, x, x.stride(), y.addbmm_(t.ones(2, 2, 3), t.ones(2, 3, 2), beta=2, alpha=3)

    both(program)


def test_casts_take_a_memory_format():
    both(lambda t: [getattr(t.ones(2, 3, 2, 3), n)(memory_format=t.channels_last) for n in ("double", "bool", "half")])


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_statistics_of_native_norms(kind):
    """In float32 where a parameter is float32; those of layer_norm and batch_norm have no gradient."""

    def program(t):
        x = t.arange(12.0).reshape(2, 6).bfloat16().requires_grad_()
        w = t.ones(6, dtype=getattr(t, kind))
        layer = t.native_layer_norm(x, (6,), w, w, 1e-5)
        group = t.native_group_norm(x[..., None], w, w, 2, 6, 1, 2, 1e-5)
        batch = t.native_batch_norm(x, w, w, w.clone(), w.clone(), True, 0.1, 1e-5)
        return [[(str(r.dtype).rpartition(".")[2], r.requires_grad) for r in part] for part in (layer, group, batch)]

    both(program)


def test_copies_of_views_return_nothing_with_out():
    def program(t):
        pairs, single = [t.empty(2), t.empty(2)], [t.empty(()), t.empty(())]
        return t.split_copy(t.arange(4.0), 2, out=pairs), t.unbind_copy(t.arange(2.0), out=single), pairs, single

    both(program)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float8_e4m3fn"])
def test_scaled_products(kind):
    def program(t):
        a = (t.arange(6 * 16.0).reshape(6, 16) % 7 - 3).to(t.float8_e4m3fn)
        b = (t.arange(16 * 32.0).reshape(32, 16) % 5 - 2).to(t.float8_e4m3fn).t()
        one, two = t.tensor(0.5), t.tensor(3.0)
        rows, columns = t.linspace(0.5, 2, 6)[:, None], t.linspace(1, 2, 32)[None]
        d = getattr(t, kind)
        made = [t._scaled_mm(a, b, one, two, out_dtype=d)]
        if kind == "bfloat16":
            made += [t._scaled_mm(a, b, rows, columns, out_dtype=d)]
        return [m.float() for m in made], [str(m.dtype).rpartition(".")[2] for m in made]

    both(program)


def test_scaled_products_refuse():
    both(lambda t: t._scaled_mm(t.ones(2, 16), t.ones(16, 16), t.tensor(1.0), t.tensor(1.0)))


def test_gradient_of_a_grid_that_lies_on_the_pixels():
    """The identity puts every point on a pixel, where the last bit of its place decides from which side the slope is taken."""

    def slopes(T):
        T.manual_seed(0)
        x, theta = T.randn(1, 1, 28, 28), T.eye(2, 3)[None].requires_grad_()
        grid = T.nn.functional.affine_grid(theta, x.shape, align_corners=False)
        T.nn.functional.grid_sample(x, grid, align_corners=False).square().sum().backward()
        return theta.grad.numpy()

    np.testing.assert_allclose(slopes(jtorch), slopes(torch), rtol=1e-4)


def test_functions_of_namespaces_are_pickled_by_name():
    """Models keep functions as attributes, and loaders' workers and checkpoints of whole models pickle them."""
    F, linalg = jtorch.nn.functional, jtorch.linalg
    for fn in (F.gelu, F.relu, F.kl_div, F.cross_entropy, F.max_pool2d, linalg.norm, linalg.svd, jtorch.fft.fft, jtorch.special.erf, jtorch.add,
               jtorch.atleast_2d, jtorch.sum, jtorch.Tensor.add):  # fmt: skip
        assert pickle.loads(pickle.dumps(fn)) is fn, fn


def _reply(call):
    """Whether a call with out= is taken; a TypeError means that there is no such argument."""
    try:
        call()
    except TypeError:
        return "refused"
    return "taken"


# Each is called with out= besides, a fresh tensor of the dtype of its result.
WITH_OUT = {
    "methods": "x.add(1) x.exp() x.sum(0) x.clamp(0) x.cumsum(0) x.softmax(0) x.matmul(x) x.flip(0) x.tile(2) x.ne(1)",
    "functions": "t.add(x,1) t.exp(x) t.relu(x) t.selu(x) t.celu(x) t.det(x) t.logdet(x) t.trace(x) t.matrix_exp(x) t.cdist(x,x) "
    "t.diagflat(x) t.diag_embed(x) t.flip(x,(0,)) t.roll(x,1) t.rot90(x) t.vander(x[0]) t.masked_fill(x,x>0,1.0) t.argsort(x) "
    "t.index_fill(x,0,i,1.0) t.index_add(x,0,i,x[:1]) t.index_copy(x,0,i,x[:1]) t.put(x,i,x[0,:1]) t.index_put(x,(i,),x[0]) "
    "t.masked_scatter(x,x>0,x) t.select_scatter(x,x[0],0,0) t.slice_scatter(x,x) t.diagonal_scatter(x,x[0]) t.bincount(i) "
    "t.chain_matmul(x,x) t.native_channel_shuffle(x[None,None],1) t.pixel_shuffle(x[None],1) t.softmax(x,0)",
    "spaces": "t.linalg.det(x) t.linalg.matrix_exp(x) t.linalg.vander(x) t.special.softmax(x,0) t.special.log_softmax(x,0) "
    "t.special.logsumexp(x,0) t.fft.fftshift(x) t.fft.ifftshift(x) t.linalg.inv(x)",
    "nn": "f.relu(x) f.elu(x) f.celu(x) f.selu(x) f.glu(x) f.silu(x) f.mish(x) f.hardtanh(x) f.hardswish(x) f.leaky_relu(x) f.gelu(x) "
    "f.softplus(x) f.softshrink(x) f.hardshrink(x) f.logsigmoid(x) f.linear(x,x) f.normalize(x) f.threshold(x,0,1) "
    "f.adaptive_avg_pool2d(x[None],1) f.avg_pool2d(x[None],2) f.bilinear(x,x,x[None]) f.pixel_shuffle(x[None],1) f.prelu(x,x[0,:1])",
}


@pytest.mark.parametrize("kind", WITH_OUT)
def test_what_takes_out(kind):
    for call in WITH_OUT[kind].split():
        code = compile(f"{call[:-1]}{'' if call[-2] == '(' else ', '}out=out)", call, "eval")

        def program(t, code=code, call=call):
            scope = {"t": t, "f": t.nn.functional, "x": t.eye(2) + 1, "i": t.tensor([0])}
            scope["out"] = t.empty(0, dtype=eval(call, scope).dtype)
            return call, _reply(lambda: eval(code, scope))

        both(program)


def test_operators_take_out_where_functions_do_not():
    both(lambda t: [f.out(t.eye(2) - 1, out=t.empty(0)) for f in (t.ops.aten.relu, t.ops.aten.silu, t.ops.aten.trace)])


def test_methods_are_in_the_class_where_super_looks():
    assert {n for n in functions.names("Tensor") if not n.startswith("__")} <= set(vars(jtorch.Tensor))

    def program(t):
        class Whole(t.Tensor):
            def roll(self, *args):
                return super().roll(*args)

            def turned(self):
                return super().rot90()

        class Mixin:
            def cumprod(self, *args):
                return super().cumprod(*args)

        class Mixed(Mixin, t.Tensor):
            pass

        class Asked(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                said.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs)

            def logcumsumexp(self, *args):
                return super().logcumsumexp(*args)

        said = []
        x = t.arange(1.0, 5.0)
        yield x.as_subclass(Whole).roll(1)
        yield t.eye(2).as_subclass(Whole).turned()
        yield x.as_subclass(Mixed).cumprod(0)
        yield x.as_subclass(Asked).logcumsumexp(0)
        yield list(said)
        for missing in ("nothing", "__getattr__"):
            try:
                getattr(x, missing)
            except AttributeError as error:
                yield str(error)

    both(lambda t: list(program(t)))
