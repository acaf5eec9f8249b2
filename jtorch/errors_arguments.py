"""Errors about arguments: ints, flags and dtypes."""

from .errors import _list, c_type, combination, type_name
from .errors_nn import _c_name, legacy_type


def int_element(function: str, name: str, position: int, at: int, got) -> TypeError:
    """Several ints, with something among them that is none: the first is looked at before the others are unpacked."""
    if at:
        return unpacked(function, name, at, f'type must be tuple of ints,but got {type_name(got)}"')
    return TypeError(
        f"{function}(): argument '{name}' (position {position}) must be tuple of ints, but found element of type "
        f"{type_name(got)} at pos {at}"
    )


def unpacked(function: str, name: str, at: int, why: str) -> TypeError:
    """An element of several ints that cannot be made one."""
    return TypeError(f"{function}(): argument '{name}' failed to unpack the object at pos {at + 1} with error \"{why}")


def overflow(function: str | None = None, name: str = "", at: int = 0) -> Exception:
    """An int of more than 64 bits; of several, one that stands at `at`."""
    words = "Overflow when unpacking long long"
    return ValueError(words) if function is None else unpacked(function, name, at, words)


# Functions of which PyTorch has several forms, so that it lists them when none fits.
_MANY_FORMS = frozenset(
    "all any argsort cond count_nonzero cumulative_trapezoid gradient index_fill isin linalg_norm matrix_norm matrix_rank max mean "
    "median min nanmedian nanquantile narrow nuclear_norm pinv quantile repeat_interleave scatter sort "
    "squeeze squeeze_copy std std_mean tensor_split trapezoid var var_mean xlog1py zeta".split()
)
_FORMS_OF_FEW = {"sum": 2, "prod": 2}  # functions with several forms for so many arguments, the tensor among them


def no_such_name(function: str, name: str, given, named, params, method=False) -> TypeError:
    """An argument by a name that is not there, or is there already."""
    if function in _MANY_FORMS or len(given) + len(named) <= _FORMS_OF_FEW.get(function, 0):
        return combination(function, given[method:], f"({', '.join(params)})", named)
    return TypeError(f"{function}() got an unexpected keyword argument '{name}'\n  it has {', '.join(params)}")


def one_by_one(function: str, input, given) -> TypeError:
    """Ints one by one, which the method takes and the function does not."""
    return combination(function, (input, *given), f"(Tensor input, tuple of ints), as in {function}(x, {tuple(given)})")


def given_one_by_one(record, function: str, at: int, args) -> TypeError:
    """The same of a function with one form."""
    most = len([p for p in record.params if p.kind is not p.KEYWORD_ONLY])
    if len(args) > most:
        return TypeError(f"{function}() takes {most} positional arguments but {len(args)} were given")
    return no_tuple(function, record.params[at].name, at + 1, args[at])


def size_element(name, at: int, got, spread: bool) -> TypeError:
    """A size with something in it that is no int; `spread`: given one by one."""
    kind = type_name(got)
    if name is None:
        return TypeError(f"size must be a tuple of ints, but found element of type {kind}")
    what = "shape" if name == "reshape" else "size"
    if not spread:
        return TypeError(
            f"{name}(): argument '{what}' (position 1) must be tuple of ints, but found element of type {kind} at pos {at}"
        )
    if not at:
        return TypeError(f"{name}(): argument '{what}' (position 1) must be tuple of ints, not {kind}")
    return TypeError(
        f"{name}(): argument '{what}' failed to unpack the object at pos {at + 1} with error "
        f'"type must be tuple of ints,but got {kind}"'
    )


def no_tuple(function, name, position, got) -> TypeError:
    """One number, or something else that has no length, where a function wants a tuple of ints."""
    return TypeError(
        f"{function}(): argument '{name}' (position {position}) must be tuple of ints, not {type_name(got)}"
    )


def index_of_a_number() -> IndexError:
    return IndexError(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
        "0-dim tensor to a number"
    )


def no_index(kind: str) -> IndexError:
    return IndexError(
        f"only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got {kind})"
    )


def put_dtypes(kind: str, source: str) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {kind} for the destination and {source} for the source."
    )


def no_dtype(function, name, position, got) -> TypeError:
    return TypeError(f"{function}(): argument '{name}' (position {position}) must be torch.dtype, not {type_name(got)}")


def einsum_dot(place: str) -> RuntimeError:
    """A dot in the labels of "operand 0" or of the "output" that is alone."""
    dots = " (...)" if place == "output" else ""
    return RuntimeError(f"einsum(): found '.' for {place} that is not part of any ellipsis{dots}")


def einsum_second_ellipsis(place: str) -> RuntimeError:
    words = "but an ellipsis (...) was" if place == "output" else "for which an ellipsis was"
    return RuntimeError(f"einsum(): found '.' for {place} {words} already found")


def legacy_device(wanted, got) -> RuntimeError:
    """torch.FloatTensor(2, device="meta") and its like."""
    return RuntimeError(f"legacy constructor expects device type: {wanted.type} but device type: {got.type} was passed")


def legacy_dtype(wanted, got) -> TypeError:
    """torch.FloatTensor(torch.ones(2).double()) and its like."""
    shown = "TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
    shown += "memory_format=(nullopt))"
    return TypeError(f"expected {shown.format(c_type(wanted))} (got {shown.format(c_type(got))})")


def flag(name: str, got) -> TypeError:
    """A flag of any factory that is no bool."""
    return TypeError(f"argument '{name}' must be bool, not {type_name(got)}")


def broadcast_shapes(sizes) -> RuntimeError:
    """Shapes that do not broadcast, by the first one that does not fit those before it."""
    wanted = []
    for at, size in enumerate(sizes):
        wanted = [1] * (len(size) - len(wanted)) + wanted
        for d in range(-1, -len(size) - 1, -1):
            if size[d] not in (1, wanted[d]):
                if wanted[d] != 1:
                    return RuntimeError(
                        f"Attempting to broadcast a dimension of length {size[d]} at {d}! Mismatching argument at index {at} had "
                        f"{tuple(size)}; but expected shape should be broadcastable to {wanted}"
                    )
                wanted[d] = size[d]
    return RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")


def cuts_rank(ndim: int) -> RuntimeError:
    return RuntimeError(
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor "
        f"with {ndim} dims"
    )


def mixed_norm(dtype) -> RuntimeError:
    """Statistics or parameters of batch_norm in another dtype than its input."""
    words = (
        "all inputs must share same datatype."
        if dtype.name == "float64"
        else "expect parameter to have scalar type of Float"
    )
    return RuntimeError(f"mixed dtype (CPU): {words}")


def scan_in_place(have, wanted) -> RuntimeError:
    return RuntimeError(
        f"Bad in-place call: input tensor dtype {_c_name(have)} and output tensor dtype {_c_name(wanted)} should match"
    )


def chance(p) -> RuntimeError:
    return RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


def dim_order(more: str) -> RuntimeError:
    return RuntimeError(f"The tensor does not have unique dim order{more}.")


def expand_rank(shape, target, dtype=None) -> RuntimeError:
    kind = "torch.FloatTensor" if dtype is None else legacy_type(dtype)
    return RuntimeError(
        f"expand({kind}{{{_list(shape)}}}, size={_list(target)}): the number of sizes provided "
        f"({len(target)}) must be greater or equal to the number of dimensions in the tensor ({len(shape)})"
    )
