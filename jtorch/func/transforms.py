"""grad, vjp, jvp, jacobians: each a JAX transformation of the function of arrays behind a function of tensors."""

import functools

import jax
import jax.numpy as jnp

from ..autograd.custom import array_of
from ..tensor import Tensor
from .lift import Arguments, Results, conjugate, cotangent, is_tensor, level, lift
from .trees import flatten, show, unflatten


def _selected(argnums, args):
    """The positions of `argnums`, checked."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    if any(not isinstance(i, int) for i in chosen):
        raise RuntimeError(f"argnums elements must be int, got {chosen}")
    for i in chosen:
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
    found = [i % len(args) for i in chosen]
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


class _Split:
    """A call's tensors: those differentiated, by argument, and the others."""

    def __init__(self, argnums, args, kwargs):
        self.arguments = Arguments(args, kwargs)
        self.single = isinstance(argnums, int)
        chosen = _selected(argnums, args)
        self.groups = []
        starts, at = [], 0
        for a in args:
            starts.append(at)
            at += sum(is_tensor(x) for x in flatten(a)[0])
        for i in chosen:
            leaves, tree = flatten(args[i])
            for x in leaves:
                if not isinstance(x, Tensor):
                    raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            self.groups.append((tree, range(starts[i], starts[i] + len(leaves))))
        self.flat = [k for _, positions in self.groups for k in positions]

    def rebuild(self, values):
        """Values, one a differentiated tensor, in the structure of `argnums`."""
        given = iter(values)
        out = tuple(unflatten(tree, [next(given) for _ in positions]) for tree, positions in self.groups)
        return out[0] if self.single else out

    def function_of(self, func, arrays, results, aux=None, name="f"):
        """The function of the differentiated arrays alone: (arrays of the result, arrays of aux)."""

        def run(*some):
            full = list(arrays)
            for k, v in zip(self.flat, some):
                full[k] = v
            out = self.arguments.call(func, full)
            if aux is None:
                return results.take(out), ()
            out, extra = _with_aux(out, name)
            return results.take(out), aux.take(extra)

        return run


def _with_aux(out, name):
    if not isinstance(out, tuple) or len(out) != 2:
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return out


_GRAD = "grad_and_value(f)(*args)"


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient by the arguments `argnums` and the value: (gradient, value or (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        split = _Split(argnums, args, kwargs)
        value, aux = Results(), Results() if has_aux else None

        def run(*arrays):
            function = split.function_of(func, arrays, _Scalar(value), aux, _GRAD)
            with level("vjp"):
                out, pull, extra = jax.vjp(function, *[arrays[k] for k in split.flat], has_aux=True)
            grads = pull((jnp.ones_like(out[0]),))
            return (*[conjugate(g) for g in grads], *out, *extra)

        got = lift(run, split.arguments.tensors)
        n = len(split.flat)
        grads = split.rebuild(got[:n])
        result = value.give(got[n : n + 1], _same)
        return (grads, (result, aux.give(got[n + 1 :], _same))) if has_aux else (grads, result)

    return wrapper


class _Scalar:
    """Results that must be one tensor without dimensions."""

    def __init__(self, results):
        self.results = results

    def take(self, out):
        if not isinstance(out, Tensor):
            raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(out)}")
        if out.ndim:
            raise RuntimeError(
                f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {out.ndim} dims. Maybe you wanted to use "
                "the vjp or jacrev APIs instead?"
            )
        return self.results.take(out)


def _same(x):
    return x


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of a scalar function by the arguments `argnums`; with has_aux (gradient, aux)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


_WHOSE = {"vjp": "expected f(*primals)", "jvp": "Expected f(*args)", "jac": "Expected f(*args)"}


def _all_tensors(out, name):
    for x in flatten(out)[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{name}: {_WHOSE[name[:3]]} to return only tensors, got unsupported type {type(x)}")
    return out


def vjp(func, *primals, has_aux=False):
    """(value, pullback) of a function, with has_aux (value, pullback, aux)."""
    split = _Split(tuple(range(len(primals))), primals, {})
    value, aux = Results(), Results() if has_aux else None
    name = "vjp(f, *primals)"
    checked = (lambda *a: (lambda o: (_all_tensors(_with_aux(o, name)[0], name), o[1]))(func(*a))) if has_aux else (
        lambda *a: _all_tensors(func(*a), name)
    )  # fmt: skip
    kept = {}

    def run(*arrays):
        with level("vjp"):
            function = split.function_of(checked, arrays, value, aux, name)
            out, kept["pull"], extra = jax.vjp(function, *arrays, has_aux=True)
        kept["specs"] = [jax.typeof(o) if hasattr(jax, "typeof") else o.aval for o in out]
        return (*out, *extra)

    tensors = split.arguments.tensors
    got = lift(run, tensors)
    n = len(kept["specs"])
    result = value.give(got[:n], _same)
    on_tape = any(t.requires_grad for t in got)

    def pullback(cotangents, retain_graph=True, create_graph=None):
        leaves, tree = flatten(cotangents)
        expected = flatten(result)[1]
        if tree != expected and not (len(leaves) == n == 1):
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {show(tree)}, primal output: {show(expected)}"
            )
        specs = [t._spec for t in got[:n]]
        for g, s in zip(leaves, specs):
            if tuple(g.shape) != tuple(s.shape):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[0] has a shape of {g.shape} and output[0] has a shape of {s.shape}."
                )
        if not on_tape:
            grads = lift(lambda *c: _pulled(kept["pull"], c, specs), leaves)
        else:
            m = len(tensors)

            def again(*arrays):
                with level("vjp"):
                    _, pull, _ = jax.vjp(
                        split.function_of(checked, arrays[:m], value, aux, name), *arrays[:m], has_aux=True
                    )
                return _pulled(pull, arrays[m:], specs)

            grads = lift(again, [*tensors, *leaves])
        return split.rebuild(grads)

    pullback.__name__ = "vjp_fn"
    return (result, pullback, aux.give(got[n:], _same)) if has_aux else (result, pullback)


