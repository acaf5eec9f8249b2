"""Views, writes in place, versions and what they do to the graph."""

import pytest

from .programs import run

PROGRAMS = {
    "view_of_one_of_several_views": """
b = torch.ones(2, 3, dtype=torch.float64)
v = b.chunk(2)[0].select(0, 0)
b.add_(1)
b.requires_grad_()
attempt(lambda: v.grad_fn)
b = torch.ones(2, 3, dtype=torch.float64)
v = b.unbind()[0][1:]
attempt(v.mul_, T(1., 2.))
""",
    "stale_view_before_arguments": """
b = T(1., 2.).clone()
v = b.unbind()[0]
with torch.no_grad():
    b.add_(1)
attempt(v.diagonal, 0, 0, 1)
attempt(v.transpose, 0, 5)
with torch.no_grad():
    attempt(v.transpose, 0, 5)
""",
    "draws": """
x = T(1., 2., 3., 4.)
for draw in ("normal_", "uniform_", "bernoulli_", "exponential_", "random_", "cauchy_", "log_normal_"):
    for t in (x.clone(), x.clone()[1:]):
        getattr(t, draw)()
        print(name(t), t.requires_grad, t._version)
        x.grad = None
        t.sum().backward()
        print(x.grad.tolist())
for f in (lambda t: t.geometric_(0.5), lambda t: t.random_(3), lambda t: t.bernoulli_(x / 4), lambda t: t.eq_(2)):
    t = x.clone()
    f(t)
    print(name(t), t.requires_grad)
""",
    "rules": """
x = T(1., 2.)
attempt(x.add_, 1)
attempt(x.view(2, 1).add_, 1)
attempt(x[0].zero_)
attempt(x.__setitem__, 0, 1.)
attempt(x.resize_, 3)
attempt((x * 1).resize_, 3)
attempt(x.t_)
y = x * 1
vs = y.unbind(0)
attempt(vs[1].add_, 1)
attempt(y.split(1)[0].mul_, 2)
attempt(y.chunk(2)[1].zero_)
vs = y.split(1)
y.mul_(2)
attempt(lambda: vs[0].grad_fn)
attempt(lambda: vs[1].sum())
del vs
attempt(y.view(2, 1).detach_)
plain = T(1., 2., grad=False).split(1)
attempt(plain[0].mul_, x[0])
plain[1].add_(1)
e = (x * 1).expand(3, 2)
attempt(e.add_, 1)
attempt(e.copy_, e.clone())
attempt(e.zero_)
attempt(setattr, x, "data", torch.ones(2, dtype=torch.int64))
attempt(setattr, x, "data", 3)
attempt(setattr, x, "data", torch.ones(2))
""",
    "views_of_what_counts_apart": """
x = T(1., 2., 3., 4.) * 1
c, d = x.unsafe_chunk(2)
v, w = c[1:], d[:1]
x.mul_(2)
before = [state(t) for t in (x, c, d, v, w)]
c.mul_(3)
v.add_(1)
after = [state(t) for t in (x, c, d, v, w)]
data = x.data.requires_grad_()
first = data[:1]
with torch.no_grad():
    data.mul_(2)
    x.mul_(2)
late = [state(t) for t in (data, first)]
""",
    "view_of_what_was_detached": """
x = T(1., 2., 3., 4.)
v = x[1:]
x.requires_grad_(False)
x.add_(1)
(v * v).sum().backward()
seen = (name(v), x.grad)
""",
    "views_without_history": """
def all_of(*ts):
    return [(t._version, t.requires_grad, t.is_leaf, name(t), t.grad) for t in ts]
x = torch.ones(3)
early = x[:2]
x.requires_grad_()
with torch.no_grad():
    blind = x[:2]
log = []
for v in (early, blind):
    y = v * 2
    w = v[:1]
    print(repr(v), y.grad_fn.next_functions)
    y.sum().backward()
    attempt(v.backward, torch.ones(2))
    attempt(torch.autograd.grad, (v * 2).sum(), v)
    print(torch.autograd.grad((v * 2).sum(), x, allow_unused=True))
    attempt(v.add_, 1)
    attempt(v.register_hook, print)
    log += all_of(x, v, y, w)
(x[:2] * 3 + blind).sum().backward()
with torch.no_grad():
    x.add_(1)
(early * 2).sum().backward()
log += all_of(x, early)
scalar = torch.tensor(1.)
attempt(scalar.__setitem__, 0, 1.)
attempt(scalar.__setitem__, slice(None), 1.)
""",
    "expanded": """
base = torch.arange(3.)
base.expand(2, 3).masked_fill_(torch.tensor([[True, False, False], [False, True, False]]), 9.)
attempt((T(1., 2.) * 1).expand(2, 2).masked_fill_, torch.tensor(True), 1.)
base2, i = torch.arange(6.).view(1, 2, 3), torch.tensor([1])
base2.expand(4, 2, 3).index_fill_(1, i, 7.)
base3 = torch.zeros(1, 3)
base3.expand(2, 3).index_fill_(0, i, 5.)
base4 = torch.zeros(1, 3)
base4.expand(2, 3).index_put_((i,), torch.arange(3.))
base4.expand(2, 3).index_put_((i, torch.tensor([0])), torch.tensor([6.]))
base5 = torch.zeros(1, 3)
base5.expand(2, 3).index_put_((torch.tensor([0, 1]), torch.tensor([2, 1])), torch.tensor(4.))
x = T(0., 1., 2., 3., 4., 5.)
c, d = (x * 1).unsafe_chunk(2)
wide = c.as_strided((2,), (1,), 2)
c.mul_(2)
seen = (state(c), state(wide))
wide.mul_(3)
seen2 = (state(c), state(wide))
attempt(wide.sum().backward)
""",
    "no_grad_views": """
x = T(1., 2.)
b = x * 1
with torch.no_grad():
    v, w = b.view(2, 1), x.view(2, 1)
r = (v.requires_grad, v.is_leaf, w.requires_grad, w.is_leaf)
attempt(v.add_, 1)
attempt(w.add_, 1)
with torch.no_grad():
    v.add_(1)
    w.add_(1)
vers = (b._version, v._version, x._version)
b2 = x * 1
with torch.no_grad():
    v2 = b2[0]
b2.mul_(2)
attempt(lambda: v2.grad_fn)
attempt(lambda: v2.requires_grad)
u = T(1., 2., grad=False)
uv = u.view(2, 1).requires_grad_()
r2 = (uv.is_leaf, uv.requires_grad)
attempt(uv.add_, 1)
u.add_(1)
""",
    "versions": """
x = T(1., 2., grad=False)
log = [x._version]
x.add_(1); log.append(x._version)
v = x.view(2, 1); v.mul_(2); log += [x._version, v._version]
d = x.detach(); d.add_(1); log += [x._version, d._version]
a = x.data; a.add_(1); log += [x._version, a._version]
a.view(2, 1).zero_(); log += [x._version, a._version]
x[0] = 5.; log.append(x._version)
x.copy_(x + 1); log.append(x._version)
x.zero_(); x.fill_(3); log.append(x._version)
with torch.no_grad():
    x += 1
log.append(x._version)
y = x.clone(); log.append(y._version)
x.requires_grad_(); log.append(x._version)
torch.add(y, 1, out=y); log.append(y._version)
y.data = torch.ones(3, dtype=torch.float64)
torch.autograd.graph.increment_version(x); log.append(x._version)
z = torch.zeros(3); z.normal_(); log.append(z._version)
z.resize_(2); log.append(z._version)
del z, v
""",
    "saved_modified": """
x, w = T(1., 2.), T(3., 4.)
for f in (
    lambda: x.tanh().add_(1),
    lambda: (lambda y: (y * w, y.add_(1))[0])(x * 1),
    lambda: (lambda y: (y.exp(), y.add_(1))[0])(x * 1),
    lambda: (lambda y: (y * w, y.add_(1))[0])(T(1., 1., grad=False)),
    lambda: x.exp().mul_(2),
    lambda: x.sigmoid().zero_(),
    lambda: (lambda y: (y.sin(), y.add_(1))[0])(x.exp()),
    lambda: (lambda y: (y @ w, y[0].zero_())[0])(x * 2),
    lambda: (lambda y: (y.pow(3), y.detach().zero_())[0])(x * 2),
    lambda: (lambda y: (y.pow(3), y.data.add_(1))[0])(x * 2),
    lambda: torch.softmax(x, 0).mul_(2),
    lambda: (lambda y: (y.max(0)[0] + y.sum(), y.add_(1))[0])(x * 2),
    lambda: (lambda y: (y + 3, y.add_(1))[0])(x * 2),
    lambda: torch.relu(x).add_(1),
):
    y = f()
    attempt(y.sum().backward)
""",
    "copy_slices": """
x = T(1., 2., 3., 4.)
w = T(5., 6.)
y = (x * 2).view(2, 2)
base = y._base
row = y[0]
row.mul_(w)
print(name(row), name(y), name(base), row.requires_grad)
y[1, 0] = 7.
print(name(y), state(base))
y.t()[1] += w
print(name(row), row.tolist(), y.tolist())
(y * y).sum().backward()
gx, gw = x.grad, w.grad
""",
    "copy_slices_fresh_base": """
x = T(1., 2.)
b = torch.zeros(3, 2, dtype=torch.float64)
v = b[1]
d = b.diagonal()
v.copy_(x)
print(state(v), state(b), state(d))
b[2] = x * 3
d.add_(x)
print(state(d)[1:], name(b), name(v))
(b ** 2).sum().backward()
g = x.grad
attempt(v.sum().backward)
""",
    "view_of_view": """
x = torch.arange(24., dtype=torch.float64).reshape(2, 3, 4).requires_grad_()
y = x * 1
a = y.transpose(0, 2)
b = a[1:3]
c = b.reshape(-1) if b.is_contiguous() else b.permute(2, 1, 0)
c[0].mul_(3)
b.add_(1)
print(name(a), name(b), name(c), c._base is y, b._base is y)
(c * c).sum().backward(retain_graph=True)
g1 = x.grad.clone()
(a.exp() * 0.001).sum().backward()
g2 = x.grad
""",
    "accumulate_into_buffer": """
w = T(2., 3.)
buf = torch.zeros(2, dtype=torch.float64)
for i in range(3):
    buf += w * i
    buf[0] *= w[1]
buf.sum().backward()
g = w.grad
""",
    "detach_and_data": """
x = T(1., 2.)
y = x * 2
d = y.detach()
d.zero_()
print(state(y), state(d))
z = x * 3
z.data.fill_(9.)
print(state(z))
z.sum().backward()
y.detach_()
print(state(y))
y.requires_grad_()
print(state(y))
x.data = T(5., 6., 7., grad=False)
print(x.shape, state(x), x.grad.tolist())
a = x.detach()
a.requires_grad_()
print(a.is_leaf, x.requires_grad)
w = T(1., 2.)
w2 = w * 1
w2.set_(torch.ones(3, dtype=torch.float64)) if False else None
w.grad = T(1., 1., grad=False)
w.data.add_(w.grad, alpha=-0.5)
print(state(w))
""",
    "layout_in_place": """
x = torch.arange(6., dtype=torch.float64).reshape(2, 3).requires_grad_()
y = x * 1
y.t_()
print(y.shape, name(y), y._version)
y.unsqueeze_(0)
print(y.shape, name(y))
y.squeeze_(0)
z = y.transpose_(0, 1)
print(z is y, y.shape, name(y))
(y * x).sum().backward()
g = x.grad
""",
    "inplace_ops": """
x = T(0.5, 1.5, -1.)
def r(x):
    return None if x is None else [round(v, 9) for v in x.tolist()]
def each(f):
    y = x * 1
    same = f(y) is y
    print(same, r(y), *state(y)[1:])
    g, = torch.autograd.grad((y * y).sum(), x, allow_unused=True)
    print(r(g))
for f in (
    lambda y: y.add_(2), lambda y: y.mul_(x), lambda y: y.exp_(), lambda y: y.relu_(), lambda y: y.zero_(), lambda y: y.fill_(2.),
    lambda y: y.clamp_(0, 1), lambda y: y.pow_(2), lambda y: y.neg_(), lambda y: y.sub_(x, alpha=2), lambda y: y.div_(2),
    lambda y: y.copy_(x * 3), lambda y: y.masked_fill_(y > 0, 3.), lambda y: y.addcmul_(x, x), lambda y: y.lerp_(x, 0.5),
    lambda y: y.index_add_(0, torch.tensor([0, 2]), x[:2]), lambda y: y.index_fill_(0, torch.tensor([1]), 4.),
    lambda y: y.scatter_(0, torch.tensor([0, 1]), x[1:]), lambda y: y.sqrt_() if False else y.abs_(), lambda y: y.tril_() if y.dim() > 1 else y.sin_(),
    lambda y: y.__iadd__(x), lambda y: y.__imul__(2.), lambda y: y.__itruediv__(x), lambda y: y.clamp_(min=0.),
):
    each(f)
""",
    "same_tensor_both_sides": """
x = T(1., 2., 3.)
y = x * 1
y[1:] += y[:-1].clone()
y.mul_(y.detach())
z = x.clone()
z.add_(z)
(y.sum() + z.sum()).backward()
g = x.grad
""",
    "views_made_off_the_tape_or_before_their_base_had_a_history": """
from contextlib import nullcontext
def cases():
    for mode in (torch.no_grad, torch.inference_mode, nullcontext):
        for view in (lambda x: x[0], lambda x: x.unbind(0)[0], lambda x: x.split(1)[0][0], lambda x: x.view(6)):
            for history in ("through the base", "through the view", "before"):
                x = torch.ones(2, 3)
                x = x.requires_grad_() * 1 if history == "before" else x
                with mode():
                    v = view(x)
                if history == "through the base":
                    x.mul_(torch.ones(3, requires_grad=True))
                yield history, v
for history, v in cases():
    attempt(v.mul_, torch.ones(v.shape, requires_grad=True) if history == "through the view" else 2)
    attempt(lambda: print(name(v), v.requires_grad, v.is_leaf, v.output_nr))
for mode in (torch.no_grad, nullcontext):
    for write in (torch.Tensor.zero_, lambda v: v.copy_(torch.ones(3)), lambda v: torch.sin(torch.ones(3), out=v), lambda v: v.fill_(2.)):
        x = T(1., 2., 3.).clone().expand(2, 3)
        with mode():
            v = x.unbind(0)[0]
        with torch.no_grad():
            x[0, 0] = 3.
        attempt(write, v)
""",
    "what_a_saved_tensor_is_the_output_of_when_it_was_written_to": """
w = torch.ones(3, requires_grad=True)
def off_the_tape():
    return torch.ones(3)
def on_the_tape():
    return w * 1
def cases():
    for make in (off_the_tape, on_the_tape):
        for saved in (lambda y: y, lambda y: y[0:2], lambda y: y.split(2)[0])[: 3 if make is on_the_tape else 2]:
            for write in (
                lambda y, v: y.mul_(w), lambda y, v: v.mul_(w[:2]), lambda y, v: y.zero_(), lambda y, v: y.mul_(2.).mul_(w),
                lambda y, v: v.mul_(w[:2]).add_(1), lambda y, v: y.copy_(w).mul_(2), lambda y, v: y.detach().add_(1),
                lambda y, v: y.unsqueeze_(0).unsqueeze_(2), lambda y, v: y.unsqueeze_(0).squeeze_(0).unsqueeze_(0),
            ):
                y = make()
                v = y[0:2]
                s = saved(y)
                out = w[: len(s)] * s
                write(y, v)
                yield out
for out in cases():
    attempt(out.sum().backward)
y = torch.ones(3)
y.mul_(w)
out = w * y.detach()
y.mul_(2)
attempt(out.sum().backward)
y = w * 1
out = w * y.detach().requires_grad_()
y.mul_(2)
attempt(out.sum().backward)
""",
    "views_that_must_not_be_used_any_more": """
for flag in (True, False):
    x = torch.ones(2, 3, requires_grad=True) * 1
    v = x.unbind(0)[0]
    with torch.no_grad():
        x.add_(1)
    print(v, v.output_nr, v.requires_grad)
    attempt(lambda: v.is_leaf)
    attempt(v.requires_grad_, flag)
    attempt(setattr, v, "requires_grad", flag)
    attempt(lambda: print(v > 1, v.argmax()))
    for index in (slice(None), ..., 0, slice(1, None)):
        attempt(v.__setitem__, index, 1.)
        attempt(v.__setitem__, index, torch.ones(()))
    attempt(lambda: v.ceil())
""",
    "a_view_of_what_got_its_history_later_is_written_to": """
w = torch.ones(2, 3, requires_grad=True)
for view in (lambda y: y.expand(2, 2, 3), lambda y: y.view(6), lambda y: y[0]):
    for write in (
        lambda v: v.fill_(1), lambda v: v.zero_(), lambda v: v.mul_(2), lambda v: v.masked_fill_(v > 1, 2), lambda v: v.t_(),
        lambda v: v.detach_(), lambda v: v.__setitem__(0, 1.), lambda v: v.requires_grad_(False),
    ):
        y = torch.ones(2, 3)
        v = view(y)
        y.addcmul_(w, w)
        attempt(write, v)
""",
    "base_attribute": """
x = torch.arange(6.)
v = x.view(2, 3)
r = v.t()[0]
print(v._base is x, r._base is x, x._base is None, x.clone()._base is None, x.detach()._base is None)
print(x[1:]._is_view() if hasattr(x, "_is_view") else None, v._is_view())
w = x.reshape(3, 2)
print(w._base is x, x.expand(2, 6)._base is x, x.contiguous() is x, x.t().contiguous() is x)
""",
}


