"""grad, vjp, jvp, jacobians: each a JAX transformation of the function of arrays behind a function of tensors."""

import functools

import jax
import jax.numpy as jnp

from ..autograd.derive import differentiable
from ..autograd.levels import level, levels, refuse_nested_forward
from ..autograd.transformed import Carried, conjugate, cotangent, history
from ..core import extend
from ..core.record import tls
from ..creation import ones
from ..tensor import Tensor, edge_of
from . import by_dual, by_tape, hooked
from .lift import Arguments, Results, is_tensor, lift, refuse_dispatched
from .trees import flatten, outline, show, unflatten


def _selected(argnums, args):
    """The positions of `argnums`, checked."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for i in chosen:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}")
        if not -len(args) <= i < len(args):
            raise RuntimeError(f"Got argnum={i}, but only {len(args)} positional inputs")
    found = [i % len(args) for i in chosen]
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(found)}")
    return found


class Split:
    """A call's tensors: those differentiated, by argument, and the others."""

    def __init__(self, argnums, args, kwargs, reverse=True):
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
                if reverse and not differentiable(x._spec):
                    raise RuntimeError("only Tensors of floating point dtype can require gradients")
            self.groups.append((tree, range(starts[i], starts[i] + len(leaves))))
        self.flat = [k for _, positions in self.groups for k in positions]
        self.wanted = self.flat if reverse else ()

    def rebuild(self, values):
        """Values, one a differentiated tensor, in the structure of `argnums`."""
        given = iter(values)
        out = tuple(unflatten(tree, [next(given) for _ in positions]) for tree, positions in self.groups)
        return out[0] if self.single else out

    def function_of(self, func, arrays, results, aux=None, name="f", pull=None):
        """The function of the differentiated arrays alone: (arrays of the result, those of aux and of what it wrote to).

        pull: of (result, leaves), the gradients wanted where the function has put hooks somewhere. They come last then.
        """

        def run(*some):
            full = list(arrays)
            for k, v in zip(self.flat, some):
                full[k] = v
            out, written = self.arguments.call(func, full, self.wanted)
            leaves, more, pulled = self.arguments.leaves, (), ()
            self.arguments.leaves = ()
            if aux is not None:
                out, more = with_aux(out, name)
            taken = results.take(out)
            if aux is not None:
                more = aux.take(more)
            if pull is not None and levels()[-1].hooked:
                pulled = pull(out, leaves)
            return taken, (*more, *written, *pulled)

        return run


def with_aux(out, name):
    """What a function with has_aux returned: checked to be a pair, whose second part is of tensors."""
    if not isinstance(out, tuple) or len(out) != 2:
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for x in flatten(out[1])[0]:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
    return out


_GRAD = "grad_and_value(f)(*args)"


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives the gradient by the arguments `argnums` and the value: (gradient, value or (value, aux))."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        split = Split(argnums, args, kwargs)
        if by_tape.possible(split.arguments.tensors):
            with by_tape.Attempt():
                return _grad_and_value_by_tape(func, split, has_aux)
        value, aux = Results(), Results() if has_aux else None

        def run(*arrays):
            function = split.function_of(func, arrays, _Scalar(value), aux, _GRAD, hooked.ones)
            with hooked.reverse() as here:
                out, pull, extra = jax.vjp(function, *[arrays[k] for k in split.flat], has_aux=True)
            if here.hooked:
                n = len(extra) - len(split.flat)
                return (*extra[n:], *out, *extra[:n])
            grads = pull((jnp.ones_like(out[0]),))
            return (*[conjugate(g) for g in grads], *out, *extra)

        got = lift(run, split.arguments.tensors, func)
        n = len(split.flat)
        split.arguments.write_back(got)
        grads = split.rebuild(got[:n])
        result = value.give(got[n : n + 1], same)
        return (grads, (result, aux.give(got[n + 1 :], same))) if has_aux else (grads, result)

    return wrapper


