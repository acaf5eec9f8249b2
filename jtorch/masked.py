"""torch.masked: reductions under a mask, from the op table, and MaskedTensor, a tensor that carries its mask along.

A MaskedTensor is a Tensor of its data on the tape like any other; what is under the mask is computed with and never shown.
"""

import functools
import warnings

from . import functions, overrides
from .core import dtype as dtypes
from .dispatch import override
from .tensor import Tensor

__all__ = sorted({"MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor", *functions.names("masked")})

_UNARY = frozenset(
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip "
    "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan "
    "nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc "
    "clone detach contiguous ones_like zeros_like to float double half long int short char bool type_as __invert__ relu".split()
)
_BINARY = frozenset(
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp "
    "logaddexp2 mul multiply nextafter remainder sub subtract rsub true_divide eq ne le ge greater greater_equal gt less_equal lt less "
    "maximum minimum fmax fmin not_equal __pow__ __rpow__ __rsub__ __rtruediv__ __floordiv__ __mod__ __eq__ __and__ __or__ __xor__ copy".split()
)
_THROUGH = frozenset(
    "select transpose split t slice index expand expand_as view view_as reshape flatten unflatten cat concat stack unsqueeze squeeze unfold permute "
    "movedim swapaxes narrow chunk unbind __getitem__ T mT index_select diagonal flip roll gather repeat".split()
)
_REDUCING = frozenset("sum mean amin amax argmin argmax prod all norm var std".split())
_KEPT = frozenset(
    "shape dtype device layout ndim size dim numel nelement element_size is_leaf requires_grad requires_grad_ grad_fn is_contiguous stride "
    "storage_offset backward register_hook retain_grad retains_grad is_floating_point is_complex is_sparse __len__ __hash__ names data_ptr "
    "output_nr _version is_cuda is_cpu is_meta is_quantized is_mkldnn is_sparse_csr itemsize nbytes is_same_size untyped_storage get_device "
    "register_post_accumulate_grad_hook is_signed _backward_hooks is_inference is_conj is_neg is_pinned __dir__".split()
)
_DTYPES = (
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64,
)  # fmt: skip
_NAMES: dict = {}


def _name(func):
    """The last part of a function's public name, of an operator's the function it stands for."""
    found = _NAMES.get(func)
    if found is None:
        public = (
            (overrides.resolve_name(func) or override.name_of(func)).removesuffix(".__get__").removesuffix(".__set__")
        )
        found = public.rpartition(".")[2]
        found = _NAMES[func] = override.OPERATORS.get(found, found)
    return found


def _plain(x):
    """The data of a MaskedTensor as an ordinary tensor, on the tape; lists are looked into; anything else as it is."""
    if isinstance(x, MaskedTensor):
        return x.as_subclass(Tensor)
    return type(x)(map(_plain, x)) if type(x) in (list, tuple) else x


def _masks(x):
    if isinstance(x, MaskedTensor):
        return x._masked_mask
    return type(x)(map(_masks, x)) if type(x) in (list, tuple) else x


def _wrap(data, mask):
    """A result as a MaskedTensor; of lists, each."""
    if isinstance(data, (list, tuple)):
        return type(data)(map(_wrap, data, mask))
    made = Tensor.as_subclass(data, MaskedTensor)
    made._masked_mask = mask.expand_as(data) if mask.shape != data.shape else mask
    return made


class MaskedTensor(Tensor):
    """A tensor with a boolean mask, True where an element counts.

    Args:
        data: a tensor of floats, integers or booleans; it is copied
        mask: a boolean tensor of the same shape; it is copied
        requires_grad: record gradients. Default: False

    Elementwise functions go over the data and keep the mask; of two operands the masks must be the same (ValueError). Reductions leave
    out what is masked, and mask where nothing is left. Views, cat and stack go over both. TypeError: any other function.
    """

    def __new__(cls, data, mask, requires_grad=False):
        """Copy data and mask."""
        for name, given in (("data", data), ("mask", mask)):
            if isinstance(given, MaskedTensor) or not isinstance(given, Tensor):
                raise TypeError(f"{name} must be a Tensor")
        warnings.warn(
            "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github issue "
            "for features requests and see our documentation on the torch.masked module for further information about the project.",
            UserWarning,
            stacklevel=2,
        )
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
                "data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        _check(data, mask)
        override.arm()
        made = Tensor._make_subclass(cls, data.detach().clone(), requires_grad)
        made._masked_mask = mask.detach().clone()
        return made

    def __init__(self, data, mask, requires_grad=False):
        """Nothing: `__new__` has done it."""

    def get_data(self):
        """The data, what is masked too."""
        return _plain(self)

    @property
    def _masked_data(self):
        return _plain(self)

    def get_mask(self):
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value):
        """An ordinary tensor, with a number where the mask is False."""
        return _plain(self).masked_fill(~self._masked_mask, value)

    def is_sparse_coo(self) -> bool:
        """False: data are dense."""
        return False

    def is_sparse_csr(self) -> bool:
        """False: data are dense."""
        return False

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = _name(func)
        rule = _rule(name)
        with override.disabled():
            if rule is not None:
                return rule(func, name, args, kwargs)
            if name in ("grad", "data"):
                return _attribute(func, args)
            if name in _KEPT or getattr(func, "__name__", "") == "__set__":
                return func(*args, **kwargs)
        return NotImplemented

    def __repr__(self, *, tensor_contents=None):
        with override.disabled():
            data, mask = _plain(self).detach(), self._masked_mask
            if data.dim() == 0:
                there = mask.item()
                return f"MaskedTensor({_number(data.item()) if there else '--'}, {there})"
            lines = _shown(data.tolist(), mask.tolist()).split("\n")
            return "MaskedTensor(\n" + "\n".join("  " + line for line in lines) + "\n)"

    __str__ = __repr__


