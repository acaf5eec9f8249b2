"""What is well defined of results that are random, or unique only up to sign, phase, basis or ties.

Each is a function of the torch sample and of the result in torch tensors; what it returns is compared instead.
"""


def argument(sample, position, name, default=None):
    """A parameter of the sample's call, by position after the input or by name."""
    if len(sample.args) > position:
        return sample.args[position]
    return sample.kwargs.get(name, default)


def nothing(sample, out):
    """Random or uninitialised."""
    return None


def within(low, high=float("inf")):
    """Whether all values lie in the range; a bound may be a function of the sample."""

    def rule(sample, out):
        least, most = (x(sample) if callable(x) else x for x in (low, high))
        return bool(((out >= least) & (out <= most)).all()) if not out.is_complex() else None

    return rule


def integers(sample, out):
    """randint(low=0, high, ...): the bounds come first, in either calling style."""
    bounds = [x for x in (sample.input, *sample.args) if isinstance(x, int)]
    low, high = (0, *bounds)[-2:]
    return bool(((out >= low) & (out < high)).all())


def dropped(sample, out):
    """Kept elements are scaled alike; without dropout nothing is free."""
    p, training = argument(sample, 0, "p", 0.5), argument(sample, 1, "training", True)
    if not training or p in (0.0, 1.0):
        return out
    return bool(((out == 0) | out.isclose(sample.input / (1 - p), rtol=2e-2)).all())


def unless(is_random):
    """Exact, unless the sample asks for randomness."""
    return lambda sample, out: None if is_random(sample) else out


def gram(matrix):
    return matrix.mH @ matrix


def svd(sample, out):
    u, s, vh = out
    if not (u.any() and vh.any()):  # compute_uv=False
        return out
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], gram(u), gram(vh.mH)


def svd_of_v(sample, out):
    u, s, v = out
    return svd(sample, (u, s, v.mH))


def low_rank(sample, out):
    u, s, v = out
    return (u * s.unsqueeze(-2)) @ v.mH


def qr(sample, out):
    q, r = out
    return (q @ r, gram(q), r.abs()) if q.numel() else r.abs()


def eigenvalues(sample, out):
    """In the order of real, then imaginary parts, but for rounding."""
    for part in (out.imag, out.real):
        order = (part * 1e4).round().argsort(dim=-1, stable=True)
        out = out.gather(-1, order)
    return out


def eig(sample, out):
    values, vectors = out
    matrix = sample.input.to(vectors.dtype)
    residual = matrix @ vectors - vectors * values.unsqueeze(-2)
    size = matrix.abs().max() if matrix.numel() else 1
    return eigenvalues(sample, values), residual / size, vectors.abs().square().sum(-2)


def eigh(sample, out):
    values, vectors = out
    return values, (vectors * values.unsqueeze(-2)) @ vectors.mH, gram(vectors)


def picked(position):
    """The values, and what the indices pick from the input along the dimension."""

    def rule(sample, out):
        if not isinstance(out, tuple) or sample.input.ndim == 0:
            return out
        values, indices = out
        dim = argument(sample, position, "dim", -1)
        if argument(sample, 3, "sorted", True) is False:
            values = values.sort(dim).values
            indices = indices.gather(dim, sample.input.gather(dim, indices).argsort(dim))
        if indices.ndim == sample.input.ndim:
            return values, sample.input.gather(dim, indices)
        return values, sample.input.gather(dim, indices.unsqueeze(dim)).squeeze(dim)

    return rule


def sort(sample, out):
    return out if sample.kwargs.get("stable") else picked(0)(sample, out)


def argsort(sample, out):
    if sample.kwargs.get("stable") or sample.input.ndim == 0:
        return out
    return sample.input.gather(argument(sample, 0, "dim", -1), out)


def unique(sample, out):
    """With sorted=False the order of the values is free."""
    if sample.kwargs.get("sorted") is not False or sample.kwargs.get("dim") is not None:
        return out
    found, *more = out if isinstance(out, tuple) else (out,)
    order = found.argsort()
    inverse = [found[more.pop(0)]] if sample.kwargs.get("return_inverse") else []
    return [found[order], *inverse, *(counts[order] for counts in more)]
