"""torch.library: operators of one's own, and what is registered for them.

https://docs.pytorch.org/docs/stable/library.html
"""

import functools
from types import SimpleNamespace

from . import errors, errors_extend, ops
from .aten import OpOverload, namespace
from .core.tags import Tag
from .custom_ops import EARLY, OPERATORS, Operator, leaves
from .dispatch.dispatched import OpOverloadPacket
from .handles import enter, leave, mutations
from .schema import Schema, infer_schema

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel", "impl", "impl_abstract",
    "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip


def _decorator(register):
    """Let a registration be called with the function, or as a decorator without it."""

    @functools.wraps(register)
    def either(*args, **kwargs):
        if "func" in kwargs:
            kwargs["fn"] = kwargs.pop("func")
        fn = kwargs.pop("fn", None)
        *rest, last = args
        if fn is None and callable(last) and not isinstance(last, (type, CustomOpDef, OpOverload, OpOverloadPacket)):
            fn, args = last, tuple(rest)
        elif last is None:
            args = tuple(rest)
        if fn is not None:
            return register(*args, fn, **kwargs)
        return lambda made: register(*args, made, **kwargs)

    return either


def _operator(op) -> Operator:
    """The operator meant by a name, an object from torch.ops or a CustomOpDef."""
    if isinstance(op, CustomOpDef):
        return op._operator
    if isinstance(op, OpOverloadPacket):
        op = op._qualified_op_name
    name = op.name() if isinstance(op, OpOverload) else op
    found = OPERATORS.get(name) or OPERATORS.get(name.removesuffix(".default"))
    if found is None:
        if ops.refused:
            return _Absent()
        raise errors_extend.no_operator(name)
    return found


def _registering(op) -> Operator:
    """The operator meant, for which something is registered: compiled regions may have called it."""
    mutations[0] += 1
    return _operator(op)


def _kernels(op) -> dict:
    """The implementations of an operator, to which one comes; of a name that is not defined yet, those that it will have."""
    mutations[0] += 1
    if isinstance(op, str) and not ops.refused:
        name = op.removesuffix(".default")
        if "::" not in name:
            raise errors_extend.qualified_name(name)
        if name not in OPERATORS:
            return EARLY.setdefault(name, {})
    return _operator(op).kernels


class _Absent:
    """Stands for an operator of a compiled library that could not be loaded: what is registered for it is never asked."""

    schema = SimpleNamespace(arguments=())

    def __init__(self):
        self.kernels, self.autocast, self.classes = {}, {}, {}


def _types(device_types):
    if device_types is None or device_types == "default":
        return ("default",)
    return (_kind(device_types),) if isinstance(device_types, str) else tuple(map(_kind, device_types))


def _kind(key):
    """The device type of a dispatch key that is one of a device; others as they are."""
    return key.lower() if key in ("CPU", "CUDA", "XLA", "Meta") else key


class CustomOpDef:
    """An operator made by custom_op. Call it like the function it was made from."""

    def __init__(self, name, schema, fn, device_types, tags=()):
        self._qualname = name
        self._namespace, _, self._name = name.partition("::")
        self._init_fn = fn
        self._operator = Operator(schema, opaque=True)
        self._operator.kernels |= dict.fromkeys(_types(device_types), fn)
        self._opoverload = self._operator.overload
        self._opoverload._tags = [Tag.pt2_compliant_tag, *tags]
        functools.update_wrapper(self, fn)

    def __call__(self, *args, **kwargs):
        return self._operator(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types, fn=None, /):
        """The implementation for device types; also a decorator."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn, /):
        """The implementation for tensors without elements: shapes and dtypes of the results."""
        return register_fake(self, fn)

    def register_autograd(self, backward, /, *, setup_context=None):
        """The derivative: backward(ctx, *grads), and what setup_context(ctx, inputs, output) keeps for it."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        """The rule of torch.vmap: func(info, in_dims, *args) -> (result, out_dims); also a decorator."""
        return register_vmap(self, func)

    def register_autocast(self, device_type, cast_inputs):
        """Cast floating point arguments under autocast."""
        register_autocast(self, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What a subclass or mode does with this operator; also a decorator."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def set_kernel_enabled(self, device_type, enabled=True):
        """A context in which the kernel for a device type is used, or the default one is used in its place."""
        return _Enabled(self._operator, device_type, enabled)


class _Enabled:
    def __init__(self, operator, device_type, enabled):
        self.operator, self.device_type = operator, device_type
        self.before = set(operator.disabled)
        (operator.disabled.discard if enabled else operator.disabled.add)(device_type)
        self.counts = enter((operator.schema.name, frozenset(operator.disabled)))

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.operator.disabled = self.before
        leave(self.counts)


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """An operator "namespace::name" from a function with annotations; also a decorator.

    Args:
        mutates_args: the names of the arguments that the function writes to, () or "unknown"
        device_types: the devices that the function is for. Default: all
        schema: the schema, where the annotations do not say it
        tags: what is known about the operator: its overload's `tags`

    ValueError: an annotation is missing or of no known type, or the name has no namespace.
    """

    def make(function):
        space, colons, _ = name.partition("::")
        if not colons:
            raise errors_extend.qualified_name(name)
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        for key in [k for k in OPERATORS if k == name]:
            del OPERATORS[key]
        return CustomOpDef(
            name, Schema(name + text.strip().removeprefix(name), space), function, device_types, tags or ()
        )

    return make if fn is None else make(fn)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """An operator like `custom_op`'s whose function may call Triton kernels through `wrap_triton`, which raises: XLA has no Triton."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel, /):
    """Unsupported: there is no Triton under XLA."""
    raise errors.unsupported("Triton kernels", "torch.library.custom_op, with a Pallas kernel inside")


