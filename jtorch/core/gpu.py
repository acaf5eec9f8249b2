"""What XLA's compiler for NVIDIA's GPUs is told: to take the kernels that the libraries would choose, not to try them all out.

As PyTorch does unless `torch.backends.cudnn.benchmark` is set. Trying out (`JTORCH_TRY_KERNELS=1`) takes a ResNet's first step from 6 to
37 s and an MLP's from 0.9 to 2.0; the steps are as long afterwards. One of XLA's options says so, but then also every sum of scattered rows is
computed in a fixed order: that is right where programs are to be deterministic, and costs little where the sums are small.
"""

from .. import config
from .channel_order import CONVOLVES
from .cuts import inner, primitives_of

# Of products XLA tries out dozens of Triton's kernels beside the library's.
_OF_LIBRARY = {"xla_gpu_enable_triton_gemm": False}
_FIRST_CHOICE = {"xla_gpu_exclude_nondeterministic_ops": True}
SMALL = 1 << 22  # bytes of scattered rows: 2 MB in a fixed order take 0.2 ms more, 25 MB 3.6 (an H200)


def options(plans) -> dict:
    """What the compiler is told of a program of these plans."""
    return _OF_LIBRARY | _FIRST_CHOICE if _takes_first(plans) else _OF_LIBRARY


def _takes_first(plans) -> bool:
    if config.deterministic or config.tries_kernels:
        return config.deterministic
    return any(plan.channels is CONVOLVES for plan in plans) or sum(map(_scattered, plans)) <= SMALL


def _scattered(plan) -> int:
    """Bytes of the rows that a plan scatters, where two may come to one place."""
    try:
        return _rows(primitives_of(plan))
    except Exception:  # it takes other things than arrays; whatever is wrong is said where it runs
        return 0


def _rows(jaxpr) -> int:
    found = 0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name.startswith("scatter"):
            rows = eqn.invars[2].aval
            found += 0 if eqn.params["unique_indices"] else rows.size * rows.dtype.itemsize
        elif (within := inner(eqn)) is not None:
            found += _rows(within)
    return found
