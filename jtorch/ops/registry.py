"""The record of an op: its kernel, promotion, names and derivative. Knows arrays and specs, never Tensor."""

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import jax

from .. import errors

__all__ = [
    "ALIASES",
    "FLOAT",
    "NONE",
    "OPS",
    "PROMOTE",
    "VIEWS",
    "UNKNOWN",
    "ZERO",
    "Array",
    "Key",
    "Number",
    "Op",
    "Scalar",
    "VarInts",
    "View",
    "composite",
    "op",
    "view",
]

Array = jax.Array


class Scalar:
    """Annotation: a tensor or a Python number that takes part in promotion; the kernel sees an array."""


class Number:
    """Annotation: a Python number that may vary from step to step; the kernel sees a number or a 0-d array."""


class Key:
    """Annotation: a random key drawn from the generator at each call (uint32, shape (2,)); see core/rng.py."""


class VarInts:
    """Annotation: a tuple of ints, also accepted spread over the positional arguments."""


class _Marker:
    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


class Unwritten(_Marker):
    """A derivative that PyTorch names without having it: the node bears its name, and to run it is an error."""


class Part:
    """One of the derivatives that one rule gives for several arguments."""

    __slots__ = ("index", "rule")

    def __init__(self, rule, index):
        self.rule = rule
        self.index = index

    def __call__(self, **args):
        return self.rule(**args)[self.index]


ZERO = _Marker("ZERO")  # a derivative that exists and vanishes
UNKNOWN = _Marker("UNKNOWN")  # a derivative that PyTorch says it does not have, when it is asked for
NONE = _Marker("NONE")  # promotion: arguments are passed as they come
PROMOTE = _Marker("PROMOTE")  # promotion: tensors and scalars to their common dtype
FLOAT = _Marker("FLOAT")  # promotion: as PROMOTE, integers and bools to the default float dtype

OPS: dict[str, "Op"] = {}
VIEWS: dict[str, "View"] = {}
COMPOSITES: dict[str, "Composite"] = {}
ALIASES: dict[str, str] = {}

TENSOR, OPTIONAL, LIST, SCALAR, NUMBER, STATIC, KEY = range(7)


def _role(annotation) -> int:
    if annotation is Array:
        return TENSOR
    if annotation is Scalar:
        return SCALAR
    if annotation is Number:
        return NUMBER
    if annotation is Key:
        return KEY
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if args and Array in args:
        if origin in (list, tuple):
            return LIST
        return OPTIONAL
    if args and Scalar in args:
        return SCALAR
    if args and any(typing.get_args(a) and Array in typing.get_args(a) for a in args):
        return LIST
    return STATIC


def _targets(name: str, where: str | None, aliases, default: str) -> list[str]:
    spaces = (where if where is not None else default).split()
    out = []
    for space in spaces:
        head, _, last = space.rpartition(".")
        if space in SPACES:
            out += [f"{space}.{n}" for n in (name, *aliases)]
        elif head in SPACES:
            out.append(f"{head}.{last}")
        else:
            raise ValueError(f"unknown namespace {space!r} of op {name}")
    return out


SPACES = (
    "torch", "Tensor", "nn.functional", "linalg", "fft", "special", "signal.windows", "masked", "_C._nn", "sparse",
)  # fmt: skip


# Of the functions of nn.functional those that PyTorch has in C or that hand their tensor to one, and factories.
_IN_C = frozenset(
    "avg_pool2d avg_pool3d gelu linear logsigmoid softplus softshrink tril_indices triu_indices batch_norm functional_dropout "
    "functional_alpha_dropout feature_alpha_dropout one_hot pad".split()
)

_NOTHING = contextlib.nullcontext()
# Modules whose kernels have no loops of jax's, which would be unrolled (a jnp function with one goes under `jax.disable_jit(False)`).
_WITHOUT_LOOPS = frozenset(
    "activation arithmetic attention batchnorm compare create einsum join linear logic loss margins matmul norm reduce rounding vectors".split()
)

# Called instead of the kernel when an argument is a Tensor; set by dispatch, which alone knows Tensor.
tensor_call: Callable[["Record", tuple, dict], Any] | None = None
tensor_type: type = _Marker  # until dispatch names Tensor: a class that no argument has
# What looks tables up with sparse gradients: a module, imported by the first call; set above, where sparse tensors are known.
sparse_tables: Callable[[], Any] | None = None