def _pulled(pull, cotangents, specs):
    return [conjugate(g) for g in pull(tuple(cotangent(c, s) for c, s in zip(cotangents, specs)))]


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(value, its tangent) of a function at `primals` along `tangents`, with has_aux (value, tangent, aux)."""
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    if not isinstance(tangents, tuple) or len(primals) != len(tangents) or flatten(primals)[1] != flatten(tangents)[1]:
        raise RuntimeError(f"{name}: Expected primals and tangents to have the same python structure.")
    if not flatten(primals)[0]:
        raise RuntimeError(f"{name}: Expected at least one Tensor in primals.")
    split = _Split(tuple(range(len(primals))), primals, {})
    value, aux = Results(), Results() if has_aux else None
    checked = (lambda *a: (lambda o: (_all_tensors(_with_aux(o, name)[0], name), o[1]))(func(*a))) if has_aux else (
        lambda *a: _all_tensors(func(*a), name)
    )  # fmt: skip
    m = len(split.arguments.tensors)
    count = {}

    def run(*arrays):
        function = split.function_of(checked, arrays[:m], value, aux, name)
        with level("jvp"):
            tangents = tuple(_tangent(t, p) for t, p in zip(arrays[m:], arrays[:m]))
            out, out_tangents, extra = jax.jvp(function, tuple(arrays[:m]), tangents, has_aux=True)
        count["n"] = len(out)
        moved = [jnp.zeros(o.shape, o.dtype) if t.dtype == jax.dtypes.float0 else t for o, t in zip(out, out_tangents)]
        return (*out, *moved, *extra)

    tangent_leaves = flatten(tangents)[0]
    for p, t in zip(split.arguments.tensors, tangent_leaves):
        if tuple(p.shape) != tuple(t.shape):
            raise RuntimeError(
                f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}."
            )
    got = lift(run, [*split.arguments.tensors, *tangent_leaves])
    n = count["n"]
    out = value.give(got[:n], _same), value.give(got[n : 2 * n], _same)
    return (*out, aux.give(got[2 * n :], _same)) if has_aux else out


def _tangent(t, primal):
    if not jnp.issubdtype(primal.dtype, jnp.inexact):
        return jnp.zeros(primal.shape, bool).__array__().astype(jax.dtypes.float0)
    return t.astype(primal.dtype)


def linearize(func, *primals):
    """(value, function of the tangents): the derivative at `primals`, to be applied many times."""
    split = _Split(tuple(range(len(primals))), primals, {})
    value = Results()
    arrays = [array_of(t) for t in split.arguments.tensors]
    function = split.function_of(func, arrays, value)
    with level("jvp"):
        out, push = jax.linearize(lambda *a: function(*a)[0], *arrays)

    def pushforward(*tangents):
        leaves = flatten(tangents)[0]
        return value.give(lift(lambda *t: push(*t), leaves), _same)

    return value.give(out), pushforward


def _jacobian(transform, kind, func, argnums, has_aux):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        split = _Split(argnums, args, kwargs)
        value, aux = Results(), Results() if has_aux else None
        n = len(split.flat)
        count = {}

        def run(*arrays):
            plain = split.function_of(func, arrays, value, aux, kind)
            with level("vjp" if kind == "jacrev" else "jvp"):
                jacobian, extra = transform(plain, argnums=tuple(range(n)), has_aux=True)(
                    *[arrays[k] for k in split.flat]
                )
            count["out"] = len(jacobian)
            return (*[conjugate(j) if kind == "jacrev" else j for row in jacobian for j in row], *extra)

        def checked_take(out):
            leaves, _ = flatten(out)
            for x in leaves:
                if not isinstance(x, Tensor):
                    raise RuntimeError(
                        f"{kind}(f, argnums)(*args): Expected f(*args) to return only tensors, got unsupported type {type(x)}"
                        if kind == "jacfwd"
                        else f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(x)}"
                    )
            return Results.take(value, out)

        value_take = _Taking(value, checked_take)
        plain_function_of = split.function_of
        split.function_of = lambda f, arrays, _, *rest: plain_function_of(f, arrays, value_take, *rest)
        got = lift(run, split.arguments.tensors)
        m = count["out"]
        rows = [split.rebuild(got[i * n : (i + 1) * n]) for i in range(m)]
        result = value.give(rows, _same)
        return (result, aux.give(got[m * n :], _same)) if has_aux else result

    return wrapper


class _Taking:
    def __init__(self, results, take):
        self.results, self.take = results, take


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian by the arguments `argnums`, computed in reverse mode."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return _jacobian(jax.jacrev, "jacrev", func, argnums, has_aux)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian by the arguments `argnums`, computed in forward mode."""
    return _jacobian(jax.jacfwd, "jacfwd", func, argnums, has_aux)


def hessian(func, argnums=0):
    """A function that gives the Hessian: forward over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def functionalize(func, *, remove="mutations"):
    """The function itself: recorded programs have no mutations."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
            "functional equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing operators {view} "
            "will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapper


def debug_unwrap(tensor, *, recurse=True):
    """A tensor as the code outside of the transformations sees it: here the tensor itself."""
    return tensor


__all__ = [
    "debug_unwrap", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip
