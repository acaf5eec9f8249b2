"""torch.func: function transformations, on those of JAX."""

from .einops import rearrange
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms import (
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    jvp,
    linearize,
    vjp,
)
from .vectorize import vmap

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
