"""Operators of PyTorch's derivatives: `<name>_backward` and its like, as `torch.ops.aten` has them."""

from .aten_losses import LOSSES, REDUCTIONS
from .aten_orders import ORDERS, RESAMPLED, resampled
from .autograd import entry, grad_mode
from .autograd.derive import differentiable
from .core.record import tls
from .dispatch import function_of, outer_elements, outer_moves, outer_rules  # noqa: F401  the tables fill themselves
from .functions import lookup
from .ops import registry
from .tensor import Tensor

__all__ = ["BACKWARD", "by_tape"]


def by_tape(function, args, kwargs, wanted, grads):
    """The gradients of some arguments of a function from those of its results, on the tape where gradients are recorded.

    wanted: (place or name of an argument, place in it where it is a list, or None) of each; None of a result stands for zeros.
    """
    given = [*grads, *args, *kwargs.values()]
    again = tls.me.grad and any(isinstance(t, Tensor) and t.requires_grad for t in given)
    args, kwargs, leaves = list(args), dict(kwargs), []
    for name, k in wanted:
        holder = kwargs if isinstance(name, str) else args
        if k is not None:
            holder[name] = holder = list(holder[name])
            name = k
        t = holder[name]
        holder[name] = t.view_as(t) if again and t.requires_grad else t.detach().requires_grad_()
        leaves.append(holder[name])
    with grad_mode.enable_grad():
        out = function(*args, **kwargs)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    outs = [o for o in outs if isinstance(o, Tensor) and differentiable(o._spec)]
    pairs = [(o, g) for o, g in zip(outs, grads) if g is not None and o.requires_grad]
    found = entry.grad(
        [o for o, _ in pairs],
        leaves,
        [g for _, g in pairs],
        create_graph=again,
        allow_unused=True,
        materialize_grads=True,
    )
    return found[0] if len(found) == 1 else found


outer_rules.BY_TAPE[0] = by_tape


def _gradient(name):
    """`name`_backward(grad_output, input, ...): the gradient of a function of one tensor."""

    def backward(grad_output, self, *args, **kwargs):
        return by_tape(lookup("nn.functional", name), (self, *args), kwargs, [(0, None)], (grad_output,))

    return backward


def _of(function):
    """The same of a function that takes its arguments in the operator's order."""

    def backward(grad_output, self, *args, **kwargs):
        return by_tape(function, (self, *args), kwargs, [(0, None)], (grad_output,))

    return backward


def _resampled_backward(mode, n, aligned):
    """The gradient of a resampling, which is that of any image of the same size."""

    def backward(grad_output, output_size, input_size, *args, **kwargs):
        image = grad_output.new_zeros(input_size)
        return by_tape(resampled(mode, n, aligned), (image, output_size, *args), kwargs, [(0, None)], (grad_output,))

    return backward


def _masked_gradients(function, given, mask, grads):
    """The gradients of the first arguments; None where the mask has False, or where there is no argument."""
    wanted = [(k, None) for k, there in enumerate(mask) if there and given[k] is not None]
    found = by_tape(function, given, {}, wanted, grads) if wanted else ()
    found = dict(zip((k for k, _ in wanted), found if isinstance(found, tuple) else (found,)))
    return tuple(map(found.get, range(len(mask))))


def _convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    bias = None if bias_sizes is None else weight.new_zeros(bias_sizes)
    given = input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    return _masked_gradients(lookup("torch", "convolution"), given, output_mask, (grad_output,))


def _native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    g, mask, n = grad_out, output_mask, len(normalized_shape)
    dims = list(range(input.ndim - n, input.ndim))
    over = list(range(input.ndim - n))
    if tls.me.grad and input.requires_grad:  # they hang on the input
        mean, var = input.mean(dims, True), input.var(dims, correction=0, keepdim=True)
        rstd = (var + (rstd**-2 - var).detach()).rsqrt()
    x = (input - mean) * rstd
    h = g if weight is None else g * weight
    of_input = rstd * (h - h.mean(dims, True) - x * (h * x).mean(dims, True)) if mask[0] else None
    total = (lambda t: t.sum(over)) if over else (lambda t: t)
    return (
        of_input,
        total(g * x) if mask[1] and weight is not None else None,
        total(g) if mask[2] and bias is not None else None,
    )


