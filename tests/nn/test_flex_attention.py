"""nn/attention/flex_attention.py and block_mask.py: attention by functions of positions, masks by blocks and what they print."""

import pytest

from tests.oracle import both

START = """
import torch, warnings
warnings.simplefilter('ignore')
from torch.nn.attention.flex_attention import *
def causal(b, h, q, kv): return q >= kv
def window(b, h, q, kv): return (q >= kv) & (q - kv <= 200 + 100 * h)
def said(f):
    try: f()
    except Exception as e: print(type(e).__name__, str(e).splitlines()[0])
"""

PROGRAMS = {
    "pictures": """
for mod, B, H, Q, KV, size in ((causal, None, None, 64, 64, 16), (causal, 2, 3, 512, 512, 128), (window, None, 2, 1000, 1000, 128),
                               (causal, None, None, 8192, 8192, 128), (window, 1, 1, 3000, 3000, (64, 128)), (causal, 1, 1, 300, 170, 16)):
    mask = create_block_mask(mod, B, H, Q, KV, device='cpu', BLOCK_SIZE=size)
    print(mask, repr(mask), mask.sparsity(), mask.shape)
    print(mask.to_string(grid_size=5), mask.to_string(3, limit=1), mask.to_string((4, 7)), mask.to_string(-1, 2))
print(create_block_mask(causal, 1, 1, 40, 40, device='cpu', BLOCK_SIZE=16, separate_full_blocks=False))
""",
    "given blocks": """
counts, where = torch.tensor([[[1, 2]]], dtype=torch.int32), torch.tensor([[[[0, 1], [0, 1]]]], dtype=torch.int32)
mask = BlockMask.from_kv_blocks(counts, where, BLOCK_SIZE=16)
print(mask, repr(mask), mask.q_num_blocks, mask.q_indices, mask.full_q_indices)
""",
    "parts": """
mask = create_block_mask(causal, 2, 3, 512, 512, device='cpu', BLOCK_SIZE=128)
print(mask.q_num_blocks, mask.q_indices[0, 0], mask.full_q_num_blocks, mask.full_q_indices[0, 0])
for index in (0, -1, (1, 2), (slice(0, 2), 0), (0, 0, 1), (slice(None), slice(None), torch.tensor([3]))):
    part = mask[index]
    print(part, part.sparsity(), part.kv_num_blocks.shape, part.q_num_blocks.shape, part.seq_lengths)
""",
    "a part wants a mask": """
mask = create_block_mask(causal, 2, 3, 64, 64, device='cpu', BLOCK_SIZE=16)
q = torch.arange(3 * 64 * 4.).sin().reshape(1, 3, 64, 4)
part = mask[0]
said(lambda: part.mask_mod(0, 0, 0, 0))
said(lambda: flex_attention(q, q, q, block_mask=part))
part.mask_mod = mask.mask_mod
print(flex_attention(q, q, q, block_mask=part).sum((0, 2, 3)))
""",
    "precision": """
torch.manual_seed(0)
q, k, v = (torch.randn(2, 2, 16, 8, dtype=torch.float64) * 3 for _ in range(3))
mask = create_block_mask(causal, None, None, 16, 16, device='cpu', BLOCK_SIZE=16)
dense = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
for dtype, near in ((torch.float64, 1e-13), (torch.float32, 1e-5), (torch.bfloat16, 0.05), (torch.float16, 0.01)):
    given = [x.to(dtype) for x in (q, k, v)]
    exact = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in given), is_causal=True)
    out, lse = flex_attention(*given, block_mask=mask, return_lse=True)
    print(out.dtype, lse.dtype, (out.double() - exact).abs().max() < near)
""",
    "autocast": """
torch.manual_seed(0)
q, k, v = (torch.randn(2, 2, 16, 8) * 3 for _ in range(3))
for low in (torch.bfloat16, torch.float16):
    given = [x.to(low) for x in (q, k, v)]
    exact = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in given))
    with torch.autocast('cpu', low):
        out, lse = flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + 0.0 * i, return_lse=True)
        print(out.dtype, lse.dtype, (out.double() - exact).abs().max() < 0.05, flex_attention(q.double(), k.double(), v.double()).dtype)
""",
    "lengths": """
q = torch.ones(1, 1, 64, 4)
for lengths in ((32, 64), (64, 32), (128, 64), (64, 128), (128, 128)):
    mask = create_block_mask(causal, None, None, *lengths, device='cpu', BLOCK_SIZE=16)
    said(lambda: print(flex_attention(q, q, q, block_mask=mask).sum()))
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    both(START + PROGRAMS[name])