def _grad_and_value_by_tape(func, split, has_aux):
    forward = by_tape.Forward(func, split)
    out, aux = with_aux(forward.out, _GRAD) if has_aux else (forward.out, None)
    _check_scalar(out)
    forward.look([out, *flatten(aux)[0], *forward.tensors])
    grads = split.rebuild(by_tape.gradients([out], forward, None, forward.outer and forward.leads))
    forward.write_back(split.arguments.tensors)
    value = forward.outside(out)
    return grads, (value, forward.everywhere(aux)) if has_aux else value


def _check_scalar(out):
    """Raise for anything but one tensor without dimensions."""
    if not isinstance(out, Tensor):
        raise RuntimeError(f"{_GRAD}: Expected f(*args) to return a Tensor, got {type(out)}")
    if out.ndim:
        raise RuntimeError(
            f"{_GRAD}: Expected f(*args) to return a scalar Tensor, got tensor with {out.ndim} dims. Maybe you wanted to use "
            "the vjp or jacrev APIs instead?"
        )
    if out.is_complex():
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {out.dtype}")


class _Scalar:
    """Results that must be one tensor without dimensions."""

    def __init__(self, results):
        self.results = results

    def take(self, out):
        _check_scalar(out)
        return self.results.take(out)


def same(x):
    return x


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of a scalar function by the arguments `argnums`; with has_aux (gradient, aux)."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def all_tensors(out, name):
    """A result, checked to be of tensors that the transformation can differentiate."""
    leaves = flatten(out)[0]
    if not leaves or len(leaves) == 1 and leaves[0] is None:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(x)}")
        if name.startswith("vjp") and not differentiable(x._spec):
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {x.dtype}"
            )
    return out


def vjp(func, *primals, has_aux=False):
    """(value, pullback) of a function, with has_aux (value, pullback, aux)."""
    split = Split(tuple(range(len(primals))), primals, {})
    value, aux = Results(), Results() if has_aux else None
    name = "vjp(f, *primals)"
    checked = (lambda *a: (lambda o: (all_tensors(with_aux(o, name)[0], name), o[1]))(func(*a))) if has_aux else (
        lambda *a: all_tensors(func(*a), name)
    )  # fmt: skip
    if by_tape.possible(split.arguments.tensors):
        with by_tape.Attempt():
            return _vjp_by_tape(checked, split, has_aux)
    kept = {}
    pull = Carried()

    state = hooked.default_generator.state_bytes()

    def run(*arrays):
        with hooked.reverse() as here:
            function = split.function_of(checked, arrays, value, aux, name)
            out, pulled, extra = jax.vjp(function, *arrays, has_aux=True)
        kept["hooked"] = here.hooked
        kept["n"] = len(out)
        return (*out, *extra, *pull.take(pulled))

    tensors = split.arguments.tensors
    got = lift(run, tensors, func)
    pull.of(got)
    got = got[: len(got) - pull.size]
    split.arguments.write_back(got)
    n = kept["n"]
    result = value.give(got[:n], same)
    on_tape = any(t.requires_grad for t in got)

    def pullback(cotangents, retain_graph=True, create_graph=None):
        specs = [t._spec for t in got[:n]]
        leaves = _cotangents(cotangents, result, specs)
        m = len(tensors)

        def again(*arrays):
            along = hooked.along(arrays[m:])
            with hooked.reverse() as here:
                _, pull, extra = jax.vjp(
                    split.function_of(checked, arrays[:m], value, aux, name, along), *arrays[:m], has_aux=True
                )
            return extra[len(extra) - m :] if here.hooked else _pulled(pull, arrays[m:], specs)

        if kept["hooked"]:  # the hooks run at each call, which they may see in the values
            with hooked.random_numbers_of(state):
                return split.rebuild(lift(again, [*tensors, *leaves], func))
        if on_tape and not levels():
            return split.rebuild(lift(again, [*tensors, *leaves], func))
        grads = pull.call(lambda pulled, *c: _pulled(pulled, c, specs), leaves, lift)
        if on_tape:
            node = next(t._edge[0] for t in got if t._edge is not None)
            history(grads, *node.with_more(again, m, leaves))
        return split.rebuild(grads)

    pullback.__name__ = "vjp_fn"
    return (result, pullback, aux.give(got[n:], same)) if has_aux else (result, pullback)


