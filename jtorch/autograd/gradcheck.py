"""gradcheck and gradgradcheck: derivatives against finite differences, in double precision."""

import numpy as np

from .. import errors
from ..core import dtype as dtypes
from ..core.record import tls
from ..creation import empty, from_array
from ..tensor import Tensor
from . import forward_ad
from .entry import grad as autograd_grad
from .mode import enable_grad, no_grad


class GradcheckError(RuntimeError):
    """A derivative is not what finite differences say."""


def _tensors(x):
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _outputs(out):
    outs = (out,) if isinstance(out, Tensor) else tuple(o for o in out if isinstance(o, Tensor))
    return tuple(o for o in outs if o.dtype.is_floating_point or o.dtype.is_complex)


def _numpy(t):
    return np.array(t.detach().numpy())


def _parts(array):
    """Real coordinates of an array: of complex ones the real and the imaginary parts."""
    flat = array.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _numerical(func, inputs, k, eps):
    """d(real coordinates of each output) / d(real coordinates of input k), one matrix an output."""
    x = inputs[k]
    start = _numpy(x)
    directions = [1.0, 1j] if np.iscomplexobj(start) else [1.0]
    columns = []

    def at(value):
        args = list(inputs)
        args[k] = from_array(value, x.device, x.dtype).requires_grad_(x.requires_grad)
        with no_grad():
            return [_parts(_numpy(o)) for o in _outputs(func(*args))]

    for unit in directions:
        for i in range(start.size):
            step = np.zeros(start.size, start.dtype)
            step[i] = eps * unit
            step = step.reshape(start.shape)
            ups, downs = at(start + step), at(start - step)
            columns.append([(u - d) / (2 * eps) for u, d in zip(ups, downs)])
    n_out = len(at(start))
    return [np.stack([c[j] for c in columns]) if columns else np.zeros((0, 0)) for j in range(n_out)]


def _analytical(output, inputs, wanted):
    """The same from backward, one matrix an input."""
    value = _numpy(output)
    units = [1.0, 1j] if np.iscomplexobj(value) else [1.0]
    rows = [[] for _ in wanted]
    for unit in units:
        for i in range(value.size):
            g = np.zeros(value.size, value.dtype)
            g[i] = unit
            seed = from_array(g.reshape(value.shape), output.device, output.dtype)
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

    `check_forward_ad` looks at the derivatives of forward mode too, `check_backward_ad=False` at those alone. The whole
    Jacobian is always compared (`fast_mode` changes nothing), and what `check_undefined_grad`, `check_grad_dtypes` and
    the batched checks ask for is not looked at.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    try:
        _check(func, _tensors(inputs), eps, atol, rtol, nondet_tol, check_forward_ad, check_backward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _twice(output, inputs, wanted):
    """The analytical derivatives, computed two times from the same executables: a fused program rounds in another way than
    the ops one by one, and that is not what is looked for."""
    me = tls.me
    before = me.mode
    me.set_mode("eager")
    try:
        return _analytical(output, inputs, wanted), _analytical(output, inputs, wanted)
    finally:
        me.set_mode(before)


def _forward(func, inputs, k):
    """The same from forward mode: the tangents of all outputs, one matrix an output."""
    x = inputs[k].detach()
    value = _numpy(x)
    rows = None
    for unit in [1.0, 1j] if np.iscomplexobj(value) else [1.0]:
        for i in range(value.size):
            t = np.zeros(value.size, value.dtype)
            t[i] = unit
            args = [a.detach() if isinstance(a, Tensor) else a for a in inputs]
            with forward_ad.dual_level():
                args[k] = forward_ad.make_dual(x, from_array(t.reshape(value.shape), x.device, x.dtype))
                outs = _outputs(func(*args))
                tangents = [forward_ad.unpack_dual(o).tangent for o in outs]
                got = [_parts(np.zeros_like(_numpy(o)) if d is None else _numpy(d)) for o, d in zip(outs, tangents)]
            rows = rows or [[] for _ in got]
            for row, g in zip(rows, got):
                row.append(g)
    return [np.stack(row) for row in rows or ()]


def _agree(found, numerical, i, k, rtol, atol, how=""):
    if not np.allclose(found, numerical, rtol=rtol, atol=atol, equal_nan=True):
        raise GradcheckError(
            f"Jacobian {how}mismatch for output {i} with respect to input {k},\nnumerical:{numerical}\nanalytical:{found}\n"
        )


def _check(func, inputs, eps, atol, rtol, nondet_tol, forward, backward):
    wanted = [k for k, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
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
    outputs = _outputs(func(*inputs))
    numerical = {k: _numerical(func, inputs, k, eps) for k in wanted}
    if forward:
        for k in wanted:
            for i, found in enumerate(_forward(func, inputs, k)):
                _agree(found, numerical[k][i], i, k, rtol, atol, "computed with forward mode ")
    if not backward:
        return
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            for k in wanted:
                if not np.allclose(numerical[k][i], 0, atol=atol):
                    raise GradcheckError("Numerical gradient for function expected to be zero")
            continue
        matrices, again = _twice(output, inputs, [inputs[k] for k in wanted])
        for k, a, b in zip(wanted, matrices, again):
            _agree(a, numerical[k][i], i, k, rtol, atol)
            if a.size and np.abs(a - b).max() > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                    "different values, although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {nondet_tol}."
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
    )  # fmt: skip


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
