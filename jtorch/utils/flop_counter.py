"""torch.utils.flop_counter: counts the multiplications and additions of matrix products and convolutions, by op and by module.

Counts are of the products that PyTorch's op consists of, a backward pass's among them: `linear` counts as addmm or mm. What XLA
runs in the end may be less, as it drops what nobody reads.
"""

import functools
import warnings
from collections import defaultdict
from math import prod

from .. import aten
from ..autograd import engine
from ..core.lanes import Lane
from ..core.record import tls
from ..tensor import Tensor
from . import products
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_leaves, tree_map
from .module_tracker import ModuleTracker

flop_registry: dict = {}


def get_shape(value):
    """The shape of a tensor; anything else as it is."""
    return value.shape if isinstance(value, Tensor) else value


def shape_wrapper(formula):
    """A formula of shapes, as one of arguments and the result `out_val`."""

    @functools.wraps(formula)
    def of_values(*args, out_val=None, **kwargs):
        args, kwargs, out = tree_map(get_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)

    return of_values


def register_flop_formula(targets, get_raw=False):
    """Decorator: the function counts the operators `targets` (torch.ops.mine.op, or a list).

    It is called with the shapes of the arguments in the place of tensors, and `out_shape`; with `get_raw` with the arguments, and
    `out_val`. ValueError for what is no operator, RuntimeError for one that has a formula.
    """

    def register(formula):
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, aten.OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. torch.ops.mylib.foo), "
                    f"got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """Flops of a product of two matrices."""
    (m, k), (k2, n) = a_shape, b_shape
    assert k == k2
    return 2 * m * k * n


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Flops of a product of two matrices; the addition is not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten._scaled_mm)
def _scaled_mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs) -> int:
    """Flops of a product of two matrices of eight-bit floats."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Flops of a batch of matrix products."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs) -> int:
    """Flops of a batch of matrix products; the addition is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False) -> int:
    """Flops of a convolution: every weight meets every place of the result (of the input, where transposed) of every image."""
    return 2 * x_shape[0] * prod(w_shape) * prod((x_shape if transposed else out_shape)[2:])


@register_flop_formula(aten.convolution)
def conv_flop(
    x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs
) -> int:
    """Flops of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape, x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, _output_padding, _groups,
    output_mask, out_shape=None, **kwargs,
) -> int:  # fmt: skip
    """Flops of the gradients of a convolution. That of the weight is counted as if there were one group, as PyTorch does."""
    flops = 0
    if output_mask[0]:
        flops += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        places = (x_shape if transposed else grad_out_shape)[2:]
        flops += 2 * x_shape[0] * x_shape[1] * grad_out_shape[1] * prod(w_shape[2:]) * prod(places)
    return flops


class FlopCounterMode:
    """Context that counts flops: `with FlopCounterMode() as counter: model(x).sum().backward()`, and prints a table at its end.

    Args:
        mods: not needed any more
        depth: how many levels of modules the table shows; None for all
        display: whether to print the table
        custom_mapping: {operator: formula}, before the registered ones

    Counted as what PyTorch's CPU kernels are made of, with two exceptions that it does not count on the CPU: attention, as its
    products, and LSTM layers.
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode = None
        given = {k: f if getattr(f, "_get_raw", False) else shape_wrapper(f) for k, f in (custom_mapping or {}).items()}
        self.flop_registry = {**flop_registry, **given}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """The sum over everything that ran."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict:
        """{module's name, or "Global": {operator: flops}}."""
        return {name: dict(found) for name, found in self.flop_counts.items()}

    def get_table(self, depth=None) -> str:
        """The counts as text: a line a module and a line an operator in it, down to `depth` levels."""
        depth = (self.depth if depth is None else depth) or 999999
        total = self.get_total_flops()
        unit = max(0, min(len(_SUFFIXES) - 1, (len(str(total)) - 2) // 3))  # 1.01B is shown as 1010M
        rows = []
        names = [name for name in sorted(self.flop_counts) if name != "Global" and name.count(".") < depth]
        for name in names:
            rows += self._rows(name, name.count("."), total, unit)
        if total and not any(sum(self.flop_counts[name].values()) >= total for name in names):
            rows = self._rows("Global", 0, total, unit) + [(f" {first}", *rest) for first, *rest in rows]
        return _table(("Module", "FLOP", "% Total"), rows or [("Global", "0", "0%")])

    def _rows(self, name, level, total, unit):
        found = self.flop_counts[name]
        lines = [(name, sum(found.values())), *((f" - {op}", n) for op, n in found.items())]
        return [
            (
                " " * level + words,
                f"{n / 1000**unit:.3f}{_SUFFIXES[unit]}" if unit else str(n),
                f"{n / total:.2%}" if total else "0%",
            )
            for words, n in lines
        ]

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Mode(self)
        self.mode.__enter__()
        extra = tls.me.extra
        extra["flop_counters"] = (*extra.get("flop_counters", ()), self)
        extra["run_class"] = _Run
        return self

    def __exit__(self, *exc):
        extra = tls.me.extra
        extra["flop_counters"] = extra["flop_counters"][:-1]
        if not extra["flop_counters"]:
            del extra["flop_counters"], extra["run_class"]
        self.mode.__exit__(*exc)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, packet, args, kwargs, out, times=1):
        formula = self.flop_registry.get(packet)
        if formula is not None:
            flops = times * formula(*args, **kwargs, out_val=out)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][packet] += flops

    def _count_products(self, found, times=1):
        for name, shapes, out in found:
            self._count(getattr(aten, name), shapes, {}, out, times)


class _Mode(TorchDispatchMode):
    def __init__(self, counter):
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        made_of = products.FORWARD.get(packet.__name__.rstrip("_")) if packet.namespace == "aten" else None
        if packet in self.counter.flop_registry:
            sliced = [t._storage.value for t in args if isinstance(t, Tensor) and type(t._storage.value) is Lane]
            if packet is aten.mm and len(sliced) == 2:
                packet = aten.bmm
                args = [(1, *t.shape) for t in args]
            self.counter._count(packet, args, kwargs, out, _slices(sliced))
        elif made_of is not None:
            shapes, named, shape = tree_map(get_shape, (args, kwargs, out))
            values = [t._storage.value for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
            self.counter._count_products(made_of(shape, *shapes, **named), _slices(values))
        return out


def _slices(values) -> int:
    """For how many slices of vmaps these values stand together."""
    sizes = {}
    for value in values:
        while type(value) is Lane:
            sizes[value.level] = value.size
            value = value.value
    return prod(sizes.values())


class _Run(engine.Run):
    """A backward pass that says of each node what its gradients are made of."""

    __slots__ = ()

    def run_node(self, node, grads):
        made_of = products.of_node(node)
        values = [g[0] if self.pairs else g for g in grads if g is not None]
        times = _slices([*values, *(node.saved or ())]) if made_of else 1
        for counter in tls.me.extra["flop_counters"]:
            counter._count_products(made_of, times)
        super().run_node(node, grads)


_SUFFIXES = ("", "K", "M", "B", "T")


def _table(header, rows):
    widths = [max(len(title) + 2, *(len(row[k]) for row in rows)) for k, title in enumerate(header)]
    lines = [header, tuple("-" * w for w in widths), *rows]
    return "\n".join(
        "  ".join(cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in enumerate(zip(line, widths)))
        for line in lines
    )


__all__ = ["FlopCounterMode", "register_flop_formula"]
