"""Guards of compiled functions: what is read by names that the code does not have, through modules and views, and what is not there yet."""

import collections
import contextlib
import dataclasses
import enum
import functools
import inspect
import operator
import sys
import threading
import types
import weakref

import jtorch

get = getattr


class Holder:
    scale = 2.0


@dataclasses.dataclass
class Pair:
    a: float = 1.0


class Grade(enum.Enum):
    HIGH = 1


def module():
    made = types.ModuleType("made")
    made.scale = 2.0
    return made


def scaled_by_alias(x, m):
    alias = m
    return x * alias.scale


def matched(x, o):
    match o:
        case Holder(scale=2.0):
            return x.sin()
    return x.cos()


def tried(x, o):
    try:
        return x * o.later
    except AttributeError:
        return x.cos()


def tried_in_all(x, o):
    try:
        return x * o.later
    except:  # noqa: E722  what is tested
        return x.cos()


def suppressed(x, o):
    y = x.cos()
    with contextlib.suppress(Exception):
        y = x * o.later
    return y


class Answering:
    def __getattr__(self, name):
        return 2.0


class Meta(type):
    answer = True

    def __instancecheck__(cls, instance):
        return cls.answer


class Checked(metaclass=Meta):
    pass


tools = module()

# what is read; a function of a tensor and that; what is done to it between two calls
READ = {
    "a module by another name": (module, scaled_by_alias, lambda m: setattr(m, "scale", 7.0)),
    "a module's name in words": (module, lambda x, m: x * getattr(m, "scale"), lambda m: setattr(m, "scale", 7.0)),  # noqa: B009
    "a module's later name": (
        module, lambda x, m: x.sin() if hasattr(m, "later") else x.cos(), lambda m: setattr(m, "later", 7.0)
    ),
    "a module's dict": (module, lambda x, m: x * m.__dict__["scale"], lambda m: setattr(m, "scale", 7.0)),
    "a module in a list": (lambda: [module()], lambda x, o: x * o[0].scale, lambda o: setattr(o[0], "scale", 7.0)),
    "an attribute's getter": (
        lambda: (Holder(), operator.attrgetter("scale")), lambda x, o: x * o[1](o[0]), lambda o: setattr(o[0], "scale", 7.0)
    ),
    "getattr by another name": (Holder, lambda x, o: x * get(o, "scale"), lambda o: setattr(o, "scale", 7.0)),
    "a part of getattr": (
        lambda: functools.partial(getattr, Holder), lambda x, o: x * o("scale"), lambda o: setattr(o.args[0], "scale", 2.0 + 5)
    ),
    "a pattern": (Holder, matched, lambda o: setattr(o, "scale", 7.0)),
    "a default of getattr": (Holder, lambda x, o: x * getattr(o, "later", 1.0), lambda o: setattr(o, "later", 7.0)),
    "a default of a class": (
        lambda: type("Later", (), {})(), lambda x, o: x * getattr(o, "later", 1.0), lambda o: setattr(type(o), "later", 7.0)
    ),
    "a later attribute": (Holder, lambda x, o: x.sin() if hasattr(o, "later") else x.cos(), lambda o: setattr(o, "later", 1)),
    "an error of any kind": (Holder, tried_in_all, lambda o: setattr(o, "later", 7.0)),
    "a suppressed error": (Holder, suppressed, lambda o: setattr(o, "later", 7.0)),
    "what __getattr__ answers": (Answering, lambda x, o: x * o.later, lambda o: setattr(o, "later", 7.0)),
    "a caught error": (Holder, tried, lambda o: setattr(o, "later", 7.0)),
    "a view of a dict": (
        lambda: (d := {"a": 1.0}, types.MappingProxyType(d)), lambda x, o: x * o[1]["a"], lambda o: o[0].update(a=7.0)
    ),
    "bytes": (lambda: bytearray(b"ab"), lambda x, o: x * o[0], lambda o: o.__setitem__(0, 1)),
    "a weak reference": (
        lambda: (o := Holder(), weakref.ref(o)), lambda x, o: x * o[1]().scale, lambda o: setattr(o[0], "scale", 7.0)
    ),
    "a dict of a class": (lambda: collections.UserDict(a=1.0), lambda x, o: x * o["a"], lambda o: o.update(a=7.0)),
    "a chain of dicts": (
        lambda: collections.ChainMap({}, {"a": 1.0}), lambda x, o: x * o["a"], lambda o: o.maps[1].update(a=7.0)
    ),
    "fields that are compared": (
        lambda: (Pair(), Pair()), lambda x, o: x.sin() if o[0] == o[1] else x.cos(), lambda o: setattr(o[1], "a", 7.0)
    ),
    "a namespace that is compared": (
        lambda: (types.SimpleNamespace(a=1), types.SimpleNamespace(a=1)), lambda x, o: x.sin() if o[0] == o[1] else x.cos(),
        lambda o: setattr(o[1], "a", 7.0),
    ),
    "another class": (
        lambda: Holder(), lambda x, o: x * o.scale, lambda o: setattr(o, "__class__", type("Other", (), {"scale": 7.0}))
    ),
    "a mark of a tensor": (
        lambda: jtorch.ones(1), lambda x, o: x.sin() if hasattr(o, "mark") else x.cos(), lambda o: setattr(o, "mark", 1)
    ),
    "an attribute of a tensor": (
        lambda: setattr(o := jtorch.ones(1), "mark", 2.0) or o, lambda x, o: x * o.mark, lambda o: setattr(o, "mark", 7.0)
    ),
    "the shape of a tensor": (lambda: jtorch.ones(3, 2), lambda x, o: x * o.shape[0], lambda o: o.t_()),
    "a generic function": (
        lambda: functools.singledispatch(lambda k, x: x.sin()), lambda x, o: o(3, x),
        lambda o: o.register(int, lambda k, x: x.cos()),
    ),
    "the default of a function": (
        lambda: lambda a=2.0: a, lambda x, o: x * inspect.signature(o).parameters["a"].default,
        lambda o: setattr(o, "__defaults__", (7.0,)),
    ),
    "a gradient that is there": (
        lambda: jtorch.ones(1, requires_grad=True), lambda x, o: x.sin() if o.grad is None else x.cos(),
        lambda o: setattr(o, "grad", jtorch.ones(1)),
    ),
}  # fmt: skip


