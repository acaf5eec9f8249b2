"""nn/packed.py: padded and packed sequences, and recurrent layers over them."""

import copy
import pickle

import pytest

import jtorch
from jtorch.core import ledger
from tests.oracle import both


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing(batch_first):
    def run(torch):
        r = torch.nn.utils.rnn
        torch.manual_seed(0)
        parts = [torch.randn(n, 2) for n in (3, 5, 1)]
        padded = r.pad_sequence(parts, batch_first, -1.0)
        packed = r.pack_padded_sequence(padded, [3, 5, 1], batch_first, enforce_sorted=False)
        back, lengths = r.pad_packed_sequence(packed, batch_first, 9.0, total_length=6)
        return [
            padded,
            *packed,
            back,
            lengths,
            r.unpack_sequence(packed),
            # a copy: torch transposes the tensor that it is given, in place
            r.unpad_sequence(padded.clone(), lengths, batch_first),
            r.pad_sequence(parts, padding_side="left"),
        ]

    both(run, layout=False)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_recurrence(kind):
    def run(torch):
        r = torch.nn.utils.rnn
        torch.manual_seed(0)
        layer = getattr(torch.nn, kind)(2, 3, 2, bidirectional=True)
        x = torch.randn(5, 3, 2, requires_grad=True)
        out, state = layer(r.pack_padded_sequence(x, [3, 5, 1], enforce_sorted=False))
        out.data.square().sum().backward()
        return out.data.detach(), x.grad, [s.detach() for s in (state if kind == "LSTM" else [state])]

    both(run, layout=False, least=(1e-4, 1e-5))


PACK_ERRORS = {
    "order": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [1, 2]),
    "zero": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [3, 0]),
    "order before size": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [-1, 2]),
    "size": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [3]),
    "no lengths": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [], enforce_sorted=False),
    "pair": lambda r, t: r.PackedSequence(t.ones(3)),
    "no steps": lambda r, t: t.nn.GRU(2, 3)(t.ones(0, 1, 2)),
    "state of another dtype": lambda r, t: t.nn.GRU(2, 3)(t.ones(3, 1, 2), t.ones(1, 1, 3).double()),
    "cell of another dtype": lambda r, t: t.nn.LSTM(2, 3)(t.ones(3, 1, 2), (t.ones(1, 1, 3), t.ones(1, 1, 3).double())),
    "packed, state of another dtype": lambda r, t: t.nn.RNN(2, 3)(
        r.pack_sequence([t.ones(3, 2)]), t.ones(1, 1, 3).double()
    ),
    "lengths in rows": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), [[3, 1]]),
    "lengths in a row of a tensor": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), t.tensor([[3, 1]])),
    "a length": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), 3),
    "lengths elsewhere": lambda r, t: r.pack_padded_sequence(t.ones(3, 2), t.tensor([3, 1], device="meta")),
    "a part of a step": lambda r, t: r.pad_packed_sequence(
        r.pack_padded_sequence(t.ones(3, 2), [3, 1]), total_length=3.0
    ),
    "total": lambda r, t: r.pad_packed_sequence(r.pack_padded_sequence(t.ones(3, 2), [3, 1]), total_length=1),
}


@pytest.mark.parametrize("name", PACK_ERRORS)
def test_pack_error(name):
    assert both(lambda t: PACK_ERRORS[name](t.nn.utils.rnn, t)).error is not None


def test_packing_part_of_a_batch():
    """With enforce_sorted=False a batch of more sequences than there are lengths loses the rest."""

    def run(torch):
        r = torch.nn.utils.rnn
        packed = r.pack_padded_sequence(torch.arange(12.0).view(4, 3), [2, 3], enforce_sorted=False)
        return list(packed), r.pad_packed_sequence(packed, True), r.unpack_sequence(packed)

    both(run)


