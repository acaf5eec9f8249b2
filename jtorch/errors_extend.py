"""Errors of what extends jtorch from outside: __torch_function__, __torch_dispatch__, custom operators."""


def no_override(name, types, modes) -> TypeError:
    """All that were asked returned NotImplemented."""
    lines = [f"  - mode object {m!r}" for m in modes] + [f"  - tensor subclass {t!r}" for t in types]
    return TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "\n".join(lines)
    )


def foreign(name, function, tensor) -> TypeError:
    """A tensor of one library met a function of the other."""
    return TypeError(
        f"{name} of {function} was given a tensor of {tensor}\n"
        "  jtorch.from_numpy(t.numpy()) and torch.from_numpy(t.numpy()) take tensors from one to the other"
    )


def not_a_subclass() -> TypeError:
    return TypeError(
        "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
        "inherits from Tensor."
    )


def needs_torch_dispatch(cls) -> TypeError:
    return TypeError(f"{cls.__name__} must define __torch_dispatch__")


def no_values(name, cls) -> RuntimeError:
    which = f", got {cls.__name__}" if name == "tolist" else "."
    return RuntimeError(
        f".{name}() is not supported for tensor subclasses{which}\n  a {cls.__name__} made by _make_wrapper_subclass has no elements of "
        "its own: unwrap it first"
    )


def no_dispatch(func, classes, mode=None) -> TypeError:
    asked = [] if mode is None else [f"  - mode object {mode!r}"]
    return TypeError(
        f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
        + "\n".join([*asked, *(f"  - tensor subclass {c!r}" for c in classes)])
    )


def no_cast(found) -> RuntimeError:
    """A `__torch_dispatch__`, or a kernel, gave something that is no tensor."""
    return RuntimeError(f"Unable to cast {found} to Tensor")


def no_result_expected(name) -> RuntimeError:
    return RuntimeError(
        f"Expected PythonKernelHolder for {name} to return None but it returned something else instead."
    )


def mode_of_class(name) -> RuntimeError:
    """This method of a mode is one of its class."""
    return RuntimeError(
        f"Defining your mode's `{name}` as a classmethod is not supported, please make it a plain method"
    )


def uninitialized(func) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
        "explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a "
        "dummy batch to initialize the parameters before calling torch functions"
    )


def no_implementation(name, types, modes) -> TypeError:
    """As `no_override`, for functions that ask by themselves."""
    nor = "".join(f" nor was it found on the currently active mode {m}" for m in modes)
    return TypeError(
        f"no implementation found for '{name.replace('jtorch', 'torch', 1)}' on types that implement __torch_function__: "
        f"{list(types)}{nor}"
    )


# names of torch that are not what they are there


def removed(advice) -> RuntimeError:
    return RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {advice}")


def not_sparse(name, layout) -> RuntimeError:
    return RuntimeError(f"{name} expected {layout} layout but got Strided")


def no_kernel(name) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.\n  it takes quantized or nested tensors, which "
        "jtorch does not have: use dense tensors"
    )


def size_range(size, low, high) -> RuntimeError:
    return RuntimeError(f"Invalid value range for {size} between [{low}, {high}].")


def cond_pred(pred) -> RuntimeError:
    return RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")


def cond_pred_shape(pred) -> RuntimeError:
    return RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")


def cond_functions(name="cond") -> RuntimeError:
    return RuntimeError(
        "Expect both branches to be callable." if name == "cond" else "Expect cond_fn and body_fn to be callable."
    )


def cond_operands(operands) -> RuntimeError:
    return RuntimeError(
        f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}."
    )


def loop_carried(given) -> RuntimeError:
    return RuntimeError(f"Expect carried_inputs to be a tuple or list, got {type(given)}.")


def loop_leaf(leaves) -> AssertionError:
    kinds = tuple(type(x) for x in leaves)
    return AssertionError(f"{leaves} can only be of (<class 'torch.Tensor'>, <class 'int'>) but got {kinds}")


def loop_condition(got) -> RuntimeError:
    return RuntimeError(
        "torch.while_loop: unsupported cond_fn return type\n"
        f"  Explanation: Expected cond_fn to return a scalar tensor or a bool but got {got}."
    )


def _shown(x):
    if not hasattr(x, "dtype"):
        return str(x)
    kind = "" if str(x.dtype) == "torch.float32" else f", dtype={x.dtype}"
    return f"FakeTensor(..., size={tuple(x.shape)}{kind})"


