"""Regions of values: what a parameter or a sample must satisfy. `check` gives a bool for each event.

Constraints of single numbers are written with operators alone, so the same test runs on tensors and, for validation
without recording anything, on the numpy arrays behind them (`check_host`).
"""

import itertools

from jtorch import functions as torch
from jtorch.convert import as_numpy
from jtorch.core import shapes
from jtorch.distributions import errors
from jtorch.tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of the values of one variable.

    is_discrete: whether the region is a set of separate points
    event_dim: how many dimensions make one value
    check_host: like `check`, on a numpy array; None where there is no such test
    """

    is_discrete = False
    event_dim = 0
    check_host = None

    def check(self, value):
        """A bool tensor (value.shape without the event's dimensions): where `value` lies in the region."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__.lstrip("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other variables, and is known only of an instance."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise errors.not_static("is_discrete")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise errors.not_static("event_dim")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with these facts stated."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise errors.dependent_constraint()


class _DependentProperty(property, _Dependent):
    """A property that gives a constraint; on the class it stands for a dependent one."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint) -> bool:
    """Whether a constraint is known only of an instance."""
    return isinstance(constraint, _Dependent)


# --- numbers ----------------------------------------------------------------------------------------------------


class _Elementwise(Constraint):
    """A test of each number against the bounds named in `_bounds`, written with operators alone."""

    _bounds: tuple[str, ...] = ()

    def check(self, value):
        return self._test(value, *[getattr(self, b) for b in self._bounds])

    def check_host(self, array):
        bounds = [getattr(self, b) for b in self._bounds]
        return self._test(array, *[as_numpy(b) if isinstance(b, Tensor) else b for b in bounds])

    def __repr__(self):
        return f"{type(self).__name__[1:]}({', '.join(f'{b}={getattr(self, b)}' for b in self._bounds)})"


class _Lower(_Elementwise):
    _bounds = ("lower_bound",)

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound
        super().__init__()


class _Upper(_Elementwise):
    _bounds = ("upper_bound",)

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound
        super().__init__()


class _Both(_Elementwise):
    _bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        super().__init__()


class _Boolean(_Elementwise):
    """0 or 1."""

    is_discrete = True
    _test = staticmethod(lambda x: (x == 0) | (x == 1))


class _Real(_Elementwise):
    """Anything but NaN."""

    _test = staticmethod(lambda x: x == x)


class _IntegerInterval(_Both):
    """Whole numbers from `lower_bound` to `upper_bound`, both included."""

    is_discrete = True
    _test = staticmethod(lambda x, lower, upper: (x % 1 == 0) & (lower <= x) & (x <= upper))


class _IntegerLessThan(_Upper):
    """Whole numbers up to `upper_bound`, included."""

    is_discrete = True
    _test = staticmethod(lambda x, upper: (x % 1 == 0) & (x <= upper))


class _IntegerGreaterThan(_Lower):
    """Whole numbers from `lower_bound`, included."""

    is_discrete = True
    _test = staticmethod(lambda x, lower: (x % 1 == 0) & (lower <= x))


class _GreaterThan(_Lower):
    """Numbers above `lower_bound`."""

    _test = staticmethod(lambda x, lower: lower < x)


class _GreaterThanEq(_Lower):
    """Numbers from `lower_bound`, included."""

    _test = staticmethod(lambda x, lower: lower <= x)


class _LessThan(_Upper):
    """Numbers below `upper_bound`."""

    _test = staticmethod(lambda x, upper: x < upper)


class _Interval(_Both):
    """Numbers from `lower_bound` to `upper_bound`, both included."""

    _test = staticmethod(lambda x, lower, upper: (lower <= x) & (x <= upper))


class _HalfOpenInterval(_Both):
    """Numbers from `lower_bound`, included, to `upper_bound`, excluded."""

    _test = staticmethod(lambda x, lower, upper: (lower <= x) & (x < upper))


# --- vectors ----------------------------------------------------------------------------------------------------


class _IndependentConstraint(Constraint):
    """A constraint that holds of all of an event's numbers: the last dimensions become part of the event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        assert isinstance(reinterpreted_batch_ndims, int), (
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}"
        )
        assert reinterpreted_batch_ndims >= 0, (
            f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}"
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def check_host(self):
        check = self.base_constraint.check_host
        return None if check is None else lambda array: self._join(check(array))

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def _join(self, result):
        if result.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"Expected value.dim() >= {self.base_constraint.event_dim + self.reinterpreted_batch_ndims} "
                f"but got {self.base_constraint.event_dim + result.ndim}"
            )
        rows = (*result.shape[: result.ndim - self.reinterpreted_batch_ndims], -1)
        if not isinstance(result, Tensor):  # numpy refuses what is empty too, in other words
            rows = shapes.infer_size(rows, result.size)
        return result.reshape(rows).all(-1)

    def check(self, value):
        return self._join(self.base_constraint.check(value))

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: that of its components, which have one more batch dimension."""

    def __init__(self, base_constraint):
        assert isinstance(base_constraint, Constraint), (
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}"
        )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim

    def check(self, value):
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        keep = value.dim() - self.event_dim
        return inside.reshape((*inside.shape[:keep], -1)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _OneHot(Constraint):
    """Vectors of zeros and a single one."""

    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)

    check_host = check


class _Simplex(Constraint):
    """Vectors of non-negative numbers with sum 1 (to 1e-6)."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)

    check_host = check


