"""What a call of a compiled function leaves behind: each later call leaves it too."""

import collections
import copy

import numpy as np
import pytest

import jtorch
from tests.oracle import torch


def extended(made, augment):
    def function(t, compiler):
        kept = made()

        def region(x):
            mine = kept
            mine = augment(mine)
            return x + 1

        def called(x, given):
            given = augment(given)
            return x + 1

        compiled, other, given = compiler(region), compiler(called), [made() for _ in range(5)]
        for one in given:
            compiled(t.ones(3))
            other(t.ones(3), one)
        return list(map(list, (kept, *given)))

    return function


def add(mine):
    mine += [1]
    return mine


def double(mine):
    mine *= 2
    return mine


def join(mine):
    mine |= {len(mine): 1}
    return mine


def unite(mine):
    mine |= {len(mine)}
    return mine


def doubled_by_name(mine):
    return mine.__imul__(2)


def written(mine):
    np.add(mine, 1, out=mine)
    return mine


def copied(mine):
    np.copyto(mine, mine + 1)
    return mine


def same_list(t, compiler):
    compiled, kept, given = compiler(lambda x, given: (x + 1, given, kept)), [1.0], [2.0]
    found = [compiled(t.ones(4), given) for _ in range(4)]
    return [(one is given, other is kept) for _, one, other in found]


def one_list_twice(t, compiler):
    def region(x):
        made = [x + 1]
        return made, made, {"a": made}

    found = [compiler(region)(t.ones(5)) for _ in range(4)]
    return [(a is b, a is c["a"]) for a, b, c in found]


def detached(t, compiler):
    def region(x):
        y = x + 1
        return y, y.detach(), y

    compiled = compiler(region)
    found = [compiled(t.ones(6)) for _ in range(4)]
    for one, _, _ in found:
        one.requires_grad_()
    return [(a is b, a is c, b.requires_grad) for a, b, c in found]


def grad_mode(t, compiler):
    def region(x):
        t.set_grad_enabled(False)
        return x + 1

    compiled, found = compiler(region), []
    for _ in range(4):
        with t.enable_grad():
            compiled(t.ones(7))
            found.append(t.is_grad_enabled())
    return found


def hook(t, compiler):
    weight, called = t.ones(8, requires_grad=True), []
    further = weight * 1

    def region(x):
        weight.register_hook(lambda grad: called.append(1))
        further.register_hook(lambda grad: called.append(2))
        return x + 1

    compiled = compiler(region)
    for _ in range(4):
        compiled(t.ones(8))
    (weight * further).sum().backward()
    return sorted(called)


def of_inference(t, compiler):
    @t.inference_mode()
    def region(x):
        return x + 1, x

    return [(a.is_inference(), b.is_inference()) for a, b in map(compiler(region), [t.ones(9)] * 4)]


def gradients_of_arguments(t, compiler):
    """As a program's own optimizer, for parameters of one shape."""

    def update(p, rate):
        with t.no_grad():
            p.add_(p.grad, alpha=-rate)
            p.grad.zero_()

    compiled, given = compiler(update), [t.nn.Parameter(t.ones(10)) for _ in range(3)]
    for k in range(5):
        for n, p in enumerate(given):
            p.grad = t.full((10,), 1.0 + n + k)
            compiled(p, 0.5)
    return [(p.tolist(), p.grad.tolist()) for p in given]


def one_argument_twice(t, compiler):
    compiled, x = compiler(lambda x, y: (x.mul_(2), y)), t.ones(3)
    found = []
    for other in (x, x, x, x.detach(), x.detach(), x):
        first, second = compiled(x, other)
        found.append((first is x, second is other, x.tolist()))
    return found


def copies(t, compiler):
    module = t.nn.Linear(3, 2)
    compiled, x = compiler(module), t.ones(3)
    with t.no_grad():
        module.weight.fill_(1.0)
        for _ in range(4):
            compiled(x)
        copied = copy.deepcopy(compiled)
        module.weight.zero_()
        module.bias.fill_(2.0)
        copied.bias.fill_(3.0)
        return [compiled(x).tolist() for _ in range(4)] + [
            (copied(x) - copied.weight.sum(1)).tolist() for _ in range(4)
        ]


LEFT = {
    "a mode of inference": of_inference,
    "gradients of arguments": gradients_of_arguments,
    "a copy": copies,
    "one argument twice": one_argument_twice,
    "+= of a list": extended(lambda: [0], add),
    "+= of a deque": extended(collections.deque, add),
    "*= of a list": extended(lambda: [0, 1], double),
    "|= of a dict": extended(dict, join),
    "|= of a set": extended(set, unite),
    "+= of an array": extended(lambda: np.zeros(2), add),
    "a method by its name": extended(lambda: [0, 1], doubled_by_name),
    "an array as out=": extended(lambda: np.zeros(2), written),
    "an array copied to": extended(lambda: np.zeros(2), copied),
    "the same list": same_list,
    "one list twice": one_list_twice,
    "a detached result": detached,
    "a mode": grad_mode,
    "a hook": hook,
}


@pytest.mark.parametrize("name", LEFT)
def test_what_a_region_leaves_behind(name):
    run = LEFT[name]
    assert run(jtorch, jtorch.compile) == run(torch, lambda f: f)
