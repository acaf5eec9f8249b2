"""Errors of the tape."""

from .errors import scalar_name


def freed() -> RuntimeError:
    return RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward."
    )


def view_of_leaf() -> RuntimeError:
    return RuntimeError("a view of a leaf Variable that requires grad is being used in an in-place operation.")


def no_hooks() -> TypeError:
    return TypeError(
        "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
        "    1. (self: SavedTensor, arg0: Callable, arg1: Callable) -> None"
    )


def nothing_saved() -> RuntimeError:
    return RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")


def seen_already() -> RuntimeError:
    return RuntimeError(
        "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. Either "
        "access saved_tensors only once, or set clear_saved_tensors_on_access=False."
    )


def saved_as_is() -> RuntimeError:
    return RuntimeError(
        "An input that has been returned as-is as output is being saved for backward. This is not supported if you override "
        "setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or setup ctx inside the "
        "forward function itself."
    )


def dirty_no_input() -> RuntimeError:
    return RuntimeError(
        "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be passed to "
        "ctx.mark_dirty()."
    )


def dirty_view_among_several() -> RuntimeError:
    return RuntimeError(
        "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one "
        "Tensor. This is not supported by the current autograd engine. You should either make sure the input is not a view (using "
        ".clone() for example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing "
        "the inplace that returns a single Tensor and a second one that does the other operations). You can ask on the forum "
        "https://discuss.pytorch.org/ if you need help to do this change."
    )


def dual_tangent() -> RuntimeError:
    return RuntimeError(
        "Setting a forward grad that itself has a forward gradient at the same level0 is not supported."
    )


def inference_saved() -> RuntimeError:
    return RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
        "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use "
        "`torch.no_grad()` instead of `torch.inference_mode()`."
    )


def jvp_number(wanted: int, got: int) -> RuntimeError:
    return RuntimeError(
        f"Function's jvp returned an invalid number of forward gradients (expected {wanted} but got {got})"
    )


def jvp_kind(k: int, got) -> RuntimeError:
    return RuntimeError(f"expected Variable or None (got {type(got).__name__}) for grad output {k}.")


def jvp_unasked(k: int) -> RuntimeError:
    return RuntimeError(
        f"Function's jvp returned a gradient at position {k}, but  the corresponding forward output is not a differentiable Tensor."
        "You should return None at that position instead."
    )


def tangent_kind(k: int, got) -> RuntimeError:
    """PyTorch says the last sentence of this as an internal error."""
    what = "None" if got is None else f"a {got.dtype} tensor"
    return RuntimeError(
        f"Expected both tensor and its forward grad to be floating point or complex: the jvp of a Function gave {what} for result {k}"
    )


def tangent_size(shape, given) -> RuntimeError:
    return RuntimeError(
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
        f"Tensor is of size {list(shape)} while the given forward gradient is of size {list(given)}."
    )


def jvp_no_view(view: bool, of_view: bool) -> RuntimeError:
    """view: whether the tangent returned is a view of another; of_view: whether the argument's tangent is one."""
    if not view:
        return RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    of = "the same base as the given" if of_view else "the given"
    return RuntimeError(
        f"A custom Function is returning a view but the jvp is not returning a view of {of} grad input."
    )


def jvp_not_in_place() -> RuntimeError:
    return RuntimeError(
        "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
        "inplace, then the jvp function must modify the corresponding gradient inplace."
    )


def unwritten(name: str) -> NotImplementedError:
    """A derivative that PyTorch names without having it."""
    return NotImplementedError(f"the derivative for '{name}' is not implemented.")


def no_gradient_of(dtype) -> RuntimeError:
    """A result with a history, in a dtype that has no gradients."""
    return RuntimeError(f"Autograd not support dtype: {scalar_name(dtype)}")


def barred(function: str, name: str) -> RuntimeError:
    """An argument that needs a gradient where PyTorch's function has none for it."""
    return RuntimeError(
        f"The function '{function}' is not differentiable with respect to argument '{name}'. This input cannot have "
        "requires_grad True."
    )


def negative_slope(name: str) -> RuntimeError:
    """The derivative of an activation in place, whose result does not tell what it came from."""
    more = ""
    if name == "leakyReLu":
        more = (
            " File an issue at https://github.com/pytorch/pytorch if you do require supporting in-place leakRelu backward "
            "calculation with negative slope"
        )
    return RuntimeError(
        f"In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused by "
        "calling in-place forward function with a negative slope, please call out-of-place version instead." + more
    )


def off_tape(name: str) -> RuntimeError:
    """`out=` of what needs a gradient, or for operands that do."""
    return RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
        "arguments requires grad."
    )


def once() -> RuntimeError:
    return RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