def _has_tensor(args, kwargs) -> bool:
    for a in args:
        if isinstance(a, tensor_type):
            return True
        if type(a) in (list, tuple) and a and isinstance(a[0], tensor_type):
            return True
    return bool(kwargs) and any(isinstance(a, tensor_type) for a in kwargs.values())


class Record:
    """What ops, views and composites share: a name, a signature and the public names derived from it."""

    kind = ""
    # A method that PyTorch's function, one in Python, calls on each of its tensors first, or on some: "size of input target".
    asked: str | None = None

    def __init__(self, fn, *, where=None, aliases=(), default="torch Tensor", name=None):
        self.fn = fn
        self.name = name or fn.__name__.rstrip("_")
        self.aliases = tuple(aliases)
        self.doc = fn.__doc__
        self.targets = _targets(self.name, where, aliases, default)
        self.__doc__ = fn.__doc__
        self.__name__ = self.name
        self.__module__ = fn.__module__

    # Read at first use: looking at a thousand signatures would double the time of the import.
    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.fn, eval_str=True)

    @functools.cached_property
    def params(self) -> tuple:
        return tuple(self.signature.parameters.values())

    @functools.cached_property
    def roles(self) -> tuple[int, ...]:
        return tuple(_role(p.annotation) for p in self.params)

    @functools.cached_property
    def keywords(self) -> tuple[int, tuple[str, ...]]:
        """How many parameters go by position, and the names of the others."""
        named = tuple(p.name for p in self.params if p.kind is p.KEYWORD_ONLY)
        return len(self.params) - len(named), named

    @functools.cached_property
    def shown(self) -> str:
        """The name in errors: torch.special.zeta is special_zeta there, linalg.inv linalg_inv."""
        space = self.targets[0].partition(".")[0] if self.targets else ""
        names = [t.rpartition(".")[2] for t in self.targets]
        name = self.name if self.name in names or not names else names[0]
        prefixed = space in ("special", "linalg", "fft") and f"torch.{name}" not in self.targets
        return f"{space}_{name}" if prefixed and not name.startswith(f"{space}_") else name

    @functools.cached_property
    def strict(self) -> bool:
        """Whether PyTorch's function is one in C, which takes no int for a bool; its functions in Python do."""
        return self.name in _IN_C or any(
            t.partition(".")[0] in ("torch", "Tensor", "linalg", "fft", "special") for t in self.targets
        )

    @functools.cached_property
    def _unnested(self) -> bool:
        return self.__module__.rpartition(".")[2] in _WITHOUT_LOOPS

    def tracing(self):
        """The context in which its kernel and derivatives are traced: jax.numpy's functions in place, and not each as a jit of its
        own, which takes longer for each new shape. Not where jax would unroll loops for that."""
        return jax.disable_jit() if self._unnested else _NOTHING

    def arguments(self, args, kwargs) -> dict:
        """{parameter: value} of a call, defaults included."""
        given = self.signature.bind(*args, **kwargs)
        given.apply_defaults()
        return given.arguments

    def ask_first(self, name, got):
        """Call what PyTorch's function calls first on this argument, which is no tensor: that it has no such method is Python's error."""
        if self.asked is not None:
            method, _, of = self.asked.partition(" of ")
            if not of or name in of.split():
                getattr(got, method)()

    def invoke(self, fn, values):
        """Call `fn`, which has this record's signature, with a value for each parameter."""
        n, named = self.keywords
        return fn(*values) if not named else fn(*values[:n], **dict(zip(named, values[n:])))

    def __repr__(self):
        return f"<{self.kind} {self.name}>"

    def __call__(self, *args, **kwargs):
        """On arrays the kernel itself; on tensors the recorded, differentiable call."""
        if _has_tensor(args, kwargs):
            return tensor_call(self, args, kwargs)
        try:
            return self.apply(*args, **kwargs)
        except (AttributeError, TypeError, ValueError):
            for at, (p, role, a) in enumerate(zip(self.params, self.roles, args), 1):
                if a is None and role in (TENSOR, SCALAR):
                    raise errors.argument(self.shown, p.name, "Tensor", a, at) from None
            raise

    def apply(self, *args, **kwargs):
        return self.fn(*args, **kwargs)


