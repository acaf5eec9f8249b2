"""gradcheck and gradgradcheck: derivatives against finite differences, in double precision."""

import numpy as np

from .. import errors
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.record import tls
from ..core.spec import Size
from ..creation import empty, from_array, strided
from ..tensor import Tensor, edge_of
from . import forward_ad
from .entry import grad as autograd_grad
from .function import Undefined, behind
from .mode import enable_grad
from .saved import plain


class GradcheckError(RuntimeError):
    """A derivative is not what finite differences say."""


def _tensors(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _outputs(out):
    outs = (out,) if isinstance(out, Tensor) else tuple(o for o in out if isinstance(o, Tensor))
    return tuple(o for o in outs if o.dtype.is_floating_point or o.dtype.is_complex)


def _numpy(t):
    t = t.detach()
    return np.array((t if t.layout is strided else t.to_dense()).numpy())


def _parts(array):
    """Real coordinates of an array: of complex ones the real and the imaginary parts."""
    flat = array.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _whole(parts, like):
    """An array of real coordinates, shaped like another."""
    n = like.size
    values = parts[:n] + 1j * parts[n:] if np.iscomplexobj(like) else parts
    return values.reshape(like.shape).astype(like.dtype)


def _each(like):
    """(the place, the array with 1 or 1j there) of each real coordinate."""
    for unit in (1.0, 1j) if np.iscomplexobj(like) else (1.0,):
        for i in range(like.size):
            step = np.zeros(like.size, like.dtype)
            step[i] = unit
            yield np.unravel_index(i, like.shape), step.reshape(like.shape)


def _numerical(func, inputs, k, eps, directions=None):
    """d(real coordinates of each output) / d(real coordinates of input k, or along directions), one matrix an output.

    The input itself is moved, since func may read it elsewhere: as a parameter of a module.
    """
    x = inputs[k]
    start = _numpy(x)
    columns = []

    def at(value):
        x.data.copy_(from_array(value, x.device, x.dtype))
        return [_numpy(o) for o in _outputs(func(*inputs))]

    try:
        for place, step in _each(start) if directions is None else directions:
            downs, ups = at(start - eps * step), at(start + eps * step)
            _same_kinds(downs, ups, place, eps)
            columns.append([(_parts(u) - _parts(d)) / (2 * eps) for u, d in zip(ups, downs)])
        ends = list(map(_parts, at(start)))
    finally:
        x.data.copy_(from_array(start, x.device, x.dtype))
    return [np.stack([c[j] for c in columns]) if columns else np.zeros((0, end.size)) for j, end in enumerate(ends)]


def _same_kinds(before, after, place, eps):
    """That the results at two points near each other are of the same shapes and dtypes."""
    for a, b in zip(before, after):
        for what, x, y in (("shape", Size(a.shape), Size(b.shape)), ("dtype", *map(dtypes.of, (a.dtype, b.dtype)))):
            if x != y:
                where = tuple(int(k) for k in place)
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index {where} by {eps}, "
                    f"but got: {what}s {x} and {y}."
                )


def _side_by_side(numerical, analytical):
    """Two matrices in the words of a message, written as tensors."""
    n, a = (from_array(np.ascontiguousarray(m), devices.cpu) for m in (numerical, analytical))
    return f"numerical:{n}\nanalytical:{a}\n"


def _analytical(output, wanted, seeds=None):
    """The same from backward, of each real coordinate of the output or of the given gradients, one matrix an input."""
    value = _numpy(output)
    rows = [[] for _ in wanted]
    for g in (step for _, step in _each(value)) if seeds is None else seeds:
        seed = from_array(g, output.device, output.dtype)
        got = autograd_grad(output, wanted, seed, retain_graph=True, allow_unused=True)
        for row, h, x in zip(rows, got, wanted):
            row.append(_parts(np.zeros(tuple(x.shape), x.dtype.np) if h is None else _numpy(h)))
    return [np.stack(row, 1) if row else np.zeros((_parts(_numpy(x)).size, 0)) for row, x in zip(rows, wanted)]


