"""Distribution: what all distributions share: shapes, validation, repr, expanding.

Validation needs values. All parameters of a distribution are checked together: on the host where they are small or lie
in the host's memory, otherwise by one reduction on the device, so it costs one flush of what was recorded.
`validate_args=False` avoids that. As in PyTorch, nothing is validated inside a compiled region or under a transformation.
"""

import warnings

import numpy as np

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.convert import as_numpy
from jtorch.core.lanes import is_traced
from jtorch.core.record import tls
from jtorch.core.spec import Size
from jtorch.distributions import constraints, errors
from jtorch.distributions.utils import lazy_property
from jtorch.tensor import Tensor

__all__ = ["Distribution"]

_SMALL = 4096  # elements of another device that are cheaper to fetch than to reduce there


def _unknown(value) -> bool:
    """Whether a tensor has no value that Python may ask for."""
    me = tls.me
    if me.scope is not None or me.special is not None or value.device.type == "meta":
        return True
    return is_traced(value._storage.value)


def first_broken(pairs):
    """The index of the first (constraint, tensor) that does not hold, or None."""
    if any(_unknown(value) for _, value in pairs):
        return None
    flags, late = [], []
    for constraint, value in pairs:
        if constraint.check_host is not None and (value.numel() <= _SMALL or value.device.type == "cpu"):
            with np.errstate(all="ignore"):
                flags.append(bool(constraint.check_host(as_numpy(value)).all()))
        else:
            late.append(constraint.check(value).all())
            flags.append(None)
    found = iter(torch.stack(late).tolist() if late else ())
    return next((i for i, flag in enumerate(flags) if not (next(found) if flag is None else flag)), None)


def _size(shape) -> Size:
    return shape if isinstance(shape, Size) else Size(shape)


class Distribution:
    """The base of all distributions.

    Args:
        batch_shape: the shape of independent, differently parametrised draws
        event_shape: the shape of one draw
        validate_args: check parameters and the values given to methods. Default: as `set_default_validate_args` says

    A subclass states `arg_constraints` (name -> Constraint) and `support`, and sets its parameters before it calls
    this constructor.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turn validation on or off for distributions made from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=Size(), event_shape=Size(), validate_args=None):
        self._batch_shape, self._event_shape = _size(batch_shape), _size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self):
        try:
            table = self.arg_constraints
        except NotImplementedError:
            table = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
        names = [
            name
            for name, constraint in table.items()
            if not constraints.is_dependent(constraint)
            # one that would only be computed from those given
            and (name in self.__dict__ or not isinstance(getattr(type(self), name, None), lazy_property))
        ]
        broken = first_broken([(table[name], getattr(self, name)) for name in names])
        if broken is not None:
            name = names[broken]
            raise errors.invalid_parameter(name, getattr(self, name), self, table[name])

    # --- shapes

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of a single draw, without batching."""
        return self._event_shape

    def _extended_shape(self, sample_shape=Size()) -> Size:
        """The shape of `sample(sample_shape)`."""
        return Size((*Size(sample_shape), *self._batch_shape, *self._event_shape))

    def expand(self, batch_shape, _instance=None):
        """The same distribution with its batch dimensions expanded to `batch_shape`; nothing is copied."""
        raise NotImplementedError

    def _expanded(self, owner, batch_shape, _instance=None):
        """`expand` of a class whose parameters are exactly those that its `arg_constraints` name."""
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            value = self.__dict__.get(name)
            if value is not None:
                event = value.shape[value.dim() - constraint.event_dim :]
                setattr(new, name, value.expand((*batch_shape, *event)))
        return self._finish_expanded(new, batch_shape)

    def _finish_expanded(self, new, batch_shape, event_shape=None):
        """Give a new instance its shapes; its parameters were validated when `self` was made."""
        Distribution.__init__(
            new, batch_shape, self.event_shape if event_shape is None else event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise errors.custom_init(type(self), cls)
        return self.__new__(type(self)) if _instance is None else _instance

    # --- what a distribution is

    @property
    def arg_constraints(self):
        """Name of a parameter -> the constraint that it must satisfy."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance of each element."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation of each element."""
        return self.variance.sqrt()

    def sample(self, sample_shape=Size()):
        """Draws of shape sample_shape + batch_shape + event_shape, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=Size()):
        """Draws that are differentiable in the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int):
        """Deprecated: `sample((n,))`."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, at `value` (of shape sample + batch + event)."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of a draw up to `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """The quantile of probability `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True):
        """All values of a finite discrete distribution along a new first dimension; `expand`: over the batch too."""
        raise NotImplementedError

    def entropy(self):
        """The entropy, in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self):
        """exp(entropy)."""
        return torch.exp(self.entropy())

    def _validate_sample(self, value):
        """Raise ValueError unless `value` is a tensor of fitting shape inside the support."""
        if not isinstance(value, Tensor):
            raise errors.value_no_tensor()
        start = value.dim() - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(value.shape), reversed(expected))):
            raise errors.not_broadcastable(value.shape, expected)
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        if first_broken([(support, value)]) is not None:
            raise errors.outside_support(value, support, self)

    def __repr__(self) -> str:
        given = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        words = [f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given]
        return f"{type(self).__name__}({', '.join(words)})"