def _vjp_by_tape(func, split, has_aux):
    forward = by_tape.Forward(func, split)
    out, aux = forward.out if has_aux else (forward.out, None)
    outs = flatten(out)[0]
    forward.look([*outs, *flatten(aux)[0], *forward.tensors])
    forward.write_back(split.arguments.tensors)
    specs = [t._spec for t in outs]
    result = forward.everywhere(out)

    def pullback(cotangents, retain_graph=True, create_graph=None):
        leaves = _cotangents(cotangents, result, specs)
        me = tls.me
        leads = bool(levels()) or me.grad and (forward.leads or any(edge_of(t) is not None for t in leaves))
        return split.rebuild(by_tape.gradients(outs, forward, leaves, leads, keep=retain_graph))

    pullback.__name__ = "vjp_fn"
    return (result, pullback, forward.everywhere(aux)) if has_aux else (result, pullback)


def _cotangents(cotangents, result, specs):
    """The tensors that a pullback was given, checked against the result of its function."""
    leaves, tree = flatten(cotangents)
    expected = flatten(result)[1]
    if tree != expected:
        raise RuntimeError(
            f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
            f"cotangents: {outline(tree)}, primal output: {outline(expected)}"
        )
    for k, (g, s) in enumerate(zip(leaves, specs)):
        if g is None and s.numel == 1:
            leaves[k] = ones(tuple(s.shape), dtype=s.dtype, device=s.device)
        elif g is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif tuple(g.shape) != tuple(s.shape):
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of {s.shape}."
            )
    return leaves


