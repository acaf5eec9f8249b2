"""What goes wrong while loading: one constructor a message, with PyTorch's class and leading words."""

import errno
import signal

__all__ = ["Failure"]


def timed_out(seconds) -> RuntimeError:
    return RuntimeError(f"DataLoader timed out after {seconds} seconds")


def died(pids) -> RuntimeError:
    """Workers that are gone; how each ended is the cause."""
    return RuntimeError(f"DataLoader worker (pid(s) {', '.join(map(str, pids))}) exited unexpectedly")


def how(pid: int, status: int | None) -> RuntimeError | None:
    """How one worker ended, from its exit status: negative for a signal."""
    if status is None:
        return None
    if status < 0:
        words = signal.strsignal(-status) or f"signal {-status}"
        hint = ""
        if -status == getattr(signal, "SIGKILL", 0):
            hint = "\n  the system ends processes so when memory runs out: try fewer workers or smaller batches"
        return RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {words}. {hint}")
    return RuntimeError(
        f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {status}. "
        "Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace."
    )


def no_helper(code) -> RuntimeError:
    return RuntimeError(
        f"DataLoader could not start worker processes: the process that starts them ended (exit code {code})\n"
        "  what it printed is above; num_workers=0 loads in this process"
    )


def out_of_files(error: OSError | None = None) -> RuntimeError:
    if error is not None and error.errno not in (errno.EMFILE, errno.ENFILE):
        return RuntimeError(f"Communication with the workers is no longer possible: {error}")
    return RuntimeError(
        "Too many open files. Communication with the workers is no longer possible. "
        "Please increase the limit using `ulimit -n` in the shell"
    )


def no_platform() -> str:
    return (
        "DataLoader(num_workers > 0) needs os.fork and Unix sockets, which this platform lacks; "
        "batches are loaded in this process, in the same order."
    )


def no_shared_memory() -> str:
    return (
        "DataLoader: a worker found no room in shared memory, so batches travel through a socket, which copies them.\n"
        "  smaller batches, fewer workers or a lower prefetch_factor need less of it (JTORCH_SHARED_BYTES bounds it)"
    )


def needs_cloudpickle(what: str) -> RuntimeError:
    return RuntimeError(
        f"DataLoader workers need the package cloudpickle to be given {what}, which no import can find: "
        "install it with `pip install jtorch-xla[data]`, move it into a module, or use num_workers=0"
    )


def on_accelerator(device) -> RuntimeError:
    return RuntimeError(
        f"DataLoader workers never touch the accelerator, and were given a tensor on {device}\n"
        "  keep the dataset's tensors on the CPU (x.cpu()) and move the batches, or use num_workers=0"
    )


def on_tape() -> RuntimeError:
    return RuntimeError(
        "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
        "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing"
    )


class _Words(str):
    """The words of a KeyError, which prints the repr of its argument: line breaks stay line breaks."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class Failure:
    """An exception on its way from a worker: its class, the words and traceback, and where it was."""

    __slots__ = ("kind", "text", "where")

    def __init__(self, kind: type[BaseException], text: str, where: str):
        self.kind = kind
        self.text = text
        self.where = where

    def __reduce__(self):
        return Failure, (self.kind, self.text, self.where)

    def reraise(self):
        """Raise an exception of the same class with the worker's traceback as its words."""
        words = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if issubclass(self.kind, KeyError):
            words = _Words(words)
        elif getattr(self.kind, "message", None):
            raise self.kind(message=words)
        try:
            made = self.kind(words)
        except Exception:  # its class asks for other arguments
            made = RuntimeError(words)
        raise made
