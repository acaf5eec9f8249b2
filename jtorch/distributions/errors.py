"""Errors of distributions, constraints and transforms: PyTorch's classes and first words."""


def invalid_parameter(name, value, dist, constraint) -> ValueError:
    return ValueError(
        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
        f"of distribution {dist!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
    )


def not_positive(name, value, dist, invalid) -> ValueError:
    return ValueError(
        f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
        f"of distribution {dist!r} to be positive but found invalid values:\n{invalid}"
    )


def outside_support(value, support, dist) -> ValueError:
    return ValueError(
        f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
        f"({support!r}) of the distribution {dist!r}, but found invalid values:\n{value}"
    )


def not_broadcastable(given, expected) -> ValueError:
    return ValueError(f"Value is not broadcastable with batch_shape+event_shape: {given} vs {expected}.")


def value_no_tensor() -> ValueError:
    return ValueError("The value argument to log_prob must be a Tensor")


def probs_or_logits() -> ValueError:
    return ValueError("Either `probs` or `logits` must be specified, but not both.")


def needs_dimension(name: str) -> ValueError:
    return ValueError(f"`{name}` parameter must be at least one-dimensional.")


def not_broadcast_arguments() -> ValueError:
    return ValueError(
        "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
    )


def custom_init(cls, owner) -> NotImplementedError:
    return NotImplementedError(
        f"Subclass {cls.__name__} of {owner.__name__} that defines a custom __init__ method must also define a "
        "custom .expand() method."
    )


def inhomogeneous(method: str) -> NotImplementedError:
    return NotImplementedError(f"Inhomogeneous total count not supported by `{method}`.")


def vector_location() -> ValueError:
    return ValueError("loc must be at least one-dimensional.")


def matrix_needed(name: str) -> ValueError:
    return ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")


ONE_MATRIX = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."


def dependent_constraint() -> ValueError:
    return ValueError("Cannot determine validity of dependent constraint")


def not_static(name: str) -> NotImplementedError:
    return NotImplementedError(f".{name} cannot be determined statically")


def too_few_dimensions() -> ValueError:
    return ValueError("Too few dimensions on input")


def shape_mismatch(given, expected) -> ValueError:
    return ValueError(f"Shape mismatch: expected {given} but got {expected}")


def cache_size() -> ValueError:
    return ValueError("cache_size must be 0 or 1")


def no_kl(p, q) -> NotImplementedError:
    return NotImplementedError(f"No KL(p || q) is implemented for p type {p.__name__} and q type {q.__name__}")


def different_events(kind: str) -> ValueError:
    return ValueError(
        f"KL-divergence between two {kind} Normals with{' ' * 26}different event shapes cannot be computed"
    )
