"""Grad modes: as contexts, functions and decorators, in generators, coroutines and threads; inference tensors."""

import pytest

from .programs import run

PROGRAMS = {
    "enabled_in_inference_mode": """
x = T(1., 2.)
with torch.inference_mode():
    print(torch.is_grad_enabled())
    with torch.enable_grad():
        y = x * 2
        print(torch.is_grad_enabled(), y.requires_grad, y.is_inference())
        with torch.no_grad():
            print(torch.is_grad_enabled())
        with torch.inference_mode(False):
            print(torch.is_grad_enabled(), (x * 2).requires_grad)
        print(torch.is_grad_enabled())
    with torch.set_grad_enabled(True):
        print(torch.is_grad_enabled(), (x * 2).requires_grad)
    print(torch.is_grad_enabled())
print(torch.is_grad_enabled(), torch.set_grad_enabled(True))
""",
    "decorated_class": """
@torch.no_grad()
class C:
    def __init__(self, k=1):
        print(torch.is_grad_enabled(), k)
print(type(C(2)).__name__)
""",
    "anomaly_settings": """
print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
with torch.autograd.detect_anomaly(check_nan=False):
    print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    y = T(1.).exp()
    print(list(y.grad_fn.metadata), type(y.grad_fn.metadata["traceback_"]).__name__)
print(torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
""",
    "nesting": """
log = []
def g():
    log.append(torch.is_grad_enabled())
g()
with torch.no_grad():
    g()
    with torch.enable_grad():
        g()
        with torch.set_grad_enabled(False):
            g()
        g()
    g()
g()
torch.set_grad_enabled(False); g()
torch.set_grad_enabled(True); g()
try:
    with torch.no_grad():
        raise ValueError
except ValueError:
    g()
with torch.inference_mode():
    g(); log.append(torch.is_inference_mode_enabled())
    with torch.enable_grad():
        g()
    with torch.inference_mode(False):
        g(); log.append(torch.is_inference_mode_enabled())
g()
n = torch.no_grad()
with n:
    with n:
        g()
    g()
g()
r = torch.set_grad_enabled(True)
print(type(r).__name__)
""",
    "decorators": """
log = []
def g(t=0):
    log.append((t, torch.is_grad_enabled()))
@torch.no_grad()
def a(): g(1)
@torch.no_grad
def b(): g(2)
@torch.enable_grad()
def c(): g(3)
@torch.set_grad_enabled(False)
def d(): g(4)
@torch.inference_mode()
def e(): g(5); log.append(torch.is_inference_mode_enabled())
@torch.inference_mode
def f(): g(6)
@torch.inference_mode(False)
def h(): g(7)
for x in (a, b, c, d, e, f, h):
    x(); g()
with torch.no_grad():
    c(); g()
print(a.__name__)
class M:
    @torch.no_grad()
    def m(self): g(8)
M().m()
""",
    "generators": """
log = []
@torch.no_grad()
def gen():
    log.append(torch.is_grad_enabled())
    x = yield 1
    log.append((x, torch.is_grad_enabled()))
    try:
        yield 2
    except ValueError:
        log.append(torch.is_grad_enabled())
    finally:
        log.append(("end", torch.is_grad_enabled()))
    return 5
it = gen()
log.append(next(it)); log.append(torch.is_grad_enabled())
log.append(it.send("sent")); log.append(torch.is_grad_enabled())
try:
    it.throw(ValueError())
except StopIteration as s:
    log.append(s.value)
log.append(torch.is_grad_enabled())
it = gen(); next(it); it.close()
log.append(list(gen()))
@torch.enable_grad()
def outer():
    for i in gen():
        yield torch.is_grad_enabled()
with torch.no_grad():
    log.append(list(outer()))
""",
    "coroutines": """
import asyncio
log = []
@torch.no_grad()
async def work():
    log.append(torch.is_grad_enabled())
    return 3
try:
    log.append(asyncio.run(work()))
except Exception as e:
    log.append(type(e).__name__)
log.append(torch.is_grad_enabled())
""",
    "threads": """
import threading
log = []
def work():
    log.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
    torch.set_grad_enabled(False)
with torch.no_grad():
    t = threading.Thread(target=work); t.start(); t.join()
with torch.inference_mode():
    t = threading.Thread(target=work); t.start(); t.join()
log.append(torch.is_grad_enabled())
""",
    "inference": """
x = T(1., 2.)
with torch.inference_mode():
    q = torch.ones(2, dtype=torch.float64)
    w, z, d = x.view(2, 1), x * 1, x.detach()
    print(q.is_inference(), w.is_inference(), z.is_inference(), d.is_inference(), w.requires_grad, z.requires_grad)
    q.add_(1)
    attempt(lambda: q._version)
    c = torch.ones(2, requires_grad=True)
    print(c.requires_grad, c.is_inference())
    v = q.view(2, 1)
    print(v.is_inference())
attempt(lambda: q._version)
attempt(lambda: x * q)
attempt(lambda: x + q)
attempt(q.add_, 1)
attempt(q.view(2, 1).mul_, 2)
attempt(q.requires_grad_)
attempt(q.__setitem__, 0, 3.)
attempt(w.add_, 1)
print((q * 2).is_inference(), q.clone().is_inference(), q.view(2, 1).is_inference(), q.detach().is_inference())
n = torch.ones(2)
with torch.inference_mode():
    n.add_(1)
    vv = n[0]
print(n._version, vv.is_inference())
vv.mul_(2)
print(n.tolist())
with torch.no_grad():
    attempt(q.add_, 1)
    attempt(lambda: x * q)
(x * 3).sum().backward()
g = x.grad
y = x * 1
n.copy_(q.float())
del q, v, n, vv
""",
    "results": """
x = T(1., 2.)
with torch.no_grad():
    y = x * 2
    z = x.detach()
    a = torch.ones(2, requires_grad=True)
    b = a * 2
    x2 = x.view(2, 1)
    with torch.enable_grad():
        c = x * 3
print(state(y), state(a), state(b), state(c), x2.requires_grad)
c.sum().backward()
with torch.no_grad():
    x -= 0.1 * x.grad
print(state(x))
with torch.no_grad():
    attempt((x * 1).sum().backward)
    attempt(c.sum().backward)
""",
    "wrong": """
attempt(torch.no_grad, 3) if False else None
attempt(torch.set_grad_enabled)
attempt(torch.set_grad_enabled, "no") if False else None
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_modes(name):
    run(PROGRAMS[name])
