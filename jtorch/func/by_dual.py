"""jvp by dual tensors: outside of all transformations forward mode has nothing to trace."""

from ..autograd import forward_ad
from ..autograd.custom import set_tangent, tangent_of
from ..autograd.levels import Taping
from ..core.lanes import ByTracing
from ..core.record import tls
from ..core.spec import Spec
from ..tensor import Tensor, edge_of, value_of, wrap
from .trees import flatten, unflatten


def jvp(func, arguments, tangents, has_aux):
    """(result, its tangent) of a function along tangents, one a tensor among the arguments or None; with has_aux (..., aux).

    Raises ByTracing where the function is to be traced.
    """
    recording = tls.me.grad
    given = [alike(t, recording) for t in arguments.tensors]
    forward_ad.enter_dual_level(of_func=True)
    try:
        with forward_ad._set_fwd_grad_enabled(True), Taping() as here:
            for t, tangent in zip(given, tangents):
                t._storage.version = here.birth
                if tangent is None:
                    continue
                to = tangent if tangent.dtype == t.dtype else tangent.to(t.dtype)
                set_tangent(t, alike(to, recording))
            out = arguments.run(func, given)
        if here.hooked or any(t._storage.version != here.birth for t in given):
            raise ByTracing
        out, aux = out if has_aux else (out, None)
        leaves, tree = flatten(out)
        moved = [tangent_of(t) for t in leaves]
    finally:
        forward_ad.exit_dual_level()
    moved = [t.new_zeros(t.shape) if m is None else alike(m) for t, m in zip(leaves, moved)]
    results = unflatten(tree, [alike(t) for t in leaves]), unflatten(tree, moved)
    if not has_aux:
        return results
    leaves, tree = flatten(aux)
    return *results, unflatten(tree, [alike(x) if isinstance(x, Tensor) else x for x in leaves])


def alike(t, recording=True):
    """A tensor with the value and the history of another, in memory of its own, and without its tangent."""
    spec = t._spec
    if t._storage.spec is not spec:
        spec = Spec.dense(tuple(spec.shape), spec.dtype, spec.device)
    return wrap(value_of(t), spec, edge_of(t) if recording else None)