class _Multinomial(Constraint):
    """Vectors of counts with sum `upper_bound` at most."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


# --- matrices ---------------------------------------------------------------------------------------------------


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    """Zero above the diagonal."""

    def check(self, value):
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(_Matrix):
    """Lower triangular with a positive diagonal."""

    def check(self, value):
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_Matrix):
    """Cholesky factors of correlation matrices: lower Cholesky with rows of length 1."""

    def check(self, value):
        tol = torch.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = value.detach().square().sum(-1).sqrt()
        return ((lengths - 1).abs() <= tol).all(-1) & lower_cholesky.check(value)


class _Square(_Matrix):
    """As many rows as columns."""

    def check(self, value):
        fits = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], fits, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    """Equal to its transpose."""

    def check(self, value):
        fits = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return fits
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric, no eigenvalue below 0. Each matrix is answered for itself; PyTorch's, where one of a batch is not
    symmetric, says of the others only whether they are."""

    def check(self, value):
        symmetric_ = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric_
        return symmetric_ & (torch.lookup("linalg", "eigvalsh")(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric, all eigenvalues above 0."""

    def check(self, value):
        symmetric_ = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric_
        return symmetric_ & (torch.lookup("linalg", "cholesky_ex")(value).info == 0)


# --- several ----------------------------------------------------------------------------------------------------


class _Cat(Constraint):
    """Pieces along `dim`, of `lengths` (1 each by default), each under its own constraint."""

    def __init__(self, cseq, dim=0, lengths=None):
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
        self.dim = dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for value with {value.dim()} dimensions"
        )
        starts = [0, *itertools.accumulate(self.lengths)]
        pieces = [value.narrow(self.dim, start, n) for start, n in zip(starts, self.lengths)]
        return torch.cat([c.check(v) for c, v in zip(self.cseq, pieces)], self.dim)


class _Stack(Constraint):
    """Slices along `dim`, each under its own constraint."""

    def __init__(self, cseq, dim=0):
        assert all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances"
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        inner = max(c.event_dim for c in self.cseq)
        return inner + 1 if self.dim + inner < 0 else inner

    def check(self, value):
        assert -value.dim() <= self.dim < value.dim(), (
            f"dim {self.dim} out of range for value with {value.dim()} dimensions"
        )
        return torch.stack([c.check(v) for c, v in zip(self.cseq, value.unbind(self.dim))], self.dim)


# --- public names -----------------------------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
