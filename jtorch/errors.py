"""Every public error: one constructor a message, PyTorch's type and first line, then what helps."""

import os
import re
import sys
import warnings

_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep

_SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "complex32": "ComplexHalf", "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2", "float8_e4m3fnuz": "Float8_e4m3fnuz",
    "float8_e5m2fnuz": "Float8_e5m2fnuz", "float8_e8m0fnu": "Float8_e8m0fnu",
}  # fmt: skip


def scalar_name(dtype) -> str:
    """PyTorch's C++ name of a dtype, as its errors and storage classes spell it."""
    return _SCALAR_NAMES[dtype.name]


class LinAlgError(RuntimeError):
    """A matrix has no such factorisation, inverse or solution: torch.linalg.LinAlgError, which calls itself as PyTorch's does."""

    __module__ = "jtorch._C"


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def dim_range(dim: int, ndim: int) -> IndexError:
    n = max(ndim, 1)
    return IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def no_dimension(dim: int, ndim: int) -> IndexError:
    """Where a tensor of no dimension has not even dimension 0."""
    return dim_range(dim, ndim) if ndim else IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def broadcast(a: int, b: int, dim: int) -> RuntimeError:
    return RuntimeError(
        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )


def unsupported(what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"jtorch does not support {what}\n  use {instead} instead")


# shapes and views


def _list(ints) -> str:
    return "[" + ", ".join(map(str, ints)) + "]"


def repeated_dim(dim: int) -> RuntimeError:
    return RuntimeError(f"dim {dim} appears multiple times in the list of dims")


def two_inferred() -> RuntimeError:
    return RuntimeError("only one dimension can be inferred")


def negative_size(size: int, index: int, shape) -> RuntimeError:
    return RuntimeError(f"invalid shape dimension {size} at index {index} of shape {_list(shape)}")


def invalid_shape(shape, numel: int) -> RuntimeError:
    return RuntimeError(f"shape '{_list(shape)}' is invalid for input of size {numel}")


def ambiguous_shape(shape) -> RuntimeError:
    return RuntimeError(
        f"cannot reshape tensor of 0 elements into shape {_list(shape)} because the unspecified "
        "dimension size -1 can be any value and is ambiguous"
    )


def channels_last_rank(ndim: int) -> RuntimeError:
    return RuntimeError(f"required rank 4 tensor to use channels_last format\n  got {ndim} dimensions")


def view_strides() -> RuntimeError:
    return RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans "
        "across two contiguous subspaces). Use .reshape(...) instead."
    )


def t_rank(ndim: int) -> RuntimeError:
    return RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")


def adjoint_rank(ndim: int, name: str) -> RuntimeError:
    return RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")


def matrix_rank(ndim: int, name: str) -> RuntimeError:
    wanted = "matrices or batches of matrices" if name[0] == "m" else "matrices (2-D tensors)"
    batches = f" For batches of matrices, consider using tensor.m{name}" if ndim > 2 else ""
    return RuntimeError(f"tensor.{name} is only supported on {wanted}. Got {ndim}-D tensor.{batches}")


def permute_length(ndim: int, given: int) -> RuntimeError:
    return RuntimeError(
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
        f"desired ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {given}"
    )


def permute_repeated() -> RuntimeError:
    return RuntimeError("permute(): duplicate dims are not allowed.")


def expand_leading(size: int, dim: int) -> RuntimeError:
    return RuntimeError(
        f"The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {dim}"
    )


def expand_size(size: int, old: int, dim: int, target, shape) -> RuntimeError:
    return RuntimeError(
        f"The expanded size of the tensor ({size}) must match the existing size ({old}) at non-singleton "
        f"dimension {dim}.  Target sizes: {_list(target)}.  Tensor sizes: {_list(shape)}"
    )


def scalar_input(name: str) -> IndexError:
    return IndexError(f"{name}() cannot be applied to a 0-dim tensor.")


