"""Sparse gradients of embeddings, and the optimizers that take them."""

import pytest

import jtorch
from jtorch.core import costs
from jtorch.core.ledger import counters
from tests.oracle import both

WORDS = [[1, 2], [1, 3]]


def table(t):
    return t.arange(12.0).reshape(4, 3).requires_grad_()


EMBEDDING = {
    "plain": {},
    "padding": {"padding_idx": 1},
    "max_norm": {"max_norm": 2.0},
    "scaled": {"scale_grad_by_freq": True},
}


@pytest.mark.parametrize("kind", EMBEDDING)
def test_embedding(kind):
    def program(t):
        w = table(t)
        out = t.nn.functional.embedding(t.tensor(WORDS), w, sparse=True, **EMBEDDING[kind])
        (out * out).sum().backward()
        g = w.grad
        return out, type(out.grad_fn).__name__, g, g._indices(), g._values(), g.is_coalesced(), g.coalesce()

    both(program)


BAGS = {
    "sum": {"mode": "sum"}, "mean": {"mode": "mean"}, "max": {"mode": "max"}, "padding": {"mode": "mean", "padding_idx": 1},
    "scaled": {"mode": "sum", "scale_grad_by_freq": True}, "weights": {"mode": "sum", "per_sample_weights": [1.0, 2, 3, 4]},
    "last": {"mode": "mean", "include_last_offset": True},
}  # fmt: skip


@pytest.mark.parametrize("kind", BAGS)
def test_embedding_bag(kind):
    def program(t):
        w, options = table(t), dict(BAGS[kind])
        weights = options.get("per_sample_weights")
        if weights is not None:
            options["per_sample_weights"] = weights = t.tensor(weights, requires_grad=True)
        starts = t.tensor([0, 3, 4] if kind == "last" else [0, 3])
        out = t.nn.functional.embedding_bag(t.tensor([1, 2, 1, 3]), w, starts, sparse=True, **options)
        (out * out).sum().backward()
        return out, w.grad, w.grad._indices(), w.grad._values(), [] if weights is None else weights.grad

    both(program)


def test_accumulation():
    """Sparse onto sparse, sparse onto dense, dense onto sparse, both in one pass, and through a step before the table."""

    def program(t):
        def look(w):
            return t.nn.functional.embedding(t.tensor(WORDS), w, sparse=True)

        a, b, c, d, e = (table(t) for _ in range(5))
        (look(a) ** 2).sum().backward()
        first = a.grad
        look(a).sum().backward()
        (b * b).sum().backward()
        look(b).sum().backward()
        look(c).sum().backward()
        (c * c).sum().backward()
        (look(d).sum() + (d * d).sum() + look(d).sum()).backward()
        look(e * 2).sum().backward()
        return first is a.grad, a.grad.coalesce(), b.grad, c.grad, d.grad, e.grad.to_dense()

    both(program)


def test_zero_grad_in_place_and_state_of_modules():
    def program(t):
        e = t.nn.Embedding.from_pretrained(t.arange(12.0).reshape(4, 3), freeze=False, sparse=True)
        e(t.tensor(WORDS)).sum().backward()
        e.zero_grad(set_to_none=False)
        return e.weight.grad, e.weight.grad._nnz(), repr(e)

    both(program)


OPTIMIZERS = {
    "sgd": ("SGD", {}), "sgd ascends": ("SGD", {"maximize": True}), "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}), "decay": ("SGD", {"weight_decay": 0.1}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1}), "adagrad decay": ("Adagrad", {"weight_decay": 0.1}),
    "sparse adam": ("SparseAdam", {}), "sparse adam ascends": ("SparseAdam", {"maximize": True}),
    **{n: (n, {}) for n in ("Adam", "AdamW", "RMSprop", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "Rprop")},
}  # fmt: skip


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_optimizer(kind):
    name, options = OPTIMIZERS[kind]

    def program(t):
        e = t.nn.Embedding.from_pretrained(t.arange(10.0).reshape(5, 2) / 10, freeze=False, sparse=True, padding_idx=0)
        line = t.nn.Linear(2, 1)
        with t.no_grad():
            line.weight.fill_(0.5)
            line.bias.fill_(0.1)
        dense = name in ("SGD", "Adagrad")
        made = getattr(t.optim, name)([*e.parameters(), *(line.parameters() if dense else ())], lr=0.1, **options)
        for i in range(3):
            made.zero_grad()
            loss = (line(e(t.tensor([[1, 2, 1], [3, 0, i]]))) ** 2).sum()
            loss.backward()
            made.step()
        state = [{k: v for k, v in s.items() if k != "momentum_buffer"} for s in made.state_dict()["state"].values()]
        buffers = [s["momentum_buffer"].to_dense() for s in made.state.values() if s.get("momentum_buffer") is not None]
        return e.weight.detach(), line.weight.detach(), state, buffers

    both(program)


def test_sparse_adam_of_any_sparse_gradient():
    def program(t):
        p = t.arange(6.0).reshape(2, 3).requires_grad_()
        made = t.optim.SparseAdam([p], lr=0.1)
        for _ in range(2):
            p.grad = t.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse()
            made.step()
        p.grad = t.zeros(2, 3).to_sparse()
        made.step()
        return p.detach(), made.state_dict()["state"][0]

    both(program)


@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
def test_a_training_loop_compiles_nothing_after_its_first_steps(name, monkeypatch):
    """Other words, other duplicates, another number of words that count: the same program, one a step."""
    monkeypatch.setattr(costs, "AT_MOST_OFTEN", 2)
    e = jtorch.nn.Embedding(16, 4, sparse=True, padding_idx=0)
    made = getattr(jtorch.optim, name)(e.parameters(), lr=0.1)

    def steps(*batches):
        for words in batches:
            made.zero_grad()
            (e(jtorch.tensor(words)) ** 2).sum().backward()
            made.step()
            jtorch.flush()

    steps(*[[1, 2, 3]] * 5)
    before = counters.compiles, counters.by_op, counters.reused
    steps([4, 4, 4], [0, 6, 5], [0, 0, 0])
    assert (counters.compiles, counters.by_op, counters.reused - before[2]) == (*before[:2], 3)


def test_compiled_and_plain_steps_agree():
    """torch.compile records a step with sparse gradients at every call: their parts may be others."""

    def run(wrap):
        jtorch.manual_seed(0)
        e = jtorch.nn.Embedding(4, 2, sparse=True)
        made = jtorch.optim.SGD(e.parameters(), lr=0.1)

        def step(words):
            made.zero_grad()
            loss = (e(words) ** 2).sum()
            loss.backward()
            made.step()
            return loss

        step = wrap(step)
        return [step(jtorch.tensor([1, k % 3])).item() for k in range(5)]

    assert run(lambda f: f) == run(jtorch.compile)
