"""Automatic differentiation twice: a micro-engine of scalars written here, and the tape of the library beside it.

    python examples/autograd_from_scratch.py

Both compute the same network with the same weights; the gradients are compared, and the graph is drawn.
"""

import math

import jtorch as torch


class Scalar:
    """A number that remembers what it was computed from."""

    def __init__(self, value, parents=(), name=""):
        self.value = float(value)
        self.grad = 0.0
        self.parents = parents  # (parent, local derivative)
        self.name = name

    def __add__(self, other):
        other = lifted(other)
        return Scalar(self.value + other.value, ((self, 1.0), (other, 1.0)), "+")

    def __mul__(self, other):
        other = lifted(other)
        return Scalar(self.value * other.value, ((self, other.value), (other, self.value)), "*")

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -lifted(other)

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.value)
        return Scalar(t, ((self, 1 - t * t),), "tanh")

    def backward(self):
        """The chain rule, once through the graph, results before what they were computed from."""
        order, seen, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(parent, False) for parent, _ in node.parents]
        self.grad = 1.0
        for node in reversed(order):
            for parent, slope in node.parents:
                parent.grad += slope * node.grad

    def draw(self, depth=0):
        label = self.name or "number"
        print("  " * depth + f"{label:<6} value {self.value:+.4f}  grad {self.grad:+.4f}")
        for parent, _ in self.parents:
            parent.draw(depth + 1)


def lifted(x):
    return x if isinstance(x, Scalar) else Scalar(x)


def loss(weights, points, tanh):
    """The squared error of a tiny network, on whatever kind of number it gets."""
    a, b, c, d = weights
    total = 0.0
    for x, y in points:
        hidden = tanh(a * x + b)
        error = c * hidden + d - y
        total = total + error * error
    return total


def main():
    values = {"a": 0.5, "b": -0.3, "c": 1.2, "d": 0.1}
    points = [(-1.0, 0.2), (0.0, 0.4), (1.0, -0.6)]

    ours = {k: Scalar(v, name=k) for k, v in values.items()}
    mine = loss(list(ours.values()), points, Scalar.tanh)
    mine.backward()

    tensors = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in values.items()}
    theirs = loss(list(tensors.values()), points, torch.tanh)
    theirs.backward()

    print(f"loss    from scratch {mine.value:.12f}   tape {theirs.item():.12f}")
    worst = 0.0
    for k in values:
        got, want = ours[k].grad, tensors[k].grad.item()
        worst = max(worst, abs(got - want))
        print(f"d/d{k}    from scratch {got:+.12f}  tape {want:+.12f}")
    print(f"largest difference {worst:.1e}")

    print("\nfrom scratch, one point:")
    small = {k: Scalar(v, name=k) for k, v in values.items()}
    one = loss(list(small.values()), points[:1], Scalar.tanh)
    one.backward()
    one.draw()

    print("\nthe tape, one point:")
    show(loss(list(tensors.values()), points[:1], torch.tanh).grad_fn, {id(t): k for k, t in tensors.items()})


def show(function, names, depth=0):
    """The tape as it shows itself: grad_fn and next_functions."""
    leaf = getattr(function, "variable", None)
    print("  " * depth + (names[id(leaf)] if leaf is not None else type(function).__name__))
    for following, _ in function.next_functions:
        if following is not None:
            show(following, names, depth + 1)


if __name__ == "__main__":
    main()
