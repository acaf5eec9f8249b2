"""torch.library: the same operators are defined in both, and what calls of them say is compared."""

import copy

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch

BOTH = {"torch": torch, "jtorch": jtorch}


def sin_op(t, name):
    """An operator that goes through numpy, with a gradient, a fake kernel and a rule for vmap."""

    def sin2(x, k=2.0):
        return t.from_numpy(np.sin(x.detach().numpy() * k))

    sin2.__annotations__ = {"x": t.Tensor, "k": float, "return": t.Tensor}
    op = t.library.custom_op(name, sin2, mutates_args=())
    op.register_fake(lambda x, k=2.0: t.empty_like(x))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]

    op.register_autograd(lambda ctx, g: (g * ctx.k * t.cos(ctx.saved_tensors[0] * ctx.k), None), setup_context=setup)
    return op


def plain_op(t, fn, name, annotations, **options):
    fn.__annotations__ = annotations
    return t.library.custom_op(name, fn, **{"mutates_args": (), **options})


def calls(t):
    op = sin_op(t, "tests_calls::sin2")
    x = t.tensor([0.5, 1.0], requires_grad=True)
    y = op(x)
    y.sum().backward()
    again = t.ops.tests_calls.sin2(x, 3.0), t.ops.tests_calls.sin2.default(x, k=1.0)
    meta = op(t.ones(2, device="meta"))
    names = (
        repr(op),
        str(t.ops.tests_calls.sin2),
        str(t.ops.tests_calls.sin2.default),
        str(t.ops.tests_calls.sin2.default._schema),
    )
    values = [np.round(v.tolist(), 5).tolist() for v in (y, x.grad, *again)]
    return (
        values,
        type(y.grad_fn).__name__,
        meta.device.type,
        tuple(meta.shape),
        names,
        t.ops.tests_calls.sin2.overloads(),
    )


def vmap_rule(t):
    def twice(x):
        return x * 2

    op = plain_op(t, twice, "tests_vmap::twice", {"x": t.Tensor, "return": t.Tensor})
    seen = []

    def rule(info, in_dims, x):
        seen.append((info.batch_size, in_dims))
        return x * 2, in_dims[0]

    op.register_vmap(rule)
    return t.vmap(op)(t.ones(3, 2)).tolist(), seen[-1]


def lists(t):
    def scaled(xs, n):
        return [x * n for x in xs]

    op = plain_op(t, scaled, "tests_lists::scaled", {"xs": list[t.Tensor], "n": int, "return": list[t.Tensor]})

    def setup(ctx, inputs, output):
        ctx.n = inputs[1]

    op.register_autograd(lambda ctx, gs: ([g * ctx.n for g in gs], None), setup_context=setup)
    a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
    out = op([a, b], 3)
    (out[0].sum() + 2 * out[1].sum()).backward()
    return type(out).__name__, [o.tolist() for o in out], a.grad.tolist(), b.grad.tolist()


def two_results(t):
    def both(x, *, k):
        return x * k, x + k

    op = plain_op(t, both, "tests_two::both", {"x": t.Tensor, "k": int, "return": tuple[t.Tensor, t.Tensor]})

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    op.register_autograd(lambda ctx, g, h: g * ctx.k + h, setup_context=setup)
    x = t.ones(2, requires_grad=True)
    p, q = op(x, k=4)
    (p + q).sum().backward()
    return p.tolist(), q.tolist(), x.grad.tolist(), str(t.ops.tests_two.both.default._schema)


def writes(t):
    def inc(x):
        x.add_(1)

    op = plain_op(t, inc, "tests_writes::inc", {"x": t.Tensor, "return": None}, mutates_args={"x"})
    z = t.zeros(2)
    return op(z), z.tolist(), z._version, str(t.ops.tests_writes.inc.default._schema)


def kernels(t):
    def add_one(x):
        return x + 1

    op = plain_op(t, add_one, "tests_kernels::add", {"x": t.Tensor, "return": t.Tensor}, device_types="cuda")
    try:
        op(t.ones(2))
    except NotImplementedError as error:
        said = str(error)[:70]
    op.register_kernel("cpu")(lambda x: x + 2)
    return said, op(t.ones(2)).tolist()


