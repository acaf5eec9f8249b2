"""core/processor.py: what the processor can do."""

import pytest

from jtorch.core.processor import vectors
from tests.oracle import torch


@pytest.mark.parametrize(
    "flags, want", [("fma avx avx2", "AVX2"), ("avx2 avx512f", "AVX512"), ("sse2", "DEFAULT"), (None, "DEFAULT")]
)
def test_vectors(flags, want, monkeypatch, tmp_path):
    file = tmp_path / "cpuinfo"
    if flags is not None:
        file.write_text(f"flags : {flags}\n")
    monkeypatch.setattr("builtins.open", lambda path, open=open, **kw: open(file, **kw))
    assert vectors.__wrapped__() == want


def test_vectors_of_this_processor():
    assert vectors() == torch.backends.cpu.get_cpu_capability()
