"""torch.ops.quantized_decomposed: quantisation in plain operators, in both libraries."""

import importlib

import pytest

import jtorch
from jtorch.swap.internal import decomposed
from tests.oracle import torch

importlib.import_module("torch.ao.quantization.fx._decomposed")


def inputs(t):
    t.manual_seed(0)
    x, s, z = t.randn(4, 8) * 3, t.rand(4) * 0.1 + 0.01, t.tensor([0, 3, -2, 5])
    q = t.ops.quantized_decomposed.quantize_per_tensor(x, 0.05, 3, -128, 127, t.int8)
    one, two = t.tensor(0.05), t.tensor(3)
    sg, zg = t.rand(4, 2) * 0.1 + 0.01, t.zeros(4, 2, dtype=t.int32)
    return {"t": t, "o": t.ops.quantized_decomposed, "x": x, "s": s, "z": z, "q": q, "one": one, "two": two, "sg": sg, "zg": zg}  # fmt: skip


CALLS = [
    "o.quantize_per_tensor(x, 0.05, 100, 0, 255, t.uint8)", "o.quantize_per_tensor(x.bfloat16(), 0.05, 3, -128, 127, t.int8)",
    "o.quantize_per_tensor(x, 0.05, 0, -448, 448, t.float8_e4m3fn).float()", "o.quantize_per_tensor.tensor(x, one, two, -128, 127, t.int8)",
    "o.quantize_per_tensor.tensor2(x, one, two, t.tensor(-8), t.tensor(7), t.int8)", "o.dequantize_per_tensor(q, 0.05, 3, -128, 127, t.int8)",
    "o.dequantize_per_tensor(q, 0.05, 3, -128, 127, t.int8, out_dtype=t.bfloat16)", "o.dequantize_per_tensor.tensor(q, one, two, -128, 127, t.int8)",
    "o.dequantize_per_tensor.tensor2(q, one, two, t.tensor(-8), t.tensor(7), t.int8)", "o.choose_qparams.tensor(x, -128, 127, 1e-6, t.int8)",
    "o.choose_qparams.tensor(x.abs(), 0, 255, 1e-6, t.uint8)", "o.choose_qparams_symmetric.tensor(x, -128, 127, 1e-6, t.int8)",
    "o.quantize_per_channel(x, s, z, 0, -128, 127, t.int8)", "o.dequantize_per_channel(q, s, z, 0, -128, 127, t.int8)",
    "o.dequantize_per_channel(q, s, None, 0, -128, 127, t.int8)", "o.dequantize_per_channel(q, s.double(), z, 0, -128, 127, t.int8, out_dtype=t.float16)",
    "o.choose_qparams_per_token(x, t.int8)", "o.choose_qparams_per_token(x.half(), t.int8)", "o.choose_qparams_per_token(x.bfloat16(), t.int8)",
    "o.choose_qparams_per_token_asymmetric(x, t.int8)", "o.choose_qparams_per_token_asymmetric(x.bfloat16(), t.int8)",
    "o.quantize_per_token(x, *o.choose_qparams_per_token_asymmetric(x, t.int8), -128, 127, t.int8)",
    "o.dequantize_per_token(q, *o.choose_qparams_per_token(x, t.int8), -128, 127, t.int8, t.float32)",
    "o.quantize_per_channel_group(x, sg, zg, -8, 7, t.int8, 4)", "o.dequantize_per_channel_group(q, sg, zg, -8, 7, t.int8, 4, t.float32)",
    "o.dequantize_per_channel_group(q, sg, None, -8, 7, t.int8, 4, t.float32)", "o.convert_element_type.no_fuse(x, t.float16)",
    "t.autograd.grad(o.fake_quant_per_channel(x.requires_grad_(), s, z, 0, -8, 7).sum(), x)",
    # what is refused
    "o.quantize_per_tensor(x, 0.05, 3, -129, 127, t.int8)", "o.quantize_per_tensor(x, 0.05, 3, -128, 128, t.int8)",
    "o.quantize_per_tensor(x.double(), 0.05, 3, -128, 127, t.int8)", "o.dequantize_per_tensor(q, 0.05, 3, -128, 127, t.uint8)",
    "o.choose_qparams.tensor(x.double(), -128, 127, 1e-6, t.int8)", "o.choose_qparams.tensor(x, 127, -128, 1e-6, t.int8)",
    "o.quantize_per_channel(x, s, z, 3, -128, 127, t.int8)", "o.choose_qparams_per_token(x, t.uint8)", "o.quantize_per_token(x, s[:2], z, -128, 127, t.int8)",
    "o.quantize_per_channel_group(x, sg, zg, -8, 7, t.int8, 3)", "o.quantize_per_tensor.tensor(x, t.ones(2), two, -128, 127, t.int8)",
    "o.quantize_per_tensor(x, 0.05, 3, 0, 1, t.int64)",
]  # fmt: skip


def result(t, call):
    try:
        found = eval(call, inputs(t))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    found = found if isinstance(found, tuple) else (found,)
    return [(str(x.dtype).rpartition(".")[2], x.tolist()) for x in found]


@pytest.mark.parametrize("call", CALLS)
def test_operators(call):
    assert result(jtorch, call) == result(torch, call)


def test_all_operators_are_there():
    there = {
        s.name.partition("::")[2]
        for s in torch._C._jit_get_all_schemas()
        if s.name.startswith("quantized_decomposed::")
    }
    assert there == set(dir(jtorch.ops.quantized_decomposed)) and decomposed.__all__
