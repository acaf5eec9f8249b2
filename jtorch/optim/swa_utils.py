"""Averages of models over training: SWA and EMA, their schedule, and fresh batch-norm statistics."""

import itertools
import math
import warnings
from copy import deepcopy

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core import dtype as dtypes
from jtorch.nn.modules.batchnorm import _BatchNorm
from jtorch.nn.modules.module import Module
from jtorch.optim.schedules.base import LRScheduler, per_group, value_of
from jtorch.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_avg_fn(decay=0.999):
    """A function (average, new, count) -> exponential moving average."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """A function (average, new, count) -> equal average."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """The exponential moving average of a list of tensors, in place."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list, current_param_list, _):
        for ema, new in zip(ema_param_list, current_param_list):
            if ema.is_floating_point() or ema.is_complex():
                ema.lerp_(new, 1 - decay)
            else:
                ema.copy_(ema * decay + new * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """The equal average of a list of tensors, in place."""

    @no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged):
        for average, new in zip(averaged_param_list, current_param_list):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(new, 1 / (num_averaged + 1))
            else:
                counted = isinstance(num_averaged, Tensor)  # integers are refused in either form
                more = new - average
                average.addcdiv_(more, num_averaged + 1) if counted else average.add_(
                    more, alpha=1 / (num_averaged + 1)
                )

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's.

    Args:
        model: the model; call `update_parameters(model)` after each step
        device: where the average is kept
        avg_fn, multi_avg_fn: how to average; one of them. Default: equally
        use_buffers: average the buffers too, instead of copying them
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=dtypes.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _values(self, module):
        if self.use_buffers:
            return list(itertools.chain(module.parameters(), module.buffers()))
        return list(module.parameters())

    def update_parameters(self, model):
        """Take the model's parameters into the average."""
        averages = [p.detach() for p in self._values(self.module)]
        news = [n.detach().to(a.device) for a, n in zip(averages, self._values(model))]
        if self.n_averaged == 0:
            for average, new in zip(averages, news):
                average.copy_(new)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, news, self.n_averaged.to(averages[0].device) if averages else 0)
        else:
            average_one = self.avg_fn if self.avg_fn is not None else get_swa_avg_fn()
            for average, new in zip(averages, news):
                average.copy_(average_one(average, new, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for mine, other in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(other.detach().to(mine.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Compute the statistics of all batch normalisations anew, from one pass over `loader`."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        if device is not None:
            batch = batch.to(device)
        model(batch)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Moves the rate to `swa_lr` in `anneal_epochs` steps and keeps it there.

    Args:
        optimizer: whose rates are written
        swa_lr: the rate to reach, a number or one for each group
        anneal_epochs: Default: 10
        anneal_strategy: "cos" or "linear"
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        for group, lr in zip(optimizer.param_groups, per_group(swa_lr, optimizer, "swa_lr")):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, t):
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        # the start of the move is found from where it is now
        step = self._step_count - 1
        epochs = max(1, self.anneal_epochs)
        if self.anneal_epochs == 0:
            step = max(1, step)
        before = self._share(max(0, min(1, (step - 1) / epochs)))
        now = self._share(max(0, min(1, step / epochs)))
        lrs = []
        for group in self.optimizer.param_groups:
            target, lr = group["swa_lr"], group["lr"]
            start = target if before == 1 else (lr - before * target) / (1 - before)
            lrs.append(target * now + start * (1 - now))
        return [value_of(lr) for lr in lrs]