def loop_count(names, lhs, rhs) -> RuntimeError:
    left, right = (f"[{', '.join(map(_shown, side))}]" for side in (lhs, rhs))
    return RuntimeError(
        f"Expected {' and '.join(names)} to have same number of outputs but got lhs:{left} and rhs:{right}"
    )


def loop_pair(names, pairs) -> RuntimeError:
    lines = (f"pair[{k}] differ in {what}, where lhs is {_shown(a)} and rhs is {_shown(b)}" for k, what, a, b in pairs)
    return RuntimeError(f"Expected {' and '.join(names)} to have same metadata but found:\n" + "\n".join(lines))


def loop_mutation(name) -> RuntimeError:
    return RuntimeError(
        f"Encountered input mutation during higher order op tracing\n  Higher Order Operator: {name}\n"
        "  Hint: the function must not write to its arguments; give a new tensor back"
    )


def scan_returns(made) -> RuntimeError:
    return RuntimeError(
        "torch.scan: improper combine_fn number of returns\n"
        f"  Explanation: Expect combine_fn to return a tuple (next_carry, y) but got {made}."
    )


def short_file(filename, size) -> RuntimeError:
    return RuntimeError(f"unable to mmap {size} bytes from file <{filename}>: it is shorter")


def fake_range(low, high) -> RuntimeError:
    return RuntimeError(f"`quant_min` should be less than or         equal to `quant_max`.\n  got {low} and {high}")


def fake_zero_point(low, high) -> RuntimeError:
    return RuntimeError(f"`zero_point` must be between `quant_min` and `quant_max`.\n  between {low} and {high}")


def fake_channels(name, got, want) -> RuntimeError:
    return RuntimeError(
        f"dimensions of {name} are not consistent with input tensor\n  got {got} channels, expected {want}"
    )


def rearrange(pattern, what) -> ValueError:
    return ValueError(f"Invalid pattern {pattern!r}: {what}")


# custom operators


def bad_schema(text) -> RuntimeError:
    return RuntimeError(f"expected an operator's schema, such as 'op(Tensor x, int n=1) -> Tensor', but found {text!r}")


_SCHEMA_TYPES = "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/README.md#func"


def schema_type(text, base, at) -> RuntimeError:
    """A type in a schema that there is not; `at`: where in its text."""
    return RuntimeError(
        "\nunknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar; for a full list, "
        f"please see {_SCHEMA_TYPES} :\n{text}\n{' ' * at}{'~' * len(base)} <--- HERE\n"
    )


def schema_name_only() -> RuntimeError:
    return RuntimeError("Tried to parse a function schema but only the operator name was given")


def infer(words, signature) -> ValueError:
    return ValueError(f"infer_schema(func): {words} Got func with signature {signature})")


def too_many_values(schema, want, got) -> RuntimeError:
    if any(a.by_name for a in schema.arguments):
        what = f"takes {want} positional argument(s) but {got} was/were given.  Declaration: {schema}"
    else:
        what = f"expected at most {want} argument(s) but received {got} argument(s). Declaration: {schema}"
    return RuntimeError(f"{schema.name}() {what}")


def missing_value(schema, argument) -> RuntimeError:
    return RuntimeError(f"{schema.name}() is missing value for argument '{argument.name}'. Declaration: {schema}")


def unknown_value(schema, name) -> RuntimeError:
    return RuntimeError(f"Unknown keyword argument '{name}' for operator '{schema.name}'. Schema: {schema}")


def wrong_value(schema, argument, position, value, kind) -> RuntimeError:
    kind = f"List[{kind}]" if argument.many else kind
    return RuntimeError(
        f"{schema.name}() Expected a value of type '{kind}' for argument '{argument.name}' but instead found type "
        f"'{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: {schema}"
    )


def no_implementation_of(name, backend) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the operator doesn't exist "
        "for this backend.\n  register one: torch.library.register_kernel, torch.library.impl"
    )


def no_fake(name) -> RuntimeError:
    return RuntimeError(
        f"There was no fake impl registered for {name}. This is necessary for torch.compile/export/fx tracing to work. Please use "
        "`register_fake` to add an fake impl."
    )


def no_formula(name) -> RuntimeError:
    return RuntimeError(
        f"Trying to backward through {name} but no autograd formula was registered. Please use register_autograd to add one."
    )


def aliasing_output(name) -> RuntimeError:
    return RuntimeError(
        f"{name}: The output of this custom operator (1) must not also be an input to this custom operator and (2) may not alias any "
        "inputs to this custom operator or other returns. The most common way to trigger this error is if we have y = custom_op(x) "
        "and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s)"
    )


