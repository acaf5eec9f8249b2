"""What jax is tracing at the moment: where to find that in each version of it."""

try:
    from jax.extend.core import find_top_trace, set_current_trace
except ImportError:  # until jax 0.8
    from jax.core import find_top_trace, set_current_trace

__all__ = ["find_top_trace", "set_current_trace"]