def _pulled(pull, cotangents, specs):
    given = (cotangent(c, s).astype(s.dtype.np) for c, s in zip(cotangents, specs))
    return [conjugate(g) for g in pull(tuple(given))]


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(value, its tangent) of a function at `primals` along `tangents`, with has_aux (value, tangent, aux)."""
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    tree, other = flatten(primals)[1], flatten(tangents)[1]
    if tree != other:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
            f"tensors, tangents also must be. Got primals with structure {show(tree)} and tangents with structure {show(other)}"
        )
    for what, given in (("primals", primals), ("tangents", tangents)):
        leaves = flatten(given)[0]
        if not leaves:
            raise RuntimeError(f"{name}: Expected {what} to contain at least one Tensor.")
        for x in leaves:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"{name}: Expected {what} to only contain Tensors, got {type(x)}")
            if not differentiable(x._spec):
                raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    refuse_nested_forward()
    split = Split(tuple(range(len(primals))), primals, {}, reverse=False)
    refuse_dispatched(split.arguments.tensors, "jvp")
    value, aux = Results(), Results() if has_aux else None
    checked = (lambda *a: (lambda o: (all_tensors(with_aux(o, name)[0], name), o[1]))(func(*a))) if has_aux else (
        lambda *a: all_tensors(func(*a), name)
    )  # fmt: skip
    m = len(split.arguments.tensors)
    count = {}

    def run(*arrays):
        function = split.function_of(checked, arrays[:m], value, aux, name)
        with level("jvp"):
            tangents = tuple(t.astype(p.dtype) for t, p in zip(arrays[m:], arrays[:m]))
            out, out_tangents, extra = jax.jvp(function, tuple(arrays[:m]), tangents, has_aux=True)
        count["n"] = len(out)
        if strict:
            _check_dependent(function, arrays[:m])
        moved = [jnp.zeros(o.shape, o.dtype) if t.dtype == jax.dtypes.float0 else t for o, t in zip(out, out_tangents)]
        return (*out, *moved, *extra)

    tangent_leaves = flatten(tangents)[0]
    for p, t in zip(split.arguments.tensors, tangent_leaves):
        if tuple(p.shape) != tuple(t.shape):
            raise RuntimeError(
                f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size {list(t.shape)}."
            )
    if (
        not strict
        and tls.me.extra.get("dual") is None
        and by_tape.possible([*split.arguments.tensors, *tangent_leaves])
    ):
        with by_tape.Attempt():
            return by_dual.jvp(checked, split.arguments, tangent_leaves, has_aux)
    got = lift(run, [*split.arguments.tensors, *tangent_leaves], func)
    split.arguments.write_back(got)
    n = count["n"]
    out = value.give(got[:n], same), value.give(got[n : 2 * n], same)
    return (*out, aux.give(got[2 * n :], same)) if has_aux else out


def _check_dependent(function, arrays):
    """strict: every result must depend on the arguments, whatever the derivative is there."""
    jaxpr = jax.make_jaxpr(lambda *a: function(*a)[0])(*arrays).jaxpr
    moving = set(jaxpr.invars)
    for eqn in jaxpr.eqns:
        if any(type(v) is not extend.Literal and v in moving for v in eqn.invars):
            moving.update(eqn.outvars)
    if any(type(v) is extend.Literal or v not in moving for v in jaxpr.outvars):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
            "strict=True."
        )


def linearize(func, *primals):
    """(value, function of the tangents): the derivative at `primals`, to be applied many times."""
    refuse_nested_forward()
    split = Split(tuple(range(len(primals))), primals, {}, reverse=False)
    refuse_dispatched(split.arguments.tensors, "linearize")
    value = Results()
    push = Carried()

    def run(*arrays):
        function = split.function_of(func, arrays, value)
        with level("jvp"):
            out, pushed = jax.linearize(lambda *a: function(*a)[0], *arrays)
        return (*out, *push.take(pushed))

    got = lift(run, split.arguments.tensors, func)
    push.of(got)
    got = got[: len(got) - push.size]
    on_tape = any(t.requires_grad for t in got)

    def pushforward(*tangents):
        leaves, tree = flatten(tangents)
        if tree != flatten(primals)[1]:
            raise RuntimeError(
                f"Expected the tangents {show(tree)} to have the same argspec as the primals {show(flatten(primals)[1])}"
            )
        for k, (t, p) in enumerate(zip(leaves, split.arguments.tensors)):
            for what, a, b in (("shape", t.shape, p.shape), ("dtype", t.dtype, p.dtype)):
                if a != b:
                    raise RuntimeError(
                        f"tangent:{k} with {what} {a} in flattened pytree doesn't match the {what} {b} of the corresponding primal."
                    )
        if on_tape:  # the derivative depends on the primals: a step of the tape from both
            return jvp(func, primals, tangents)[1]
        return value.give(push.call(lambda pushed, *t: pushed(*t), leaves, lift), same)

    return value.give(got, same), pushforward


def functionalize(func, *, remove="mutations"):
    """The function itself, as recorded programs have no mutations. A result that shares memory with an argument it has written to is
    the argument's new value by itself, and with "mutations_and_views" no result shares an argument's memory.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with their "
            "functional equivalents.\n     remove='mutations_and_views': In addition to the above, all aliasing operators {view} "
            "will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        given = [t for t in flatten((args, kwargs))[0] if is_tensor(t)]
        before = {id(t._storage): t._storage.version for t in given}
        out = func(*args, **kwargs)
        apart = {
            id(t._storage) for t in given if remove != "mutations" or before.get(id(t._storage)) != t._storage.version
        }
        leaves, tree = flatten(out)
        return unflatten(tree, [by_dual.alike(t) if is_tensor(t) and id(t._storage) in apart else t for t in leaves])

    return wrapper


def debug_unwrap(tensor, *, recurse=True):
    """A tensor as the code outside of the transformations sees it: here the tensor itself."""
    return tensor


__all__ = ["debug_unwrap", "functionalize", "grad", "grad_and_value", "jvp", "linearize", "vjp"]
