"""torch.autograd.functional: products with Jacobians and Hessians, on the tape."""

from ..ops import registry
from ..tensor import Tensor
from .entry import grad as autograd_grad
from .mode import enable_grad


def _op(name, *args):
    return registry.tensor_call(registry.OPS[name], args, {})


_STRATEGIES = (
    'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
    '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
)


def _checked(x, what, where):
    """(tensors, whether they were a tuple), or PyTorch's error."""
    many = isinstance(x, tuple)
    items = x if many else (x,)
    for i, t in enumerate(items):
        if not isinstance(t, Tensor):
            if many:
                raise TypeError(
                    f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the value at index {i} has "
                    f"type {type(t)}."
                )
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the given {what} "
                f"has type {type(t)}."
            )
    return items, many


def _back(items, many):
    return tuple(items) if many else items[0]


def _inputs(inputs, create_graph):
    """Copies to differentiate by: with create_graph, they keep their history."""
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _finish(items, create_graph):
    return items if create_graph else tuple(None if t is None else t.detach() for t in items)


def _check_v(v, other, is_other_many):
    """v must match what it is multiplied with."""
    if len(v) != len(other):
        if is_other_many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(other)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, other)):
        if tuple(a.shape) != tuple(b.shape):
            where = f"Entry {i} in " if is_other_many else ""
            raise RuntimeError(f"{where}v has invalid size: should be {b.shape} but got {a.shape}.")


def _vector(v, other, many, name, of):
    if v is not None:
        vs, _ = _checked(v, "v", name)
        vs = tuple(t.detach() if not t.requires_grad else t for t in vs)
        _check_v(vs, other, many)
        return vs
    if len(other) != 1 or other[0].numel() != 1:
        raise RuntimeError(
            f"The vector v can only be None if the {of}"
            + (
                " is a single Tensor with a single element."
                if "input" in of
                else " a single Tensor with a single element."
            )
        )
    return (_op_like(other[0]),)


def _op_like(t):
    return t.detach() * 0 + 1


def _strict_outputs(outputs):
    for i, o in enumerate(outputs):
        if not o.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                f"differentiable manner from the input when running in strict mode."
            )


def _strict_jacobian(grads):
    for i, g in enumerate(grads):
        if g is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if not g.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
                f"{i} is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
                "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear function "
                "for example)."
            )


def _no_graph(i, of="jacobian"):
    return RuntimeError(
        f"The {of} of the user-provided function is independent of input {i}. This is not allowed in strict mode when "
        "create_graph=True."
    )


def _filled(grads, refs, strict, create_graph, stage, of="jacobian"):
    out = []
    for i, (g, r) in enumerate(zip(grads, refs)):
        if g is None:
            if strict:
                if stage == "back":
                    raise RuntimeError(
                        f"The output of the user-provided function is independent of input {i}. This is not allowed in strict "
                        "mode."
                    )
                raise RuntimeError(
                    f"The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the "
                    "double backward trick to compute forward mode gradients. This is not allowed in strict mode."
                )
            g = r.detach() * 0
        elif strict and create_graph and not g.requires_grad:
            raise _no_graph(i, of)
        out.append(g)
    return tuple(out)


def _gradients(outputs, inputs, vectors, create_graph):
    """Gradients, None where there is none, for outputs some of which may not require grad."""
    pairs = [(o, v) for o, v in zip(outputs, vectors) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return autograd_grad(
        [o for o, _ in pairs],
        inputs,
        [v for _, v in pairs],
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=True,
    )


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, v times the Jacobian of func at inputs)."""
    with enable_grad():
        items, many = _checked(inputs, "inputs", "vjp")
        items = _inputs(items, create_graph)
        outputs, many_out = _checked(func(*items), "outputs of the user-provided function", "vjp")
        if strict:
            _strict_outputs(outputs)
        vs = _vector(v, outputs, many_out, "vjp", "user-provided function returns")
        grads = _filled(_gradients(outputs, items, vs, create_graph), items, strict, create_graph, "back")
    return _back(_finish(outputs, create_graph), many_out), _back(_finish(grads, create_graph), many)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, the Jacobian of func at inputs times v), by differentiating backward by its cotangent."""
    with enable_grad():
        items, many = _checked(inputs, "inputs", "jvp")
        items = _inputs(items, create_graph)
        vs = _vector(v, items, many, "jvp", "input to the user-provided function")
        outputs, many_out = _checked(func(*items), "outputs of the user-provided function", "jvp")
        if strict:
            _strict_outputs(outputs)
        dummies = tuple((o.detach() * 0).requires_grad_() for o in outputs)
        grads = _gradients(outputs, items, dummies, True)
        if strict:
            grads = _filled(grads, items, strict, create_graph, "back")
        there = [(g, w) for g, w in zip(grads, vs) if g is not None and g.requires_grad]
        got = (
            autograd_grad(
                [g for g, _ in there], dummies, [w for _, w in there], allow_unused=True, create_graph=create_graph
            )
            if there
            else (None,) * len(dummies)
        )
        result = _filled(got, outputs, strict, create_graph, "double")
    return _back(_finish(outputs, create_graph), many_out), _back(_finish(result, create_graph), many_out)


