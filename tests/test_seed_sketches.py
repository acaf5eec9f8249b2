"""Sketches of documents about PyTorch, of its own entry points and classes: with the import swapped they run and print the same."""

import pytest

from tests.oracle import both

PROGRAMS = {
    "entry points": """
import torch
from typing import List
x = torch.tensor([1., 2.], requires_grad=True)
torch.autograd.backward(((x ** 2).sum(), x * 3), (None, torch.ones(2)), inputs=[x])
print(x.grad, torch.jit.annotate(List[int], []))
class Sub(torch.Tensor):
    pass
s = torch.Tensor._make_subclass(Sub, torch.ones(2), True)
def make_subclass(cls, data, requires_grad=False, **kwargs):
    with torch._C.DisableTorchFunctionSubclass():
        data = data.detach()
        if data.requires_grad != requires_grad:
            data.requires_grad = requires_grad
        if cls is torch.Tensor:
            return torch.Tensor(data)
        return data.as_subclass(cls)
t = make_subclass(Sub, torch.ones(3), True)
print(type(s).__name__, s.requires_grad, type(t).__name__, t.requires_grad, type(make_subclass(torch.Tensor, torch.ones(1))).__name__)
del s, t
""",
    "a module from dictionaries": """
import torch
from torch.nn import Parameter
class Module:
    def __init__(self):
        for name in ("_parameters", "_modules", "_forward_pre_hooks", "_forward_hooks", "_backward_hooks"):
            object.__setattr__(self, name, {})
    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._modules[name] = value
        else:
            object.__setattr__(self, name, value)
    def __getattr__(self, name):
        return self.__dict__["_parameters"][name]
    def __call__(self, *input, **kwargs):
        for hook in self._forward_pre_hooks.values():
            result = hook(self, input)
            if result is not None:
                input = result
        result = self.forward(*input, **kwargs)
        for hook in self._forward_hooks.values():
            hook_result = hook(self, input, result)
            if hook_result is not None:
                result = hook_result
        var = result
        while not isinstance(var, torch.Tensor):
            var = var[0]
        for hook in self._backward_hooks.values():
            var.grad_fn.register_hook(hook)
        return result
class Layer(Module):
    def __init__(self):
        super().__init__()
        self.w, self.k = Parameter(torch.ones(2, 2)), 3
    def forward(self, x):
        return (x @ self.w,)
layer = Layer()
layer._forward_pre_hooks[0] = lambda m, i: (i[0] * 2,)
layer._forward_hooks[0] = lambda m, i, o: (o[0] + 1,)
layer._backward_hooks[0] = lambda gi, go: print("backward", [g is None for g in gi], [g.shape for g in go])
r = layer(torch.ones(1, 2))
print(r, list(layer._parameters), layer.k)
r[0].sum().backward()
grad = layer.w.grad
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_sketches_print_the_same(name):
    both(PROGRAMS[name], least=(1e-4, 1e-5))
