"""export/specs, sizes and dim: dynamic_shapes that fit the inputs or not, and calls with other sizes, as in PyTorch."""

import io

import pytest

import jtorch

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)


def modules(lib):
    """Modules of a library, by letter."""

    class One(lib.nn.Module):
        def forward(self, x, y=None):
            return x * 2 if y is None else x.sum() + y.sum()

    class Add(lib.nn.Module):
        def forward(self, x, y):
            return x + y

    class Flat(lib.nn.Module):
        def forward(self, x):
            return x.reshape(x.shape[0] * x.shape[1])

    class Nested(lib.nn.Module):
        def forward(self, xs, y):
            return xs[0] + xs[1]["a"]

    class Shifted(lib.nn.Module):
        def forward(self, x, y):
            return x + y[1:]

    class Halved(lib.nn.Module):
        def forward(self, x, y):
            return x + y[::2]

    class Cut(lib.nn.Module):
        def forward(self, x, y):
            return x[:, : y.shape[0]] * 2

    class Few(lib.nn.Module):
        def forward(self, x, y):
            return x + y[: x.shape[0]]

    return {cls.__name__: cls() for cls in (One, Add, Flat, Nested, Shifted, Halved, Cut, Few)}


def ones(*shape):
    return lambda lib: lib.ones(shape)


X, Y, W = ones(3, 4), ones(3, 4), ones(4)
NESTED = ([X, {"a": Y}], W)
B = "b"  # stands for Dim("b")

