"""What making and sharing storage objects raises, and what there is when memory is out."""

import re

from .errors import _list, c_type, scalar_name


class OutOfMemoryError(RuntimeError):
    """The device has no room left."""


def from_xla(error, place="cpu") -> Exception:
    """In PyTorch's words what XLA says when it has no room; of a TPU what it cannot compile; another error of XLA's as it is.

    place: the kind of device.
    """
    said = str(error)
    if place == "tpu" and ("UNIMPLEMENTED" in said or "during context" in said):
        return NotImplementedError(
            f"{said.splitlines()[0][:300]}\n  XLA's compiler for TPUs cannot do this, of 64-bit numbers most often: use float32 or int32, or "
            "compute it on the CPU (x.cpu())"
        )
    if "RESOURCE_EXHAUSTED" not in said and "Out of memory" not in said:
        return error
    found = re.search(r"allocat\w+ (\d+) bytes", said)
    size = f"{found[1]} bytes" if found else "more than there is"
    if place == "cpu":
        return OutOfMemoryError(f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {size}")
    return OutOfMemoryError(
        f"{'CUDA' if place in ('gpu', 'cuda') else place.upper()} out of memory. Tried to allocate {size}.\n  {said}"
    )


def bad_arguments(detail, kind, name="TypedStorage.__init__", forms=None) -> Exception:
    """A storage class was called with the wrong arguments; `kind`: the exception's class."""
    forms = forms or (
        "(*, torch.device device, torch.dtype dtype)",
        "(int size, *, torch.device device, torch.dtype dtype)",
        "(Sequence data, *, torch.device device, torch.dtype dtype)",
        "(*, UntypedStorage wrap_storage, torch.dtype dtype)",
    )
    lines = "\n".join(f" * {form}" for form in forms)
    return kind(f"{name} received an invalid combination of arguments. Expected one of:\n{lines}\n{detail}")


def refused(cls, detail, kind) -> Exception:
    """The same, of a class named after a dtype."""
    forms = ("no arguments", "(int size)", "(Sequence data)", "(*, UntypedStorage wrap_storage)")
    return bad_arguments(detail, kind, f"<class 'torch.{cls.__name__}'>.__new__", forms)


def cannot_share() -> Exception:
    """This system hands no open files from process to process."""
    return RuntimeError(
        "share_memory_(): this system cannot hand memory to another process. Send tensors through a queue or a file (both copy), or "
        "train with threads."
    )


def another_dtype(tensor: bool, got, wanted, legacy=False) -> Exception:
    """set_ to the memory of a tensor, or of a storage, of another dtype; `legacy`: torch.FloatTensor and its like."""
    if tensor:
        return RuntimeError(f"Could not set tensor of type {c_type(got)} to a tensor of type {c_type(wanted)}")
    return RuntimeError(
        f"Expected a Storage of type {scalar_name(wanted) if legacy else c_type(wanted)} or an UntypedStorage, but got type {scalar_name(got)} for argument 1 "
        "'storage'"
    )


def another_device(have, got) -> Exception:
    """set_ to memory somewhere else."""
    return RuntimeError(
        f'Attempted to set the storage of a tensor on device "{have}" to a storage on different device "{got}".  This is no '
        "longer allowed; the devices must match."
    )


def not_resizable() -> Exception:
    """Memory that numpy or other processes see, too small for a new size."""
    return RuntimeError("Trying to resize storage that is not resizable")


def storage_offset(offset: int) -> RuntimeError:
    return RuntimeError(f"Tensor: invalid storage offset {offset}")


def storage_overflow(shape, strides=None) -> RuntimeError:
    spaced = "" if strides is None else f" and strides={_list(strides)}"
    return RuntimeError(f"Storage size calculation overflowed with sizes={_list(shape)}{spaced}")


def numel_overflow() -> RuntimeError:
    return RuntimeError("numel: integer multiplication overflow")


def no_complex128() -> TypeError:
    """A tensor of complex128 on a TPU."""
    return TypeError(
        "complex128 is not supported on TPUs: XLA's compiler for them ends the process where it meets one.\n  Use complex64 (of float32 an "
        "FFT makes it), or compute this on the CPU: x.cpu()"
    )


def history_to_process() -> RuntimeError:
    """A tensor that autograd computed is sent to another process."""
    return RuntimeError(
        "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
        "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
        "on the queue)."
    )