def select_range(index: int, shape, dim: int) -> IndexError:
    return IndexError(f"select(): index {index} out of range for tensor of size {_list(shape)} at dimension {dim}")


def slice_step() -> RuntimeError:
    return RuntimeError("slice step must be positive")


def narrow_scalar() -> RuntimeError:
    return RuntimeError("narrow() cannot be applied to a 0-dim tensor.")


def narrow_length() -> RuntimeError:
    return RuntimeError("narrow(): length must be non-negative.")


def narrow_start(start: int, size: int) -> IndexError:
    return IndexError(f"start out of range (expected to be in range of [-{size}, {size}], but got {start})")


def narrow_range(start: int, length: int, size: int) -> RuntimeError:
    return RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")


def diagonal_dims(dim1: int, dim2: int) -> RuntimeError:
    return RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")


def unfold_size(size: int) -> RuntimeError:
    return RuntimeError(f"size is {size} but must be >= 0")


def unfold_step(step: int) -> RuntimeError:
    return RuntimeError(f"step is {step} but must be > 0")


def unfold_range(dim: int, length: int, size: int) -> RuntimeError:
    return RuntimeError(f"maximum size for tensor at dimension {dim} is {length} but size is {size}")


def unflatten_empty() -> RuntimeError:
    return RuntimeError("unflatten: sizes must be non-empty")


def unflatten_sizes(sizes, dim: int, length: int) -> RuntimeError:
    return RuntimeError(
        f"unflatten: Provided sizes {_list(sizes)} don't multiply up to the size of dim {dim} ({length}) "
        "in the input tensor"
    )


def unflatten_failed(cause: str) -> RuntimeError:
    return RuntimeError(f"unflatten got an unexpected error:\n{cause}")


def stride_length() -> RuntimeError:
    return RuntimeError("mismatch in length of strides and shape")


def negative_stride(strides) -> RuntimeError:
    return RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {_list(strides)}")


def storage_bounds(shape, strides, offset: int, itemsize: int, needed: int, numel: int) -> RuntimeError:
    """`needed` and `numel` count elements: what the layout spans, and what the storage holds."""
    return RuntimeError(
        f"setStorage: sizes {_list(shape)}, strides {_list(strides)}, storage offset {offset}, and itemsize "
        f"{itemsize} requiring a storage size of {needed * itemsize} are out of bounds for storage of size "
        f"{numel * itemsize}"
    )


def chunk_count(chunks: int) -> RuntimeError:
    return RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")


def split_scalar(name: str = "split") -> RuntimeError:
    return RuntimeError(f"{name} expects at least a 1-dimensional tensor")


def split_negative(size: int) -> RuntimeError:
    return RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")


def split_zero(length: int) -> RuntimeError:
    return RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")


def split_sizes_negative(sizes) -> RuntimeError:
    return RuntimeError(
        f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={_list(sizes)}"
    )


def split_sizes_sum(sizes, length: int, dim: int) -> RuntimeError:
    return RuntimeError(
        f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
        f"{dim}), but got split_sizes={_list(sizes)}"
    )


def tensor_split_scalar(ndim: int) -> RuntimeError:
    return RuntimeError(f"tensor_split expected at least a 1-dimensional tensor, but got a tensor with {ndim} dims")


def sections(count: int) -> RuntimeError:
    return RuntimeError(f"number of sections must be larger than 0, got {count}")


def directed_split_rank(name: str, least: int, ndim: int) -> RuntimeError:
    return RuntimeError(
        f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!"
    )


def directed_split_size(name: str, dim: int, length: int, parts: int) -> RuntimeError:
    return RuntimeError(
        f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {length} "
        f"is not divisible by the split_size {parts}!"
    )


def movedim_count(source, destination) -> RuntimeError:
    return RuntimeError(
        f"movedim: Invalid source or destination dims: source ({_list(source)} dims) should contain the same "
        f"number of dims as destination ({_list(destination)} dims)"
    )


def movedim_repeated(name: str, dims) -> RuntimeError:
    return RuntimeError(f"movedim: repeated dim in `{name}` ({_list(dims)})")


