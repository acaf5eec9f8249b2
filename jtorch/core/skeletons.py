"""A jaxpr as its skeleton and its whole numbers, and jaxprs written down from a skeleton with other numbers, without tracing.

What is written down is read by the walkers of this project (`hosted.py`, `costs.py`, `cuts.py`), not by jax: it has the fields that they ask
for. Raises Unlike for what has no skeleton: constants of many elements, parameters that cannot be compared.
"""

import numpy as np

from . import extend

MOST = 1 << 10  # elements of a constant
# Primitives with functions and meshes among their parameters, and the jaxpr that is all that is read of them.
_WITH_FUNCTIONS = {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "jit": "jaxpr", "pjit": "jaxpr"}


class Unlike(Exception):
    """What a skeleton cannot say."""


class _Hole:
    """The place of a whole number."""

    def __repr__(self):
        return "_"


HOLE = _Hole()


class Body:
    """The skeleton of a jaxpr: variables (dtype, weak, dimensions), of which its operands and constants come first; equations; results."""

    __slots__ = ("closed", "n_in", "variables", "consts", "equations", "results")

    def __init__(self, closed, n_in, variables, consts, equations, results):
        self.closed = closed
        self.n_in = n_in
        self.variables = variables
        self.consts = consts
        self.equations = equations
        self.results = results

    def parts(self):
        return self.closed, self.n_in, self.variables, self.consts, self.equations, self.results

    def __eq__(self, other):
        return type(other) is Body and self.parts() == other.parts()

    __hash__ = None


class Sequence:
    """The skeleton of a tuple or list, and how it is made."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind, parts):
        self.kind = kind
        self.parts = parts

    def __eq__(self, other):
        return type(other) is Sequence and self.kind is other.kind and self.parts == other.parts

    __hash__ = None

    def make(self, parts):
        kind = self.kind
        return kind(parts) if kind is tuple or kind is list else kind(*parts)


class Real:
    """A literal's number that is not whole."""

    __slots__ = ("value", "dtype")

    def __init__(self, value, dtype):
        self.value = value
        self.dtype = dtype

    def __eq__(self, other):
        return type(other) is Real and self.dtype == other.dtype and self.value == other.value

    def __hash__(self):
        return hash(float(self.value))


class Number:
    """The skeleton of a literal that is a number."""

    __slots__ = ("literal", "dtype")

    def __init__(self, literal):
        self.literal = literal
        self.dtype = literal.aval.dtype

    def __eq__(self, other):
        return type(other) is Number and self.dtype == other.dtype and self.literal.aval == other.literal.aval

    __hash__ = None


class Constant:
    """The skeleton of a literal that is none, or of a constant array: equal where its bits are."""

    __slots__ = ("value", "bits", "dtype")

    def __init__(self, value, array):
        array = np.asarray(array)
        self.value = value
        self.dtype = array.dtype
        self.bits = array.shape, array.tobytes()

    def __eq__(self, other):
        return type(other) is Constant and self.dtype == other.dtype and self.bits == other.bits

    __hash__ = None


def taken_apart(closed):
    """(skeleton of a closed jaxpr, its whole numbers in order)."""
    numbers = []
    return _body(closed, numbers), numbers


def _body(whole, numbers):
    closed = isinstance(whole, (extend.ClosedJaxpr, Closed))
    jaxpr = whole.jaxpr if closed else whole
    place, variables = {}, []

    def add(v):
        aval = v.aval
        place[v] = len(variables)
        numbers.extend(aval.shape)
        variables.append((aval.dtype, getattr(aval, "weak_type", False), len(aval.shape)))
        return place[v]

    def read(v):
        if not isinstance(v, extend.Literal):
            return place[v]
        dtype = v.aval.dtype
        if dtype.kind in "iu" and not v.aval.shape:
            numbers.append(int(v.val))
            return Number(v)
        if dtype.kind == "f" and not v.aval.shape and np.isfinite(v.val) and v.val:
            numbers.append(Real(dtype.type(v.val), dtype))
            return Number(v)
        return Constant(v, v.val)

    for v in (*jaxpr.invars, *jaxpr.constvars):
        add(v)
    consts = tuple(map(_const, whole.consts)) if closed else ()
    equations = []
    for eqn in jaxpr.eqns:
        if eqn.effects:
            raise Unlike
        reads = tuple(map(read, eqn.invars))
        only = _WITH_FUNCTIONS.get(eqn.primitive.name)
        params = {only: eqn.params[only]} if only else eqn.params
        asked = tuple((name, _parameter(value, numbers)) for name, value in params.items())
        equations.append((eqn.primitive, reads, tuple(map(add, eqn.outvars)), asked))
    return Body(closed, len(jaxpr.invars), tuple(variables), consts, equations, tuple(map(read, jaxpr.outvars)))


def _const(value):
    if not hasattr(value, "dtype") or value.size > MOST:
        raise Unlike
    return Constant(value, value)


def _parameter(value, numbers):
    kind = type(value)
    if kind is int or isinstance(value, np.integer):
        numbers.append(int(value))
        return HOLE
    if kind is tuple or kind is list or isinstance(value, tuple) and hasattr(value, "_fields"):
        return Sequence(kind, [_parameter(v, numbers) for v in value])
    if isinstance(value, (extend.ClosedJaxpr, extend.Jaxpr, Closed, Written)):
        return _body(value, numbers)
    if kind is float and value != value or callable(value) and not isinstance(value, (type, np.dtype)):
        raise Unlike
    return value


