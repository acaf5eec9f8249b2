"""nn/attention/bias.py: causal masks as tensors that attention knows."""

import importlib
import warnings

import pytest

import jtorch

torch = pytest.importorskip("torch")
LIBS = (torch, jtorch)


def biases(lib):
    return importlib.import_module(f"{lib.__name__}.nn.attention.bias")


def outcome(lib, make, q=5, kv=7, **options):
    """What attention with a bias gives, and its gradient; or an error."""
    bias = biases(lib)
    numbers = [lib.linspace(-1, 1, 2 * 3 * n * 4).reshape(2, 3, n, 4).sin().requires_grad_() for n in (q, kv, kv)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            mask = make(bias, q, kv)
            made = lib.nn.functional.scaled_dot_product_attention(*numbers, attn_mask=mask, **options)
            made.sin().sum().backward()
        except Exception as e:
            return type(e), str(e)
    kept = (
        isinstance(mask, lib.Tensor),
        isinstance(mask, bias.CausalBias),
        tuple(mask.shape),
        repr(mask),
        int(mask.variant),
    )
    return kept, made.detach().numpy(), [n.grad.numpy() for n in numbers], [str(w.message) for w in said]


CASES = [
    (lambda b, q, kv: b.causal_upper_left(q, kv), {}),
    (lambda b, q, kv: b.causal_lower_right(q, kv), {}),
    (lambda b, q, kv: b.causal_lower_right(q, kv), {"scale": 0.3}),
    (lambda b, q, kv: b.causal_lower_right(q, q), {"kv": 5}),
    (lambda b, q, kv: b.CausalBias(b.CausalVariant.UPPER_LEFT, q, kv), {"q": 7, "kv": 5}),
    (lambda b, q, kv: b.causal_lower_right(q, kv), {"is_causal": True}),
    (lambda b, q, kv: b.causal_lower_right(q, kv, 3), {}),
    (lambda b, q, kv: b.CausalBias("upper", q, kv), {}),
]


@pytest.mark.parametrize("make, options", CASES)
def test_attention_with_a_bias(make, options):
    theirs, ours = (outcome(lib, make, **options) for lib in LIBS)
    if len(theirs) == 2:
        assert ours[0] is theirs[0] and ours[1].partition(" only")[2] == theirs[1].partition(" only")[2]
        return
    assert ours[0] == theirs[0] and ours[3] == theirs[3]
    for a, b in zip((ours[1], *ours[2]), (theirs[1], *theirs[2])):
        torch.testing.assert_close(torch.from_numpy(a.copy()), torch.from_numpy(b.copy()), equal_nan=True)


def test_more_queries_than_keys_warn():
    for lib in LIBS:
        with pytest.warns(UserWarning, match="Lower right causal bias will produce NaNs"):
            biases(lib).causal_lower_right(7, 5)
