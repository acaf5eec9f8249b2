"""Run-time numbers of a program: how they become its arguments, and how the traced program finds them again."""

from contextlib import nullcontext
from operator import is_

import jax
import jax.numpy as jnp
import numpy as np

from .device import place_of


class _Runtime:
    def __repr__(self):
        return "runtime"


RUNTIME = _Runtime()  # stands in a state's key for numbers that are inputs of the program
HERE = nullcontext()  # jax's default device


def placed(device):
    """In which a device's programs are made and run: what has no committed inputs would be jax's default device's otherwise."""
    place = place_of(device)
    return HERE if place is None else jax.default_device(place)


def plain(x):
    """A number out of a key: -0.0 and complex nan stand there in disguise."""
    if type(x) is tuple:
        return complex(x[0])
    return x if type(x) in (int, float, bool, complex) else float(x)


def narrowed(x):
    """A number for a device without complex128."""
    return np.complex64(x) if isinstance(x, complex) else x


class Packing:
    """Run-time numbers travel as at most one array a type: each argument of a jit call costs a microsecond.

    One that is new to the device costs 30; so numbers that are the same objects as the last time are kept there.
    """

    __slots__ = ("order", "kept", "places", "device", "last", "narrow")

    def __init__(self, path, nodes, device=None):
        numbered = [node for node in path if node.numbers is RUNTIME]
        needed = set(map(id, nodes))
        self.order = numbered
        self.kept = [k for k, node in enumerate(numbered) if id(node) in needed]
        self.places = None
        self.device = device
        self.narrow = device is not None and device.type == "tpu"  # which has no complex128
        self.last = ((HERE,), None)  # the numbers, and their arguments on the device once they have come again

    def pack(self, numbers):
        """The arguments for these numbers (one tuple a node, in the order of recording)."""
        if not self.kept:
            return ()
        flat = [x for k in self.kept for x in numbers[k]]
        last, sent = self.last
        if all(map(is_, flat, last)):
            if sent is None:
                with jax.ensure_compile_time_eval(), placed(self.device):
                    sent = tuple(map(jax.device_put, self.packed(flat)))
                self.last = (flat, sent)
            return sent
        self.last = (flat, None)
        return self.packed(flat)

    def packed(self, flat):
        if self.places is None:
            self.places = [_letter(x) for x in flat]
        places = self.places
        if self.narrow:
            flat = list(map(narrowed, flat))
        if len(flat) <= 2:
            return tuple(flat)
        groups = []
        for letter, kind in _LETTERS:
            group = [x for x, p in zip(flat, places) if p is letter]
            if group:
                groups.append(np.array(group, np.complex64 if self.narrow and letter == "c" else kind))
        return tuple(groups)

    def unpack(self, args):
        """node -> its numbers, from the traced arguments."""
        if not self.kept:
            return {}
        places = self.places
        if len(places) <= 2:
            flat = list(args)
        else:
            groups = {}
            args = list(args)
            for letter, _ in _LETTERS:
                if letter in places:
                    groups[letter] = iter(list(args.pop(0)))
            flat = [next(groups[p]) for p in places]
        result, at = {}, 0
        for k in self.kept:
            node = self.order[k]
            result[node] = flat[at : at + node.plan.n_num]
            at += node.plan.n_num
        return result


_LETTERS = (("f", np.float64), ("i", np.int64), ("c", np.complex128))


def _letter(x):
    return "c" if isinstance(x, complex) else "f" if isinstance(x, float) else "i"


def number(x, np_dtype):
    """A number operand, traced or plain, as a 0-d array of this dtype."""
    return jnp.asarray(x, np_dtype) if not isinstance(x, jax.Array) else x.astype(np_dtype)
