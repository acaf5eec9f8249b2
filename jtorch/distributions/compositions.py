"""Transforms of values with the logarithm of the volume that they stretch: the base, and those made of others."""

import functools
import operator
import weakref

from jtorch import functions as torch
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.utils import lazy_property, sum_rightmost

__all__ = [
    "CatTransform",
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "StackTransform",
    "Transform",
    "_InverseTransform",
    "identity_transform",
]


class Transform:
    """A map of values, invertible where `bijective`, that knows log|det dy/dx|.

    Args:
        cache_size: 1 keeps the last pair (x, y), so that inverting it gives the very x. Default: 0

    A subclass states `domain` and `codomain` (constraints) and writes `_call`, `_inverse` and `log_abs_det_jacobian`.
    Raises ValueError for another cache_size.
    """

    bijective = False

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise errors.cache_size()
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return self.__dict__ | {"_inv": None}  # a weak reference cannot be pickled

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self):
        """The inverse transform, which has this one as its inverse."""
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = self._make_inverse()
            self._inv = weakref.ref(inv)
        return inv

    def _make_inverse(self):
        return _InverseTransform(self)

    @property
    def sign(self):
        """1 or -1: whether a transform of numbers increases or decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """The same transform with this cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    def __ne__(self, other):
        return not self.__eq__(other)

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        kept_x, kept_y = self._cached_x_y
        if x is kept_x:
            return kept_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        kept_x, kept_y = self._cached_x_y
        if y is kept_y:
            return kept_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError

    def _inverse(self, y):
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """log|det dy/dx|, one number for each event."""
        raise NotImplementedError

    def forward_shape(self, shape):
        """The shape of the result for an input of this shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of the input for a result of this shape."""
        return shape

    def __repr__(self):
        return type(self).__name__ + "()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts, cache_size=0):
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._end([(p.domain, p.codomain) for p in reversed(self.parts)])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._end([(p.codomain, p.domain) for p in self.parts])

    @staticmethod
    def _end(steps):
        """The constraint at one end: `steps` are (its side, the other side) from the other end to it."""
        if not steps:
            return constraints.real
        near, event_dim = steps[-1][0], steps[0][1].event_dim
        for here, there in steps:
            event_dim = max(event_dim + here.event_dim - there.event_dim, here.event_dim)
        more = event_dim - near.event_dim
        return constraints.independent(near, more) if more > 0 else near

    @lazy_property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self):
        return functools.reduce(operator.mul, [p.sign for p in self.parts], 1)

    def _make_inverse(self):
        inv = ComposeTransform([p.inv for p in reversed(self.parts)])
        inv._inv = lambda: self  # strong in this direction: the inverse may outlive every other name of us
        return inv

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        event_dim, terms = self.domain.event_dim, []
        for part, a, b in zip(self.parts, values, values[1:]):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(a, b), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"{type(self).__name__}(\n    " + ",\n    ".join(repr(p) for p in self.parts) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` batch dimensions belong to the event."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise errors.too_few_dimensions()
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise errors.too_few_dimensions()
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of shape `in_shape` reshaped to `out_shape`; ValueError where their sizes differ."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        batch = x.shape[: x.dim() - len(self.in_shape)]
        return torch.zeros(batch, dtype=x.dtype, device=x.device)

    @staticmethod
    def _swap(shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise errors.too_few_dimensions()
        if shape[cut:] != old:
            raise errors.shape_mismatch(shape[cut:], old)
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._swap(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._swap(shape, self.out_shape, self.in_shape)


class _Pieces(Transform):
    """Transforms of the pieces of a tensor along one dimension; a subclass cuts it and joins the results."""

    def __init__(self, tseq, dim, cache_size):
        assert all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances"
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _each(self, method, *tensors):
        for t in tensors:
            assert -t.dim() <= self.dim < t.dim(), f"dim {self.dim} out of range for tensor with {t.dim()} dimensions"
        cut = [self._cut(t, name) for t, name in zip(tensors, "xy")]
        return [method(t, *pieces) for t, *pieces in zip(self.transforms, *cut)]

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _call(self, x):
        return self._join(self._each(lambda t, piece: t(piece), x))

    def _inverse(self, y):
        return self._join(self._each(lambda t, piece: t.inv(piece), y))


class CatTransform(_Pieces):
    """Pieces along `dim`, of `lengths` (1 each by default), each with its own transform; results are concatenated."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.transforms), (
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
        )

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The size of the dimension that is cut."""
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _cut(self, t, name):
        n = t.size(self.dim)
        assert n == self.length, f"{name}.size({self.dim}) = {n} must equal length {self.length}"
        return t.split(self.lengths, self.dim)

    def _join(self, pieces):
        return torch.cat(pieces, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        def one(t, a, b):
            return sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)

        found = self._each(one, x, y)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(found, dim=dim) if dim < 0 else sum(found)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Pieces):
    """Slices along `dim`, each with its own transform; results are stacked."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size=1):
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _cut(self, t, name):
        n, want = t.size(self.dim), len(self.transforms)
        assert n == want, f"{name}.size({self.dim}) = {n} must equal len(transforms) {want}"
        return t.unbind(self.dim)

    def _join(self, pieces):
        return torch.stack(pieces, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._join(self._each(lambda t, a, b: t.log_abs_det_jacobian(a, b), x, y))

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