CELLS = {
    "lstm": lambda t, **kw: t.nn.LSTM(3, 4, **kw),
    "projected": lambda t, **kw: t.nn.LSTM(3, 4, proj_size=2, **kw),
    "gru": lambda t, **kw: t.nn.GRU(3, 4, **kw),
    "tanh": lambda t, **kw: t.nn.RNN(3, 4, **kw),
    "relu": lambda t, **kw: t.nn.RNN(3, 4, nonlinearity="relu", **kw),
}


# two layers both ways without first states: test_packed_recurrence
BUILDS = {
    "plain": ({}, False),
    "both ways, started": ({"bidirectional": True}, True),
    "two layers, started": ({"bidirectional": True, "num_layers": 2}, True),
}
# relu and tanh are one loop, and layers of all kinds are stacked alike
LENGTHS = [(kind, "plain") for kind in CELLS] + [(kind, "both ways, started") for kind in ("projected", "gru", "tanh")]
LENGTHS += [("lstm", "two layers, started")]


@pytest.mark.parametrize("kind, build", LENGTHS)
def test_recurrence_of_lengths(kind, build):
    """Outputs, last states, gradients and second gradients; rows of nan outside the sequences reach nothing."""
    options, started = BUILDS[build]

    def run(torch):
        r = torch.nn.utils.rnn
        torch.manual_seed(0)
        layer = CELLS[kind](torch, batch_first=True, **options).double()
        x = torch.linspace(-1, 1, 4 * 6 * 3, dtype=torch.float64).sin().reshape(4, 6, 3)
        lengths = torch.tensor([2, 6, 1, 4])
        x[torch.arange(6) >= lengths[:, None]] = torch.nan
        x.requires_grad_()
        states = []
        if started:
            shape = lambda n: (layer.num_layers * (2 if layer.bidirectional else 1), 4, n)
            sizes = (layer.proj_size or 4, 4) if "LSTM" in layer.mode else (4,)
            states = [torch.linspace(0, 1, shape(n)[0] * 4 * n, dtype=torch.float64).reshape(shape(n)) for n in sizes]
            states = [s.requires_grad_() for s in states]
        given = [tuple(states) if len(states) > 1 else states[0]] if states else []
        out, last = layer(r.pack_padded_sequence(x, lengths, True, False), *given)
        last = last if type(last) is tuple else (last,)
        back, _ = r.pad_packed_sequence(out, True, 0.5)
        loss = (back**2).sum() + sum((s**3).sum() for s in last)
        wanted = [x, *states, *layer.parameters()]
        grads = torch.autograd.grad(loss, wanted, create_graph=True)
        twice = torch.autograd.grad(sum((g**2).sum() for g in grads), wanted)
        return [v.detach() for v in (back, *last, *grads, *twice)]

    both(run, layout=False, least=(1e-9, 1e-11))


def test_elements_that_are_looked_at():
    """Writes to `data` and hooks on it count; what was packed keeps its values when the padded batch is written to."""

    def run(torch):
        r = torch.nn.utils.rnn
        torch.manual_seed(0)
        layer, x, seen = torch.nn.GRU(2, 3), torch.linspace(-1, 1, 16).reshape(4, 2, 2), []
        packed = r.pack_padded_sequence(x, [4, 2])
        x.zero_()
        packed.data[1] = 5
        weight = torch.ones(2, requires_grad=True)
        scaled = r.PackedSequence(packed.data * weight, packed.batch_sizes)
        scaled.data.register_hook(lambda g: seen.append(g.clone()))
        out, _ = layer(scaled)
        out.data.retain_grad()
        r.pad_packed_sequence(out)[0].square().sum().backward()
        moved = packed.double()
        return packed.data, out.data.detach(), out.data.grad, weight.grad, seen[0], moved.data, moved.to("cpu") is moved

    both(run, layout=False, least=(1e-5, 1e-6))


def test_elements_that_are_looked_at_without_gradients():
    def run(torch):
        x = torch.linspace(-1, 1, 16).reshape(4, 2, 2).requires_grad_()
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2]).to(torch.float64)
        with torch.no_grad():
            seen = packed.data.sum()
            late = torch.nn.utils.rnn.pack_padded_sequence(x, [4, 2])
        packed.data.square().sum().backward()
        return seen, x.grad, packed.data.requires_grad, late.data.requires_grad, packed.is_cuda

    both(run, layout=False)


