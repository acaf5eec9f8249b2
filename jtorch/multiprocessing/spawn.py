"""Starting one function in several processes, and raising here what was raised there."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import traceback


class ProcessException(Exception):
    """A process failed: `error_index` is its number, `error_pid` its id."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended without a word: `exit_code`, and `signal_name` where a signal killed it."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _call(fn, i, args, errors):
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and says so
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that `spawn(join=False)` started."""

    def __init__(self, processes, errors):
        self.processes = processes
        self.error_queues = errors
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list:
        """The ids of the processes."""
        return [p.pid for p in self.processes]

    def join(self, timeout=None, grace_period=None) -> bool:
        """Wait for a process to end; True once all have. When one fails, the others are ended and its error is raised.

        Raises ProcessRaisedException or ProcessExitedException.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        failed = None
        for sentinel in ready:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            return not self.sentinels
        for p in self.processes:
            if p.is_alive():
                p.terminate()
        for p in self.processes:
            p.join(grace_period)
            if p.is_alive():
                p.kill()
                p.join()
        self._raise(failed)

    def _raise(self, i):
        process = self.processes[i]
        if self.error_queues[i].empty():
            code = process.exitcode
            if code < 0:
                name = signal.Signals(-code).name
                words = f"process {i} terminated with signal {name}"
                raise ProcessExitedException(words, i, process.pid, code, name)
            raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)
        words = f"\n\n-- Process {i} terminated with the following error:\n{self.error_queues[i].get()}"
        raise ProcessRaisedException(words, i, process.pid)


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", **options):
    """Call fn(i, *args) in `nprocs` processes; with join=True wait for them, else return a ProcessContext."""
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        errors.append(context.SimpleQueue())
        process = context.Process(target=_call, args=(fn, i, args, errors[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        continue
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes, with processes started anew: jax runs threads, which forking would break."""
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
