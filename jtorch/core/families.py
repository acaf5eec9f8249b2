"""Operations that differ in sizes alone: traced for some sizes, written down for those between.

Tracing takes 1 to 3 ms for each new shape of an operation. What its jaxpr says of sizes are whole numbers, nearly always linear in the
operands' sizes. So of an operation that comes with a third size the skeleton of its jaxpr is kept, with the numbers in it; where some
more traces have the same skeleton and their numbers follow from the sizes by one rule, which one trace more confirms and which they
tell from the products of the sizes, those of sizes between the traced ones are written down.

Where a kernel chooses by a size, a bound has other skeletons on its two sides, and only what lies between sizes with the same skeleton is
written down. Sizes that are equal, those of 0 and 1, and powers of two make families of their own, since kernels compare sizes with each
other and with these. What holds for every k-th size alone has numbers divided by k in it, which must come out whole.
"""

import math
from fractions import Fraction

from .skeletons import Real, Template, Unlike, Varying, taken_apart
from .strided import STEPS, Recipe

PATIENCE = 128  # traces without a rule, after which a family is given up
KEPT = 24  # traces of a family that are kept, the first ones and the last; the same of a line
FAMILIES = 1 << 13
LINES = 24  # of a family
STEADY = 2  # traces in a row with a size that grows, or shrinks
FREE = 6  # different sizes that may vary at once

_families: dict[tuple, "Family"] = {}


def family(key, sizes):
    """The family of an operation whose operands (and results) have these sizes."""
    key = key, _pattern(sizes)
    found = _families.get(key)
    if found is None:
        if len(_families) >= FAMILIES:
            _families.clear()
        found = _families[key] = Family()
    return found


def _pattern(sizes):
    """Which sizes are equal, 0 or 1, or powers of two."""
    first = {0: -1, 1: -2}
    return tuple([first.setdefault(n, 2 * k + (n & (n - 1) == 0)) for k, n in enumerate(sizes)])


def sizes_of(specs) -> tuple[int, ...]:
    """All sizes of some operands in order."""
    return tuple([n for s in specs for n in s.shape])


def of_parts(name, *parts):
    """What is kin to a function that follows from these parts (recipes, numbers, in tuples): all whole numbers in them are its sizes."""
    sizes = []
    return (name, *[_without_numbers(part, sizes) for part in parts]), tuple(sizes)


def _without_numbers(part, sizes):
    kind = type(part)
    if kind is int:
        sizes.append(part)
        return None
    if kind is Recipe:
        return _without_numbers((part.base_shape, part.shape, part.strides, part.steps), sizes)
    if kind in STEPS:
        return kind, *[_without_numbers(getattr(part, name), sizes) for name in kind.__slots__]
    if isinstance(part, (tuple, list)):
        return tuple([_without_numbers(p, sizes) for p in part])
    return part


def jaxpr_of(plan):
    """The jaxpr of a plan that has kin, for its own operands and numbers like its own; traced only where that is not known."""
    key, sizes = plan.kin
    kin = family(key, sizes)
    found = kin.written(sizes)
    if found is not None:
        return found[0]
    made = plan.jit.trace(*[s.aval for s in plan.operands], *[kind(1) for kind in plan.kinds]).jaxpr
    if kin.wants():
        kin.learn(sizes, made)
    return made


