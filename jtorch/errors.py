"""Every public error: one constructor a message, PyTorch's type and first line, then what helps."""


def dim_range(dim: int, ndim: int) -> IndexError:
    n = max(ndim, 1)
    return IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def broadcast(a: int, b: int, dim: int) -> RuntimeError:
    return RuntimeError(
        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )


def unsupported(what: str, instead: str) -> NotImplementedError:
    return NotImplementedError(f"jtorch does not support {what}\n  use {instead} instead")