def is_ours(file: str) -> bool:
    """Whether a source file is one of jtorch's."""
    return file.startswith(_ROOT)


def warn(message: str, category=UserWarning) -> None:
    """Warn at the first frame outside jtorch."""
    level, frame = 2, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_ROOT, "<jtorch ")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def warn_once(message: str) -> None:
    """Warn as `warn` does, but only the first time in this process."""
    if message not in _said or said_always:
        _said.add(message)
        warn(message)


_said: set = set()
said_always = False  # what torch.set_warn_always was told


def type_name(value) -> str:
    """The name of a value's type in PyTorch's errors about arguments: torch.dtype, with its module, of its own types and numpy's."""
    cls = type(value)
    return getattr(cls, "_shown", f"numpy.{cls.__name__}" if cls.__module__ == "numpy" else cls.__name__)


def argument(function: str, name: str, expected: str, got, position=None) -> TypeError:
    """An argument of the wrong type; its position (from 1) where it may be given by position."""
    where = "" if position is None else f" (position {position})"
    return TypeError(f"{function}(): argument '{name}'{where} must be {expected}, not {type_name(got)}")


def inplace_shape(name: str, have, got) -> RuntimeError:
    """A result in place that has another shape than what it is written to."""
    if name in ("addmm", "addmv", "baddbmm"):
        return RuntimeError(
            f"Bad in-place call: input tensor size {list(have)} and output tensor size {list(got)} should match"
        )
    return RuntimeError(f"output with shape {list(have)} doesn't match the broadcast shape {list(got)}")


def out_count(wanted: int, got: int) -> TypeError:
    return TypeError(f"expected tuple of {wanted} elements but got {got}")


def no_complex(d) -> RuntimeError:
    spelled = re.sub("^(qu|u|q)?int", lambda found: f"{(found[1] or '').upper()}Int", d.name)
    return RuntimeError(
        f"Unknown Complex ScalarType for {_SCALAR_NAMES.get(d.name) or spelled[0].upper() + spelled[1:]}"
    )


def missing_argument(function: str, name: str) -> TypeError:
    return TypeError(f'{function}() missing 1 required positional arguments: "{name}"')


def combination(function: str, given, wanted: str, named=(), indent=2) -> TypeError:
    """Arguments that fit none of an op's forms; `wanted` says what would. named: those given by name."""
    kinds = ", ".join([*map(type_name, given), *(f"{k}={type_name(v)}" for k, v in dict(named).items())])
    kinds += ", " if named and not given else ""
    return TypeError(
        f"{function}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
        + " " * indent
        + wanted
    )


def incompatible_data(other) -> RuntimeError:
    return RuntimeError(
        "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.\n  the layout cannot "
        f"change: got {getattr(other, 'layout', type(other).__name__)}"
    )


def unhashable(function: str) -> TypeError:
    return TypeError(
        f"{function}() received an invalid combination of arguments: one of a type that it knows nothing of"
    )


def from_kernel(function: str, error: Exception) -> Exception:
    """An error of shape inference that no check has foreseen."""
    if isinstance(error, ZeroDivisionError):
        return RuntimeError("ZeroDivisionError")
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    return RuntimeError(f"{function}(): {first}")


_C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def c_type(d) -> str:
    """The C++ type of a dtype, as some of PyTorch's messages spell it."""
    return _C_TYPES.get(d.name, d.name)


def out_dtype(expected, got, words=None) -> RuntimeError:
    """out= of another dtype than the result's; `words` may use {want}, {have} and their C++ types {c_want}, {c_have}."""
    words = words or "Expected out tensor to have dtype {c_want}, but got {c_have} instead"
    return RuntimeError(
        words.format(want=scalar_name(expected), have=scalar_name(got), c_want=c_type(expected), c_have=c_type(got))
    )


def not_implemented(kernel: str, dtype) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


def division_by_zero() -> RuntimeError:
    return RuntimeError("ZeroDivisionError")