def library(t):
    lib = t.library.Library("tests_lib", "DEF")
    lib.define("foo(Tensor x, int a=2, *, float b=1.5, int[] s=[]) -> Tensor")
    lib.impl("foo", lambda x, a=2, *, b=1.5, s=(): x * a + b, "CompositeExplicitAutograd")
    t.library.define("tests_lib3::bar", "(Tensor x, Tensor? y=None) -> (Tensor, Tensor)")
    t.library.impl("tests_lib3::bar", "cpu")(lambda x, y=None: (x + 1, x - 1))
    t.library.register_fake("tests_lib3::bar")(lambda x, y=None: (t.empty_like(x), t.empty_like(x)))
    first = t.ops.tests_lib.foo(t.ones(2), 3, b=1)
    real, fake = t.ops.tests_lib3.bar(t.ones(2)), t.ops.tests_lib3.bar(t.ones(2, device="meta"))
    grad = t.ops.tests_lib3.bar(t.ones(2, requires_grad=True))[0]
    return first.tolist(), [r.tolist() for r in real], [f.device.type for f in fake], grad.requires_grad, lib.ns


def checked(t):
    return t.library.opcheck(sin_op(t, "tests_opcheck::sin2"), (t.ones(2, requires_grad=True),))


def aten(t):
    x = t.ones(2)
    ops = t.ops.aten
    return (
        ops.add(x, x).tolist(),
        ops.add.Tensor(x, 1).tolist(),
        str(ops.mm.default),
        ops.relu is t.ops.aten.relu,
        ops.add.Tensor._overloadpacket is ops.add.Tensor.overloadpacket is ops.add,
        copy.deepcopy([ops.add, ops.add.Tensor]) == [ops.add, ops.add.Tensor],
        ops._convolution.default.name(),
        repr(ops.add.Tensor),
    )


def aten_internal(t):
    """Names that PyTorch has for operators alone."""
    x, ops = t.tensor([[0.5, -1.0], [2.0, 3.0]]), t.ops.aten
    ones = t.ones(2, 2)
    return [
        *[
            getattr(ops, f"{n}_backward").default(ones, x)
            for n in ("sigmoid", "tanh", "gelu", "silu", "mish", "hardswish")
        ],
        ops.threshold_backward.default(ones, x, 0.0),
        ops._softmax.default(x, 0, False),
        ops._log_softmax.default(x, 1, False),
        ops.embedding_dense_backward.default(x, t.tensor([1, 1]), 3, -1, False),
        ops.select_backward.default(x[0], [2, 2], 0, 1),
        ops.slice_backward.default(x[:1], [3, 2], 0, 1, 3, 2),
        ops.linalg_vector_norm.default(x),
        ops.lift_fresh_copy.default(x),
        ops.equal.default(x, x),
        ops.sym_size.int(x, 0),
    ]


PROGRAMS = [calls, vmap_rule, lists, two_results, writes, kernels, library, checked, aten, aten_internal]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.filterwarnings("ignore")
def test_programs(program):
    assert str(program(jtorch)) == str(program(torch))


