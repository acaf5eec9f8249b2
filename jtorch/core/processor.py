"""What the processor can do."""

import functools


@functools.cache
def vectors() -> str:
    """Its widest vector instructions, in PyTorch's words; "DEFAULT" where that cannot be found out."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            flags = file.read()
    except OSError:
        return "DEFAULT"
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