class Op(Record):
    """One operator: a pure function of arrays and static values, and everything derived from it."""

    kind = "op"

    def __init__(
        self,
        fn,
        *,
        promote=NONE,
        aliases=(),
        where=None,
        inplace=None,
        out=True,
        differentiable=True,
        hidden=0,
        elementwise=None,
        strides=None,
        grad_name=None,
        dynamic=False,
        constant=(),
        apart=False,
        silent=False,
        lacks=None,
        numbers=False,
        follows_out=False,
        in_copy=False,
        wide=None,
        by_numpy=None,
        name=None,
    ):
        super().__init__(fn, where=where, aliases=aliases, name=name)
        self.promote = promote
        self.elementwise = (promote is not NONE) if elementwise is None else elementwise
        self.inplace = self.elementwise if inplace is None else inplace
        self.out = out
        self.differentiable = differentiable
        self.hidden = hidden
        self.strides = strides
        self.grad_name = grad_name or camel(self.name) + "Backward0"
        self.dynamic = dynamic
        self.constant = constant  # results that never have a gradient
        self.apart = apart  # out= may not share memory with the operands
        self.silent = silent  # returns nothing when called with out=
        self.follows_out = follows_out  # computes in the dtype of out=; "wider": where that is wider
        self.in_copy = in_copy  # the result lies in a copy of the first operand's memory, as that operand does
        self.numbers = numbers  # may be called without any tensor
        self.wide = wide  # the argument whose single number a kernel of 16-bit floats takes in float32
        self.by_numpy = by_numpy  # (arrays, dim): joins many arrays at hand without a program
        self.untracked = False  # in place it asks nothing of a leaf: PyTorch knows no derivative of it at all
        self.lacks = {} if lacks is None else _lacking(lacks)
        self.rules: dict[str, Callable | _Marker] = {}
        self.rule_args: dict[str, tuple[str, ...]] = {}
        self.checks: list[Callable] = []
        self.value_checks: list[Callable] = []
        self.sized = False  # whether these ask the first operand for its shape alone: it is a Spec to them
        self.plans: dict[tuple, Any] = {}
        # key and numbers past int64 of calls that were let through -> numbers as computed with
        self.passed: dict[tuple, tuple] = {}
        self.guarded: dict[str, bool] = {}
        self.barred: dict[str, Any] = {}  # what `bars` says
        self.keeps_history = 0  # 1: refused for what needs a gradient where dtype= makes a result that can have none
        # Of a dynamic op: whether its result is elements of its first operand, as its tangent is of that one's.
        self.picks = False
        # Whether tangents follow from its rules, turned around: where jax's derivative of the kernel is another at kinks.
        self.transposed = False
        # (operands, their tangents, numbers) -> the result's tangent, of a kernel that jax has no forward derivative of
        self.tangents = None
        self.expanded: Callable | None = None
        # (arguments) -> arguments or None, asked at each call: for what is another call, once values are looked at. Set above.
        self.prepare: Callable | None = None
        # Of a dynamic op: (its tensors) -> its result or None, for operands that are traced while what the shape depends on is not.
        self.of_traced: Callable | None = None
        self.own_in_place: Callable | None = None  # the rule of `derives_in_place`
        self.by_result_in_place = False
        self.unpromoted: tuple = ()  # names of arguments that come as they are, while the others are promoted
        self.promotes: Callable | None = None  # promotion that depends on the static arguments: their dict -> kind
        self.order: Callable | None = None
        self.passes = 0  # how often the kernel goes through its operands, where that is what takes its time
        self.channels: str | None = None  # whether it convolves, or has the channels where convolutions do
        self.light = False  # whether it may convolve where they lie (`channel_order.stays`)

    def vjp(self, **rules) -> "Op":
        """State the derivative by argument; each rule's parameter names are what the tape keeps."""
        for arg, rule in rules.items():
            self.rules[arg] = rule
            self.rule_args[arg] = () if isinstance(rule, _Marker) else _names(rule)
        return self

    def vjp_together(self, names, rule) -> "Op":
        """State one rule for several arguments (`names`, with spaces), which gives their derivatives in this order; it is traced once."""
        for i, arg in enumerate(names.split()):
            self.rules[arg] = Part(rule, i)
            self.rule_args[arg] = _names(rule)
        return self

    def guards(self, **which) -> "Op":
        """Say which arguments and results (`out`, `out1`) must not (True) or may (False) be written to before backward, where
        PyTorch's derivative keeps others than ours: what ours keeps can't change, so this is a matter of errors alone. A function is
        asked for each kind of call, with {argument: Spec or value}; None: as it is without."""
        self.guarded |= which
        return self

    def bars(self, **arguments) -> "Op":
        """Say which arguments may not need a gradient, each with the name that PyTorch's error has for the function, or with
        (call) -> that name or None. A call is a dict as `guards` sees it. It is asked for once per plan and kind of gradient."""
        self.barred |= arguments
        return self

    def lack(self, **kernels) -> "Op":
        """Add to what `lacks=` says: the dtypes for which PyTorch has no such kernel."""
        self.lacks |= _lacking(kernels)
        return self

    def check(self, fn):
        """Add a check of metadata: called like the kernel, with a Spec in the place of each array."""
        self.checks.append(fn)
        return fn

    def backward_order(self, fn):
        """Say in which order the gradients of the arguments are handed on: fn(Specs of the operands) gives the names."""
        self.order = fn
        return fn

    def on_expanded(self, fn):
        """Let the in-place form write to a tensor whose elements share memory: fn gives the arguments that write each once."""
        self.expanded = fn
        return fn

    def derives_in_place(self, refuse=None, by_result=False):
        """Say that PyTorch has another derivative of the in-place form: its node's name ends in 1. refuse: (the call's arguments by
        name) -> None, or a function that makes the error with which that derivative ends. by_result: it is of the result, which must
        not be written to again."""
        self.own_in_place = refuse or (lambda call: None)
        self.by_result_in_place = by_result
        return self

    def check_values(self, fn):
        """Add a check of values already on the host: called like the kernel, with numpy arrays or None."""
        self.value_checks.append(fn)
        return fn


