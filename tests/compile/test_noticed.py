"""What the code of a region asks for: replays notice where the answer is another one."""

import abc
import argparse
import collections
import collections.abc
import contextlib
import dataclasses
import decimal
import enum
import functools
import inspect
import operator
import string
import sys
import threading
import types
import typing
import weakref
from decimal import Decimal

import numpy as np
import pytest

import jtorch

CHOICES = (
    jtorch.sin, jtorch.cos, jtorch.exp, jtorch.tanh, jtorch.sigmoid, jtorch.neg, jtorch.abs, jtorch.square, jtorch.atan, jtorch.erf,
)  # fmt: skip


def chosen(x, k):
    """Another function for each number: a number in the program would be an input of it."""
    return CHOICES[int(k) % len(CHOICES)](x)


@dataclasses.dataclass(order=True)
class Config:
    scale: int = 1


class Point:
    __match_args__ = ("x",)

    def __init__(self):
        self.x, self.y, self.table = 1, 1, {"k": 1}

    def asked(self):
        return self.x

    again = property(operator.attrgetter("x"))

    def kept(self, k):
        return k

    partly = functools.partialmethod(kept, k=1)

    def close(self):
        """Nothing to close."""


class Other(Point):
    def asked(self):
        return 5


class Described:
    class Descriptor:
        k = 1

        def __get__(this, instance, owner):
            return this.k

    d = Descriptor()


class Hidden(list):
    def __iter__(self):
        return iter(())


def cell():
    k = 1

    def change(new):
        nonlocal k
        k = new

    return (lambda: k), change


@typing.runtime_checkable
class HasName(typing.Protocol):
    own_name: int


def described():
    def asked(self):
        """A method with an attribute."""

    asked.k = 1
    return type("Described", (), {"asked": asked})()


def stateful():
    made = optimizer(1.0)
    made.state["mine"] = {"k": 1}
    return made


def module_of(name):
    made = types.ModuleType("made")
    setattr(made, name, 1)
    return made


def optimizer(lr):
    return jtorch.optim.SGD([jtorch.ones(1, requires_grad=True)], lr=lr)


def by_keyword(point):
    match point:
        case Point(y=1):
            return 1
        case Point(y=k):
            return k


def by_place(point):
    match point:
        case Point(1):
            return 1
    return 2


class Keyed:
    """An object that is only known by a weak reference."""


@functools.singledispatch
def dispatched(value):
    return 1


def hooked(module):
    module.register_forward_hook(lambda module, args, out: out[None])
    return module


def family():
    """An object of a class whose base has attributes of the same names, as the object has itself."""

    class Base:
        k = 1

        def asked(self):
            return 1

        def __len__(self):
            return 1

    class Derived(Base):
        k = 2

        def asked(self):
            return super().asked() + 1

    made = Derived()
    made.k = 3
    return made


def base(made):
    return type(made).__mro__[1]


class Private:
    __slots__ = ("__k",)

    def __init__(self):
        self.__k = 1

    def asked(self):
        return self.__k

    def change(self):
        self.__k = 2


def abstract():
    return abc.ABCMeta("Abstract", (), {}), Keyed()


class Counting(type):
    k = 1


def helper():
    """A function that is given attributes."""


def layer():
    made = jtorch.nn.Linear(2, 2, bias=False)
    made.weight.scale = 1
    return made


def with_gradient():
    made = jtorch.ones(2, 2)
    made.grad = jtorch.ones(2, 2)
    return made


def entered(context):
    with context as given:
        return given


def missed(context):
    try:
        with context:
            raise KeyError
    except KeyError:
        return True


def composed(module):
    return sum(getattr(module, "own_" + name, 3) for name in ["a"])


def allowed(_):
    return 1 if jtorch.backends.cuda.flash_sdp_enabled() else 2


