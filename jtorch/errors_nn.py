"""Public errors of neural-network ops, in the manner of errors.py: PyTorch's type and first line."""

from .errors import _list, dim_range, expand_size, inplace_shape, not_implemented, t_rank, unsupported
from .errors import scalar_name as _name

__all__ = ["dim_range", "expand_size", "inplace_shape", "not_implemented", "t_rank", "unsupported"]

_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "int64": "long int", "int32": "int", "int16": "short int", "int8": "signed char",
    "uint8": "unsigned char", "bool": "bool", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>", "complex32": "c10::complex<c10::Half>", "uint16": "short unsigned int",
    "uint32": "unsigned int", "uint64": "long unsigned int",
}  # fmt: skip


_OLD_CLASSES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half", "float32": "Float",
    "float64": "Double",
}  # fmt: skip


def legacy_type(dtype) -> str:
    """What PyTorch's C++ calls a type of tensors on the CPU: the class from before dtypes where there was one."""
    old = _OLD_CLASSES.get(dtype.name)
    return f"torch.{old}Tensor" if old else f"CPU{_name(dtype)}Type"


def _c_name(dtype) -> str:
    return _C_NAMES.get(dtype.name, dtype.name)


def _size(shape) -> str:
    return f"torch.Size({_list(shape)})"


# dtypes


def same_dtype(a: str, b: str, left, right) -> RuntimeError:
    return RuntimeError(f"{a} and {b} must have the same dtype, but got {_name(left)} and {_name(right)}")


def mm_dtype(left, right) -> RuntimeError:
    return RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_c_name(left)} != {_c_name(right)}")


def mv_dtype(left, right) -> RuntimeError:
    names = f"{_name(right)}, {_name(left)}, and {_name(right)}"
    return RuntimeError(f"addmv input tensors must have the same dtype, but got {names}")


def dot_dtype(left, right) -> RuntimeError:
    return RuntimeError(f"dot : expected both vectors to have same dtype, but found {_name(left)} and {_name(right)}")


def mixed_dtype() -> RuntimeError:
    return RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def result_cast(result, wanted) -> RuntimeError:
    return RuntimeError(f"result type {_name(result)} can't be cast to the desired output type {_name(wanted)}")


def scalar_type(expected, found) -> RuntimeError:
    return RuntimeError(f"expected scalar type {_name(expected)} but found {_name(found)}")


def common_float(dtype) -> RuntimeError:
    return RuntimeError(f"expected common dtype to be floating point, yet common dtype is {_name(dtype)}")


def vector_norm_dtype(dtype) -> RuntimeError:
    return RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {_name(dtype)}")


def exponential_dtype(dtype) -> RuntimeError:
    return RuntimeError(
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point "
        f"but you specified {_name(dtype)}"
    )


def complex_clamp() -> NotImplementedError:
    return NotImplementedError("clamp is not supported for complex types")


def bool_relu() -> RuntimeError:
    return RuntimeError("Boolean inputs not supported for relu")


def bool_hardtanh() -> RuntimeError:
    return RuntimeError("Bool inputs not supported for hardtanh")


def unsigned_hardtanh() -> RuntimeError:
    return RuntimeError("cannot do hardtanh on an unsigned type with negative limits")


def bool_minus(two: bool) -> RuntimeError:
    if two:
        return RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    return RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead."
    )


def bool_neg() -> RuntimeError:
    return RuntimeError(
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead."
    )


def mean_dtype(dtype) -> RuntimeError:
    return RuntimeError(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        f"Got: {_name(dtype)}"
    )


def clamp_cast(dtype) -> RuntimeError:
    return RuntimeError(f"result type Float can't be cast to the desired output type {_c_name(dtype)}")


# losses


def labelled_shape(shape) -> RuntimeError:
    return RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {_list(shape)}")


def multi_margin_target(samples: int, target, input) -> RuntimeError:
    return RuntimeError(
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
        f"Expected target size [{samples}], but got {_list(target)}. Input has shape {_list(input)}."
    )


# linear and bilinear


def linear_ranks(input: int, weight: int) -> RuntimeError:
    return RuntimeError(f"both arguments to linear need to be at least 1D, but they are {input}D and {weight}D")


def matrix_operand(name: str, ndim: int) -> RuntimeError:
    return RuntimeError(f"{name} must be a matrix, got {ndim}-D tensor")


def matmul_shapes(a, b) -> RuntimeError:
    return RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a[0]}x{a[1]} and {b[0]}x{b[1]})")


def mv_shapes(matrix, vector: int) -> RuntimeError:
    rows, columns = matrix
    return RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{columns}), vec ({vector})")