# name: (module, inputs, dynamic_shapes as a function of lib and Dim, calls)
CASES = {
    "rows": ("One", (X,), lambda d: ({0: d(B)},), [(ones(7, 4),), (ones(1, 4),), (ones(0, 4),), (ones(3, 5),)]),
    "by name": ("One", (X,), lambda d: {"x": {0: d(B)}}, [(ones(7, 4),)]),
    "wrong name": ("One", (X,), lambda d: {"z": {0: d(B)}}, []),
    "a name missing": ("Add", (X, Y), lambda d: {"x": {0: d(B)}}, []),
    "a name more": ("One", (X,), lambda d: {"x": {0: d(B)}, "y": None}, []),
    "short": ("Add", (X, Y), lambda d: ({0: d(B)},), []),
    "long": ("One", (X,), lambda d: ({0: d(B)}, None), []),
    "no container": ("One", (X,), lambda d: 3, []),
    "no such dimension": ("One", (X,), lambda d: ({2: d(B)},), []),
    "tuple": ("One", (X,), lambda d: ((d(B), None),), [(ones(9, 4),)]),
    "tuple too long": ("One", (X,), lambda d: ((d(B), None, None),), []),
    "list too short": ("One", (X,), lambda d: ([d(B)],), []),
    "a string": ("One", (X,), lambda d: ({0: "b"},), []),
    "a string for all": ("One", (X,), lambda d: ("b",), []),
    "number": ("One", (X,), lambda d: ({0: 3},), [(ones(3, 4),), (ones(4, 4),)]),
    "wrong number": ("One", (X,), lambda d: ({0: 5},), []),
    "one name, two sizes": ("Add", (X, ones(1, 4)), lambda d: ({0: d(B)}, {0: d(B)}), []),
    "one name": ("Add", (X, Y), lambda d: ({0: d(B)}, {0: d(B)}), [(ones(5, 4), ones(5, 4)), (ones(5, 4), ones(6, 4))]),
    "two names of one size": ("Add", (X, Y), lambda d: ({0: d(B)}, {0: d("c")}), []),
    "two bounds": ("Add", (X, Y), lambda d: ({0: d(B, max=5)}, {0: d(B, max=6)}), []),
    "bounds": ("One", (X,), lambda d: ({0: d(B, min=3, max=9)},), [(ones(n, 4),) for n in (2, 3, 9, 10)]),
    "least bounds": ("One", (X,), lambda d: ({0: d(B, min=2)},), [(ones(n, 4),) for n in (0, 1, 2)]),
    "out of bounds": ("One", (X,), lambda d: ({0: d(B, min=4, max=9)},), []),
    "size 1": ("One", (ones(1, 4),), lambda d: ({0: d(B)},), []),
    "size 0": ("One", (ones(0, 4),), lambda d: ({0: d(B)},), []),
    "fixed by the forward": ("Add", (X, W), lambda d: ({1: d(B)}, None), []),
    "auto": ("One", (X,), lambda d: ({0: d.AUTO},), [(ones(n, 4),) for n in (0, 1, 9)]),
    "auto with bounds": ("One", (X,), lambda d: ({0: d.AUTO(min=3, max=8)},), [(ones(n, 4),) for n in (2, 8, 9)]),
    "auto, fixed by the forward": ("Add", (X, W), lambda d: ({1: d.AUTO}, None), [(ones(3, 5), ones(4)), (ones(3, 4), ones(4))]),
    "auto, equal": ("Add", (X, Y), lambda d: ({0: d.AUTO}, {0: d.AUTO}), [(ones(7, 4), ones(7, 4)), (ones(7, 4), ones(1, 4))]),
    "auto of size 1": ("One", (ones(1, 4),), lambda d: ({0: d.AUTO},), [(ones(1, 4),), (ones(2, 4),)]),
    "dynamic": ("One", (X,), lambda d: ({0: d.DYNAMIC, 1: d.STATIC},), [(ones(7, 4),), (ones(7, 5),)]),
    "dynamic, fixed by the forward": ("Add", (X, W), lambda d: ({1: d.DYNAMIC}, None), []),
    "dynamic of size 1": ("One", (ones(1, 4),), lambda d: ({0: d.DYNAMIC},), []),
    "derived": ("Shifted", (X, ones(4, 4)), lambda d: ({0: d(B)}, {0: d(B) + 1}), [(ones(5, 4), ones(n, 4)) for n in (5, 6)]),
    "twice": ("Halved", (X, ones(6, 4)), lambda d: ({0: d(B)}, {0: 2 * d(B)}), [(ones(5, 4), ones(10, 4))]),
    "wrongly derived": ("Halved", (X, ones(5, 4)), lambda d: ({0: d(B)}, {0: 2 * d(B)}), []),
    "not said to be derived": ("Shifted", (X, ones(4, 4)), lambda d: ({0: d(B)}, None), []),
    "product of sizes": ("Flat", (X,), lambda d: ({0: d(B)},), [(ones(5, 4),)]),
    "nested": ("Nested", NESTED, lambda d: ([{0: d(B)}, {"a": {0: d(B)}}], None), [([ones(5, 4), {"a": ones(n, 4)}], W) for n in (5, 6)]),
    "nested too short": ("Nested", NESTED, lambda d: ([{0: d(B)}], None), []),
    "nested nothing": ("Nested", NESTED, lambda d: (None, None), []),
    "nested other key": ("Nested", NESTED, lambda d: ([{0: d(B)}, {"z": None}], None), []),
    "nested other kind": ("Nested", NESTED, lambda d: ([{0: d(B)}, [None]], None), []),
    "nested wrong number": ("Nested", NESTED, lambda d: ([{0: d(B)}, {"a": {0: 4}}], None), []),
    "of None": ("One", (X, None), lambda d: ({0: d(B)}, {0: d(B)}), []),
    "in a slice": ("Cut", (ones(3, 9), X), lambda d: (None, {0: d(B, max=8)}), [(ones(3, 9), ones(n, 4)) for n in (2, 8)]),
    "at most some": ("Few", (X, ones(6, 4)), lambda d: ({0: d(B, max=6)}, None), [(ones(n, 4), ones(6, 4)) for n in (2, 5, 6)]),
    "None": ("One", (X, None), lambda d: ({0: d(B)}, None), [(ones(5, 4), None)]),
}  # fmt: skip


