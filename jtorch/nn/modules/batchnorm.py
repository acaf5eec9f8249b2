"""Batch and instance normalisation: layers with running statistics."""

import warnings

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core import dtype as dtypes
from jtorch.nn import functional as F
from jtorch.nn import init
from jtorch.nn.modules import synchronised
from jtorch.nn.modules.lazy import LazyModuleMixin
from jtorch.nn.modules.module import Module, weight_and_bias
from jtorch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Affine parameters and running statistics, one number for each channel."""

    _version = 2  # 2: num_batches_tracked is part of the state

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(torch.empty(num_features, **factory))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(torch.empty(num_features, **factory))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", torch.zeros(num_features, **factory))
            self.register_buffer("running_var", torch.ones(num_features, **factory))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=dtypes.int64, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forget the statistics seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Weight one, bias zero, no statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                tracked = self.num_batches_tracked
                known = tracked is not None and tracked.device.type != "meta"
                state_dict[key] = tracked if known else torch.tensor(0, dtype=dtypes.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    """Normalises each channel over batch and space."""

    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        buffers = self._buffers
        mean, var, tracked = buffers["running_mean"], buffers["running_var"], buffers["num_batches_tracked"]
        if self.training and self.track_running_stats and tracked is not None:
            tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                factor = 1.0 / float(tracked)
        use_batch = self.training or (mean is None and var is None)
        if self.training and not self.track_running_stats:
            mean = var = None
        return self._normalise(input, mean, var, use_batch, factor)

    def _normalise(self, input, mean, var, use_batch, factor):
        return F.batch_norm(input, mean, var, *weight_and_bias(self), use_batch, factor, self.eps)


def _expect_dims(input, *allowed):
    if input.dim() not in allowed:
        expected = " or ".join(f"{n}D" for n in allowed)
        raise ValueError(f"expected {expected} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L).

    Args:
        num_features: number of channels C
        eps: added to the variance. Default: 1e-5
        momentum: weight of the new batch in the running statistics; None: the mean of all. Default: 0.1
        affine: learn a weight and a bias. Default: True
        track_running_stats: keep statistics for evaluation. Default: True
        bias: learn a bias, if affine. Default: True
    """

    def _check_input_dim(self, input):
        _expect_dims(input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W); arguments as BatchNorm1d."""

    def _check_input_dim(self, input):
        _expect_dims(input, 4)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W); arguments as BatchNorm1d."""

    def _check_input_dim(self, input):
        _expect_dims(input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes, and of all devices of a process, as every one is here: a program sees
    the whole batch.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _normalise(self, input, mean, var, use_batch, factor):
        group = synchronised.group_of_several(self.process_group) if use_batch and self.training else None
        if group is None:
            return super()._normalise(input, mean, var, use_batch, factor)
        return synchronised.batch_norm(input, mean, var, *weight_and_bias(self), factor, self.eps, group)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every batch normalisation in it replaced by a SyncBatchNorm with the same state."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                with no_grad():
                    result.weight = module.weight
                    result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    """Normalises each channel of each sample over space."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self):
        raise NotImplementedError

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # Before version 2 running statistics were saved whether they were wanted or not.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            names = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if names:
                quoted = " and ".join(f'"{k}"' for k in names)
                klass = self.__class__.__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {quoted} for {klass} with track_running_stats=False. "
                    "If state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{klass} does not track running stats by default since 0.4.0. "
                    f"Please remove these keys from state_dict. If the running stats are actually needed, "
                    f"instead set track_running_stats=True in {klass} to enable them. "
                    f"See the documentation of {klass} for details."
                )
                for key in names:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input):
        self._check_input_dim(input)
        unbatched = self._get_no_batch_dim()
        dim = input.dim() - unbatched
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features"
                    f" ({self.num_features}), but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. "
                "You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == unbatched:
            return self._normalise(input.unsqueeze(0)).squeeze(0)
        return self._normalise(input)

    def _normalise(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L).

    Args:
        num_features: number of channels C
        eps: added to the variance. Default: 1e-5
        momentum: weight of the new batch in the running statistics. Default: 0.1
        affine: learn a weight and a bias. Default: False
        track_running_stats: keep statistics for evaluation. Default: False
    """

    def _get_no_batch_dim(self):
        return 2

    def _check_input_dim(self, input):
        _expect_dims(input, 2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W); arguments as InstanceNorm1d."""

    def _get_no_batch_dim(self):
        return 3

    def _check_input_dim(self, input):
        _expect_dims(input, 3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W); arguments as InstanceNorm1d."""

    def _get_no_batch_dim(self):
        return 4

    def _check_input_dim(self, input):
        _expect_dims(input, 4, 5)


class _LazyNorm(LazyModuleMixin):
    """A normalisation whose `num_features` is the number of channels of its first input."""

    def __init__(
        self,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        factory = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **factory)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = torch.tensor(0, dtype=dtypes.int64, device=device)

    def reset_parameters(self):
        """Weight one, bias zero, no statistics, once there are any."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        for value in (self.weight, self.bias, self.running_mean, self.running_var):
            if value is not None:
                value.materialize((self.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that finds `num_features` at its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that finds `num_features` at its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that finds `num_features` at its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An InstanceNorm1d that finds `num_features` at its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An InstanceNorm2d that finds `num_features` at its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An InstanceNorm3d that finds `num_features` at its first input."""

    cls_to_become = InstanceNorm3d