def unsupported_range(start, end) -> RuntimeError:
    return RuntimeError(f"unsupported range: {start} -> {end}")


def integer_power() -> RuntimeError:
    return RuntimeError("Integers to negative integer powers are not allowed.")


def probability() -> RuntimeError:
    return RuntimeError(
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
        "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
    )


def negative_std(std) -> RuntimeError:
    return RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


_CAST_NAMES = {"int8": "int8_t", "int16": "int16_t", "int32": "int", "int64": "int64_t", "uint8": "uint8_t"}


def not_representable(d) -> RuntimeError:
    """A Python number that a dtype cannot hold."""
    return RuntimeError(f"value cannot be converted to type {_CAST_NAMES.get(d.name, c_type(d))} without overflow")


def overlap() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
        "Please clone() the tensor before performing the operation."
    )


def list_element(index: int, got, position: int = 0) -> TypeError:
    return TypeError(f"expected Tensor as element {index} in argument {position}, but got {type_name(got)}")


def input_overlap() -> RuntimeError:
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
        "Please clone() the tensor before performing the operation."
    )


def call(function: str, error: Exception) -> TypeError:
    return TypeError(f"{function}(): {error}")


# view ops


def narrow_tensor() -> RuntimeError:
    return RuntimeError("start must be an 0-dim integral Tensor.")


def split_type(got) -> TypeError:
    return TypeError(
        f"split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not {type_name(got)}"
    )


def cuts_missing() -> TypeError:
    return TypeError('tensor_split() missing 1 required positional arguments: "indices_or_sections"')


def cuts_dtype(dtype) -> RuntimeError:
    name = {"int32": "Int", "int16": "Short", "float32": "Float", "float64": "Double"}.get(dtype.name, dtype.name)
    return RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {name}")


def grad_dtype(got: str, want: str) -> RuntimeError:
    return RuntimeError(
        f"attempting to assign a gradient with dtype '{got}' to a tensor with grad_dtype '{want}'. The gradient must match the "
        "tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific "
        "dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may "
        "break downstream systems that assume they match."
    )


def view_made(made, edge, indirect=False) -> RuntimeError:
    """A write to a view (or, indirect, to its base) that the way it was made forbids.

    made: ("multi", result number), ("function", result number), ("no_grad", 0) or ("inference", 0).
    """
    how, k = made
    if how == "function":
        name = "" if edge is None else edge[0].name().removesuffix("Backward")
        written = "its base or another view of its base has been" if indirect else "is being"
        return RuntimeError(
            f"Output {k} of {name} is a view and {written} modified inplace. This view was created inside a custom Function (or "
            "because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom "
            "backward associated with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can "
            "fix this by cloning the output of the custom Function."
        )
    written = "its base or another view of its base has been" if indirect else "is being"
    if how == "multi":
        if edge is None:
            return RuntimeError(
                f"A view was created in no_grad mode and {written} modified inplace with grad mode enabled. This view is the "
                "output of a function that returns multiple views. Such functions do not allow the output views to be modified "
                "inplace. You should replace the inplace operation by an out-of-place one."
            )
        name = edge[0].name().rstrip("0123456789").removesuffix("Backward")
        return RuntimeError(
            f"Output {k} of {name} is a view and {written} modified inplace. This view is the output of a function that "
            "returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace "
            "the inplace operation by an out-of-place one."
        )
    mode = {"no_grad": "no_grad", "inference": "inference"}[how]
    where = "with grad mode enabled" if how == "no_grad" else "in normal mode"
    return RuntimeError(
        f"A view was created in {mode} mode and {written} modified inplace {where}. Given that this use case is ambiguous and "
        "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside "
        f"the {mode}{'_mode' if how == 'inference' else ''} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked)."
    )


def inference_inplace() -> RuntimeError:
    return RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
        "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
    )


def inferred_complex(name: str, dtype) -> RuntimeError:
    return RuntimeError(
        f"torch.{name}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {scalar_name(dtype)}"
    )
