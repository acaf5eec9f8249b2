"""GradScaler: scale the loss so that float16 gradients do not vanish, and skip the steps in which they overflow."""

import collections
import enum

from .. import errors, functions
from ..core import device as devices
from ..tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """What has been done with an optimizer's gradients since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict:
    """What is known of an optimizer before its step: trainers look into it, by these names."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses by a factor that grows while gradients stay finite and shrinks when they do not.

    Args:
        device: the device type of the training. Default: "cuda"
        init_scale: the first scale. Default: 2.0**16
        growth_factor: what it is multiplied by after `growth_interval` finite steps. Default: 2.0
        backoff_factor: what it is multiplied by after a step with infinite or nan gradients. Default: 0.5
        growth_interval: how many finite steps in a row. Default: 2000
        enabled: False makes every method pass its argument through. Default: True
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and devices.accelerator() is None:
            errors.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._scale = None
        self._per_optimizer_states = collections.defaultdict(_refresh_per_optimizer_state)

    def _of(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]

    def _scale_on(self, device):
        if self._scale is None:
            self._scale = functions.tensor(self._init_scale, device=device)
        return self._scale.to(device)

    def scale(self, outputs):
        """The losses (a tensor, or iterables of tensors) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, (list, tuple)):
            scaled = [self.scale(x) for x in outputs]
            return type(outputs)(*scaled) if hasattr(outputs, "_fields") else type(outputs)(scaled)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip or look at them before `step`."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        state = self._of(optimizer)
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._unscale(optimizer, state)
        state["stage"] = OptState.UNSCALED

    def _unscale(self, optimizer, state):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if not optimizer.param_groups[0].get("fused") and any(g.dtype is functions.float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        inverse = 1.0 / self._scale
        finite = None
        with functions.no_grad():
            for g in grads:
                here = functions.isfinite(g._values() if g.is_sparse else g).all()
                finite = here if finite is None else finite & here.to(finite.device)
                g.mul_(inverse.to(g.device))
        state["found_inf_per_device"] = {} if finite is None else {finite.device: (~finite).float()}

    def step(self, optimizer, *args, **kwargs):
        """Unscale if that has not been done, and call `optimizer.step` unless a gradient is infinite or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        state = self._of(optimizer)
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self._unscale(optimizer, state)
        found = state["found_inf_per_device"].values()
        if not found:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if any(map(bool, found)) else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale=None) -> None:
        """Change the scale for the next step; call it once a step, after all `step`s."""
        if not self._enabled:
            return
        self._check_scale("update")
        if new_scale is not None:
            self._replace_scale(new_scale)
        else:
            found = [f for s in self._per_optimizer_states.values() for f in s["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            self._adapt(any(bool(f) for f in found))
        self._per_optimizer_states = collections.defaultdict(_refresh_per_optimizer_state)

    def _replace_scale(self, new):
        if isinstance(new, Tensor):
            if new.device.type != self._scale.device.type or new.numel() != 1 or new.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            self._scale.copy_(new)
        else:
            self._scale = functions.tensor(float(new), device=self._scale.device)

    def _adapt(self, overflowed):
        if overflowed:
            self._scale = self._scale * self._backoff_factor
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = self._scale * self._growth_factor
            if functions.isfinite(grown):  # it stays where it is at the end of float32
                self._scale = grown
            self._growth_tracker = 0

    def _found_inf_per_device(self, optimizer) -> dict:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _check_scale(self, name):
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                "earlier in the iteration."
            )

    def get_scale(self) -> float:
        """The scale, or 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict:
        """What a checkpoint needs; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def __getstate__(self):
        if self._enabled and self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        return self.__dict__.copy()

    def load_state_dict(self, state_dict) -> None:
        """Take over the state of another scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = functions.tensor(self._init_scale, device=self._scale.device)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