def gradcheck(
    func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, nondet_tol=0.0, check_undefined_grad=True,
    check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False, check_forward_ad=False,
    check_backward_ad=True, fast_mode=False, masked=None,
):  # fmt: skip
    """Whether the gradients of func at inputs agree with finite differences; raises GradcheckError when they do not.

    fast_mode: of each pair of an input and an output along one direction, and whole only where that does not agree.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tensors(inputs)
    try:
        if check_forward_ad:
            _check_forward(func, inputs, eps, atol, rtol)
        if check_backward_ad:
            _check(func, inputs, eps, atol, rtol, nondet_tol, fast_mode)
            _check_linear(func, inputs)
            if check_undefined_grad:
                _check_undefined(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _twice(output, wanted, seeds=None):
    """The analytical derivatives, computed two times from the same executables: a fused program rounds in another way than
    the ops one by one, and that is not what is looked for."""
    me = tls.me
    before = me.mode
    me.set_mode("eager")
    try:
        return _analytical(output, wanted, seeds), _analytical(output, wanted, seeds)
    finally:
        me.set_mode(before)


def _differentiated(inputs):
    return [k for k, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]


def _forward(func, inputs, k):
    """The same as `_numerical` by forward mode."""
    start = _numpy(inputs[k])
    columns = []
    for unit in [1.0, 1j] if np.iscomplexobj(start) else [1.0]:
        for i in range(start.size):
            direction = np.zeros(start.size, start.dtype)
            direction[i] = unit
            with forward_ad.dual_level():
                given = list(inputs)
                tangent = from_array(direction.reshape(start.shape), inputs[k].device, inputs[k].dtype)
                given[k] = forward_ad.make_dual(given[k], tangent)
                pairs = [forward_ad.unpack_dual(o) for o in _outputs(func(*given))]
                columns.append([_parts(_numpy(o * 0 if t is None else t)) for o, t in pairs])
    ends = [_parts(_numpy(o)) for o in _outputs(func(*inputs))]
    return [np.stack([c[j] for c in columns]) if columns else np.zeros((0, end.size)) for j, end in enumerate(ends)]


def _check_forward(func, inputs, eps, atol, rtol):
    for k in _differentiated(inputs):
        for i, (n, a) in enumerate(zip(_numerical(func, inputs, k, eps), _forward(func, inputs, k))):
            if not np.allclose(a, n, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian computed with forward mode mismatch for output {i} with respect to input {k},\n"
                    f"{_side_by_side(n, a)}"
                )


def _check_linear(func, inputs):
    """That gradients of zero give zeros, of the inputs' layout."""
    wanted = [inputs[k] for k in _differentiated(inputs)]
    outputs = [o for o in _outputs(func(*inputs)) if o.requires_grad]
    if not outputs:
        return
    for x, g in zip(wanted, autograd_grad(outputs, wanted, [o.detach() * 0 for o in outputs], allow_unused=True)):
        if g is None:
            continue
        if g.layout is not x.layout:
            raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
        if _numpy(g).any():
            raise GradcheckError("backward not multiplied by grad_output")


def _check_undefined(func, inputs):
    """That backward works where some results, or all, have no gradient, and gives none then."""
    wanted = [inputs[k] for k in _differentiated(inputs)]

    def without(undefined):
        outputs = [o for o in _outputs(func(*inputs)) if o.requires_grad]
        ends = []
        for k, o in enumerate(outputs):
            node = Undefined("UndefinedGrad", (edge_of(o),), (plain(o._spec),))
            ends.append(behind(o, node) if undefined in (k, None) else o)
        try:
            got = autograd_grad(ends, wanted, [o.detach() * 0 for o in outputs], allow_unused=True) if ends else ()
        except RuntimeError as error:
            raise GradcheckError(
                'Expected backward function to handle undefined output grads. Please look at "Notes about undefined output '
                'gradients" in "tools/autograd/derivatives.yaml"'
            ) from error
        if any(g is not None and _numpy(g).any() for g in got):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please look at "
                '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
            )
        return len(outputs)

    n = without(None)
    for k in range(n if n > 1 else 0):
        without(k)


