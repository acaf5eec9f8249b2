"""Attention over packed sequences, against PyTorch's attention of each sequence alone."""

import pytest

import jtorch
from jtorch.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out
from tests.oracle import from_torch, torch

LONG_Q, LONG_K = (3, 1, 4), (3, 2, 6)


def packed(heads=2, kv_heads=2):
    torch.manual_seed(0)
    q = torch.randn(sum(LONG_Q), heads, 4)
    k, v = torch.randn(2, sum(LONG_K), kv_heads, 4)
    ends = [torch.tensor([0, *lengths]).cumsum(0).int() for lengths in (LONG_Q, LONG_K)]
    return q, k, v, *ends


def each_alone(q, k, v, window=(-1, -1), scale=None, used=LONG_K):
    out = []
    for qs, ks, vs, n in zip(q.split(LONG_Q), k.split(LONG_K), v.split(LONG_K), used):
        ahead = torch.arange(n) - (torch.arange(len(qs)) + n - len(qs))[:, None]
        mask = torch.ones_like(ahead, dtype=torch.bool)
        if window[0] >= 0:
            mask &= ahead >= -window[0]
        if window[1] >= 0:
            mask &= ahead <= window[1]
        q1, k1, v1 = (t.transpose(0, 1) for t in (qs, ks[:n], vs[:n]))
        out.append(
            torch.nn.functional.scaled_dot_product_attention(q1, k1, v1, mask, scale=scale, enable_gqa=True).transpose(
                0, 1
            )
        )
    return torch.cat(out)


@pytest.mark.parametrize(
    "options, heads",
    [({}, 2), ({"window_size": (-1, 0)}, 2), ({"window_size": (1, 1), "scale": 0.3}, 2), ({"enable_gqa": True}, 4)],
)
def test_values_and_gradients(options, heads):
    q, k, v, cu_q, cu_k = packed(heads)
    mine = [t.requires_grad_() for t in from_torch([q, k, v])]
    its = [t.requires_grad_() for t in (q, k, v)]
    got = varlen_attn(*mine, *from_torch([cu_q, cu_k]), 4, 6, **options)
    want = each_alone(*its, options.get("window_size", (-1, -1)), options.get("scale"))
    assert got.shape == want.shape and got.is_contiguous()
    got.pow(2).sum().backward()
    want.pow(2).sum().backward()
    for a, b in ((got, want), *zip((t.grad for t in mine), (t.grad for t in its))):
        torch.testing.assert_close(torch.from_numpy(a.detach().numpy()), b.detach(), rtol=1e-4, atol=1e-5)


def test_auxiliary_results_and_keys_used():
    q, k, v, cu_q, cu_k = packed()
    args = from_torch([q, k, v, cu_q, cu_k])
    out, lse = varlen_attn(
        *args, 4, 6, return_aux=AuxRequest(lse=True), seqused_k=jtorch.tensor([2, 1, 5], dtype=jtorch.int32)
    )
    torch.testing.assert_close(torch.from_numpy(out.numpy()), each_alone(q, k, v, used=(2, 1, 5)), rtol=1e-4, atol=1e-5)
    first = (q[:3].transpose(0, 1) @ k[:2].permute(1, 2, 0) / 2).logsumexp(-1)
    torch.testing.assert_close(torch.from_numpy(lse[:, :3].numpy()), first, rtol=1e-4, atol=1e-5)
    room = jtorch.empty(8, 2, 4)
    assert varlen_attn_out(room, *args, 4, 6) is room and room.equal(varlen_attn(*args, 4, 6))


def test_errors():
    q, k, v, cu_q, cu_k = from_torch(packed(3, 2))
    with pytest.raises(ValueError, match="same number of heads"):
        varlen_attn(q, k, v, cu_q, cu_k, 4, 6)
    with pytest.raises(ValueError, match="multiple of kv heads"):
        varlen_attn(q, k, v, cu_q, cu_k, 4, 6, enable_gqa=True)
    with pytest.raises(NotImplementedError, match="block_table"):
        varlen_attn(q[:, :2], k, v, cu_q, cu_k, 4, 6, block_table=cu_q)
    with pytest.raises(RuntimeError, match="inference-only"):
        varlen_attn(q[:, :2].requires_grad_(), k, v, cu_q, cu_k, 4, 6, seqused_k=cu_k)
