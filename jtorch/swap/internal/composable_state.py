"""torch.distributed._composable_state and fsdp's own: what is noted of modules that are spread over processes. None is."""

__all__ = ["_FSDPState", "_State", "_get_module_state"]


class _State:
    """What is noted of a spread module. For isinstance."""


class _FSDPState(_State):
    """What FSDP notes of a module. For isinstance."""


def _get_module_state(module):
    """None: no module is spread."""
