"""torch.utils.module_tracker: which modules run now, by name, in forward and in backward."""

import weakref

from ..autograd import engine
from ..autograd.graph import register_multi_grad_hook
from ..autograd.levels import levels
from ..core.record import tls
from ..nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..tensor import Tensor
from ._pytree import tree_leaves


class ModuleTracker:
    """Context in which `parents` is the set of names of the modules that run at the moment, "Global" always among them.

    A name is the class of the outermost module seen and the path from there: "Net.layers.0". In a backward pass a module is
    there from the gradient of its result to the gradient of its input; one whose input needs no gradient stays to the end.
    """

    def __init__(self):
        self.parents = {"Global"}
        self._names = weakref.WeakKeyDictionary()
        self._walked = weakref.WeakSet()
        self._handles = []
        self._waiting = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        return "run" in tls.me.extra

    def __enter__(self):
        self._handles += [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        ]
        return self

    def __exit__(self, *exc):
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _name(self, module):
        name = self._names.setdefault(module, type(module).__name__)
        if module not in self._walked:
            self._walked.add(module)
            for child, below in module.named_children():
                self._names[below] = f"{name}.{child}"
                self._name(below)
        return name

    def _before(self, module, args):
        name = self._name(module)
        self.parents.add(name)
        self._at_gradients(args, lambda grads: self.parents.discard(name))

    def _after(self, module, args, result):
        name = self._name(module)
        self.parents.discard(name)
        self._at_gradients(result, lambda grads: self._enter_backward(name))

    def _at_gradients(self, values, call):
        if "lanes" in tls.me.extra or any(
            here.kind == "vmap" for here in levels()[-1:]
        ):  # a vmap's tensors have no hooks
            return
        tensors = [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, call))

    def _enter_backward(self, name):
        if not self._waiting:
            self._waiting = True
            engine.queue_callback(self._end_backward)
        self.parents.add(name)

    def _end_backward(self):
        self.parents = {"Global"}
        self._waiting = False


__all__ = ["ModuleTracker"]
