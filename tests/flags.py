"""XLA's flags with which a small program compiles in half the time."""

from importlib import metadata


def quick() -> str:
    """In one piece, without fusion emitters where XLA knows of these: it aborts at a flag that it does not know."""
    version = tuple(map(int, metadata.version("jaxlib").split(".")[:2]))
    emitters = " --xla_cpu_use_fusion_emitters=false" if version < (0, 11) else ""
    return f"--xla_cpu_parallel_codegen_split_count=1{emitters}"
