"""Functions named after vendors' libraries, computed by XLA like their public counterparts: flags that choose a kernel are taken and unused."""

from .autograd import entry
from .core import dtype as dtypes
from .functions import lookup
from .nn import functional as F

__all__ = [
    "cudnn_affine_grid_generator", "cudnn_batch_norm", "cudnn_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_relu",
    "cudnn_convolution_transpose", "cudnn_grid_sampler", "cudnn_is_acceptable", "miopen_batch_norm", "miopen_convolution",
    "miopen_convolution_add_relu", "miopen_convolution_relu", "miopen_convolution_transpose", "miopen_ctc_loss",
    "miopen_depthwise_convolution", "miopen_rnn", "mkldnn_adaptive_avg_pool2d", "mkldnn_convolution", "mkldnn_linear_backward_weights",
    "mkldnn_max_pool2d", "mkldnn_max_pool3d", "mkldnn_rnn_layer", "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
]  # fmt: skip


def _convolution(input, weight, bias, padding, stride, dilation, groups, output_padding=None):
    transposed, none = output_padding is not None, [0] * (weight.dim() - 2)
    call = lookup("torch", "convolution")
    return call(input, weight, bias, stride, padding, dilation, transposed, output_padding or none, groups)


def cudnn_convolution(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32):
    """torch.convolution without a bias."""
    return _convolution(self, weight, None, padding, stride, dilation, groups)


def cudnn_convolution_transpose(
    self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, allow_tf32
):
    """The transposed torch.convolution without a bias."""
    return _convolution(self, weight, None, padding, stride, dilation, groups, output_padding)


def cudnn_convolution_relu(self, weight, bias, stride, padding, dilation, groups):
    """relu(torch.convolution(self, weight, bias, ...))."""
    return F.relu(_convolution(self, weight, bias, padding, stride, dilation, groups))


def cudnn_convolution_add_relu(self, weight, z, alpha, bias, stride, padding, dilation, groups):
    """relu(torch.convolution(self, weight, bias, ...) + alpha * z); alpha None is 1."""
    out = _convolution(self, weight, bias, padding, stride, dilation, groups)
    return F.relu(out + (1 if alpha is None else alpha) * z)


miopen_convolution_relu, miopen_convolution_add_relu = cudnn_convolution_relu, cudnn_convolution_add_relu


def mkldnn_convolution(self, weight, bias, padding, stride, dilation, groups):
    """torch.convolution."""
    return _convolution(self, weight, bias, padding, stride, dilation, groups)


def miopen_convolution(self, weight, bias, padding, stride, dilation, groups, benchmark, deterministic):
    """torch.convolution."""
    return _convolution(self, weight, bias, padding, stride, dilation, groups)


miopen_depthwise_convolution = miopen_convolution


def miopen_convolution_transpose(
    self, weight, bias, padding, output_padding, stride, dilation, groups, benchmark, deterministic
):
    """The transposed torch.convolution."""
    return _convolution(self, weight, bias, padding, stride, dilation, groups, output_padding)


def miopen_batch_norm(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon):
    """(batch norm of the input, mean, 1 / standard deviation): torch.native_batch_norm."""
    call = lookup("torch", "native_batch_norm")
    return call(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon)


def cudnn_batch_norm(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon):
    """miopen_batch_norm, and an empty tensor in the place of cuDNN's reserve."""
    found = miopen_batch_norm(
        input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
    )
    return (*found, _no_bytes(input))


def _no_bytes(like):
    return like.new_empty((0,), dtype=dtypes.uint8)


def cudnn_affine_grid_generator(theta, N, C, H, W):
    """F.affine_grid(theta, (N, C, H, W), align_corners=True)."""
    return F.affine_grid(theta, (N, C, H, W), align_corners=True)


def cudnn_grid_sampler(self, grid):
    """F.grid_sample(self, grid, align_corners=True)."""
    return F.grid_sample(self, grid, mode="bilinear", padding_mode="zeros", align_corners=True)


def cudnn_is_acceptable(self) -> bool:
    """False: there is no cuDNN in use of which a program could ask."""
    return False


def miopen_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, deterministic, zero_infinity):
    """(the loss of each sequence, its derivative by `log_probs`)."""
    from_ = log_probs.detach().requires_grad_()
    loss = F.ctc_loss(from_, targets, input_lengths, target_lengths, blank, "none", zero_infinity)
    (gradient,) = entry.grad(loss.sum(), from_)
    taped = F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, "none", zero_infinity)
    return taped, gradient


_RNN = ("rnn_relu", "rnn_tanh", "lstm", "gru")


def miopen_rnn(
    input, weight, weight_stride0, hx, cx, mode, hidden_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes,
    dropout_state,
):  # fmt: skip
    """torch.rnn_relu, rnn_tanh, lstm or gru (mode 0 to 3): (output, hx, cx, and two empty tensors, the library's own).

    weight: the parameters of all layers, `weight_stride0` each; batch_sizes: empty, or those of a packed sequence.
    """
    call, state = lookup("torch", _RNN[mode]), (hx, cx) if mode == 2 else hx
    biased = weight_stride0 == 4
    if batch_sizes:
        sizes = hx.new_tensor(batch_sizes, dtype=dtypes.int64)
        found = call(input, sizes, state, weight, biased, num_layers, dropout, train, bidirectional)
    else:
        found = call(input, state, weight, biased, num_layers, dropout, train, bidirectional, batch_first)
    cell = found[2] if mode == 2 else input.new_empty((0,))
    return found[0], found[1], cell, _no_bytes(input), _no_bytes(input)


def mkldnn_rnn_layer(
    input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
    batch_first, train,
):  # fmt: skip
    """One layer of an LSTM in one direction (mode 2): (output, hx, cx, an empty tensor in the place of the workspace).

    reverse: from the last step to the first. input (time, batch, features).
    """
    x = input.flip(0) if reverse else input
    weights = [weight0, weight1, weight2, weight3] if has_biases else [weight0, weight1]
    state = tuple(s.reshape(1, *s.shape[-2:]) for s in (hx_, cx_))
    out, h, c = lookup("torch", "lstm")(x, state, weights, has_biases, 1, 0.0, train, False, False)
    return out.flip(0) if reverse else out, h.reshape(hx_.shape), c.reshape(cx_.shape), _no_bytes(input)


def mkldnn_linear_backward_weights(grad_output, input, weight, bias_defined):
    """The gradients of F.linear by weight and bias; of a bias that is not there, an empty tensor."""
    grad, x = grad_output.reshape(-1, weight.shape[0]), input.reshape(-1, weight.shape[1])
    return grad.T @ x, grad.sum(0) if bias_defined else grad.new_empty((0,))


def mkldnn_adaptive_avg_pool2d(self, output_size):
    """F.adaptive_avg_pool2d."""
    return F.adaptive_avg_pool2d(self, output_size)


def mkldnn_max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """F.max_pool2d."""
    return F.max_pool2d(self, kernel_size, stride or None, padding, dilation, ceil_mode)


def mkldnn_max_pool3d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """F.max_pool3d."""
    return F.max_pool3d(self, kernel_size, stride or None, padding, dilation, ceil_mode)


def profiler_allow_cudagraph_cupti_lazy_reinit_cuda12() -> bool:
    """True, PyTorch's default: profiling and CUDA's graphs do not meet here."""
    return True