class View(Record):
    """One view: a function from a Layout and static values to a Layout (or a tuple of Layouts)."""

    kind = "view"

    def __init__(self, fn, *, grad_name=None, spread=False, **kw):
        super().__init__(fn, **kw)
        self.grad_name = grad_name or camel(self.name) + "Backward0"
        self.spread = spread  # whether the ints of its one static argument may be given one by one, as a single one may
        self.plans: dict[tuple, Any] = {}
        self.checks: list[Callable] = []

    check = Op.check

    def apply(self, *args, **kwargs):
        """On a plain array: the same view of its contiguous layout, read at once."""
        return read_view(self, *args, **kwargs)


class Composite(Record):
    """A function written with other ops; it is called as it stands. With `out`, its results can be written to out=."""

    kind = "composite"

    def __init__(self, fn, *, out=False, row_major=False, **kw):
        super().__init__(fn, **kw)
        self.out = out
        self.row_major = row_major  # an empty out= that is resized gets row-major strides, not the result's


read_view: Callable = None  # set by ops.views
# a tensor's value as numpy; None where it cannot be known yet. Set by dispatch
host_value: Callable = lambda x, slices=False: None


_CATEGORIES = {
    "int": ("uint8", "int8", "int16", "int32", "int64"),
    "half": ("float16", "bfloat16"),
    "float": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex32", "complex64", "complex128"),
}


def _lacking(kernels: dict[str, str]) -> dict[str, str]:
    """{kernel: dtypes or categories} -> {dtype: kernel}."""
    found = {}
    for kernel, kinds in kernels.items():
        for name in kinds.split():
            found |= dict.fromkeys(_CATEGORIES.get(name, (name,)), kernel)
    return found


def _names(rule) -> tuple[str, ...]:
    code = rule.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _register(table, record):
    if record.name in OPS or record.name in VIEWS or record.name in COMPOSITES:
        raise ValueError(f"{record.name} is registered twice")
    table[record.name] = record
    for alias in record.aliases:
        ALIASES[alias] = record.name
    return record


def op(fn=None, **options) -> Any:
    """Register a kernel as an op. See docs/architecture.md for the options."""
    if fn is None:
        return lambda f: op(f, **options)
    return _register(OPS, Op(fn, **options))


def view(fn=None, **options) -> Any:
    """Register a function Layout -> Layout as a view op."""
    if fn is None:
        return lambda f: view(f, **options)
    return _register(VIEWS, View(fn, **options))


def composite(fn=None, **options) -> Any:
    """Register a function over tensors, written with ops, under its public names."""
    if fn is None:
        return lambda f: composite(f, **options)
    return _register(COMPOSITES, Composite(fn, **options))
