"""One step of one parameter group as a single recorded node. Knows formulas only through the optimizer's methods."""

from functools import partial
from operator import is_
from types import SimpleNamespace

import jax.numpy as jnp

from jtorch.core import shapes
from jtorch.dispatch import Update
from jtorch.tensor import Tensor

__all__ = ["FusedGroup"]


_FIXED = {float, int, bool, str, tuple, type(None)}  # types of options that only another object can change
_HELD = {"state", "param_groups", "_fused"}


class _Options:
    """What follows from the options of a group: asked for again when one of them is another object."""

    __slots__ = ("values", "names", "flags", "numbers", "extra", "updates")

    def __init__(self, optimizer, group, kind):
        self.values = list(group.values())
        self.names = optimizer.state_names(group, kind)
        self.flags = optimizer.flags(group)
        numbers = optimizer.numbers(group)
        self.extra = {k: v for k, v in numbers.items() if isinstance(v, Tensor)}
        self.numbers = {k: float(v) for k, v in numbers.items() if k not in self.extra}
        self.updates = {}

    def hold(self, group) -> bool:
        values = list(group.values())
        return len(values) == len(self.values) and all(map(is_, values, self.values))


class _Untensored:
    """What a compiled region asks of an optimizer some of whose numbers are tensors: those are inputs of the step, and must be the same."""

    __slots__ = ("whole", "state", "_numbers")

    def __init__(self, optimizer):
        self.whole = optimizer
        self.state = optimizer.state
        self._numbers = optimizer.numbers

    def flags(self, group):
        tensors = {k: v._storage for k, v in self._numbers(group).items() if isinstance(v, Tensor)}
        return self.whole.flags(group) | {"tensors": tensors}

    def numbers(self, group):
        return {k: v for k, v in self._numbers(group).items() if not isinstance(v, Tensor)}


class FusedGroup:
    """Gathers the tensors of a group, and makes the function that updates all of them at once."""

    def __init__(self):
        self.functions = {}  # static key -> the update
        self.options = {}  # (id of a group, kind) -> its options
        self.parts = {}  # id of a group -> (specs and ids of its parameters, the parameters by device and kind)
        self.users = None  # id of a step count -> (the tensor, how many parameters share it)

    def step(self, optimizer, params, group):
        """Update `params`, which all have gradients and state. The optimizer is given: it would be a cycle to keep it."""
        specs = [p._spec for p in params]
        ids = list(map(id, params))
        last = self.parts.get(id(group))
        if last is None or last[0] != specs or last[1] != ids:
            if last is not None and last[1] == ids:
                self.options.clear()  # parameters of other sizes: their states are looked at again
            parts = {}
            for p in params:
                parts.setdefault((p.device, optimizer.kind(p)), []).append(p)
            last = self.parts[id(group)] = (specs, ids, list(parts.values()))
        if len(last[2]) == 1:
            self._step(optimizer, params, group)
        else:
            for part in last[2]:
                self._step(optimizer, part, group)

    def _step(self, optimizer, params, group):
        options = self._options(optimizer, group, optimizer.kind(params[0]))
        names, numbers, extra = options.names, options.numbers, options.extra
        state = optimizer.state
        states = [state[p] for p in params] if names or optimizer.counts_steps else []
        steps, where = self._steps(optimizer, states) if optimizer.counts_steps else ([], ())
        for name in ("grad_scale", "found_inf"):
            value = getattr(optimizer, name, None)
            if isinstance(value, Tensor):
                extra = {**extra, name: value}
        key = (where, len(params), *extra)
        update = options.updates.get(key)
        if update is None:
            _check_shapes(params, names, states)
            update = options.updates[key] = self._update(optimizer, options, tuple(extra), where, len(params), group)
        kept = [s[name] for name in names for s in states]
        inputs = [*steps, *extra.values(), *params, *[p._grad for p in params], *kept]
        asked = _Untensored(optimizer) if options.extra else optimizer
        flags = asked.flags(group) if options.extra else options.flags
        update.record(inputs, tuple(numbers.values()), [*steps, *params, *kept], (asked, group, flags))

    def _options(self, optimizer, group, kind):
        options = self.options.get((id(group), kind))
        if options is None or not options.hold(group):
            options = _Options(optimizer, group, kind)
            if all(type(v) in _FIXED for k, v in group.items() if k != "params"):
                self.options[id(group), kind] = options
        return options

    def _update(self, optimizer, options, extra, where, n, group):
        """The update of `n` parameters; one for all groups and learning rates for which it is the same."""
        numbers, maximize = tuple(options.numbers), bool(group.get("maximize"))
        static = (type(optimizer), tuple(options.flags.items()), numbers, extra, options.names, maximize, where, n)
        update = self.functions.get(static)
        if update is None:
            make = partial(_make, _formula(optimizer), options.flags, numbers, extra, options.names, maximize)
            split = _Split(make, static, len(extra), len(options.names))
            update = self.functions[static] = Update(make(where, n), static, split)
        return update

    def _steps(self, optimizer, states):
        """The distinct step counts, and for each parameter which one is its."""
        first = states[0]["step"]
        if self.users is not None and all(s["step"] is first for s in states):
            known = self.users.get(id(first))
            if known is not None and known[1] == len(states):
                return [first], (0,) * len(states)
        distinct, where = {}, []
        for state in states:
            step = state["step"]
            i = id(step)
            if i not in distinct:
                distinct[i] = (len(distinct), step)
            where.append(distinct[i][0])
        counts = [0] * len(distinct)
        for k in where:
            counts[k] += 1
        self._separate(optimizer, states, [s for _, s in distinct.values()], where, counts)
        return [states[where.index(k)]["step"] for k in range(len(counts))], tuple(where)

    def _separate(self, optimizer, states, steps, where, counts):
        """Give parameters that step without others sharing their count a count of their own."""
        if self.users is None or any(id(s) not in self.users for s in steps):
            self.users = {}
            for state in optimizer.state.values():
                step = state.get("step") if isinstance(state, dict) else None
                if isinstance(step, Tensor):
                    _, n = self.users.get(id(step), (None, 0))
                    self.users[id(step)] = (step, n + 1)
        for k, step in enumerate(steps):
            total = self.users[id(step)][1]
            if counts[k] != total:
                own = step.clone()
                for state, i in zip(states, where):
                    if i == k:
                        state["step"] = own
                self.users[id(step)] = (step, total - counts[k])
                self.users[id(own)] = (own, counts[k])