def readers():
    """(name, where it is found, a compiled function, the function, what is read, what changes it)."""
    for name, (make, read, change) in READ.items():
        made = make()
        yield name, "argument", lambda x, o, read=read: read(x, o), made, change
        made = make()
        yield name, "free", lambda x, _, read=read, made=made: read(x, made), made, change


def test_what_is_read_by_other_ways_may_change():
    for rows, (name, where, function, made, change) in enumerate(readers(), 200):
        x, scale = jtorch.ones(rows), Holder.scale  # a shape of its own: a number that varies is an input
        given = made if where == "argument" else None
        compiled = jtorch.compile(function)
        try:
            before = [compiled(x, given) for _ in range(4)]
            change(made)
            got, expected = compiled(x, given).tolist(), function(x, given).tolist()
        finally:
            Holder.scale = scale
        assert got == expected != before[3].tolist(), (name, where, compiled._region.why)


def test_a_global_module():
    """Its names are guarded where the code has them, by whatever way, and nothing else of it."""
    functions = [
        lambda x: x * tools.scale, lambda x: x * tools.__dict__["scale"], lambda x: x * getattr(tools, "scale"),  # noqa: B009
        lambda x: scaled_by_alias(x, tools),
    ]  # fmt: skip
    tools.seen = iter(range(9))
    for rows, function in enumerate(functions, 330):
        compiled, x = jtorch.compile(function), jtorch.ones(rows)
        for scale in (2.0, 7.0):
            tools.scale = scale
            assert [compiled(x)[0].item() for _ in range(4)] == [scale] * 4
            assert scale == 7.0 or compiled._region.replays, compiled._region.why


