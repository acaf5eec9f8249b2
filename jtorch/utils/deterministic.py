"""torch.utils.deterministic."""

# Kept, so that what was set can be read: memory that nobody has written to holds zeros here, in every mode.
fill_uninitialized_memory = True

__all__ = ["fill_uninitialized_memory"]
