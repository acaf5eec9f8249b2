"""Errors of what runs inside the transformations of torch.func, where values are not known."""


def asked_inside(method: str) -> RuntimeError:
    more = " (or perhaps using torch.autograd.functional.* APIs)" if method == "requires_grad_" else ""
    return RuntimeError(
        f"You are attempting to call Tensor.{method}(){more} inside of a function being transformed by a functorch transform. This is "
        "unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call "
        f"{method}() outside of a function being transformed instead."
    )


def outer_hook() -> NotImplementedError:
    return NotImplementedError(
        "jtorch does not put hooks on tensors that were made outside of the innermost of torch.func's transformations\n"
        "  put the hook there where the tensor is made instead"
    )


def backward_inside() -> RuntimeError:
    return RuntimeError(
        "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead "
        "or call backward() outside of functorch transforms."
    )


def captured_write(name: str) -> RuntimeError:
    return RuntimeError(
        "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
        f"(aten::{name}) that would mutate a captured Tensor. This is not supported; please rewrite the function being transformed "
        "to explicitly accept the mutated Tensor(s) as inputs."
    )


def mapped_sizes(sizes) -> ValueError:
    return ValueError(
        f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
    )


def batched_write() -> RuntimeError:
    return RuntimeError(
        "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has "
        "more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. "
        "Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being called inside the "
        "PyTorch framework, please file a bug report instead."
    )


def escaped() -> RuntimeError:
    return RuntimeError(
        "Either your tensor may have escaped from inside a function being vmapped and this is a user error (see "
        "https://pytorch.org/functorch/stable/ux_limitations.html)\n  return it from the function instead: it has a value for each slice"
    )


def traced_item(transforms, control=False) -> RuntimeError:
    """control: the value was wanted by an `if`."""
    if not any(x.kind == "vmap" for x in transforms):
        return RuntimeError("the value of this tensor is not known: it stands for an argument of a jax transformation")
    if control:
        return RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, "
            "please file an issue at https://github.com/pytorch/pytorch/issues ."
        )
    return RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
        "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
        "internals, please file a bug report."
    )


def data_dependent(function: str, transforms=()) -> RuntimeError:
    if any(x.kind == "vmap" for x in transforms):
        return RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            f"aten::{function}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    return RuntimeError(
        f"{function}(): the shape of the result depends on values, which are not known inside a jax transformation\n"
        "  use a form with a fixed shape (where, masked_fill, topk), or call it outside the traced function"
    )
