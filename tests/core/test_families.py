"""core/families.py and core/skeletons.py: what is written down for a size is what tracing gives, and nothing is where that is not sure."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jtorch
from jtorch.autograd.derive import Backward
from jtorch.core import families
from jtorch.core.families import Family, family, of_parts
from jtorch.core.skeletons import Closed, Unlike, taken_apart
from jtorch.core.strided import Recipe, Reshape
from tests import oracle


def traced(fn, *shapes, dtype=np.float32):
    return jax.make_jaxpr(fn)(*[jax.ShapeDtypeStruct(s, dtype) for s in shapes])


def taught(fn, shapes_of, sizes):
    """A family that has met `fn` at these sizes; shapes_of: size -> shapes."""
    made = Family()
    for n in sizes:
        shapes = shapes_of(n)
        made.wants()
        made.learn(sum(shapes, ()), traced(fn, *shapes))
    return made


def rows(n):
    return ((n, 12),)


KERNELS = {
    "elementwise": (lambda x: jnp.exp(x) * 2 + 1, rows),
    "a mean": (lambda x: x.mean(), rows),
    "one less": (lambda x: x.sum(0) / (x.shape[0] - 1), rows),
    "flattened": (lambda x: x.reshape(-1) + jnp.arange(x.size, dtype=x.dtype), rows),
    "the last row": (lambda x: x[-1] + x[x.shape[0] - 1], rows),
    "all but the first": (lambda x: jnp.concatenate([x[1:], x[:1]]), rows),
    "counted": (lambda x: x * x.shape[0], rows),
    "a loop": (lambda x: jax.lax.scan(lambda c, r: (c + r, c * r), x[0], x), rows),
    "jax's own": (lambda x: jax.nn.softmax(jax.nn.relu(x), 0), rows),
    "sorted": (lambda x: jnp.sort(x, 0), rows),
    "products": (lambda x, y: x @ y, lambda n: ((7, n), (n, 9))),
    "squares": (lambda x: (x @ x.T).reshape(-1), rows),
    "gathered": (lambda x: x[jnp.array([0, 2, 1])], rows),
    "two sizes": (lambda x, y: jnp.concatenate([x, y]), lambda n: ((n, 12), (3 * n % 17 + 20, 12))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_as_traced(name):
    fn, shapes_of = KERNELS[name]
    known = taught(fn, shapes_of, (19, 21, 23, 29, 45, 50))
    for n in (22, 26, 37, 44):
        shapes = shapes_of(n)
        made, told = known.written(sum(shapes, ()))
        assert told is None
        assert taken_apart(made) == taken_apart(traced(fn, *shapes))


UNSURE = {
    "outside what was traced": (lambda x: x + 1, 60),
    "another algorithm from a size on": (lambda x: x[::2] if x.shape[0] > 40 else x, 42),
    "every third": (lambda x: x.reshape(3, -1) if x.shape[0] % 3 == 0 else x, 22),
    "padded to eight": (lambda x: jnp.pad(x, ((0, -x.shape[0] % 8), (0, 0))).reshape(-1, 8, 12), 22),
    "constants as long": (lambda x: x + np.arange(x.shape[0], dtype=np.float32)[:, None] ** 2, 22),
    "the root": (lambda x: x * x.shape[0] ** 0.5, 22),
}


@pytest.mark.parametrize("name", UNSURE)
def test_unsure(name):
    fn, n = UNSURE[name]
    sizes = (19, 21, 23, 29, 45, 50)
    assert taught(fn, rows, sizes).written((n, 12)) is None


# Traces that agree with a rule by chance: what they do not tell apart is not written down.
CHANCE = {
    "a product of sizes of which the one changed at once with the other": (
        lambda x: x.reshape(-1),
        [(19, 21), (23, 25), (19, 27), (19, 35)],
        (23, 21),
    ),
    "a square of two different sizes": (
        lambda x: x.reshape(x.shape[0], -1),
        [(19, 21, 21), (19, 35, 35), (23, 21, 21), (27, 35, 35), (29, 35, 35)],
        (23, 25, 25),
    ),
    "a product of three": (
        lambda x: x.reshape(-1, 12),
        [(19, 21, 21, 12), (23, 21, 21, 12), (19, 35, 35, 12), (25, 35, 35, 12), (29, 35, 35, 12)],
        (23, 25, 25, 12),
    ),
}


@pytest.mark.parametrize("name", CHANCE)
def test_agreement_by_chance(name):
    fn, shapes, wanted = CHANCE[name]
    known = taught(fn, lambda s: (s,), shapes)
    made = known.written(wanted)
    assert made is None or taken_apart(made[0]) == taken_apart(traced(fn, wanted))


def test_only_whole():
    """What holds for every third size has numbers divided by three."""
    known = taught(lambda x: x.reshape(3, -1, 12), rows, (18, 21, 24, 39, 60))
    assert known.written((33, 12)) is not None
    assert known.written((34, 12)) is None


def test_patterns():
    one = family("p", (3, 5, 5))
    assert one is family("p", (6, 7, 7))
    assert len({id(family("p", s)) for s in ((3, 5, 6), (5, 5, 5), (3, 1, 1), (3, 0, 0), (4, 5, 5), (3, 5, 5))}) == 6


def test_layers_are_apart():
    """Traces of two layers of a model: the widths of one are no sizes of the other."""

    def fn(x, w):
        return x @ w if w.shape[0] > w.shape[1] else (w.T @ x.T).T

    known = Family()
    for n in (11, 13, 15, 30):
        for a, b in ((20, 18), (18, 20)):
            known.wants()
            known.learn((n, a, a, b), traced(fn, (n, a), (a, b)))
    for a, b in ((20, 18), (18, 20)):
        made, _ = known.written((21, a, a, b))
        assert taken_apart(made) == taken_apart(traced(fn, (21, a), (a, b)))


def test_told():
    """What was told with traces is told with what is written down; where it differs they are no kin."""
    known = Family()
    for n in (11, 13, 15, 30):
        known.wants()
        known.learn((n, 12), traced(lambda x: x + 1, (n, 12)), [-1])
    assert known.written((14, 12))[1] == [-1]
    known.learn((19, 12), traced(lambda x: x + 1, (19, 12)), [0])
    assert known.written((14, 12)) is None


def test_given_up():
    known = Family()
    for n in range(20, 20 + families.PATIENCE + 4):
        if known.wants():
            known.learn((n,), traced(lambda x: x * x.shape[0] ** 0.5, (n,)))
    assert known.given_up and not known.wants()
    known = taught(lambda x: jax.debug.print("{}", x) or x, rows, (3, 5, 6))
    assert known.given_up
    with pytest.raises(Unlike):
        taken_apart(traced(lambda x: x + np.zeros(2000, np.float32), (2000,)))


def test_parts():
    a, b = (of_parts("view", Recipe((n, 4), (4 * n,), (1,), (Reshape((n, 4), (4 * n,)),))) for n in (5, 7))
    assert a[0] == b[0] and a[1] != b[1]


# --- programs ----------------------------------------------------------------------------------------------------------


def numbers(torch, *shape):
    return torch.linspace(-2, 2, int(np.prod(shape))).reshape(shape)


def network(torch, n):
    layer = torch.nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True)
    with torch.no_grad():
        for k, p in enumerate(layer.parameters()):
            p.copy_(numbers(torch, *p.shape) / (k + 2))
    x = numbers(torch, 3, n, 12).requires_grad_()
    out = layer(x)
    (out * numbers(torch, 3, n, 12)).mean().backward()
    return out.detach(), x.grad, *[p.grad for p in layer.parameters()]


def recurrent(torch, n):
    layer = torch.nn.LSTM(5, 6)
    with torch.no_grad():
        for k, p in enumerate(layer.parameters()):
            p.copy_(numbers(torch, *p.shape) / (k + 2))
    x = numbers(torch, n, 3, 5).requires_grad_()
    out, (h, _) = layer(x)
    (out.sum() + h.pow(2).sum()).backward()
    return out.detach(), x.grad, *[p.grad for p in layer.parameters()]


def picked(torch, n):
    x = numbers(torch, n, 6).requires_grad_()
    rest = x[torch.arange(n) % 3 != 1]
    top, at = x[1:, 2].topk(5)
    parts = torch.cat([rest[:, 1:4], rest[:, ::2], x[-1:, :3].expand(len(rest), 3)], 1)
    loss = torch.logsumexp(parts, 1).mean() + top.sum() + x.split(2, 1)[1].std() + x.index_select(0, at).norm()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    written = x.detach().clone()
    written[2:, 1] = 7
    written[at] += 1
    return (
        loss.detach(),
        first.detach(),
        second,
        written,
        rest.detach().cumsum(0),
        x.detach().argsort(dim=0, stable=True),
    )


def scored(torch, n):
    scores = numbers(torch, n, 7).requires_grad_()
    labels = torch.arange(n) % 7
    loss = torch.nn.functional.cross_entropy(scores, labels) + torch.nn.functional.mse_loss(scores.sigmoid(), scores)
    loss.backward()
    return loss.detach(), scores.grad, torch.zeros(9, 7).index_add(0, labels, scores.detach())


PROGRAMS = {"network": network, "recurrent": recurrent, "picked": picked, "scored": scored}
# powers of two, sizes of others (3, 5, 6, 7, 12, 20), the largest and smallest first and last
SIZES = (40, 9, 11, 13, 37, 10, 21, 12, 23, 22, 20, 16, 39, 33, 28, 18, 41)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    for n in SIZES:
        oracle.both(PROGRAMS[name], n, least=(1e-5, 1e-5), slack=4)


def test_nothing_is_traced(monkeypatch):
    """A size between others of a training step: neither its operators nor their derivatives are traced."""
    weight = jtorch.ones(6, 5, requires_grad=True)

    def step(n):
        x = numbers(jtorch, n, 5)
        loss = jtorch.nn.functional.linear(x, weight).tanh().sum(1)[1:].mean()
        loss.backward()
        return loss.item()

    for n in (9, 10, 11, 22, 24, 25):
        step(n)
    written = []
    trace = Backward.trace

    def watched(self, present):
        made = trace(self, present)
        written.append(type(made[0]) is Closed)
        return made

    monkeypatch.setattr(Backward, "trace", watched)
    step(21)
    assert written and all(written)


def test_growing():
    """Where a size grows with each call, one much larger is traced ahead; where it shrinks, one much smaller."""
    for sizes in ((11, 13, 15, 17, 19), (91, 89, 87, 85, 83)):
        known = Family()
        asked = []
        for n in sizes:
            known.wants()
            known.learn((n, 12), traced(lambda x: x[1:] * 2, (n, 12)))
            asked.append(known.beyond((n, 12)))
        assert asked[:4] == [None] * 4
        (far, _) = asked[4]
        assert far > 2 * sizes[-1] if sizes[0] < sizes[-1] else 1 < far < sizes[-1] / 2 + 4
        known.learn((far, 12), traced(lambda x: x[1:] * 2, (far, 12)))
        assert known.written(((far + sizes[-1]) // 2 | 1, 12)) is not None


SHRINKING = {  # what grows, and the sizes that become smaller with it: of densely joined layers without padding
    "not whole": ((192, 224, 288, 320, 352, 384), lambda n: (n, 97 - n // 8, 97 - n // 8)),
    "below 0": ((192, 208, 224, 240, 272, 288), lambda n: (n, 310 - n, 310 - n)),
}


@pytest.mark.parametrize("name", SHRINKING)
def test_growing_beside_what_shrinks(name):
    """Far sizes are sizes: those that would be negative, or no whole numbers, are not traced, nor what follows from them."""
    sizes, shape_of = SHRINKING[name]
    known = Family()
    for n in sizes:
        known.wants()
        known.learn(shape_of(n), traced(lambda x: x * 2, shape_of(n)))
        assert known.beyond(shape_of(n)) is None
    assert max(part.going for part in known._ruled()) >= 0 and len(known._ruled()) == 1


@pytest.mark.parametrize("sizes", [(11, 13, 15, 17, 19), (91, 89, 87, 85, 83)])
def test_growing_in_halves(sizes):
    """A size that is half of another, and one that is equal to that: what is traced ahead has whole halves."""
    known = Family()
    for n in sizes:
        shapes = (2 * n,), (n,), (n,)
        known.wants()
        known.learn(sum(shapes, ()), traced(lambda x, y, z: x + jnp.concatenate([y, z]), *shapes))
        far = known.beyond(sum(shapes, ()))
    whole, half, same = far
    assert whole == 2 * half == 2 * same
    assert not min(sizes) <= half <= max(sizes)


def cached(torch, steps):
    """A sentence that grows by a word."""
    kept = numbers(torch, 2, 1, 6)
    query = numbers(torch, 2, 1, 6)
    seen = []
    for k in range(steps):
        kept = torch.cat([kept, query * k / steps], 1)
        query = torch.nn.functional.scaled_dot_product_attention(query, kept, kept)
        seen.append(query.sum().item())
    return torch.tensor(seen), query


def test_cached():
    oracle.both(cached, 80, least=(1e-5, 1e-5), slack=4)
