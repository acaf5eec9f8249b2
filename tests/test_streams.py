"""Events time the work between them, waiting waits, and the facades answer for a machine without accelerators."""

import time

import pytest

import jtorch
from tests.oracle import run, torch


def test_synchronize_waits():
    x = jtorch.full((700, 700), 1e-3)
    for _ in range(3):  # compiled, then measured
        y = x
        for _ in range(8):
            y = y @ x
        start = time.perf_counter()
        jtorch.synchronize()
        waited = time.perf_counter() - start
        start = time.perf_counter()
        y.sum().item()
        left = time.perf_counter() - start
    assert left < waited


def test_events():
    first, last = (jtorch.Event(enable_timing=True) for _ in range(2))
    first.record()
    time.sleep(0.02)
    last.record()
    assert 15 < first.elapsed_time(last) < 2000
    with pytest.raises(ValueError, match="enable_timing=True"):
        jtorch.Event().elapsed_time(last)
    with pytest.raises(ValueError, match="must be recorded"):
        jtorch.Event(enable_timing=True).elapsed_time(last)


CALLS = [
    "cuda.is_available()", "cuda.device_count()", "cuda.current_device()", "cuda.synchronize()", "cuda.is_initialized()",
    "cuda.is_bf16_supported()", "cuda.empty_cache()", "cuda.manual_seed(1)", "cuda.get_rng_state_all()", "xpu.is_available()",
    "mps.is_available()", "mtia.is_available()", "cpu.is_available()", "cpu.device_count()", "cpu.current_device()",
    "accelerator.is_available()", "accelerator.device_count()", "distributed.is_initialized()", "jit.is_scripting()",
    "backends.mps.is_available()", "onnx.is_in_onnx_export()", "multiprocessing.get_sharing_strategy()",
]  # fmt: skip


# Without a build for CUDA PyTorch says so, with one it looks for a driver first.
NEEDS_CPU_BUILD = "cuda.current_device()", "cuda.synchronize()"


@pytest.mark.parametrize("call", CALLS)
def test_answers(call):
    if torch.version.cuda is not None and call in NEEDS_CPU_BUILD:
        pytest.skip("PyTorch is built for CUDA here")
    expected, got = (run(lambda m=m: eval(f"m.{call}", {"m": m})) for m in (torch, jtorch))
    assert type(got.error) is type(expected.error) and got.value == expected.value
    assert str(got.error).splitlines()[:1] == str(expected.error).splitlines()[:1]
