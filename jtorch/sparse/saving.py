"""Printing, copying and pickling sparse tensors."""

import copy

from .. import copying, creation, errors_sparse, printing
from ..core import device as devices
from ..core import dtype as dtypes
from ..tensor import grad_edge
from .base import build, handles, host, like
from .constructors import FIELDS, sparse_compressed_tensor, sparse_coo_tensor


@handles("__repr__")
def represent(self, *, tensor_contents=None):
    """A sparse tensor as PyTorch prints it."""
    title = "Parameter containing:\n" if isinstance(self, copying.parameter_class()) else ""
    indent = len("tensor(")
    names = FIELDS.get(self._kind, ("indices",))
    parts = []
    for name, part in zip((*names, "values"), (*self._at, self._of)):
        prefix = f"{name}=tensor("
        text = printing.format_values(host(part), tuple(part._spec.shape), indent + len(prefix))
        note = "" if part._spec.numel else f", size={tuple(part._spec.shape)}"
        parts.append(f"{prefix}{text}{note})")
    spec = self._spec
    notes = [] if spec.device is devices.cpu else [f"device='{spec.device}'"]
    notes += [f"size={tuple(spec.shape)}", f"nnz={self._nnz()}"]
    if spec.dtype is not dtypes.default.dtype and not printing.is_usual(spec.dtype):
        notes.append(f"dtype={spec.dtype}")
    notes.append(f"layout={self.layout}")
    edge = grad_edge(self)
    if edge is not None:
        notes.append(f"grad_fn=<{type(edge[0]).__name__}>")
    elif self.requires_grad:
        notes.append("requires_grad=True")
    text = printing.with_notes("tensor(" + (",\n" + " " * indent).join(parts), notes, indent, self._kind == "coo")
    return title + text


@handles("__deepcopy__")
def deepcopy(self, memo):
    """A leaf and its gradient once more."""
    if id(self) in memo:
        return memo[id(self)]
    if self._edge is not None:
        raise errors_sparse.deepcopy_of_result()
    made = memo[id(self)] = like(self, tuple(a.clone() for a in self._at), self._of.clone(), self._whole)
    made._rg = self._rg
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    for k, v in _own(self).items():
        made.__dict__[k] = copy.deepcopy(v, memo)
    return made


@handles("__copy__")
def shallow(self):
    """The same parts in another tensor."""
    made = self.detach()
    made._rg = self._rg
    made.__dict__.update(_own(self))
    return made


_FIELDS = ("_kind", "_at", "_of", "_whole", "_positions")


def _own(t):
    return {k: v for k, v in copying.own_state(t).items() if k not in _FIELDS}


@handles("__reduce_ex__")
def reduce_ex(self, protocol):
    """How pickle keeps it: by its parts."""
    spec = self._spec
    return rebuild, (self._kind, tuple(spec.shape), self._at, self._of, self._whole, self.requires_grad, _own(self))


def rebuild(kind, shape, at, of, whole, requires_grad, state):
    """A sparse tensor out of a pickle."""
    made = build(kind, shape, at, of, whole)
    made._rg = requires_grad
    made.__dict__.update(state)
    return made


def record_of(x):
    """(layout, parts) as torch.save writes them, and the attributes."""
    whole = (x._whole,) if x._kind == "coo" else ()
    return x.layout, (*x._at, x._of, x._spec.shape, *whole), _own(x)


def of_parts(kind, parts, size, whole=False, *, trusted=False):
    """A sparse tensor of parts that may not be trusted, or whose elements come later; RuntimeError where they do not fit."""
    checks = not trusted
    if kind != "coo":
        return sparse_compressed_tensor(
            *parts, size, layout=getattr(creation, f"sparse_{kind}"), check_invariants=checks
        )
    if any(n < 0 for n in size) or parts[0].dtype is not dtypes.int64:
        raise errors_sparse.float_indices(parts[0].dtype)
    return sparse_coo_tensor(*parts, size, check_invariants=checks, is_coalesced=bool(whole))
