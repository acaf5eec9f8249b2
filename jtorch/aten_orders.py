"""Operators whose arguments have another order or meaning in `torch.ops.aten` than in the public function, or that exist only there."""

import importlib

from .dispatch import build_inplace, function_of, spread
from .functions import lookup
from .ops import registry

__all__ = ["ORDERS", "METHODS", "RESAMPLED", "late", "resampled"]


def _indices(given):
    if not given:
        raise IndexError("at least one index must be provided")
    return tuple(slice(None) if i is None else i for i in given)


def index(self, indices):
    return self[_indices(indices)]


def _unsafe_index_put(self, indices, values, accumulate=False):
    return lookup("torch", "index_put")(self, tuple(indices), values, accumulate)


_PADS = {"reflection": "reflect", "replication": "replicate"}


def _padded(mode, n):
    """The padding of the last n dimensions."""

    def call(self, padding):
        if self.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                f"input, but got: {list(self.shape)}"
            )
        return lookup("nn.functional", "pad")(self, tuple(padding), mode)

    return call


def resampled(mode, n, aligned):
    """interpolate(input, output_size, [align_corners,] scales of each dimension or a list of them).

    aligned: the operator takes align_corners.
    """

    def call(input, output_size=None, *rest, align_corners=None, scale_factors=None, antialias=False, **named):
        if aligned and rest:
            align_corners, *rest = rest
        scales = [*rest, *(named[key] for key in ("scales", "scales_d", "scales_h", "scales_w") if key in named)]
        if len(scales) == 1 and isinstance(scales[0], (list, tuple)):
            scales = scales[0]
            scale_factors = scales
        elif scale_factors is not None:
            scales = scale_factors
        scales = None if not scales or None in scales else tuple(scales)
        if scales is None and output_size is None or output_size is not None and scale_factors is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        size = None if output_size is None else tuple(output_size)
        if scales is not None and size in (None, tuple(int(s * f) for s, f in zip(input.shape[2:], scales))):
            size = None  # the coordinates go by the scales
        else:
            scales = None
        resize = lookup("nn.functional", "interpolate")
        return resize(input, size, scales, mode, align_corners if aligned else None, antialias=antialias)

    return call


RESAMPLED = {
    **{f"upsample_nearest{n}d": ("nearest", n, False) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": ("nearest-exact", n, False) for n in (1, 2, 3)},
    "upsample_linear1d": ("linear", 1, True),
    "upsample_bilinear2d": ("bilinear", 2, True),
    "upsample_bicubic2d": ("bicubic", 2, True),
    "upsample_trilinear3d": ("trilinear", 3, True),
}
_NN = ("gelu", "hardsigmoid", "hardswish", "mish", "relu6", "silu")


def _in_nn(name):
    """The in-place form of a function of torch.nn.functional."""
    record = registry.OPS[name]
    return spread(record, build_inplace(record, f"{name.removeprefix('scaled_')}_"))


def _fractional(n):
    def call(self, kernel_size, output_size, random_samples):
        public = lookup("nn.functional", f"fractional_max_pool{n}d")
        return public(self, kernel_size, output_size, return_indices=True, _random_samples=random_samples)

    return call


def _adaptive_max(n):
    def call(self, output_size):
        return lookup("nn.functional", f"adaptive_max_pool{n}d")(self, output_size, True)

    return call


def _max_unpool(n):
    def call(self, indices, output_size, stride=1, padding=0):
        # the public function's windows only say how large the result is
        windows = tuple(out - size + 1 for out, size in zip(output_size, self.shape[-n:]))
        return lookup("nn.functional", f"max_unpool{n}d")(
            self, indices, windows, (1,) * n, (0,) * n, tuple(output_size)
        )

    return call


def _tensordot(self, other, dims_self=2, dims_other=None):
    """The dimensions of each; or as the public function has them, which is what a mode is asked with."""
    dims = dims_self if dims_other is None else (list(dims_self), list(dims_other))
    return lookup("torch", "tensordot")(self, other, dims)


def _resize(self, size, *, memory_format=None):
    """A copy, resized: the method of that name resizes the tensor itself."""
    return self.clone().resize_(size, memory_format=memory_format)


def _resize_as(self, the_template, *, memory_format=None):
    return self.clone().resize_as_(the_template, memory_format=memory_format)


ORDERS = {
    "index": index,
    "_unsafe_index": index,
    "_unsafe_index_put": _unsafe_index_put,
    **{f"{n}_pad{d}d": _padded(mode, d) for n, mode in _PADS.items() for d in (1, 2, 3)},
    **{name: resampled(*how) for name, how in RESAMPLED.items()},
    **{f"{n}_": _in_nn(n) for n in ("hardtanh", "leaky_relu", *_NN)},
    "elu": function_of(registry.OPS["scaled_elu"]),
    "elu_": _in_nn("scaled_elu"),
    **{f"fractional_max_pool{n}d": _fractional(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": _adaptive_max(n) for n in (1, 2, 3)},
    **{f"max_unpool{n}d": _max_unpool(n) for n in (2, 3)},
    "tensordot": _tensordot,
    "resize": _resize,
    "resize_as": _resize_as,
}

# Operators that are methods of a tensor.
METHODS = frozenset(
    "chalf cpu dense_dim element_size is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_set_to is_signed "
    "new_empty_strided pin_memory ravel reshape_as resolve_conj resolve_neg sparse_dim sparse_mask sum_to_size "
    "to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr type_as".split()
)
# Functions of torch, by the modules that have them.
_MODULES = {
    "creation": "as_tensor empty_permuted range tensor",
    "functions": "bartlett_window blackman_window can_cast fill hamming_window hann_window kaiser_window promote_types",
    "mapped_files": "from_file",
    "random_tensors": "multinomial normal",
    "reshaping": "broadcast_shapes",
    "sampling": "poisson",
    "sparse.constructors": "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor",
    "sparse.named": "hspmm smm sspaddmm",
    "sundries": "embedding_bag",
}
_LATE = {name: module for module, names in _MODULES.items() for name in names.split()}


def late(name):
    """A function of torch that is an operator too, from a module that is loaded only for it; None if there is none."""
    if name.startswith("_foreach_"):
        return importlib.import_module("jtorch.foreach").function(name.removeprefix("_foreach_"))
    public = "embedding_bag" if name == "_embedding_bag" else name
    module = _LATE.get(public)
    return None if module is None else getattr(importlib.import_module(f"jtorch.{module}"), public)
