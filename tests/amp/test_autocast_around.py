"""Autocast with other hooks around it or inside of it: dispatch modes, forward mode; the switches and their errors."""

import pytest

from tests.autograd.programs import run

ORDERS = """
import contextlib
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
fwd = torch.autograd.forward_ad
made = {"a": lambda: torch.autocast("cpu"), "d": fwd.dual_level, "m": Mode, "x": lambda: torch.autocast("cpu", enabled=False)}
x, w = torch.arange(4.).reshape(2, 2) / 4, torch.full((2, 2), 0.5)
def show(t):
    print(t.dtype, t.float())
def product(dual):
    for y in (x @ w, torch.nn.functional.linear(x, w), (x @ w).softmax(1), (x @ w).t()) if not dual else ():
        show(y)
    if dual:
        for y in (fwd.make_dual(x, w) @ w, (fwd.make_dual(x, w) @ w).softmax(1)):
            for part in fwd.unpack_dual(y):
                show(part)
with contextlib.ExitStack() as stack:
    for kind in "ORDER":
        stack.enter_context(made[kind]())
    product("d" in "ORDER")
    with torch.autocast("cpu", enabled=False):
        product("d" in "ORDER")
    product("d" in "ORDER")
    with torch.autocast("cpu", dtype=torch.float16):
        product("d" in "ORDER")
product(False)
"""


@pytest.mark.parametrize("order", ["a", "ad", "da", "am", "ma", "ama", "amx", "max", "xam", "adx", "dax", "axd"])
def test_other_hooks(order):
    run(ORDERS.replace("ORDER", order))


PROGRAMS = {
    "transformations": """
from torch.func import *
x, w = torch.arange(4.).reshape(2, 2) / 4, torch.full((2, 2), 0.5)
def whole(x):
    with torch.autocast("cpu"):
        return (x @ w).float().sin().sum()
def product(x):
    with torch.autocast("cpu"):
        return x @ w
for outer in (False, True):
    with torch.autocast("cpu", enabled=outer):
        for t in (grad(whole)(x), *jvp(whole, (x,), (x,)), *jvp(product, (x,), (x,)), vjp(product, x)[0], vmap(product)(torch.stack([x, x])),
                  jacrev(product)(x), jacfwd(product)(x)):
            print(t.dtype, t.float())
""",
    "layers of another dtype": """
torch.manual_seed(0)
for kind in ("RNN", "GRU"):
    for own, given, lower in (("bfloat16", "float32", "bfloat16"), ("bfloat16", "float32", "float16"), ("float32", "bfloat16", "float16"),
                              ("float32", "bfloat16", "bfloat16")):
        layer = getattr(torch.nn, kind)(2, 3).to(getattr(torch, own))
        with torch.autocast("cpu", dtype=getattr(torch, lower)):
            print(kind, own, given, lower, [t.dtype for t in layer(torch.ones(4, 1, 2, dtype=getattr(torch, given)))])
""",
    "switches": """
import warnings
def attempt_said(name, *args):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        attempt(getattr(torch, name), *args)
    print(name, [(w.category.__name__, str(w.message).partition(" (Triggered")[0]) for w in said])
for kind in ("cpu", "xla", "ipu"):
    attempt_said(f"is_autocast_{kind}_enabled")
    attempt_said(f"get_autocast_{kind}_dtype")
attempt_said("get_autocast_gpu_dtype")
attempt_said("set_autocast_cpu_enabled", False)
attempt_said("set_autocast_cpu_dtype", torch.bfloat16)
for kind in ("nope", "meta"):
    attempt(torch.get_autocast_dtype, kind)
    attempt(torch.is_autocast_enabled, kind)
    attempt(torch.autocast, kind)
print([torch.get_autocast_dtype(kind) for kind in ("cpu", "cuda", "mps", "xpu", "hpu", "ipu", "xla")])
attempt(torch.amp.custom_fwd, device_type=3)
attempt(torch.amp.custom_bwd, device_type=3)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_like_torch(name):
    run(PROGRAMS[name])
