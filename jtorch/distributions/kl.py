"""Kullback-Leibler divergences: the table of pairs, and how the pair of two classes is found in it."""

import warnings

from jtorch.distributions import errors
from jtorch.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict = {}  # (type of p, type of q) -> function of both
_KL_MEMOIZE: dict = {}  # the same for classes derived from those; emptied at each registration


def register_kl(type_p, type_q):
    """Decorator: the function is KL(p || q) for p of class `type_p` and q of class `type_q`, or derived from them."""
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(fn):
        _KL_REGISTRY[type_p, type_q] = fn
        _KL_MEMOIZE.clear()
        return fn

    return decorate


def _dispatch_kl(type_p, type_q):
    """The most specific function registered for the classes, compared by p first; None if there is none."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None

    def distance(match):
        return type_p.__mro__.index(match[0]), type_q.__mro__.index(match[1])

    by_p = min(matches, key=distance)
    by_q = min(matches, key=lambda match: distance(match)[::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
        )
    return _KL_REGISTRY[by_p]


def kl_divergence(p: Distribution, q: Distribution):
    """KL(p || q) = E_p[log p - log q], of the batch shape; NotImplementedError for a pair without a formula."""
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    fn = _KL_MEMOIZE[key]
    if fn is None:
        raise errors.no_kl(*key)
    return fn(p, q)