def _rows(grads_of, output, items):
    """One gradient for each element of an output, by input, stacked."""
    rows = [[] for _ in items]
    for k in range(output.numel()):
        for column, g, x in zip(rows, grads_of(k), items):
            column.append(x.detach() * 0 if g is None else g)
    shape = tuple(output.shape)
    stacked = []
    for column, x in zip(rows, items):
        if not column:
            stacked.append(x.new_zeros((*shape, *x.shape)))
        else:
            stacked.append(_op("stack", column, 0).reshape((*shape, *x.shape)))
    return stacked


_VECTORIZED = (
    "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian of func at inputs: output.shape + input.shape, nested by outputs and then by inputs."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(_STRATEGIES)
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together '
                '(yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if strict:
            raise RuntimeError(
                'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together '
                '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
            )
    items, many = _checked(inputs, "inputs", "jacobian")
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(_VECTORIZED)
    with enable_grad():
        items = _inputs(items, create_graph)
        outputs, many_out = _checked(func(*items), "outputs of the user-provided function", "jacobian")
        if strict:
            if vectorize:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
                    "either set `strict=False` or `vectorize=False`."
                )
            _strict_outputs(outputs)
        table = []
        for n, o in enumerate(outputs):
            flat = o.reshape(-1)

            def row(k, n=n, o=o, flat=flat):
                if not o.requires_grad:
                    return (None,) * len(items)
                got = autograd_grad(flat[k], items, retain_graph=True, create_graph=create_graph, allow_unused=True)
                for i, g in enumerate(got if strict else ()):
                    if g is None:
                        raise RuntimeError(
                            f"Output {n} of the user-provided function is independent of input {i}. This is not allowed in strict "
                            "mode."
                        )
                    if create_graph and not g.requires_grad:
                        raise _no_graph(i)
                return got

            table.append(_finish(tuple(_rows(row, o, items)), create_graph))
    if strategy == "forward-mode":  # PyTorch's tangents are of the output's dtype, and come in lists
        table = [[g.to(o.dtype) for g in r] for r, o in zip(table, outputs)]
        result = [r if many else r[0] for r in table]
        return result if many_out else result[0]
    result = [_back(r, many) for r in table]
    return _back(result, many_out)


def _scalar(func, where, strict, squeeze=True):
    def checked(*args):
        out = func(*args)
        outputs, _ = _checked(out, "outputs of the user-provided function", where)
        if strict:
            _strict_outputs(outputs)
        if not isinstance(out, Tensor):
            raise RuntimeError(f"The function given to {where} should return a single Tensor")
        if out.numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")
        return out.squeeze() if squeeze else out

    return checked


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The Hessian of a scalar function at inputs, nested twice by inputs."""
    items, many = _checked(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(_STRATEGIES.partition(" Hint")[0])
    if outer_jacobian_strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(_VECTORIZED)
    scalar = _scalar(func, "hessian", strict)

    def first(*args):
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(a if a.requires_grad else a.requires_grad_() for a in args)
        got = jacobian(scalar, args, create_graph=True)
        return tuple(g if g.requires_grad else g + sum((a * 0).sum() for a in args) for g in got)

    if strict:

        def first(*args):
            got = jacobian(scalar, args, create_graph=True)
            _strict_jacobian(got)
            return got

    table = jacobian(first, items, create_graph=create_graph, strict=strict, vectorize=strict and vectorize)
    rows = tuple(_back(row, many) for row in table)
    return _back(rows, many)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, v times the Hessian of a scalar function at inputs)."""
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, the Hessian of a scalar function at inputs times v)."""
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(name, func, inputs, v, create_graph, strict):
    """Of either side: the Hessian is symmetric, so v H, transposed, is H v. Errors speak of `name`."""
    with enable_grad():
        items, many = _checked(inputs, "inputs", name)
        items = _inputs(items, create_graph)
        vs = _vector(v, items, many, name, "input to the user-provided function")
        output = _scalar(func, name, strict, squeeze=False)(*items)
        first = _gradients((output,), items, (_op_like(output),), True)
        if strict:
            _strict_jacobian(first)
        first = _filled(first, items, False, True, "back")
        got = _filled(_gradients(first, items, vs, create_graph), items, strict, create_graph, "back", "hessian")
    return _finish((output,), create_graph)[0], _back(_finish(got, create_graph), many)


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
