"""torch._inductor: the settings that programs make. XLA compiles here, so none of them changes a result."""

import types

from .settings import Settings

__all__ = ["config", "cudagraph_mark_step_begin", "decompositions", "register_decomposition"]

decompositions: dict = {}  # operator -> the function registered for it


config = Settings(
    "torch._inductor.config",
    aggressive_fusion=False, conv_1x1_as_mm=False, coordinate_descent_check_all_directions=False, coordinate_descent_tuning=False,
    cpp=types.SimpleNamespace(threads=-1), cpp_wrapper=False, debug=False, emulate_precision_casts=False,
    epilogue_fusion=True, fallback_random=False, force_fuse_int_mm_with_mul=False, freezing=False, fx_graph_cache=True,
    fx_graph_remote_cache=None, inplace_buffers=True, max_autotune=False, max_autotune_gemm=False,
    max_autotune_gemm_backends="ATEN,TRITON,CPP", reorder_for_compute_comm_overlap=False, shape_padding=True,
    triton=types.SimpleNamespace(cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True),
    use_mixed_mm=True,
)  # fmt: skip


def cudagraph_mark_step_begin() -> None:
    """Accepted: a program keeps no memory between its calls."""


def register_decomposition(ops):
    """A decorator: the function is noted for these operators. XLA takes them as they are, so it is not called."""

    def note(fn):
        decompositions.update(dict.fromkeys(ops if isinstance(ops, (list, tuple)) else [ops], fn))
        return fn

    return note