def _number(x):
    return f"{x:8.4f}" if isinstance(x, float) else str(x)


def _shown(data, mask):
    """Nested lists as text, `--` where the mask is False."""
    if data and isinstance(data[0], list):
        inner = [_shown(d, m).replace("\n", "\n  ") for d, m in zip(data, mask)]
        return "[\n  " + ",\n  ".join(inner) + "\n]"
    words = [_number(d) for d in data]
    width = max((len(w) if there else 8 for w, there in zip(words, mask)), default=0)
    return "[" + ", ".join(w if there else "--".rjust(width) for w, there in zip(words, mask)) + "]"


def _check(data, mask):
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    for name in ("dim", "size"):
        if getattr(data, name)() != getattr(mask, name)():
            raise ValueError(f"data.{name}() must equal mask.{name}()")


# --- what each kind of function does with the masks ---------------------------------------------------------------------


def _same(a, b):
    if isinstance(a, MaskedTensor) and isinstance(b, MaskedTensor):
        one, two = a._masked_mask, b._masked_mask
        if one.dim() != two.dim() or not (one == two).all().item():
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")


def _elementwise(func, name, args, kwargs):
    for a, b in zip(args[:1], args[1:2]):
        _same(a, b)
    result = func(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
    if name.endswith("_") and not name.endswith("__"):
        return args[0]
    return _wrap(result, next(a for a in args[:2] if isinstance(a, MaskedTensor))._masked_mask)


def _through(func, name, args, kwargs):
    return _wrap(func(*map(_plain, args), **kwargs), func(*map(_masks, args), **kwargs))


def _reduction(func, name, args, kwargs):
    self, *rest = args
    data, mask = _plain(self), self._masked_mask
    given = (
        dict(zip(("p", "dim", "keepdim", "dtype") if name == "norm" else ("dim", "keepdim", "dtype"), rest)) | kwargs
    )
    if name == "norm":
        given = {"ord": float(given.pop("p", 2))} | given
    dim, keepdim = given.get("dim"), given.get("keepdim", False)
    left = mask.any() if dim is None else _any(mask, dim, keepdim)
    if name == "all":
        filled = data.masked_fill(~mask, True)
        return _wrap(filled.all() if dim is None else filled.all(dim, keepdim), left)
    return _wrap(functions.lookup("masked", name)(data, mask=mask, **given), left)


def _any(mask, dim, keepdim):
    dims = sorted({d % mask.dim() for d in (dim if isinstance(dim, (tuple, list)) else (dim,))}, reverse=True)
    return functools.reduce(lambda m, d: m.any(d, keepdim), dims, mask)


def _softmax(func, name, args, kwargs):
    given = {k: v for k, v in kwargs.items() if k != "_stacklevel"}
    return _wrap(
        functions.lookup("masked", name)(_plain(args[0]), *args[1:2], mask=args[0]._masked_mask, **given),
        args[0]._masked_mask,
    )


def _where(func, name, args, kwargs):
    condition, *two = (
        args if isinstance(args[0], Tensor) and args[0].dtype is dtypes.bool_ else (args[1], args[0], args[2])
    )
    masks = [x._masked_mask if isinstance(x, MaskedTensor) else functions.ones_like(condition) for x in two]
    where = functions.where
    return _wrap(where(_plain(condition), *map(_plain, two)), where(_plain(condition), *masks))


def _item(func, name, args, kwargs):
    if not args[0]._masked_mask.item():
        raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
    return _plain(args[0]).item()


def _bool(func, name, args, kwargs):
    if args[0].numel() > 1:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(_item(func, name, args, kwargs))


def _dense(func, name, args, kwargs):
    """The layout of a mask is its data's: both are strided here."""
    return _wrap(_plain(args[0]).clone(), args[0]._masked_mask.clone())


def _attribute(func, args):
    found = func(*args)
    return _wrap(found, args[0]._masked_mask) if isinstance(found, Tensor) and len(args) == 1 else found


_RULES = {
    **dict.fromkeys((*_UNARY, *_BINARY), _elementwise), **dict.fromkeys(_THROUGH, _through), **dict.fromkeys(_REDUCING, _reduction),
    "softmax": _softmax, "log_softmax": _softmax, "where": _where, "item": _item,
    "__bool__": _bool, "to_dense": _dense,
}  # fmt: skip


def _rule(name):
    found = _RULES.get(name)
    base = name.removesuffix("_")
    if found is None and not name.endswith("__") and (base in _UNARY or base in _BINARY):
        found = _elementwise
    return found


def is_masked_tensor(obj, /) -> bool:
    """Whether something is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def masked_tensor(data, mask, requires_grad=False) -> MaskedTensor:
    """A MaskedTensor, a new leaf."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask) -> MaskedTensor:
    """A MaskedTensor through which gradients go back to `data`; they are zero where the mask is False."""
    _check(data, mask)
    override.arm()
    return _wrap(data.clone(), mask.detach().clone())


__getattr__, __dir__ = functions.module_attributes("masked", globals())