def dot_shapes(a: int, b: int) -> RuntimeError:
    return RuntimeError(
        f"inconsistent tensor size, expected tensor [{a}] and src [{b}] to have the same number of elements, "
        f"but got {a} and {b} elements respectively"
    )


def bmm_shapes(batch: int, rows: int, batch2: int, rows2: int) -> RuntimeError:
    return RuntimeError(
        f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {rows}] but got: "
        f"[{batch2}, {rows2}]."
    )


def bilinear_ranks(a: int, b: int) -> RuntimeError:
    return RuntimeError(f"bilinear(): input dimensions do not match: got {a} and {b}")


def bilinear_lead(dim: int, a: int, b: int) -> RuntimeError:
    return RuntimeError(f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}")


def bilinear_features(which: int, got: int, expected: int) -> RuntimeError:
    return RuntimeError(f"bilinear(): input{which} size does not match weight size: got {got} but expected {expected}")


def bilinear_bias(got: int, expected: int) -> RuntimeError:
    return RuntimeError(f"bilinear(): bias size does not match weight size: got {got} but expected {expected}")


def bilinear_dtypes(a, b, weight, bias) -> RuntimeError:
    return RuntimeError(
        f"All tensors must have the same dtype, got input1: {_c_name(a)}, input2: {_c_name(b)}, "
        f"weight: {_c_name(weight)}{'' if bias is None else f', bias: {_c_name(bias)}'}"
    )


# embeddings


def index_dtype(name: str, dtype, op: str) -> RuntimeError:
    return RuntimeError(
        f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, "
        "Int; but got "
        f"{legacy_type(dtype)} instead (while checking arguments for {op})"
    )


def embedding_rank() -> RuntimeError:
    return RuntimeError("'weight' must be 2-D")


def index_out_of_range() -> IndexError:
    return IndexError("index out of range in self")


def padding_index() -> AssertionError:
    return AssertionError("Padding_idx must be within num_embeddings")


def bag_index(position: int, value: int, rows: int, quick: bool) -> RuntimeError:
    quicks = f"Index {position} of input takes value {value} which is not in the valid range [0, {rows})"
    usual = f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {value}"
    return RuntimeError(quicks if quick else usual)


def bag_first_offset(first: int) -> RuntimeError:
    return RuntimeError(
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
        f"However, got {first}"
    )


def bag_last_offset(last: int, length: int) -> RuntimeError:
    return RuntimeError(f"offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {last}")


def bag_mode() -> ValueError:
    return ValueError("mode has to be one of sum, mean or max")


def bag_max_sparse() -> ValueError:
    return ValueError("max mode does not support sparse weights")


def bag_max_scaled() -> ValueError:
    return ValueError("max mode does not support scaling the gradient by the frequency")


def bag_input_rank(ndim: int) -> ValueError:
    return ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {ndim}")


def bag_offsets_given(offsets) -> ValueError:
    return ValueError(
        "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
        f"sequences. However, found offsets of type {type(offsets)}"
    )


def bag_offsets_missing() -> ValueError:
    return ValueError("offsets has to be a 1D Tensor but got None")


def bag_offsets_rank() -> ValueError:
    return ValueError("offsets has to be a 1D Tensor")


def bag_padding_index(index: int, rows: int) -> RuntimeError:
    return RuntimeError(
        f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {index}"
    )


def bag_weights_shape(got, expected) -> ValueError:
    return ValueError(
        f"embedding_bag: If per_sample_weights ({_size(got)}) is not None, then it must have the "
        "same shape as "
        f"the input ({_size(expected)})"
    )


def bag_weights_mode(mode: str) -> NotImplementedError:
    return NotImplementedError(
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
        f"(got mode='{mode}'). Please open a feature request on GitHub."
    )


def bag_dtype(dtype) -> RuntimeError:
    return RuntimeError(
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
        f"Double; but got {legacy_type(dtype)} instead (while checking arguments for embedding_bag)"
    )


def bag_weights_dtype(weight, samples) -> RuntimeError:
    return RuntimeError(
        "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
        f"'per_sample_weights'; but type torch.{_name(weight)}Tensor does not equal "
        f"torch.{_name(samples)}Tensor "
        "(while checking arguments for embedding_bag)"
    )


# dropout