wrap_triton.__unsupported__ = True


def define(qualname, schema, alias_analysis="", *, lib=None, tags=()):
    """Define an operator "namespace::name" by its schema, "(Tensor x, int n=1) -> Tensor"; of a Library, with its implementation."""
    if isinstance(qualname, Library):
        return _defining(qualname, schema, alias_analysis, tags)
    space, colons, _ = qualname.partition("::")
    if not colons:
        raise errors_extend.qualified_name(qualname)
    _define(Schema(qualname + schema, space), tags)
    return None


def _defining(lib, schema, alias_analysis, tags):
    name = lib.define(schema, alias_analysis, tags=tags)

    def decorate(fn):
        lib.impl(name, fn)
        return fn

    return decorate


def _define(schema, tags):
    key = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    if key in OPERATORS:
        raise errors_extend.defined_twice(schema)
    made = Operator(schema, opaque=False)
    made.overload._tags = [tags] if isinstance(tags, Tag) else list(tags)
    return made


def impl(qualname, types, func=None, *, lib=None):
    """An implementation for device types ("cpu", "cuda", "default") or a dispatch key; also a decorator.

    As a decorator impl(lib, name, dispatch_key="") too, of an operator of a Library.
    """
    if isinstance(qualname, Library):

        def decorate(fn):
            qualname.impl(types, fn, func or "")
            return fn

        return decorate

    def register(fn):
        for kind in _types(types):
            _kernels(qualname)[kind] = fn

    return register if func is None else register(func)


@_decorator
def register_kernel(op, device_types, fn, /, *, lib=None):
    """An implementation of an operator for device types, None for all; also a decorator."""
    for kind in _types(device_types):
        _kernels(op)[kind] = fn
    return fn