class Family:
    """What is known of an operation for all sizes of one pattern."""

    __slots__ = ("samples", "lines", "traces", "given_up")

    def __init__(self):
        self.samples = []
        self.lines = {}  # places of the sizes that differ, the other sizes -> Line
        self.traces = 0
        self.given_up = False

    def written(self, sizes):
        """(jaxpr, what was told with it) for these sizes; None where it has to be traced."""
        for part in self._ruled():
            made = part.rule.written(sizes)
            if made is not None:
                return made, part.kind.told
        return None

    def beyond(self, sizes):
        """Sizes to be traced ahead: where one grows with each call, as a sentence does, or shrinks, all lie outside what was traced."""
        for part in self._ruled():
            if abs(part.going) >= STEADY and part.rule.holds(sizes):
                way, part.going = part.going, 0
                return part.rule.far(sizes, way)
        return None

    def _ruled(self):
        return [part for line in self.lines.values() for part in line.parts if part.rule is not None]

    def wants(self) -> bool:
        """Whether the jaxpr of the next trace is asked for: most operations come with one size."""
        self.traces += 1
        return self.traces > 1 and not self.given_up

    def learn(self, sizes, closed, told=None):
        """Take note of what tracing has given for these sizes. told: what must be the same for all."""
        try:
            kind = Kind(told, *taken_apart(closed))
            same = next((s.kind for s in self.samples if s.kind == kind), kind)
        except (Unlike, ValueError, TypeError, AttributeError):  # compared by element; of tokens, keys and references
            return self._give_up()
        sample = Sample(sizes, same, kind.numbers)
        if any(s.sizes == sizes for s in self.samples):
            return
        for s in self.samples:
            places = tuple([k for k, (m, n) in enumerate(zip(s.sizes, sizes)) if m != n])
            key = places, tuple([n for k, n in enumerate(sizes) if k not in places])
            if key not in self.lines and len(self.lines) < LINES and len({sizes[k] for k in places}) <= FREE:
                line = self.lines[key] = Line()
                for t in self.samples:
                    if t.lies_on(*key):
                        line.add(t)
        self.samples.append(sample)
        if len(self.samples) > KEPT:
            del self.samples[KEPT // 2]
        for key, line in self.lines.items():
            if sample.lies_on(*key):
                line.add(sample)
        if self.traces > PATIENCE and not self._ruled():
            self._give_up()

    def _give_up(self):
        self.given_up = True
        self.samples, self.lines = [], {}


class Kind:
    """What traces with the same skeleton have in common."""

    __slots__ = ("told", "skeleton", "numbers")

    def __init__(self, told, skeleton, numbers):
        self.told = told
        self.skeleton = skeleton
        self.numbers = numbers

    def __eq__(self, other):
        return self.told == other.told and self.skeleton == other.skeleton

    __hash__ = None


class Sample:
    """A trace: its sizes, the kind that it is of, and its numbers."""

    __slots__ = ("sizes", "kind", "numbers")

    def __init__(self, sizes, kind, numbers):
        self.sizes = sizes
        self.kind = kind
        self.numbers = numbers

    def lies_on(self, places, others) -> bool:
        return tuple([n for k, n in enumerate(self.sizes) if k not in places]) == others


class Line:
    """Traces that differ in some sizes, the others being the same: those of one layer of a model, by kind."""

    __slots__ = ("parts", "ended")

    def __init__(self):
        self.parts = []
        self.ended = False

    def add(self, sample):
        if self.ended:
            return
        part = next((p for p in self.parts if p.kind is sample.kind), None)
        if part is None:
            part = Part(sample.kind)
            self.parts.append(part)
        part.add(sample)
        if any(p is not q and p.covers(q) for p in self.parts for q in self.parts):
            self.ended, self.parts = True, []


class Part:
    """Those of one kind. going: how often in a row the only size that varies has become larger, or smaller (negative)."""

    __slots__ = ("kind", "samples", "rule", "going")

    def __init__(self, kind):
        self.kind = kind
        self.samples = []
        self.rule = None
        self.going = 0

    def add(self, sample):
        self.samples.append(sample)
        if len(self.samples) > KEPT:
            del self.samples[KEPT // 2]
        if self.rule is not None and self.rule.says(sample.sizes, sample.numbers):
            way = self.rule.stretch(sample.sizes)
            self.going = self.going + way if self.going * way > 0 else way
            return
        self.going = 0
        self.rule = _rule(self.kind.skeleton, [(s.sizes, s.numbers) for s in self.samples], self.rule)

    def covers(self, other) -> bool:
        return self.rule is not None and any(self.rule.holds(s.sizes) for s in other.samples)


class Rule:
    """How the numbers of a jaxpr follow from sizes.

    fixed: sizes that were always the same. bounds: (place, least, most) of those that vary freely. bound: (place, form) of those that
    follow from them. forms: of the numbers that differ. entries: all numbers, those that differ by their place among the forms.
    """

    __slots__ = ("fixed", "bounds", "bound", "forms", "entries", "template")

    def __init__(self, fixed, bounds, bound, forms, entries, template):
        self.fixed = fixed
        self.bounds = bounds
        self.bound = bound
        self.forms = forms
        self.entries = entries
        self.template = template

    def says(self, sizes, numbers) -> bool:
        """Whether it gives these numbers, be the sizes within the bounds or not."""
        if any(sizes[p] != n for p, n in self.fixed) or any(form(sizes) != sizes[p] for p, form in self.bound):
            return False
        values = [form(sizes) for form in self.forms]
        return all(n == (values[e.at] if type(e) is Varying else e) for e, n in zip(self.entries, numbers))

    def stretch(self, sizes) -> int:
        """Take these sizes within the bounds; 1 or -1 where the only free one has become larger or smaller than ever."""
        before = self.bounds
        self.bounds = [(p, min(least, sizes[p]), max(most, sizes[p])) for p, least, most in before]
        (_, low, high), (_, least, most) = self.bounds[0], before[0]
        return ((high > most) - (low < least)) * (len(before) == 1)

    def far(self, sizes, going):
        """Sizes like these and much larger, or smaller."""
        [(place, least, most)] = self.bounds
        made = list(sizes)
        for more in (1, 3, 5, 2, 4, 6):
            made[place] = (2 * most if going > 0 else least // 2) + more
            if least <= made[place] <= most:
                continue
            for p, form in self.bound:
                made[p] = n = form(made)
                if n is None or n < 0:  # no size at all, and sizes may follow from this one
                    break
            else:
                if _pattern(made) == _pattern(sizes):
                    return tuple(made)
        return None

    def holds(self, sizes) -> bool:
        for place, n in self.fixed:
            if sizes[place] != n:
                return False
        for place, least, most in self.bounds:
            if not least <= sizes[place] <= most:
                return False
        return all(form(sizes) == sizes[place] for place, form in self.bound)

    def written(self, sizes):
        if not self.holds(sizes):
            return None
        values = [form(sizes) for form in self.forms]
        return None if None in values else self.template.write(values)


class Form:
    """A whole number as `(start + sum of factor * size) / divisor`, or as a product of two sizes."""

    __slots__ = ("start", "terms", "divisor", "least")

    def __init__(self, start, terms):
        self.divisor = math.lcm(start.denominator, *[c.denominator for c, _ in terms])
        self.start = int(start * self.divisor)
        self.terms = [(int(c * self.divisor), places) for c, places in terms]
        self.least = None  # what it has never been below: 0 of sizes

    def __call__(self, sizes):
        made = self.start
        for factor, places in self.terms:
            for p in places:
                factor *= sizes[p]
            made += factor
        whole, left = divmod(made, self.divisor)
        return None if left or self.least is not None and whole < self.least else whole


def _rule(skeleton, samples, before):
    """The rule that these traces confirm; None where there is none."""
    columns = list(zip(*[sizes for sizes, _ in samples]))
    fixed = [(p, c[0]) for p, c in enumerate(columns) if _same(c)]
    free, bound, taken = [], [], {}
    for place, column in enumerate(columns):
        if _same(column):
            continue
        if column in taken:
            bound.append((place, Form(Fraction(0), [(Fraction(1), (taken[column],))])))
            continue
        taken[column] = place
        form = _form(column, free, columns) if free else None
        if form is None:
            free.append(place)
        else:
            bound.append((place, form))
    if not free or len(samples) < len(free) + 2:
        return None
    forms, entries, made = [], [], {}
    for column in zip(*[numbers for _, numbers in samples]):
        if _same(column):
            entries.append(column[0])
            continue
        if column not in made:
            form = _real(column, free, columns) if type(column[0]) is Real else _whole(column, free, columns)
            if form is None:
                return None
            made[column] = Varying(len(forms))
            forms.append(form)
        entries.append(made[column])
    bounds = [(p, min(columns[p]), max(columns[p])) for p in free]
    if before is not None:
        known = {p: (least, most) for p, least, most in before.bounds}
        bounds = [(p, min(a, known.get(p, (a, b))[0]), max(b, known.get(p, (a, b))[1])) for p, a, b in bounds]
    return Rule(fixed, bounds, bound, forms, entries, Template(skeleton, entries))


def _whole(column, free, columns):
    form = _form(column, free, columns)
    if form is not None:
        form.least = 0 if min(column) >= 0 else None
    return form


def _real(column, free, columns):
    """How a real number follows: a whole number of elements, or one part of them, as in means."""
    dtype, values = column[0].dtype, [float(x.value) for x in column]
    if all(x == int(x) for x in values):
        form, of = _whole([int(x) for x in values], free, columns), dtype.type
    else:
        counts = [round(1 / x) if abs(x) > 1e-300 else 0 for x in values]
        if any(not n or dtype.type(1 / n) != x.value for n, x in zip(counts, column)):
            return None
        form, of = _whole(counts, free, columns), lambda n: dtype.type(1 / n)
    if form is None:
        return None

    def real(sizes):
        n = form(sizes)
        return None if n is None or n == 0 else Real(of(n), dtype)

    return real


def _same(column) -> bool:
    return column.count(column[0]) == len(column)


def _form(column, free, columns):
    """How a column of numbers follows from the columns of the free sizes, with a row to spare; None where it does not."""
    rows = [[1, *[columns[p][k] for p in free]] for k in range(len(column))]
    found = _solved(rows, column, 1)
    if found is not None:
        start, *factors = found
        if any(c and _alike(rows, columns, p, q) for c, p in zip(factors, free) for q in free):
            return None
        return Form(start, [(c, (p,)) for c, p in zip(factors, free) if c])
    for at, p in enumerate(free):
        for q in free[at:]:
            c = Fraction(column[0], columns[p][0] * columns[q][0])
            if all(n == c * columns[p][k] * columns[q][k] for k, n in enumerate(column)):
                return None if _alike(rows, columns, p, q) else Form(Fraction(0), [(c, (p, q))])
    return None


def _alike(rows, columns, p, q) -> bool:
    """Whether these traces do not tell the product of two sizes from what is linear in all: two points lie on a line and on a parabola."""
    return _solved(rows, [columns[p][k] * columns[q][k] for k in range(len(rows))], 0) is not None


def _solved(rows, column, spare):
    """The solution of a linear system in whole numbers that has exactly one and rows to spare; None."""
    n = len(rows[0])
    if len(rows) < n + spare:
        return None
    system = [[*map(Fraction, row), Fraction(b)] for row, b in zip(rows, column)]
    for k in range(n):
        pivot = next((r for r in range(k, len(system)) if system[r][k]), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        first = system[k] = [x / system[k][k] for x in system[k]]
        for r, row in enumerate(system):
            if r != k and row[k]:
                system[r] = [x - row[k] * y for x, y in zip(row, first)]
    return None if any(row[n] for row in system[n:]) else [row[n] for row in system[:n]]