ERRORS = {
    "no tensor": lambda t, op: op(3),
    "a type that there is not": lambda t, op: t.library.define("tests_types::f", "(Tensr x, int y) -> Tensor"),
    "a result that there is not": lambda t, op: t.library.Library("tests_types", "FRAGMENT").define("g(Tensor x) -> Tensr"),
    "a name alone": lambda t, op: t.library.Library("tests_types", "FRAGMENT").define("h"),
    "not a float": lambda t, op: op(t.ones(2), "a"),
    "missing": lambda t, op: op(),
    "unknown": lambda t, op: op(t.ones(2), z=1),
    "no operator": lambda t, op: t.ops.tests_errors_nowhere.nope,
    "not annotated": lambda t, op: t.library.infer_schema(lambda x: x, mutates_args=()),
    "reserved": lambda t, op: t.library.Library("prim", "DEF"),
    "kind": lambda t, op: t.library.Library("tests_kind", "XX"),
    "aliases": lambda t, op: plain_op(t, lambda x: x, "tests_alias::same", {"x": t.Tensor, "return": t.Tensor})(t.ones(2)),
    "no formula": lambda t, op: plain_op(t, lambda x: x + 1, "tests_formula::inc", {"x": t.Tensor, "return": t.Tensor})(
        t.ones(2, requires_grad=True)
    ).sum().backward(),
    "no fake": lambda t, op: plain_op(t, lambda x: x + 1, "tests_fake::inc", {"x": t.Tensor, "return": t.Tensor})(
        t.ones(2, device="meta")
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", ERRORS.values(), ids=ERRORS)
def test_errors(wrong, request):
    said = []
    for t in BOTH.values():
        op = sin_op(t, "tests_errors::sin2")
        with pytest.raises(Exception) as error:
            wrong(t, op)
        first = str(error.value).splitlines()[0]
        said.append((type(error.value), first[:60] if "aliases" not in request.node.name else first[-200:][:30]))
    if "aliases" in request.node.name:
        assert all(kind is RuntimeError for kind, _ in said)
    else:
        assert said[0] == said[1]


def schemas(t):
    def one(x: t.Tensor, y: list[t.Tensor], a: int = 1, b: bool = True, c: str = "s", d: t.dtype = t.float32):
        return None

    def two(
        x: t.Tensor | None, y: list[int], z: list[float], w: float = 1.5, *, kw: t.device, q: list[int] | None = None
    ):
        return None

    found = []
    for fn, result in ((one, tuple[t.Tensor, t.Tensor]), (two, list[t.Tensor]), (one, None), (two, int)):
        fn.__annotations__["return"] = result
        found += [t.library.infer_schema(fn, mutates_args=()), t.library.infer_schema(fn, mutates_args={"x"})]
    return found


def test_schemas():
    assert schemas(jtorch) == schemas(torch)


def test_triton_op_without_a_kernel():
    """Its function may choose a formula where there is no GPU; only a kernel of Triton's is refused."""

    def program(t):
        def scaled(x, k=2):
            return x * k

        scaled.__annotations__ = {"x": t.Tensor, "k": int, "return": t.Tensor}
        op = t.library.triton_op("tests_triton::scaled", scaled, mutates_args=())
        op.register_fake(lambda x, k=2: t.empty_like(x))
        op.register_autograd(lambda ctx, g: (g * 2, None))
        x = t.ones(3, requires_grad=True)
        op(x).sum().backward()
        return op(x), t.ops.tests_triton.scaled(x, 5).detach(), x.grad

    both(program)
    with pytest.raises(NotImplementedError, match="does not support Triton kernels"):
        jtorch.library.wrap_triton(None)


def test_numpy_under_vmap():
    """A kernel that needs values is called on the host inside a transformation."""
    op = sin_op(jtorch, "tests_host::sin2")
    x = jtorch.arange(6.0).reshape(3, 2)
    assert jtorch.allclose(jtorch.vmap(op)(x), jtorch.sin(x * 2))


def test_gradients_under_torch_func():
    """PyTorch refuses this; here an operator's formula holds inside torch.func too."""
    op = sin_op(jtorch, "tests_func::sin2")
    x = jtorch.tensor([0.5, 1.0])
    assert jtorch.allclose(jtorch.func.grad(lambda x: op(x).sum())(x), 2 * jtorch.cos(2 * x))


def test_autocast_casts_the_arguments():
    def kind(x):
        return jtorch.tensor(float(x.dtype is jtorch.bfloat16))

    op = plain_op(jtorch, kind, "tests_autocast::kind", {"x": jtorch.Tensor, "return": jtorch.Tensor})
    jtorch.library.register_autocast(op, "cpu", jtorch.bfloat16)
    with jtorch.autocast("cpu"):
        assert op(jtorch.ones(2)).item() == 1.0
    assert op(jtorch.ones(2)).item() == 0.0


def test_registrations_for_operators_of_a_refused_library_are_inert(tmp_path):
    with pytest.raises(OSError, match="cannot run on jtorch"):
        jtorch.ops.load_library(tmp_path / "ops.so")
    try:
        assert jtorch.library.register_fake("absent::nms", len) is len
    finally:
        jtorch.ops.refused.clear()
    with pytest.raises(RuntimeError, match="absent::nms"):
        jtorch.library.register_fake("absent::nms", len)


def overloads(t):
    lib = t.library.Library("tests_overloads", "DEF")
    lib.define("foo(Tensor x, int y=2) -> Tensor")
    lib.define("foo.half(Tensor x, float y) -> Tensor")
    lib.impl("foo", lambda x, y=2: x * y, "CPU")
    t.library.impl(lib, "foo.half", "CPU")(lambda x, y: x - y)
    x = t.ones(2)
    ops = t.ops.tests_overloads
    found = [ops.foo(x), ops.foo(x, 5), ops.foo(x, 2.5), ops.foo(x=x, y=7), ops.foo.half(x, 2.5), ops.foo.default(x, 3)]
    with pytest.raises(AttributeError) as unknown:
        _ = ops.foo.bogus
    t.library.define(lib, "late(Tensor x) -> Tensor")(lambda x: x + 100)
    return (
        [v.tolist() for v in found],
        str(unknown.value),
        ops.late(x).tolist(),
        t.library.define("tests_overloads2::f", "() -> ()"),
    )


def early(t):
    """Implementations that come before the definition."""
    t.library.impl("tests_early::f", ["CPU"], lambda x, n: x * n)
    t.library.impl("tests_early::g", "default", lambda x: x - 1)
    t.library.register_kernel("tests_early::h", "cpu", lambda x: x + 1)
    lib = t.library.Library("tests_early", "FRAGMENT")
    lib.impl("k", lambda x: x + 2, "CPU")
    ops = t.ops.tests_early
    before = [hasattr(ops, n) for n in "fghk"]
    t.library.define("tests_early::f", "(Tensor x, int n) -> Tensor")
    for name in "gh":
        t.library.define(f"tests_early::{name}", "(Tensor x) -> Tensor")
    lib.define("k(Tensor x) -> Tensor")
    x = t.ones(2)
    return before, [y.tolist() for y in (ops.f(x, 3), ops.g(x), ops.h(x), ops.k(x))]


def refusals(t):
    def varied(*x):
        pass

    def written(x, y):
        pass

    def listed(x, y=[1]):
        pass

    tensor, hints = t.Tensor, {"x": t.Tensor, "y": int, "return": t.Tensor}
    varied.__annotations__, written.__annotations__ = {"x": tensor, "return": tensor}, hints
    listed.__annotations__ = hints | {"y": list[int]}
    op = sin_op(t, "tests_refusals::sin2")
    said = []
    for attempt in (
        lambda: t.library.infer_schema(varied, mutates_args=()),
        lambda: t.library.infer_schema(written, mutates_args={"y"}),
        lambda: t.library.infer_schema(written, mutates_args={"z"}),
        lambda: t.library.infer_schema(listed, mutates_args=()),
        lambda: t.library.opcheck(lambda x: x, (t.ones(2),)),
        lambda: t.library.opcheck(op, (t.ones(2),), test_utils="bogus"),
    ):
        with pytest.raises(Exception) as error:
            attempt()
        said.append(
            (type(error.value).__name__, str(error.value).replace("jtorch", "torch").replace("torch.tensor.", "torch."))
        )
    return said


def values_inside_vmap(t):
    def cube(x):
        a = x.numpy()
        return t.tensor(a**3), t.tensor(3 * a**2)

    op = plain_op(t, cube, "tests_cube::cube", {"x": t.Tensor, "return": tuple[t.Tensor, t.Tensor]})
    given = op.register_vmap(lambda info, in_dims, x: (op(x), (in_dims[0], in_dims[0])))
    x = t.arange(6.0).reshape(2, 3)
    runs = t.vmap(op)(x), t.vmap(op, in_dims=1, out_dims=1)(x), t.vmap(t.vmap(op))(x)
    return given, [[r.tolist() for r in run] for run in runs]


def dispatch_of_a_mode(t):
    class Mode(t.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 3

    class Sub(Mode):
        pass

    op = plain_op(t, lambda x: x.clone(), "tests_mode::foo", {"x": t.Tensor, "return": t.Tensor})
    seen = []

    @t.library.register_torch_dispatch("tests_mode::foo", Mode)
    def own(mode, func, types, args, kwargs):
        seen.append((type(mode).__name__, func.name(), kwargs))
        return args[0] + 1

    x = t.ones(2)
    with Mode():
        inside = op(x)
    with Sub():
        other = op(x)
    return op(x).tolist(), inside.tolist(), other.tolist(), seen


def nested_results(t):
    """A list beside a number, a keyword that the rule for vmap is told of, sizes as torch.Size in a derivative of a derivative."""
    ops = t.ops.tests_nested

    def split(x, sizes, *, scale=1):
        return [part * scale for part in x.split(list(sizes))], len(sizes)

    split.__annotations__ = {
        "x": t.Tensor, "sizes": list[int], "scale": int, "return": tuple[list[t.Tensor], int],
    }  # fmt: skip
    op = t.library.custom_op("tests_nested::split", split, mutates_args=())

    def setup(ctx, inputs, output, keyword_only_inputs):
        ctx.scale, ctx.count = keyword_only_inputs["scale"], output[1]

    op.register_autograd(lambda ctx, g, n: (t.cat(g) * ctx.scale, None), setup_context=setup)

    def batched(info, in_dims, x, sizes, *, scale=1):
        (dim, _) = in_dims
        parts = x.movedim(dim, 0).split(list(sizes), 1)
        return ([part * scale for part in parts], len(parts)), ([0] * len(parts), None)

    op.register_vmap(batched)
    shaped = plain_op(
        t, lambda x, size: x.reshape(*size).clone(), "tests_nested::shaped",
        {"x": t.Tensor, "size": list[int], "return": t.Tensor},
    )  # fmt: skip

    def remember(ctx, inputs, output):
        ctx.size = inputs[0].shape

    shaped.register_autograd(lambda ctx, g: (ops.shaped(g, ctx.size), None), setup_context=remember)
    x = t.arange(5.0, requires_grad=True)
    (a, b), n = op(x, [2, 3], scale=3)
    (a.sum() + (b * b).sum()).backward()
    lanes = t.vmap(lambda r: ops.split(r, [1, 2], scale=2)[0][1], in_dims=1)(t.arange(6.0).reshape(3, 2))
    y = t.arange(6.0, requires_grad=True)
    once = t.autograd.grad((ops.shaped(y, [2, 3]) ** 3).sum(), y, create_graph=True)[0]
    twice = t.autograd.grad(once.sum(), y)[0]
    return a.tolist(), b.tolist(), n, type(a.grad_fn).__name__, x.grad.tolist(), lanes.tolist(), twice.tolist()


@pytest.mark.parametrize(
    "program", [overloads, early, refusals, values_inside_vmap, dispatch_of_a_mode, nested_results]
)
def test_like_torch(program):
    assert program(jtorch) == program(torch)


def registered_later(t):
    """A compiled function that calls an operator takes what is registered for it between the calls."""
    given = {"schema": "(Tensor x) -> Tensor", "mutates_args": ()}
    op = t.library.custom_op("tests_later::f", lambda x: x * 2, **given)
    weight = t.nn.Parameter(t.ones(3))
    call, x = (t.compile if t is jtorch else lambda f: f)(lambda x: op(x) + 1), t.ones(3)
    seen = [call(x).tolist() for _ in range(4)]
    op.register_kernel("cpu")(lambda x: x * 5)
    seen += [call(x).tolist() for _ in range(2)]
    with op.set_kernel_enabled("cpu", False):
        seen += [call(x).tolist() for _ in range(2)]
    seen += [call(x).tolist() for _ in range(2)]

    def step(x):
        (grad,) = t.autograd.grad(op(weight).sum(), weight)
        return grad * x

    op.register_autograd(lambda ctx, g: g * 3)
    call = t.compile(step) if t is jtorch else step
    seen += [call(x).tolist() for _ in range(4)]
    op.register_autograd(lambda ctx, g: g * 7)
    return seen + [call(x).tolist() for _ in range(2)]


def test_what_is_registered_later():
    both(registered_later)