def test_a_member_of_an_enumeration():
    Grade.HIGH.weight = 2.0
    compiled, x = jtorch.compile(lambda x: x * Grade.HIGH.weight), jtorch.ones(300)
    assert [compiled(x)[0].item() for _ in range(4)] == [2.0] * 4 and compiled._region.replays
    Grade.HIGH.weight = 7.0
    assert compiled(x)[0].item() == 7.0


def test_an_attribute_of_a_metaclass():
    compiled, x = jtorch.compile(lambda x: x.sin() if isinstance(x, Checked) else x.cos()), jtorch.ones(303)
    try:
        for answer in (True, False):
            Meta.answer = answer
            for _ in range(4):
                assert compiled(x).tolist() == (x.sin() if answer else x.cos()).tolist()
        assert compiled._region.replays, compiled._region.why
    finally:
        Meta.answer = True


def test_what_lies_in_sys():
    sys.modules["made_by_a_test"] = made = module()
    functions = [lambda x: x * sys.modules["made_by_a_test"].scale, lambda x: x * sys.argv.count("made_by_a_test")]
    try:
        for rows, function in enumerate(functions, 301):
            compiled, x = jtorch.compile(function), jtorch.ones(rows)
            for _ in range(4):
                compiled(x)
            made.scale = 7.0
            sys.argv.append("made_by_a_test")
            assert compiled(x).tolist() == function(x).tolist()
    finally:
        del sys.modules["made_by_a_test"]
        sys.argv.remove("made_by_a_test")
        sys.argv.remove("made_by_a_test")


def test_each_thread_has_its_own():
    local, got = threading.local(), []
    local.scale, x = 1.0, jtorch.ones(310)
    compiled = jtorch.compile(lambda x: x * local.scale)
    for _ in range(4):
        compiled(x)

    def other():
        local.scale = 5.0
        got.append(compiled(x)[0].item())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert got == [5.0]


def test_which_tensor_an_argument_is():
    kept = jtorch.ones(311)
    table = {kept: 1}
    functions = [lambda x: x.sin() if x is kept else x.cos(), lambda x: x.sin() if x in table else x.cos()]
    for function in functions:
        compiled = jtorch.compile(function)
        for given in (jtorch.ones(311), kept, kept.detach(), jtorch.ones(311), kept):
            for _ in range(4):
                assert compiled(given).tolist() == function(given).tolist()
        assert compiled._region.replays, compiled._region.why


def test_how_many_tensors_there_are():
    kept, others = jtorch.ones(316), [jtorch.ones(316) for _ in range(3)]
    functions = [lambda *given: given[0] * len({kept, *given}), lambda *given: given[0] * len(dict.fromkeys(given))]
    for function in functions:
        compiled = jtorch.compile(function)
        for given in (others, others[:1] * 3, [kept] * 3, others[1:2] * 3, others):
            for _ in range(4):
                assert compiled(*given)[0].item() == function(*given)[0].item()


def test_what_a_tensor_is_asked_is_another_tensors_answer():
    functions = [
        lambda x: (x * 2, id(x)),
        lambda x: (x * 2, hash(x)),
        lambda x: (x.add_(1), x._version),
        lambda x: (x * 2, x.data_ptr()),
    ]
    for rows, function in enumerate(functions, 312):
        compiled = jtorch.compile(function)
        for x in [jtorch.ones(rows) for _ in range(5)] * 2:
            answer = compiled(x)[1]
            assert answer in (id(x), hash(x), x._version, x.data_ptr())


def test_attributes_and_gradients_of_arguments():
    def marked(x):
        return x.sin() if hasattr(x, "mark") else x.cos()

    def graded(x):
        with jtorch.no_grad():
            return x.sin() if x.grad is None else x.cos()

    plain, mark, grad = (jtorch.ones(320).requires_grad_(k == 2) for k in range(3))
    for function, others in ((marked, [plain, mark, plain]), (graded, [grad])):
        compiled = jtorch.compile(function)
        for given in others:
            for _ in range(4):
                compiled(given)
            assert compiled._region.replays, compiled._region.why
            mark.mark, grad.grad = 1, jtorch.ones(320)
            for _ in range(4):
                assert compiled(given).tolist() == function(given).tolist()
            del mark.mark
