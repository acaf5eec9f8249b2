"""Backward hooks of modules: what they are given, what they may give back, and what is refused."""

import warnings

import pytest

from tests.oracle import both

RETURNS = {
    "one number": lambda given: 3,
    "doubled": lambda given: (given[0] * 2,),
    "not in a tuple": lambda given: given[0] * 2,
    "nothing": lambda given: (),
    "too many": lambda given: given + given,
    "none": lambda given: (None,),
    "list": lambda given: [given[0]],
    "another size": lambda given: (given[0].new_ones(5),),
    "another dtype": lambda given: (given[0].double(),),
    "no tensor": lambda given: (3,),
}


@pytest.mark.parametrize("name", RETURNS)
@pytest.mark.parametrize("kind", ["full", "pre", "legacy"])
def test_what_a_hook_returns(kind, name):
    def program(torch):
        layer = torch.nn.Sigmoid()
        if kind == "full":
            layer.register_full_backward_hook(lambda m, grad_input, grad_output: RETURNS[name](grad_input))
        elif kind == "pre":
            layer.register_full_backward_pre_hook(lambda m, grad_output: RETURNS[name](grad_output))
        else:
            layer.register_backward_hook(lambda m, grad_input, grad_output: RETURNS[name](grad_input))
        x = torch.ones(2, 3, requires_grad=True)
        layer(x).sum().backward()
        return x.grad

    both(program, layout=False)


def test_tensors_without_gradient():
    """What is passed beside a tensor with a gradient keeps having none; gradients that are missing at the inputs are zeros."""

    def program(torch):
        seen = []

        class Layer(torch.nn.Module):
            def forward(self, a, b, c):
                return a * 2, b + 1, a + b, c * 1

        layer = Layer()
        layer.register_full_backward_hook(lambda m, grad_input, grad_output: seen.append((grad_input, grad_output)))
        a, b, c = torch.ones(2, requires_grad=True), torch.ones(2), torch.ones(2, requires_grad=True)
        results = layer(a, b, c)
        results[0].sum().backward()
        return [r.requires_grad for r in results], seen, a.grad, c.grad

    both(program, layout=False)


def test_no_input_with_gradient():
    def program(torch):
        seen = []
        layer = torch.nn.Linear(2, 2)
        layer.register_full_backward_hook(lambda *given: seen.append(given[1:]))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer(torch.ones(1, 2)).sum().backward()
        return [(str(w.message), w.category.__name__) for w in caught], seen

    both(program, layout=False)


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_hooks_of_modules_under_vmap(register):
    """PyTorch's tensors there require no gradients, and the hooks are not heard of."""

    def program(torch):
        layer, seen = torch.nn.Linear(2, 3), []
        torch.nn.init.ones_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
        getattr(layer, register)(lambda *given: seen.append(len(given)))
        x = torch.ones(4, 2, requires_grad=True)
        out = torch.func.vmap(layer)(x)
        out.sum().backward()
        return out.detach(), x.grad, layer.weight.grad, seen

    both(program)


def test_the_first_call_of_a_lazy_module_is_its_own():
    """The hook that gives it another class has run by then."""

    def program(torch):
        class Lazy(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
            cls_to_become = torch.nn.Identity

            def initialize_parameters(self, x, scale):
                pass

            def forward(self, x, scale):
                return x * scale

        layer = Lazy()
        return layer(torch.ones(2), scale=3), layer(torch.ones(2)), type(layer).__name__

    both(program)