@_decorator
def register_fake(op, fn, /, *, lib=None, _stacklevel=1, allow_override=False):
    """The implementation for tensors without elements: shapes and dtypes of the results; also a decorator."""
    _registering(op).fake = fn
    return fn


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The old name of `register_fake`."""
    errors.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that instead; we will remove "
        "`torch.library.impl_abstract` in a future version of PyTorch.",
        FutureWarning,
    )
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative of an operator: backward(ctx, *grads) gives one gradient (or None) for each argument.

    setup_context(ctx, inputs, output) keeps for it what it needs; keyword-only arguments come as `keyword_only_inputs`.
    """
    operator = _registering(op)
    if any(a.writes for a in operator.schema.arguments):
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {operator.overload} with schema {operator.schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    operator.backward, operator.setup = backward, setup_context


@_decorator
def register_vmap(op, fn, /, *, lib=None):
    """The rule of torch.vmap: fn(info, in_dims, *args) -> (result, out_dims); also a decorator."""
    _registering(op).vmap = fn


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Cast floating point arguments to `cast_inputs` where autocast is on for a device type."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    _registering(op).autocast[device_type] = cast_inputs


@_decorator
def register_torch_dispatch(op, torch_dispatch_class, fn, /, *, lib=None):
    """What a subclass or mode does with this operator: fn(mode or cls, func, types, args, kwargs); also a decorator."""
    _registering(op).classes[torch_dispatch_class] = fn
    return fn


def fallthrough_kernel():
    """As an implementation: the next one is asked."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class _FakeContext:
    """What a fake kernel may ask for."""

    def new_dynamic_size(self, *, min=0, max=None):
        """Unsupported: the shape of a result has to follow from those of the arguments."""
        raise errors.unsupported("results whose shape depends on values", "a fake kernel with known shapes")

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    """The context of the fake kernel that is running."""
    return _FakeContext()


def get_kernel(op, dispatch_key):
    """The implementation of an operator for a device type, as a function."""
    key = getattr(dispatch_key, "name", dispatch_key)
    return _operator(op).kernel(key.lower())


class Library:
    """Definitions ("DEF", "FRAGMENT") or implementations ("IMPL") of a namespace's operators.

    ValueError: the namespace is reserved, or the kind unknown. RuntimeError: a second "DEF" of one namespace.
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise errors_extend.library_kind(kind)
        if ns == "prim" or (ns in ("_C", "aten") and kind in ("DEF", "FRAGMENT")):
            raise errors_extend.reserved(ns)
        if kind == "DEF" and ns in _defined:
            raise errors_extend.library_twice(ns)
        if kind == "DEF":
            _defined.add(ns)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._names = []
        namespace(ns)

    def define(self, schema, alias_analysis="", *, tags=()):
        """Define an operator by its schema, "op(Tensor x) -> Tensor"; its name."""
        made = _define(Schema(schema, self.ns), tags)
        key = made.schema.name + (f".{made.schema.overload_name}" if made.schema.overload_name else "")
        self._names.append(key)
        return schema.partition("(")[0]

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Register an implementation under a dispatch key ("CPU", "CompositeExplicitAutograd", "Meta", "Autograd")."""
        if self.ns == "aten":
            raise errors.unsupported("other implementations of PyTorch's own operators", "an operator of your own")
        name = op_name.name() if isinstance(op_name, OpOverload) else op_name
        name = name if "::" in name else f"{self.ns}::{name}"
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if fn is fallthrough_kernel:
            return
        if key == "Meta" and name in OPERATORS:
            _operator(name).fake = fn
        _kernels(name)[_kind(key)] = fn

    def fallback(self, fn, dispatch_key="", *, with_keyset=False):
        """Unsupported: one implementation for all operators."""
        raise errors.unsupported("fallbacks of a dispatch key", "torch.overrides.TorchFunctionMode")

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        register_fake(op_name if "::" in op_name else f"{self.ns}::{op_name}", fn)

    def _destroy(self):
        """Take back what was defined here."""
        mutations[0] += 1
        for name in self._names:
            if OPERATORS.pop(name, None) is not None:
                vars(namespace(self.ns)).pop(name.partition("::")[2].partition(".")[0], None)
        self._names = []
        if self.kind == "DEF":
            _defined.discard(self.ns)

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


_defined: set = set()


# --- opcheck ------------------------------------------------------------------------------------------------------------

_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(op, args, kwargs=None, *, test_utils=_TESTS, raise_exception=True, atol=None, rtol=None):
    """Test an operator on sample arguments: that it writes to what its schema says, and that its kernels agree.

    {test: "SUCCESS" or the error}; with raise_exception the first error is raised.
    """
    if not isinstance(op, (CustomOpDef, OpOverload, OpOverloadPacket)):
        raise errors_extend.opcheck_of_what(op)
    test_utils = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(test_utils) <= {*_TESTS, "test_aot_dispatch_static"}:
        raise errors_extend.opcheck_by_what(test_utils)
    operator, kwargs, results = _operator(op), kwargs or {}, {}
    tests = {
        "test_schema": _writes_what_it_says, "test_autograd_registration": _has_a_gradient,
        "test_faketensor": _fake_agrees, "test_aot_dispatch_dynamic": _has_a_gradient,
        "test_aot_dispatch_static": _has_a_gradient,
    }  # fmt: skip
    for name in test_utils:
        try:
            tests[name](operator, args, kwargs)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise errors_extend.opcheck(name, error) from error
            results[name] = error
    return results


def _copied(operator, args, kwargs):
    values = operator.schema.bind(args, kwargs)
    return [
        v.detach().clone().requires_grad_(v.requires_grad)
        if hasattr(v, "requires_grad")
        else type(v)(x.detach().clone() if hasattr(x, "detach") else x for x in v)
        if isinstance(v, (list, tuple))
        else v
        for v in values
    ]


def _writes_what_it_says(operator, args, kwargs):
    values = _copied(operator, args, kwargs)
    before = [[t.detach().clone() for t in leaves([v])] for v in values]
    operator.run(values)
    for argument, value, old in zip(operator.schema.arguments, values, before):
        changed = any(not bool((a.detach() == b).all()) for a, b in zip(leaves([value]), old))
        if changed and not argument.writes:
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")


def _has_a_gradient(operator, args, kwargs):
    values = _copied(operator, args, kwargs)
    results = leaves([operator.run(values)])
    if any(t.requires_grad for t in leaves(values)) and operator.backward is not None:
        for r in results:
            if r.requires_grad:
                r.sum().backward(retain_graph=True)


def _fake_agrees(operator, args, kwargs):
    if operator.fake is None:
        raise errors_extend.no_fake(operator.schema.name)
    values = _copied(operator, args, kwargs)
    real = leaves([operator.run(values)])
    fake = leaves([operator.schema.call(operator.fake, [v.to("meta") if hasattr(v, "to") else v for v in values])])
    for a, b in zip(real, fake, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(
                f"the fake kernel gives {tuple(b.shape)} {b.dtype}, the operator {tuple(a.shape)} {a.dtype}"
            )