PROGRAMS["comparisons"] = """
for write in ("eq_", "gt_", "le_", "logical_and_", "logical_xor_", "logical_not_"):
    x, z = torch.tensor([0.5, -0.5], requires_grad=True), torch.tensor([0.5, 0.5], requires_grad=True)
    y = x * 1
    getattr(y, write)(*[z][: write != "logical_not_"])
    print(write, y)
    y.sum().backward()
    print(x.grad, z.grad)
    if write[:3] != "log":
        print(getattr(torch.ones(2), write)(z).requires_grad)
    attempt(getattr(x, write), *[z][: write != "logical_not_"])
x = torch.ones(2, requires_grad=True)
attempt(lambda: torch.special.gammainc(x, torch.ones(2)).sum().backward())
attempt(lambda: torch.special.gammaincc(x, torch.ones(2)).sum().backward())
"""

# Forms in place of which PyTorch has another derivative: by name, and some that end in an error when they are asked for.
PROGRAMS["derivatives_of_their_own"] = """
F = torch.nn.functional
for write in (
    lambda y: F.elu_(y), lambda y: F.elu(y, -2.0, inplace=True), lambda y: torch.celu_(y), lambda y: F.celu_(y, -2.0),
    lambda y: torch.selu_(y), lambda y: F.leaky_relu_(y, 0.5), lambda y: F.leaky_relu(y, -0.5, inplace=True),
    lambda y: torch.threshold_(y, 0.25, 7), lambda y: F.threshold_(y, 0.25, 7), lambda y: F.threshold(y, 0.25, 7, inplace=True),
    lambda y: y.asinh_(), lambda y: y.atanh_(), lambda y: y.arccosh_(), lambda y: (y * 1j).conj_physical_().real,
    lambda y: F.hardtanh_(y), lambda y: F.relu_(y), lambda y: F.rrelu_(y, -5.0, 1.0), lambda y: F.rrelu_(y, 0.1, 0.3),
):
    x = torch.tensor([0.5, -0.5], requires_grad=True)
    y = write(x * 1)
    print(y.grad_fn.name(), y)
    attempt(lambda: y.sum().backward())
    print(x.grad)
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_inplace(name):
    run(PROGRAMS[name])