def _check_shapes(params, names, states):
    """Raise for a state that was loaded for other parameters: of the step itself nobody would see it before a value is read."""
    for name in names:
        for p, state in zip(params, states):
            if state[name].shape != p.shape:
                shapes.broadcast(tuple(state[name].shape), tuple(p.shape))


def _wide(dtype):
    """The dtype in which the formula is computed for a parameter of this dtype."""
    return jnp.float32 if jnp.dtype(dtype).itemsize < 4 else dtype


def _real(x):
    """A complex array as pairs of real numbers: formulas are elementwise and real."""
    return jnp.stack([x.real, x.imag], axis=-1) if jnp.iscomplexobj(x) else x


def _like(x, old):
    """The result of a formula in the form of the array it replaces."""
    if jnp.iscomplexobj(old):
        x = x[..., 0] + 1j * x[..., 1]
    return x.astype(old.dtype)


def _formula(optimizer):
    """The optimizer without its parameters: compiled programs outlive it, and would keep them alive."""
    bare = object.__new__(type(optimizer))
    bare.__dict__.update(
        {k: v for k, v in optimizer.__dict__.items() if k not in _HELD and not k.startswith("_optimizer_")}
    )
    return bare


class _Split:
    """How the update of many parameters is cut: each is updated by itself.

    make: (which step count each has, how many) -> the update, which stand at the end of `static` too.
    """

    __slots__ = ("make", "static", "n_states", "steps", "begin")

    def __init__(self, make, static, n_extra, n_states):
        self.make, self.static, self.n_states = make, static, n_states
        where = static[-2]
        self.steps = 1 + max(where) if where else 0
        self.begin = self.steps + n_extra

    def parameters(self):
        return range(self.begin, self.begin + self.static[-1])

    def cut(self, lo, hi):
        *static, where, n = self.static
        own = sorted(set(where[lo:hi]))
        where = tuple(map(own.index, where[lo:hi]))
        kept = [k * n + i for k in range(self.n_states) for i in range(lo, hi)]
        at = self.begin
        inputs = [*own, *range(self.steps, at), *range(at + lo, at + hi), *range(at + n + lo, at + n + hi)]
        inputs += [at + 2 * n + i for i in kept]
        outputs = [*own, *range(self.steps + lo, self.steps + hi), *(self.steps + n + i for i in kept)]
        return self.make(where, hi - lo), (*static, where, hi - lo), inputs, outputs


def _make(optimizer, flags, number_names, extra_names, names, maximize, where, n):
    """The function (arrays, numbers) -> arrays: steps, extras, parameters, gradients, states -> the new ones."""
    n_steps = 1 + max(where) if where else 0

    def update_all(arrays, numbers):
        old_steps = arrays[:n_steps]
        at = n_steps + len(extra_names)
        extra = dict(zip(extra_names, arrays[n_steps:at]))
        params, grads, kept = arrays[at : at + n], arrays[at + n : at + 2 * n], arrays[at + 2 * n :]
        scale, skip = extra.pop("grad_scale", None), extra.pop("found_inf", None)
        # in double precision: 1 - 0.999 in single precision is wrong in the fifth digit
        base = {k: jnp.asarray(v, jnp.float64) for k, v in zip(number_names, numbers)}
        base |= {k: v.reshape(()).astype(jnp.float64) for k, v in extra.items()}
        steps = [s + 1 for s in old_steps]
        for_step = [
            base | optimizer.scalars(SimpleNamespace(**flags, **base), s.astype(jnp.float64)) for s in steps
        ] or [base | optimizer.scalars(SimpleNamespace(**flags, **base), None)]

        new_params, new_kept = [], [None] * len(kept)
        for i, (p, g) in enumerate(zip(params, grads)):
            state = {name: kept[j * n + i] for j, name in enumerate(names)}
            wide = _wide(_real(p).dtype)
            hp = SimpleNamespace(**flags, **{k: v.astype(wide) for k, v in for_step[where[i] if where else 0].items()})
            g = _real(g).astype(wide)
            if scale is not None:
                g = g / scale.reshape(()).astype(wide)
            if maximize:
                g = -g
            widened = {k: _real(v).astype(wide) for k, v in state.items()}
            new, changed = optimizer.update(_real(p).astype(wide), g, widened, hp)
            new_params.append(_like(new, p))
            for j, name in enumerate(names):
                value = changed.get(name)
                new_kept[j * n + i] = state[name] if value is None else _like(value, state[name])
        out = [*steps, *new_params, *new_kept]
        if skip is not None:
            found = skip.reshape(()) != 0
            out = [jnp.where(found, old, new) for old, new in zip([*old_steps, *params, *kept], out)]
        return out

    return update_all
