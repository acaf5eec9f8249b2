"""torch.utils._foreach_utils: tensors by device and dtype."""

from ...tensor import Tensor

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices():
    return ["cuda", "xpu", "mtia"]


def _get_fused_kernels_supported_devices():
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia"]


def _has_foreach_support(tensors, device) -> bool:
    """Whether lists of tensors can be computed with at once: always, by recording."""
    return True


def _device_has_foreach_support(device) -> bool:
    """As _has_foreach_support."""
    return True


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """{(device, dtype): (lists, indices)} of lists of equal length, by the entries of the first."""
    groups = {}
    for i, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for into, source in zip(lists, tensorlistlist):
            if i < len(source):
                into.append(source[i])
        indices.append(i)
    return {key: (lists, indices if with_indices else []) for key, (lists, indices) in groups.items()}