# what is read, what of it a region asks, and what is done to it between two calls
READ = {
    "an object's class": (Point, lambda p: p.asked(), lambda p: setattr(p, "__class__", Other)),
    "a pattern by keyword": (Point, by_keyword, lambda p: setattr(p, "y", 3)),
    "a pattern by place": (Point, by_place, lambda p: setattr(p, "x", 3)),
    "two dataclasses": (Config, lambda c: 1 if c == Config() else 2, lambda c: setattr(c, "scale", 3)),
    "their order": (Config, lambda c: 1 if c < Config(2) else 2, lambda c: setattr(c, "scale", 3)),
    "the words of one": (Config, lambda c: len(f"{c}"), lambda c: setattr(c, "scale", 300)),
    "in a list": (Config, lambda c: 1 if c in (Config(),) else 2, lambda c: setattr(c, "scale", 3)),
    "a namespace": (lambda: types.SimpleNamespace(q=1), lambda n: len(str(n)), lambda n: setattr(n, "q", 123)),
    "another namespace": (lambda: argparse.Namespace(q=1), lambda n: n.q, lambda n: setattr(n, "q", 2)),
    "UserDict": (lambda: collections.UserDict(a=1), lambda d: d["a"], lambda d: d.update(a=2)),
    "UserList": (lambda: collections.UserList([1]), lambda d: d[0], lambda d: d.insert(0, 2)),
    "ChainMap": (lambda: collections.ChainMap({}, {"a": 1}), lambda d: d["a"], lambda d: d.maps[1].update(a=2)),
    "attrgetter": (Point, operator.attrgetter("x"), lambda p: setattr(p, "x", 2)),
    "methodcaller": (Point, operator.methodcaller("asked"), lambda p: setattr(p, "x", 2)),
    "a property of attrgetter": (Point, lambda p: p.again, lambda p: setattr(p, "x", 2)),
    "a descriptor": (Described, lambda o: o.d, lambda o: setattr(type(o).__dict__["d"], "k", 2)),
    "a module's list": (lambda: sys.argv, lambda _: len(sys.argv), lambda _: sys.argv.append("a")),
    "a tensor's attribute": (lambda: jtorch.ones(2), lambda t: 2 if hasattr(t, "own") else 1, lambda t: setattr(t, "own", 1)),
    "whether it has a gradient": (lambda: jtorch.ones(2), lambda t: 1 if t.grad is None else 2, lambda t: setattr(t, "grad", jtorch.ones(2))),
    "singledispatch": (lambda: dispatched, lambda _: dispatched(1), lambda _: dispatched.register(int, lambda value: 2)),
    "hooks dropped by hand": (lambda: hooked(jtorch.nn.Identity()), lambda m: int(m(jtorch.ones(1)).ndim), lambda m: m._forward_hooks.clear()),
    "a setting of an optimizer": (lambda: optimizer(1.0), lambda o: o.param_groups[0]["lr"], lambda o: o.param_groups[0].update(lr=2.0)),
    "any setting": (lambda: optimizer(1.0), lambda o: sum(v == 0 for v in o.param_groups[0].values()), lambda o: o.param_groups[0].update(momentum=2)),
    "groups": (lambda: optimizer(1.0), lambda o: len(o.param_groups), lambda o: o.param_groups.append({"params": []})),
    "a schedule": (lambda: jtorch.optim.lr_scheduler.StepLR(optimizer(1.0), 1), lambda s: s.last_epoch, lambda s: vars(s).update(last_epoch=2)),
    "a dataset": (lambda: jtorch.utils.data.TensorDataset(jtorch.ones(2)), lambda d: d.tensors[0].ndim, lambda d: vars(d).update(tensors=(jtorch.ones(1, 1),))),
    "a list of its own class": (lambda: Hidden([1]), lambda held: held[0], lambda held: held.insert(0, 2)),
    "precision": (lambda: jtorch, lambda _: 1 if jtorch.backends.cuda.matmul.allow_tf32 else 2, lambda _: jtorch.set_float32_matmul_precision("high")),
    "a base's method": (family, lambda o: o.asked(), lambda o: setattr(base(o), "asked", lambda self: 4)),
    "a class's attribute that its object hides": (family, lambda o: type(o).k, lambda o: setattr(type(o), "k", 5)),
    "a special method where any name is read": (family, lambda o: len(o) + hasattr(o, "other"), lambda o: setattr(base(o), "__len__", lambda self: 2)),
    "a private slot": (Private, lambda o: o.asked(), lambda o: o.change()),
    "an abstract class": (abstract, lambda two: 1 if isinstance(two[1], two[0]) else 2, lambda two: two[0].register(Keyed)),
    "derived classes": (lambda: type("Base", (), {}), lambda cls: len(cls.__subclasses__()), lambda cls: setattr(cls, "kept", type("Derived", (cls,), {}))),
    "a metaclass's attribute": (lambda: Counting("Counted", (), {}), lambda cls: cls.k, lambda cls: setattr(cls, "k", 2)),
    "a function's attribute to come": (lambda: types.FunctionType(helper.__code__, {}), lambda f: 1 if hasattr(f, "own") else 2, lambda f: setattr(f, "own", 1)),
    "a module's names, composed": (lambda: types.SimpleNamespace(module=module_of("own_a")), lambda n: composed(n.module), lambda n: setattr(n.module, "own_a", 2)),
    "a module's names to come": (lambda: types.SimpleNamespace(module=module_of("own_b")), lambda n: composed(n.module), lambda n: setattr(n.module, "own_a", 2)),
    "a parameter's attribute": (layer, lambda m: sum(p.scale for p in m.parameters()), lambda m: setattr(m.weight, "scale", 2)),
    "a parameter's attribute to come": (layer, lambda m: sum(hasattr(p, "own") for p in m.parameters()), lambda m: setattr(m.weight, "own", 2)),
    "a gradient's layout": (with_gradient, lambda t: 1 if t.grad.is_contiguous() else 2, lambda t: setattr(t, "grad", jtorch.ones(2, 2).t().clone(memory_format=jtorch.preserve_format).t()[:, :1].expand(2, 2))),
    "whether a gradient needs one": (with_gradient, lambda t: int(t.grad.requires_grad), lambda t: t.grad.requires_grad_()),
    "a ModuleDict": (lambda: jtorch.nn.ModuleDict({"a": jtorch.nn.ReLU(), "b": jtorch.nn.ReLU()}), len, lambda d: d.pop(next(iter(d)))),
    "a ModuleDict cleared": (lambda: jtorch.nn.ModuleDict({"a": jtorch.nn.ReLU()}), len, lambda d: d.clear()),
    "whether parameters need gradients": (layer, lambda m: sum(p.requires_grad for p in m.parameters()), lambda m: m.weight.requires_grad_(False)),
    "dtypes of parameters": (layer, lambda m: 1 if next(m.parameters()).dtype == jtorch.float32 else 2, lambda m: setattr(m.weight, "data", m.weight.data.half())),
    "an optimizer's state": (lambda: optimizer(1.0), lambda o: len(o.state), lambda o: o.state.update({len(o.state): {}})),
    "a number of an optimizer's state": (stateful, lambda o: o.state["mine"]["k"], lambda o: o.state["mine"].update(k=2)),
    "a protocol": (Keyed, lambda o: 1 if isinstance(o, HasName) else 2, lambda o: setattr(o, "own_name", 1)),
    "singledispatchmethod": (lambda: type("Own", (), {"f": functools.singledispatchmethod(lambda self, v: 1)}), lambda cls: cls().f(1), lambda cls: cls.f.register(int, lambda self, v: 2)),
    "a method's attribute": (described, lambda o: o.asked.k, lambda o: setattr(type(o).asked, "k", 2)),
    "what is in a closure's cell": (cell, lambda c: c[0].__closure__[0].cell_contents, lambda c: c[1](2)),
    "attention's kernels": (lambda: jtorch, allowed, lambda _: jtorch.backends.cuda.enable_flash_sdp(False)),
    "what a nullcontext gives": (lambda: contextlib.nullcontext(1), entered, lambda c: setattr(c, "enter_result", 2)),
    "what a closing gives": (lambda: contextlib.closing(Point()), lambda c: entered(c).x, lambda c: setattr(c.thing, "x", 2)),
    "what a closing closes": (lambda: contextlib.closing(Point()), lambda c: entered(c).x, lambda c: setattr(c, "thing", Other())),
    "what is suppressed": (lambda: contextlib.suppress(ValueError), lambda c: 1 if missed(c) else 2, lambda c: setattr(c, "_exceptions", (ValueError, KeyError))),
    "a template": (lambda: string.Template("a"), lambda t: len(t.substitute()), lambda t: setattr(t, "template", "abc")),
    "a default_factory": (lambda: collections.defaultdict(lambda: 1), lambda d: d.default_factory(), lambda d: setattr(d, "default_factory", lambda: 2)),
    "what is missing in a defaultdict": (lambda: collections.defaultdict(lambda: 1), lambda d: d["a"], lambda d: setattr(d, "default_factory", lambda: 2) or d.clear()),
    "a partialmethod's arguments": (Point, lambda p: p.partly(), lambda p: type(p).__dict__["partly"].keywords.update(k=2)),
    "a value of an enum": (lambda: enum.Enum("Made", {"A": [1]}), lambda e: len(e.A.value), lambda e: e.A.value.append(2)),
    "an object that is a member's value": (lambda: enum.Enum("Made", {"A": Point()}), lambda e: e.A.value.y, lambda e: setattr(e.A.value, "y", 2)),
    "precision of decimals": (lambda: Decimal, lambda cls: len(str(cls(1) / cls(3))), lambda _: setattr(decimal.getcontext(), "prec", decimal.getcontext().prec - 1)),
    "how numpy prints": (lambda: np.array([0.123456]), lambda a: len(str(a)), lambda _: np.set_printoptions(precision=np.get_printoptions()["precision"] - 6)),
    "numpy's errors": (lambda: np, lambda _: len(np.geterr()["under"]), lambda _: np.seterr(under="raise")),
    "autocast's dtype": (lambda: jtorch, lambda _: 1 if jtorch.get_autocast_dtype("cpu") == jtorch.bfloat16 else 2, lambda _: jtorch.set_autocast_dtype("cpu", jtorch.float16)),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_asked_of_things_may_change(name):
    make, ask, change = READ[name]
    read, x, argv = make(), jtorch.ones(3) / 2, list(sys.argv)
    compiled = jtorch.compile(lambda x: chosen(x, ask(read)))
    try:
        for _ in range(2):
            for _ in range(4):
                assert compiled(x).tolist() == chosen(x, ask(read)).tolist()
            change(read)
    finally:
        sys.argv[:] = argv
        jtorch.set_float32_matmul_precision("highest")
        jtorch.set_autocast_dtype("cpu", jtorch.bfloat16)
        jtorch.backends.cuda.enable_flash_sdp(True)
        decimal.setcontext(decimal.Context())
        np.set_printoptions(precision=8)
        np.seterr(under="ignore")


def test_what_the_compiled_function_holds():
    held, x = [1], jtorch.ones(3) / 2
    partial = functools.partial(lambda k, x, more=0: chosen(x, k[0] + more), held, more=1)
    compiled = jtorch.compile(partial)
    for change in (lambda: None, lambda: held.insert(0, 3), lambda: partial.keywords.update(more=2)):
        change()
        for _ in range(4):
            assert compiled(x).tolist() == partial(x).tolist()
    assert len(compiled._region.replays) == 3, compiled._region.why


@contextlib.contextmanager
def default_device(device):
    jtorch.set_default_device(device)
    try:
        yield
    finally:
        jtorch.set_default_device(None)


# what a block of code is under, and what a region asks of that
UNDER = {
    "a device": (jtorch.device("meta"), lambda: jtorch.ones(3).is_meta),
    "the device that there is": (jtorch.device("cpu"), lambda: jtorch.ones(3).is_meta),
    "the default device": (default_device("meta"), lambda: jtorch.ones(3).is_meta),
    "a kernel of attention": (jtorch.nn.attention.sdpa_kernel(jtorch.nn.attention.SDPBackend.MATH), lambda: allowed(None) == 2),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDER)
def test_what_code_is_under(name):
    under, ask = UNDER[name]
    compiled, x = jtorch.compile(lambda x: chosen(x, ask())), jtorch.ones(3) / 2
    for block in (contextlib.nullcontext(), under, contextlib.nullcontext()):
        with block:
            for _ in range(3):
                assert compiled(x).tolist() == chosen(x, ask()).tolist()
    assert len(compiled._region.replays) <= 2, compiled._region.why


def test_what_is_under_a_device_each_time():
    compiled, x = jtorch.compile(lambda x: x * 2), jtorch.ones(3)
    for _ in range(4):
        with jtorch.device("meta"):
            compiled(x)
    assert len(compiled._region.replays) == 1, compiled._region.why


def test_inference_of_arguments():
    compiled = jtorch.compile(lambda x: chosen(x, 1 if x.is_inference() else 2))
    for _ in range(3):
        compiled(jtorch.ones(3))
    with jtorch.inference_mode():
        x = jtorch.ones(3)
    assert compiled(x).tolist() == chosen(x, 1).tolist()


def test_the_variables_of_who_calls():
    compiled, x = jtorch.compile(lambda x: chosen(x, secret_of_caller())), jtorch.ones(3) / 2

    def call(secret):
        return compiled(x).tolist()

    for secret in (1, 1, 1, 1, 2, 2):
        assert call(secret) == chosen(x, secret).tolist()


def secret_of_caller():
    frame = inspect.currentframe()
    while "secret" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["secret"]


class Shape(collections.abc.Sized):
    k = 1

    def __len__(self):
        return 1


def test_an_abstract_class_where_any_name_is_read():
    made, x = Shape(), jtorch.ones(3)
    compiled = jtorch.compile(lambda x: chosen(x, made.k + hasattr(made, "other")))
    for _ in range(3):
        compiled(x)
    assert compiled._region.replays, compiled._region.why


def test_a_view_of_a_dict():
    kept = {"a": 1}
    view = types.MappingProxyType(kept)
    compiled, x = jtorch.compile(lambda x: chosen(x, view["a"])), jtorch.ones(3) / 2
    for k in (1, 1, 1, 1, 2, 2):
        kept["a"] = k
        assert compiled(x).tolist() == chosen(x, k).tolist()
    assert compiled._region.replays, compiled._region.why


def test_a_distribution_that_is_given_another_parameter():
    made = jtorch.distributions.Normal(jtorch.zeros(3), jtorch.ones(3))
    compiled, x = jtorch.compile(lambda x: made.log_prob(x)), jtorch.ones(3)
    for _ in range(2):
        for _ in range(4):
            assert compiled(x).tolist() == pytest.approx(made.log_prob(x).tolist())
        made.loc = jtorch.ones(3) * 3


def test_weak_references():
    held = Keyed()
    held.k = 1
    reference = weakref.ref(held)
    compiled = jtorch.compile(lambda x: chosen(x, 3 if reference() is None else reference().k))
    x = jtorch.ones(3) / 2
    for k in (1, 1, 1, 1, 2, 2):
        held.k = k
        assert compiled(x).tolist() == chosen(x, k).tolist()
    del held
    assert compiled(x).tolist() == chosen(x, 3).tolist()


def test_what_each_thread_has_for_itself():
    own = threading.local()
    own.k, found, x = 1, [], jtorch.ones(3) / 2
    compiled = jtorch.compile(lambda x: chosen(x, own.k))

    def run():
        own.k = 2
        found.append(compiled(x).tolist())

    for _ in range(4):
        compiled(x)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [chosen(x, 2).tolist()]


def test_attributes_and_gradients_of_arguments():
    attributes = jtorch.compile(lambda x: chosen(x, x.scale if hasattr(x, "scale") else 3))
    named = jtorch.compile(lambda x: chosen(x, x.scale))
    gradients = jtorch.compile(lambda x: chosen(x, 1 if x.grad is None else 2))
    for k in (None, None, None, None, 1, 1, 2, None):
        x = jtorch.ones(3) / 2
        if k is not None:
            x.scale, x.grad = k, jtorch.ones(3)
            assert named(x).tolist() == chosen(x, k).tolist()
        assert attributes(x).tolist() == chosen(x, 3 if k is None else k).tolist()
        assert gradients(x).tolist() == chosen(x, 1 if k is None else 2).tolist()
    assert attributes._region.replays and gradients._region.replays


def test_which_tensor_an_argument_is():
    kept = jtorch.ones(3) / 2
    pair = jtorch.compile(lambda x, y: chosen(x, 1 if x is y else 2))
    known = jtorch.compile(lambda x: chosen(x, 1 if x is kept else 2))
    for _ in range(4):
        assert pair(kept, kept).tolist() == chosen(kept, 1).tolist()
        assert known(jtorch.ones(3) / 2).tolist() == chosen(kept, 2).tolist()
    assert pair._region.replays and known._region.replays
    assert pair(kept, kept.detach()).tolist() == chosen(kept, 2).tolist()
    for _ in range(3):
        assert known(kept).tolist() == chosen(kept, 1).tolist()
        assert known(kept.detach()).tolist() == chosen(kept, 2).tolist()


def test_which_list_an_argument_is():
    known = [1]
    pair = jtorch.compile(lambda x, a, b: chosen(x, 1 if a is b else 2))
    other = jtorch.compile(lambda x, a: chosen(x, 1 if operator.is_(a, known) else 2))
    classes = jtorch.compile(lambda x, a: chosen(x, 1 if type(a) is list else 2))
    x = jtorch.ones(3) / 2
    for given in (known, [1], known):
        for _ in range(3):
            assert pair(x, known, given).tolist() == chosen(x, 1 if given is known else 2).tolist()
            assert other(x, given).tolist() == chosen(x, 1 if given is known else 2).tolist()
            assert classes(x, given).tolist() == chosen(x, 1).tolist()
    assert classes._region.replays, classes._region.why


def test_what_is_compiled_in_what_is_not():
    compiled, x = jtorch.compile(lambda x: chosen(x, jtorch.compiler.is_compiling())), jtorch.ones(3) / 2
    outside = jtorch.compiler.disable(lambda x: compiled(x))
    for _ in range(2):
        for _ in range(3):
            assert compiled(x).tolist() == chosen(x, True).tolist()
        for _ in range(3):
            assert outside(x).tolist() == chosen(x, False).tolist()
    assert compiled._region.replays, compiled._region.why
