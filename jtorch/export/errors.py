"""What torch.export refuses, in words."""

from .. import errors
from ..compile.failures import UserError


class ConstraintViolationError(RuntimeError):
    """A size of the example inputs is not what dynamic_shapes say it is."""


def not_module(mod) -> ValueError:
    return ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")


def needs_value(name) -> RuntimeError:
    return RuntimeError(
        f"torch.export.export: Could not guard on data-dependent expression: forward asks for a Python value of a tensor ({name}), "
        "so it is not one program\n  use torch.where, torch.cond, or keep the value as a tensor"
    )


def not_captured(why) -> RuntimeError:
    return RuntimeError(f"torch.export.export: forward cannot be shown as one graph: {why}")


def dynamic(why) -> NotImplementedError:
    return errors.unsupported(
        f"dynamic_shapes for this forward: {why}",
        "sizes that forward does not compute with (-1, flatten), or an export for each size",
    )


def decompositions() -> NotImplementedError:
    return errors.unsupported("run_decompositions where sizes may change", "an export for each size")


def unflattened() -> NotImplementedError:
    return errors.unsupported(
        "unflatten: a program does not know its modules", "the module itself, or program.module()"
    )


def no_arguments(args) -> UserError:
    return UserError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")


def keywords(got, want) -> ValueError:
    return ValueError(f"Ran into a kwarg keyword mismatch: Got the following keywords {got} but expected {want}")


def structure(want, got) -> ValueError:
    return ValueError(
        f"Trying to flatten user inputs with exported input tree spec: \n{want}\nbut actually got inputs with tree spec of: \n{got}"
    )


def unsavable(target) -> NotImplementedError:
    return errors.unsupported(
        f"saving a program that calls {target}", "functions of torch alone, or torch.save of the state_dict"
    )


def foreign(path) -> RuntimeError:
    return RuntimeError(
        f"torch.export.load: {path!r} was not written by jtorch's torch.export.save\n"
        "  PyTorch's programs are of ATen operators, which jtorch does not read: export the module again here"
    )


# --- dynamic_shapes ----------------------------------------------------------------------------------------------------


def spec_names(inputs, given) -> UserError:
    return UserError(
        "When `dynamic_shapes` is specified as a dict, its top-level keys must be "
        f"the arg names {inputs} of `inputs`, but here they are {given}. Alternatively, you could also ignore arg names entirely "
        "and specify `dynamic_shapes` as a list/tuple matching `inputs`."
    )


def spec_structure(what) -> UserError:
    return UserError(f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: {what}")


def spec_of_no_tensor(spec, where, kind) -> UserError:
    return UserError(
        f"Cannot associate shape {spec} specified at `dynamic_shapes{where}` to non-tensor type {kind} at `inputs{where}` (expected None)"
    )


def spec_length(spec, where, shape) -> UserError:
    return UserError(
        f"Expected dynamic shape spec {spec} specified at `dynamic_shapes{where}` to have the same length as the actual tensor shape "
        f"{shape} (expected {len(shape)}, but got {len(spec)} instead)"
    )


def spec_of_shape(spec, where) -> UserError:
    return UserError(
        f"Unexpected input tensor shape {spec} specified at `dynamic_shapes{where}` (expected either a list/tuple of dimensions, or a "
        "dict mapping indices to dimensions, where each dimension is an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
    )


def spec_of_dimension(d, spec, where, wanted) -> UserError:
    return UserError(
        f"Unexpected dimension mapped to index {d} in input tensor shape {spec} specified at `dynamic_shapes{where}` (expected None, "
        f"an int, a Dim, Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC,  but got {wanted!r} instead)"
    )


def redefined(first, second) -> UserError:
    return UserError(f"Found different definitions {first} and {second} for the same symbolic dimension {second}!")


def unequal(source, n, other, value) -> UserError:
    return UserError(f"{source} = {n} is not equal to {other} = {value}")


def not_derived(source, name, root, value, n) -> UserError:
    return UserError(f"Expected input {source} to be equal to {name}, where {root} = {value}, but got {n}")


def static_size(want, got, place) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"Static shape constraint of {want} does not match input size of {got}, for {place}"
    )


def out_of_range(value, low, high) -> ConstraintViolationError:
    return ConstraintViolationError(f"{value} not in range [{low}, {high}]")


def specialised(name, value, named=True) -> UserError:
    fixes = f"\nSuggested fixes:\n  {name} = {value}" if named else ""
    return UserError(
        f'Constraints violated ({name})! For more information, run with TORCH_LOGS="+dynamic".\n'
        f"  - You marked {name} as dynamic but your code specialized it to be a constant ({value}). If you're using mark_dynamic, "
        "either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
        f"{fixes}"
    )


def must_be_equal(first, second) -> UserError:
    (first, there), (second, here) = first, second
    return UserError(
        f'Constraints violated ({second})! For more information, run with TORCH_LOGS="+dynamic".\n'
        f"  - The values of {second} = {here} and {first} = {there} must always be equal.\nSuggested fixes:\n  {second} = {first}"
    )


def specialised_hint(hint, n, place) -> ValueError:
    return ValueError(
        "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:\n"
        f"- Received user-specified dim hint Dim.{hint.kind}(min={hint.min}, max={hint.max}), but export 0/1 specialized due to hint of "
        f"{n} for dimension {place}."
    )