def _drawn_direction(rng, t):
    """(real coordinates of length 1, the array that they are) for a tensor."""
    value = _numpy(t)
    parts = rng.standard_normal(_parts(value).size)
    parts /= max(np.linalg.norm(parts), 1e-300)
    return parts, _whole(parts, value)


def _agrees_along_one(func, inputs, wanted, outputs, eps, atol, rtol, nondet_tol) -> bool:
    """Whether all derivatives agree in one direction of each input and one of each output; what does not is looked at whole."""
    rng = np.random.default_rng(0)
    along = [_drawn_direction(rng, inputs[k]) for k in wanted]
    moved = [_numerical(func, inputs, k, eps, [((), step)]) for k, (_, step) in zip(wanted, along)]
    for i, output in enumerate(outputs):
        changes = [m[i][0] for m in moved]
        if not output.requires_grad:
            if not np.allclose(changes, 0, atol=atol):
                return False
            continue
        parts, seed = _drawn_direction(rng, output)
        once, again = _twice(output, [inputs[k] for k in wanted], [seed])
        for (u, _), change, a, b in zip(along, changes, once, again):
            if a.size and np.abs(a - b).max() > nondet_tol:
                return False
            if not np.allclose(a[:, 0] @ u, change @ parts, rtol=rtol, atol=atol, equal_nan=True):
                return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol, fast):
    wanted = _differentiated(inputs)
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for k in wanted:
        if inputs[k].dtype.name not in ("float64", "complex128"):
            errors.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex. "
            )
        if any(s == 0 and n > 1 for n, s in zip(inputs[k].shape, inputs[k].stride())):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able "
                "to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
    outputs = _outputs(func(*inputs))
    if fast and _agrees_along_one(func, inputs, wanted, outputs, eps, atol, rtol, nondet_tol):
        return
    numerical = {k: _numerical(func, inputs, k, eps) for k in wanted}
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            for k in wanted:
                if not np.allclose(numerical[k][i], 0, atol=atol):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        matrices, again = _twice(output, [inputs[k] for k in wanted])
        for a, b in zip(matrices, again):
            if a.size and np.abs(a - b).max() > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                    "different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {nondet_tol}."
                )
        for k, a in zip(wanted, matrices):
            n = numerical[k][i]
            if not np.allclose(a, n, rtol=rtol, atol=atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {i} with respect to input {k},\n{_side_by_side(n, a)}"
                )


def _drawn(like):
    """PyTorch's draw for the gradient of a result, so that the numbers drawn after the check are the same ones."""
    real = dtypes.float64 if like.dtype is dtypes.complex128 else dtypes.float32
    drawn = empty(tuple(like.shape), dtype=like.dtype, device=like.device)
    if like.dtype.is_complex:
        return drawn.copy_(
            empty((*like.shape, 2), dtype=real, device=like.device).uniform_(-1, 1).view(like.dtype).squeeze(-1)
        )
    return drawn.uniform_(-1, 1)


def gradgradcheck(
    func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
    raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
    check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False, masked=False,
):  # fmt: skip
    """Whether the second gradients of func at inputs agree with finite differences of the first.

    `check_fwd_over_rev` takes them by forward mode too, `check_rev_over_rev=False` by that alone. The gradients of the
    results are drawn from (-1, 1) where none are given.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    inputs = _tensors(inputs)
    if grad_outputs is None:
        outputs = _outputs(func(*inputs))
        grads = tuple(_drawn(o).requires_grad_() for o in outputs)
    else:
        grads = _tensors(grad_outputs)
    n = len(grads)
    needing = [k for k, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]

    def first(*args):
        given, seeds = args[:-n], args[-n:]
        with enable_grad():
            for k in needing:  # forward mode hands over tensors off the tape
                given[k].requires_grad_()
            outs = _outputs(func(*given))
            wanted = tuple(t for t in given if isinstance(t, Tensor) and t.requires_grad)
            return autograd_grad(outs, wanted, seeds, create_graph=True, allow_unused=True, materialize_grads=True)

    return gradcheck(
        first, inputs + grads, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )  # fmt: skip


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