def _threshold_backward(grad_output, self, threshold):
    return function_of(registry.OPS["threshold_grad"])(grad_output, self, threshold)


def _leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return lookup("torch", "where")(self > 0, grad_output, grad_output * negative_slope)


def _elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    below = (x + alpha * scale) if is_result else (x * input_scale).exp() * (alpha * scale)
    return lookup("torch", "where")(x <= 0, grad_output * input_scale * below, grad_output * scale)


def _hardtanh_backward(grad_output, self, min_val, max_val):
    return function_of(registry.OPS["hardtanh_grad"])(grad_output, self, min_val, max_val)


def _embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of `embedding` by its table."""
    table = grad_output.new_zeros((num_weights, grad_output.shape[-1]))
    given = table, indices, padding_idx, scale_grad_by_freq
    return by_tape(lookup("torch", "embedding"), given, {}, [(0, None)], (grad_output,))


def _select_backward(grad_output, input_sizes, dim, index):
    return lookup("torch", "select_scatter")(grad_output.new_zeros(input_sizes), grad_output, dim, index)


def _slice_backward(grad_output, input_sizes, dim, start, end, step):
    return lookup("torch", "slice_scatter")(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


def _mse_loss_backward(grad_output, self, target, reduction):
    found = (self - target) * 2 * grad_output
    return found / self.numel() if reduction == 1 else found


def _nll_loss_forward(self, target, weight, reduction, ignore_index):
    """(the loss, the sum of the weights of the classes that count, which a mean is divided by)."""
    call = lookup("nn.functional", "nll_loss")
    loss = call(self, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])
    if reduction == 0:
        return loss, self.new_zeros(())
    counted = target != ignore_index
    each = self.new_ones(()) if weight is None else weight[lookup("torch", "where")(counted, target, 0)]
    return loss, (each * counted).sum().to(self.dtype)


def _nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    def call(x):
        return lookup("nn.functional", "nll_loss")(
            x, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction]
        )

    return by_tape(call, (self,), {}, [(0, None)], (grad_output,))


def _adaptive_mean_backward(grad_output, self, n):
    return _gradient(f"adaptive_avg_pool{n}d")(grad_output, self, tuple(grad_output.shape[-n:]))


_OF_ONE = (
    "avg_pool2d", "avg_pool3d", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "mish", "silu", "softplus", "softshrink",
)  # fmt: skip
BACKWARD = {
    **{f"{n}_backward": _gradient(n) for n in _OF_ONE},
    **{
        f"{n}_backward": _of(LOSSES[n])
        for n in ("binary_cross_entropy", "huber_loss", "smooth_l1_loss", "soft_margin_loss")
    },
    **{f"{n}_backward": _of(ORDERS[n]) for n in ORDERS if "_pad" in n},
    **{f"{n}_backward": _resampled_backward(*how) for n, how in RESAMPLED.items()},
    "_adaptive_avg_pool2d_backward": lambda grad_output, self: _adaptive_mean_backward(grad_output, self, 2),
    "_adaptive_avg_pool3d_backward": lambda grad_output, self: _adaptive_mean_backward(grad_output, self, 3),
    "log_sigmoid_backward": lambda grad_output, self, buffer: _gradient("logsigmoid")(grad_output, self),
    "sigmoid_backward": lambda grad_output, output: grad_output * (out := output.conj()) * (1 - out),
    "tanh_backward": lambda grad_output, output: grad_output * (1 - (out := output.conj()) * out),
    "threshold_backward": _threshold_backward,
    "leaky_relu_backward": _leaky_relu_backward,
    "elu_backward": _elu_backward,
    "hardtanh_backward": _hardtanh_backward,
    "embedding_dense_backward": _embedding_dense_backward,
    "select_backward": _select_backward,
    "slice_backward": _slice_backward,
    "mse_loss_backward": _mse_loss_backward,
    "nll_loss_forward": _nll_loss_forward,
    "nll_loss_backward": _nll_loss_backward,
    "native_layer_norm_backward": _native_layer_norm_backward,
    "convolution_backward": _convolution_backward,
}