def real(value, lib):
    """Inputs, with the tensors made."""
    if isinstance(value, (list, tuple)):
        return type(value)(real(v, lib) for v in value)
    if isinstance(value, dict):
        return {k: real(v, lib) for k, v in value.items()}
    return value(lib) if callable(value) else value


def told(make):
    """What a call gives, or class and words of its error (without PyTorch's links)."""
    try:
        return make()
    except Exception as e:
        words = str(e).partition("\n\nThe error above")[0].partition("For more information about")[0].strip()
        return type(e).__name__, words


def run(name, lib, kept=lambda program, lib: program):
    module, inputs, shapes, calls = CASES[name]
    program = told(
        lambda: lib.export.export(modules(lib)[module], real(inputs, lib), dynamic_shapes=shapes(lib.export.Dim))
    )
    if isinstance(program, tuple):
        return program
    found = kept(program, lib).module()
    return [str(r) for r in program.range_constraints.values()], [
        told(lambda c=c: tuple(found(*real(c, lib)).shape)) for c in calls
    ]


@pytest.mark.parametrize("name", CASES)
def test_dynamic_shapes(name):
    assert run(name, jtorch) == run(name, torch)


def test_dimensions_from_the_end():
    for lib in LIBS:
        found = lib.export.export(
            modules(lib)["One"], (lib.ones(3, 4),), dynamic_shapes=({-1: lib.export.Dim("b")},)
        ).module()
        assert found(lib.ones(3, 9)).shape == (3, 9)
        with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 3"):
            found(lib.ones(4, 9))


def loaded(program, lib):
    file = io.BytesIO()
    lib.export.save(program, file)
    file.seek(0)
    again = lib.export.load(file)
    assert str(again.range_constraints) == str(program.range_constraints)
    return again


@pytest.mark.parametrize("name", ["bounds", "derived", "nested", "auto, equal"])
def test_files_keep_what_sizes_may_be(name):
    assert run(name, jtorch, loaded) == run(name, jtorch)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: 2 * d("b") + 1,
        lambda d: d("b", max=5) - 1,
        lambda d: (2 * d("b", max=5) - 3).max,
        lambda d: d("b") * 1.5,
        lambda d: d("b") * d("c"),
        lambda d: d("b") * 0,
        lambda d: d("b") + "a",
        lambda d: d("b") - 1.0,
        lambda d: 1 - d("b"),
        lambda d: d("1a"),
        lambda d: d("a", min=3, max=3),
        lambda d: d("a", min=4, max=3),
        lambda d: (d("a").min, str(d("a").max), d("a", max=3)),
        lambda d: [d.AUTO, d.DYNAMIC, d.STATIC, d.AUTO(min=2, max=8), d.DYNAMIC(max=3)],
    ],
)
def test_names_of_sizes(make):
    theirs, ours = (told(lambda lib=lib: str(make(lib.export.Dim))) for lib in LIBS)
    assert ours == theirs


def test_shapes_by_tensor_and_by_example():
    def shown(lib):
        add, x, y = modules(lib)["Add"], lib.ones(3, 4), lib.ones(3, 4)
        by_tensor, by_example = lib.export.ShapesCollection(), lib.export.AdditionalInputs()
        by_tensor[x] = by_tensor[y] = {0: lib.export.Dim("b")}
        by_example.add((lib.ones(5, 4), lib.ones(5, 4)))
        made = [len(by_tensor), str(by_tensor.dynamic_shapes(add, (x, y))), str(by_example.dynamic_shapes(add, (x, y)))]
        for shapes in (by_tensor, by_example):
            program = lib.export.export(add, (x, y), dynamic_shapes=shapes)
            made.append(tuple(program.module()(lib.ones(7, 4), lib.ones(7, 4)).shape))
        by_example.verify(program)
        by_tensor[lib.ones(2)] = None
        return [
            *made, told(lambda: by_tensor.dynamic_shapes(add, (x, y))), told(lambda: by_example.add([1]))[0],
            told(lambda: by_tensor.__setitem__(3, None)),
        ]  # fmt: skip

    assert shown(jtorch) == shown(torch)