# --- writing down ------------------------------------------------------------------------------------------------------


class Array:
    """What is known of the value of a variable."""

    __slots__ = ("shape", "dtype", "ndim", "size", "weak_type")

    def __init__(self, shape, dtype, weak_type):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type
        self.ndim = len(shape)
        n = 1
        for k in shape:
            n *= k
        self.size = n


class Variable:
    __slots__ = ("aval",)

    def __init__(self, aval):
        self.aval = aval


class Equation:
    __slots__ = ("primitive", "params", "invars", "outvars", "effects")

    def __init__(self, primitive, params, invars, outvars):
        self.primitive = primitive
        self.params = params
        self.invars = invars
        self.outvars = outvars
        self.effects = frozenset()


class Written:
    """A jaxpr that has been written down."""

    __slots__ = ("invars", "constvars", "eqns", "outvars")

    def __init__(self, invars, constvars, eqns, outvars):
        self.invars = invars
        self.constvars = constvars
        self.eqns = eqns
        self.outvars = outvars


class Closed:
    __slots__ = ("jaxpr", "consts")

    def __init__(self, jaxpr, consts):
        self.jaxpr = jaxpr
        self.consts = consts


class Varying:
    """The place of a number among those that differ."""

    __slots__ = ("at",)

    def __init__(self, at):
        self.at = at


class _Row(list):
    """Parts of which some vary: a tuple, list or named tuple."""

    __slots__ = ("make",)


class Template:
    """A skeleton whose numbers are known but for those that differ. entries: of each number itself, or a `Varying`."""

    def __init__(self, skeleton, entries):
        self.body = _Writer(skeleton, iter(entries))

    def write(self, values):
        return self.body.write(values)


def _fill(part, values):
    kind = type(part)
    if kind is Varying:
        return values[part.at]
    if kind is _Row:
        return part.make([_fill(p, values) for p in part])
    if kind is _Writer:
        return part.write(values)
    return part


class _Writer:
    """Writes a jaxpr down. What is the same for all numbers is made once."""

    def __init__(self, body, entries):
        self.closed = body.closed
        self.variables = []
        for dtype, weak, n in body.variables[: body.n_in + len(body.consts)]:
            self._add(dtype, weak, n, entries)
        self.bounds = body.n_in, len(self.variables)
        self.consts = [c.value for c in body.consts]
        self.equations = []
        at = len(self.variables)
        for primitive, reads, outs, params in body.equations:
            reads = [self._read(r, entries) for r in reads]
            params = [(name, _prepared(value, entries)) for name, value in params]
            for dtype, weak, n in body.variables[at : at + len(outs)]:
                self._add(dtype, weak, n, entries)
            at += len(outs)
            self.equations.append(self._equation(primitive, reads, outs, params))
        self.results = [self._read(r, entries) for r in body.results]

    def _add(self, dtype, weak, n, entries):
        shape = tuple([next(entries) for _ in range(n)])
        if any(type(k) is Varying for k in shape):
            self.variables.append((shape, dtype, weak))
        else:
            self.variables.append(Variable(Array(shape, dtype, weak)))

    def _read(self, r, entries):
        """The place of a variable, a literal, or (place of its number, literal)."""
        if type(r) is int:
            return r
        if type(r) is Constant:
            return r.value
        n = next(entries)
        return (n, r.literal) if type(n) is Varying else _literal(n, r.literal)

    def _equation(self, primitive, reads, outs, params):
        variables = self.variables
        varies = [type(r) is tuple or type(r) is int and type(variables[r]) is tuple for r in (*reads, *outs)]
        fixed = not any(type(value) in (Varying, _Row, _Writer) for _, value in params)
        params = dict(params) if fixed else params
        if fixed and not any(varies):
            return Equation(primitive, params, [self._known(r) for r in reads], [variables[k] for k in outs])
        return primitive, reads, outs, params, fixed

    def _known(self, r):
        return self.variables[r] if type(r) is int else r

    def write(self, values):
        made = [
            v if type(v) is Variable else Variable(Array(tuple([_fill(k, values) for k in v[0]]), v[1], v[2]))
            for v in self.variables
        ]

        def known(r):
            if type(r) is int:
                return made[r]
            if type(r) is tuple:
                return _literal(values[r[0].at], r[1])
            return r

        equations = []
        for e in self.equations:
            if type(e) is tuple:
                primitive, reads, outs, params, fixed = e
                params = params if fixed else {name: _fill(value, values) for name, value in params}
                e = Equation(primitive, params, [known(r) for r in reads], [made[k] for k in outs])
            equations.append(e)
        n_in, n_all = self.bounds
        written = Written(made[:n_in], made[n_in:n_all], equations, [known(r) for r in self.results])
        return Closed(written, self.consts) if self.closed else written


def _literal(n, like):
    n = n.value if type(n) is Real else n
    return like if n == like.val else extend.Literal(like.aval.dtype.type(n), like.aval)


def _prepared(value, entries):
    if value is HOLE:
        return next(entries)
    if type(value) is Sequence:
        parts = _Row([_prepared(v, entries) for v in value.parts])
        parts.make = value.make
        return parts if any(type(p) in (Varying, _Row, _Writer) for p in parts) else value.make(parts)
    return _Writer(value, entries) if type(value) is Body else value