def dropout_probability(p, kind=ValueError) -> Exception:
    return kind(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout_rank(ndim: int) -> RuntimeError:
    return RuntimeError(
        f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d "
        "exists to provide "
        "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
        "dimension (i.e. 2D or 3D inputs)."
    )


def dropout_rank_warning(name: str, ndim: int, spatial: int) -> str:
    return (
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future "
        "release. To retain the behavior and silence this warning, please use dropout instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial "
        "dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
    )


def dropout2d_three_warning() -> str:
    return (
        "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
        "behavior is desired "
        "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will "
        "change in a "
        "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, "
        "W). To maintain "
        "the 1D channel-wise dropout behavior, please switch to using dropout1d instead."
    )


# activations


def implicit_dim_warning(name: str) -> str:
    return f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument."


def hardtanh_limits() -> ValueError:
    return ValueError("min_val cannot be greater than max_val")


def softshrink_lambda(lambd: float, dtype) -> RuntimeError:
    largest = {"float64": "1.79769e+308", "float16": "65504", "bfloat16": "3.38953e+38"}.get(dtype.name, "3.40282e+38")
    return RuntimeError(f"lambda must be in range [0, {largest}] for input dtype {_name(dtype)}, but found {lambd:g}")


def celu_alpha() -> RuntimeError:
    return RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")


def gelu_approximate() -> RuntimeError:
    return RuntimeError("approximate argument must be either none or tanh.")


def glu_rank() -> RuntimeError:
    return RuntimeError("glu does not support scalars because halving size must be even")


def glu_halves(dim: int, size: int) -> RuntimeError:
    return RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")


def prelu_dtype(input, weight) -> RuntimeError:
    return RuntimeError(f"prelu: Type promoting not supported. Got {_name(input)} and {_name(weight)}")


def prelu_rank(ndim: int) -> RuntimeError:
    return RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {ndim}")


def prelu_scalar() -> RuntimeError:
    return RuntimeError("Not allow zero-dim input tensor.")


def prelu_channels(parameters: int, channels: int) -> RuntimeError:
    return RuntimeError(
        f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {parameters} and "
        f"channel size = {channels}."
    )


def rrelu_bounds() -> RuntimeError:
    return RuntimeError("Lower bound should be less than or equal to the upper bound")


# normalisation


def normalized_shape_empty() -> RuntimeError:
    return RuntimeError(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
        "element, but got "
        "normalized_shape = []"
    )


def normalized_shape(shape, input, star: str) -> RuntimeError:
    inner = ", ".join(map(str, shape))
    return RuntimeError(
        f"Given normalized_shape={_list(shape)}, expected input with shape [*{star}{inner}], but "
        "got input of "
        f"size{_list(input)}"
    )


def affine_shape(name: str, got, shape) -> RuntimeError:
    return RuntimeError(
        f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {_list(got)} and "
        f"normalized_shape = {_list(shape)}"
    )


def group_norm_rank(ndim: int) -> RuntimeError:
    return RuntimeError(f"Expected at least 2 dimensions for input tensor but received {ndim}")


def group_norm_groups(groups: int) -> RuntimeError:
    return RuntimeError(f"Expected num groups to be greater than 0, got {groups}")


def group_norm_channels(shape, groups: int) -> RuntimeError:
    return RuntimeError(
        "Expected number of channels in input to be divisible by num_groups, but got input of shape "
        f"{_list(shape)} and num_groups={groups}"
    )


def channel_vector(name: str, got, input) -> RuntimeError:
    return RuntimeError(
        f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
        f"shape {_list(got)} and input of shape {_list(input)}"
    )


def response_norm_rank(ndim: int) -> ValueError:
    return ValueError(f"Expected 3D or higher dimensionality                          input (got {ndim} dimensions)")


# pooling


def pool_empty(name: str, shape, dim: int) -> RuntimeError:
    return RuntimeError(
        f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {_list(shape)} "
        f"with dimension {dim} being empty"
    )


def pool_batch_empty(name: str, n: int, shape) -> RuntimeError:
    if n == 2:
        return RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{_list(shape)}"
        )
    where = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
    return RuntimeError(
        f"{where}(): Expected input's non-batch dimensions to have positive length, "
        f"but input has a shape of {_list(shape)} and non-batch dimension 0 has length zero!"
    )


def negative_size(target, shape) -> RuntimeError:
    worst = next(t for t in target if t < 0)
    return RuntimeError(f"Trying to create tensor with negative dimension {worst}: {_list(shape)}")


# attention


def attention_ranks(query: int, key: int, value: int) -> RuntimeError:
    return RuntimeError(
        "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
        f"{query} key.dim: {key} and value.dim: {value} instead."
    )


def attention_dtypes(query, key, value) -> RuntimeError:
    return RuntimeError(
        "Expected query, key, and value to have the same dtype, but got query.dtype: "
        f"{_c_name(query)} key.dtype: "
        f"{_c_name(key)} and value.dtype: {_c_name(value)} instead."
    )


def attention_mask_dtype(mask, query) -> RuntimeError:
    return RuntimeError(
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
        f"{_c_name(mask)} and  query.dtype: {_c_name(query)} instead."
    )


def attention_mask_causal() -> RuntimeError:
    return RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")


def attention_groups() -> RuntimeError:
    return RuntimeError("Number of heads in key and value must divide the number of heads in query")