def defined_twice(schema) -> RuntimeError:
    return RuntimeError(
        f"Tried to register an operator ({schema}) with the same name and overload name multiple times. Each overload's schema "
        "should only be registered with a single call to def()."
    )


def library_twice(namespace) -> RuntimeError:
    return RuntimeError(
        f"Only a single TORCH_LIBRARY can be used to register the namespace {namespace}; please put all of your definitions in a "
        "single TORCH_LIBRARY block."
    )


def reserved(namespace) -> ValueError:
    return ValueError(f"{namespace} is a reserved namespace. Please try creating a library with another name.")


def library_kind(kind) -> ValueError:
    return ValueError(f"Unsupported kind: {kind}")


def qualified_name(name) -> ValueError:
    return ValueError(f"Expected `{name}` to be of the form 'namespace::name'.")


def no_operator(name) -> RuntimeError:
    return RuntimeError(
        f"operator {name} does not exist\n  define it with torch.library.custom_op or torch.library.define first"
    )


def opcheck(test, error) -> RuntimeError:
    return RuntimeError(f"opcheck({test}): {type(error).__name__}: {error}")


# types of schemas, text checks, and other small classes of torch._C


def no_constructor(name) -> TypeError:
    return TypeError(f"torch._C.{name}: No constructor defined!")


def not_unified(words) -> RuntimeError:
    return RuntimeError(words)


def text_check(words) -> RuntimeError:
    """What FileCheck says when the text is not as expected."""
    return RuntimeError(words)


def wrong_item(kind, want, value) -> TypeError:
    return TypeError(f"expected a {kind} of type {want}, got {value!r} of {type(value).__name__}")


def too_few(numel, there) -> ValueError:
    return ValueError(f"numel ({numel}) is greater than input.numel() ({there})")


def fake_axis() -> RuntimeError:
    return RuntimeError("Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0")


def no_part(module, name) -> RuntimeError:
    return RuntimeError(f"Module of type {type(module).__name__} has no part {name!r} of this kind")


def not_registered() -> TypeError:
    return TypeError("pybind11::init(): factory function returned nullptr")


def ir_syntax(what, text, at) -> RuntimeError:
    """What reading a graph says, with the place."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    return RuntimeError(f"{what} here:\n{line}\n{' ' * (at - start)}~ <--- HERE")


def used_value(name, uses) -> RuntimeError:
    return RuntimeError(f"%{name} is used by {uses} nodes: replace its uses before it is removed")


def no_attribute(name, node) -> RuntimeError:
    return RuntimeError(f"required keyword attribute '{name}' is undefined: {node} has none of this name")


def wrong_arguments(name, signature, given) -> TypeError:
    return TypeError(
        "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
        f"    1. torch._C.{name}({signature})\n\nInvoked with: {', '.join(map(repr, given))}"
    )


def type_comment(words) -> RuntimeError:
    """What reading a comment of types says."""
    return RuntimeError(words)


def no_overload_to_keep(op) -> ValueError:
    """An entry of a selective checkpoint's list that is no operator with its signature."""
    more, cls = "", str(type(op))
    if hasattr(op, "overloads"):
        cls = "<class 'torch._ops.OpOverloadPacket'>"
        more = (
            "Please update the OpOverloadPacket to a specific OpOverload."
            "For example, if you have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
        )
    return ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {cls}. {more}")


def not_seen_before(op, at) -> RuntimeError:
    """A selective checkpoint's second time calls an operator once more than the first."""
    where = (
        f" invocation index {at} encountered during backward but not found"
        if at
        else " encountered during backward but not found in"
    )
    return RuntimeError(
        f"{op}{where}{' in' if at else ''} storage. This can happen if the operations in the checkpointed region are nondeterministic "
        "or depend on global state that changed between forward and backward."
    )


def handed_out_already() -> RuntimeError:
    """A second backward pass through a selective checkpoint that keeps something."""
    return RuntimeError(
        "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
        "checkpoint."
    )


def opcheck_of_what(op) -> ValueError:
    """opcheck of what is no operator."""
    return ValueError(
        f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
    )


def opcheck_by_what(test_utils) -> ValueError:
    """opcheck by a test that there is not."""
    return ValueError(
        f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of ('test_schema', "
        "'test_autograd_registration', 'test_faketensor', 'test_aot_dispatch_static', 'test_aot_dispatch_dynamic') but it was not"
    )