def test_as_a_tuple():
    def run(torch):
        r = torch.nn.utils.rnn
        packed = r.pack_sequence([torch.arange(3), torch.arange(2)])
        made = [packed, r.pack_padded_sequence(torch.ones(3, 2), [3, 1]), copy.deepcopy(packed)]
        made += [packed._replace(data=packed.data + 1), packed._asdict()["data"], packed[:2], packed[0], packed[-3]]
        return [repr(m) for m in made], isinstance(packed, tuple), len(packed)

    both(run)


def test_a_pickled_one():
    packed = jtorch.nn.utils.rnn.pack_padded_sequence(jtorch.arange(6).reshape(3, 2), [3, 1])
    assert repr(pickle.loads(pickle.dumps(packed))) == repr(packed)


PADS = {
    "left": lambda t: ([t.arange(n) for n in (2, 3, 0)], False, 7, "left"),
    "batch first": lambda t: ([t.ones(n, 2, 1) for n in (2, 3)], True, -1.5, "right"),
    "flags": lambda t: ([t.ones(n, dtype=t.bool) for n in (2, 3)], True, 1, "right"),
    "short floats": lambda t: ([t.ones(n, dtype=t.bfloat16) for n in (2, 3)], True, 0.3, "right"),
    "two dtypes": lambda t: ([t.ones(2, dtype=t.int32), t.ones(3) * 1.5], False, 0, "right"),
    "recorded": lambda t: ([t.ones(2, requires_grad=True), t.arange(3) * 1.5], False, 0.5, "left"),
    "rows of one size": lambda t: ([t.ones(2, 3), t.ones(4, 1) * 2, t.ones(3, 3)], False, 7, "left"),
    "rows of two sizes": lambda t: ([t.ones(2, 2), t.ones(3, 3)], False, 0, "right"),
    "rows and numbers": lambda t: ([t.ones(2), t.ones(3, 2)], True, 0, "right"),
    "no tensor": lambda t: ([t.ones(2), 5], False, 0, "right"),
    "not computed yet": lambda t: ([t.ones(2).exp(), t.ones(3).cos()], False, 0.5, "left"),
}


@pytest.mark.parametrize("name", PADS)
def test_padding(name):
    both(lambda t: t.nn.utils.rnn.pad_sequence(*PADS[name](t)).detach())


@pytest.mark.usefixtures("own_programs")
def test_lengths_are_no_part_of_the_program():
    r = jtorch.nn.utils.rnn
    layer = jtorch.nn.LSTM(3, 4, bidirectional=True)
    compiles = []
    for lengths in ([5, 2, 4], [3, 5, 1], [5, 5, 5], [1, 2, 5], [4, 5, 3]) * 2:
        x = r.pad_sequence([jtorch.tensor([[1.0, 2.0, 3.0]] * n) for n in lengths])
        out, _ = layer(r.pack_padded_sequence(x, lengths, enforce_sorted=False))
        r.pad_packed_sequence(out)[0].sum().backward()
        layer.weight_ih_l0.grad.sum().item()
        layer.zero_grad()
        compiles.append(ledger.counters.compiles)
    assert compiles[6] == compiles[9]


def test_a_sequence_longer_than_the_batch():
    with pytest.raises(RuntimeError, match="A sequence of length 4 cannot be taken from 3 steps"):
        jtorch.nn.utils.rnn.pack_padded_sequence(jtorch.ones(3, 2), [4, 1])


def test_the_old_name_of_a_permutation():
    def run(torch):
        with pytest.warns(FutureWarning, match="please use `tensor.index_select"):
            return torch.nn.modules.rnn.apply_permutation(torch.arange(6).view(1, 3, 2), torch.tensor([2, 0, 1]))

    both(run)
