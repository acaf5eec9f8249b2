"""torch.batch_norm_*: batch normalisation in steps, as synchronised batch norm puts it together. Channels are dimension 1."""

from . import functions as torch

__all__ = [
    "batch_norm_backward_elemt", "batch_norm_backward_reduce", "batch_norm_elemt", "batch_norm_gather_stats",
    "batch_norm_gather_stats_with_counts", "batch_norm_stats", "batch_norm_update_stats",
]  # fmt: skip


def _rest(input):
    return [d for d in range(input.ndim) if d != 1]


def _wide(x, input):
    """A value for each channel, shaped to go with `input`."""
    return x.reshape([1, -1] + [1] * (input.ndim - 2))


def batch_norm_stats(input, eps):
    """(mean, 1 / sqrt(variance + eps)) of each channel."""
    mean = input.mean(_rest(input))
    return mean, torch.rsqrt(input.var(_rest(input), correction=0) + eps)


def batch_norm_update_stats(input, running_mean, running_var, momentum):
    """(mean, variance) of each channel; moves the running statistics towards them."""
    if 0 in input.shape:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(input.shape)}")
    n = input.numel() // input.shape[1]
    mean, var = input.mean(_rest(input)), input.var(_rest(input), correction=0)
    with torch.no_grad():
        _move(running_mean, mean, momentum)
        _move(running_var, var * (n / max(n - 1, 1)), momentum)
    return mean, var


def _move(running, value, momentum):
    if running is not None:
        running.copy_((1 - momentum) * running + momentum * value)


def batch_norm_elemt(input, weight, bias, mean, invstd, eps, *, out=None):
    """(input - mean) * invstd * weight + bias."""
    result = (input - _wide(mean, input)) * _wide(invstd, input)
    result = result if weight is None else result * _wide(weight, input)
    result = result if bias is None else result + _wide(bias, input)
    return result if out is None else out.copy_(result)


def batch_norm_gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, count):
    """The statistics of several batches of `count` values a channel, given as rows, as one: (mean, invstd)."""
    counts = torch.full((mean.shape[0],), float(count), dtype=mean.dtype)
    return batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    """batch_norm_gather_stats of batches of different sizes."""
    counts = counts.to(mean.dtype).reshape(-1, 1)
    total = counts.sum()
    together = (mean * counts).sum(0) / total
    var = ((invstd**-2 - eps + (mean - together) ** 2) * counts).sum(0) / total
    with torch.no_grad():
        _move(running_mean, together, momentum)
        _move(running_var, var * (total / (total - 1)), momentum)
    return together, torch.rsqrt(var + eps)


def batch_norm_backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    """(sum of dy, sum of dy * (x - mean), gradient of weight, gradient of bias); None for what is not asked for."""
    over = _rest(input)
    sum_dy = grad_out.sum(over)
    sum_dy_xmu = (grad_out * (input - _wide(mean, input))).sum(over)
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        sum_dy_xmu * invstd if weight_g else None,
        sum_dy if bias_g else None,
    )


def batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    """The gradient of the input, from the sums over all batches and their sizes."""
    n = count.sum().to(grad_out.dtype)
    centred = (input - _wide(mean, input)) * _wide(invstd**2 * sum_dy_xmu / n, input)
    scale = invstd if weight is None else invstd * weight
    return (grad_out - _wide(sum_dy / n, input) - centred) * _wide(scale, input)
