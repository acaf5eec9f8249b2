"""Programs of an accelerator that are started on a thread of their own, while the next steps are recorded.

XLA's GPU backend starts a program's kernels one after the other from the thread that calls it, 4 to 5 us each: as long as Python takes for
recording the step, and one after the other they would take twice as long. Whoever needs a value waits until the program that makes it has
been started, and no longer.
"""

import sys
import threading
import time
from collections import deque

import jax

from ..errors_storage import from_xla
from . import ledger
from .chain import concretely

AHEAD = 2  # runs of a thread whose results are not real yet, when the next one comes: more would only hold memory
IDLE = 0.1  # seconds without a run after which the thread ends: the interpreter waits for it when it exits
# Seconds for which a thread that needs the interpreter lets another go on. Python's own 5 ms are several steps, for which no kernel would
# be started.
SWITCH = 1e-4


class Run:
    """One call of a program. Its results have it as their graph until they have values, and their place among `outs` as their index.

    args: None in place of results of other runs; of those `holes` has (where, which run, which of its results).
    results: the pending values of the results that somebody may need.
    """

    gathers = False  # what is recorded on its results takes them as values, once the program has been started
    waits = True

    __slots__ = ("owner", "prog", "call", "args", "holes", "results", "outs", "error", "done")

    def __init__(self, line, call, args, holes, results):
        self.owner = line.owner
        self.prog = line.prog
        self.call = call
        self.args = args
        self.holes = holes
        self.results = results
        self.outs = self.error = None
        self.done = False

    def start(self):
        """Call the program. An error is kept, with what it takes to try again."""
        started = time.perf_counter()
        try:
            args = list(self.args)
            for k, run, place in self.holes:
                if run.outs is None:
                    raise run.error
                args[k] = run.outs[place]
            self.outs = concretely(self.call, args)
        except jax.errors.JaxRuntimeError as error:
            self.error = from_xla(error, self.prog.device.type)
        except BaseException as error:
            self.error = error
        else:
            self.args = self.error = None
            self.holes = ()
            ledger.took(self.prog, time.perf_counter() - started)

    def made(self):
        """The results, once the program has been started. After an error that is tried once more, as a recording that failed is."""
        launcher.wait(self)
        if self.outs is None:
            for _, run, _ in self.holes:
                run.made()
            self.start()
            if self.outs is None:
                raise self.error
        return self.outs

    def compute(self, pending):
        """A value is needed."""
        self.land()

    def land(self):
        """The results become real."""
        outs = self.made()
        for pending in self.results:
            pending.value = outs[pending.index]
            pending.graph = None
        self.results = ()


class Line:
    """Runs of one program, asked for by one thread, in order, the last of which have results that are not real yet.

    How many these are does not depend on how far the other thread has come: the same loop records the same programs each time.
    """

    __slots__ = ("owner", "prog", "runs")

    def __init__(self, owner, prog):
        self.owner = owner
        self.prog = prog
        self.runs = deque()

    def send(self, call, args, holes, results):
        """One more run. call: of the program or of a chain of it. results: (a pending value, which of the results it is)."""
        run = Run(self, call, args, holes, [pending for pending, _ in results])
        for pending, place in results:
            pending.index = place
            pending.graph = run
        self.runs.append(run)
        launcher.send(run)
        return run

    def given(self, values):
        """A run that has been made, with these results."""
        run = Run(self, None, None, (), [])
        run.outs = values
        run.done = True
        return run

    def settle(self, rest=0):
        """The results of all but the last `rest` runs become real."""
        runs = self.runs
        while len(runs) > rest:
            runs[0].land()
            runs.popleft()


class Launcher:
    """The thread that starts runs, in the order in which they come; it is there while there are some."""

    def __init__(self):
        self.runs = deque()  # the first is being started
        self.changed = threading.Condition()
        self.thread = None
        self.usual = self.ours = None  # intervals: the one that was set, and what it is while the thread is there

    def send(self, run):
        with self.changed:
            self.runs.append(run)
            if self.thread is None and not self.begin():
                self.end(run)
            self.changed.notify_all()

    def begin(self) -> bool:
        """Start the thread; False where the interpreter starts none any more, for it is about to exit."""
        self.thread = threading.Thread(target=self.work, name="jtorch launch")
        try:
            self.thread.start()
        except RuntimeError:
            self.thread = None
            self.runs[0].start()
            return False
        self.usual = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH, self.usual))
        self.ours = sys.getswitchinterval()
        return True

    def end(self, run):
        """A run has been started, the first of all."""
        self.runs.popleft()
        run.done = True

    def wait(self, run):
        """Until a run has been started."""
        if not run.done:
            with self.changed:
                while not run.done:
                    self.changed.wait()

    def work(self):
        while self.next():
            run = self.runs[0]
            run.start()
            with self.changed:
                self.end(run)
                self.changed.notify_all()
            del run  # or what it holds would live until the next one comes

    def next(self) -> bool:
        """Whether there is a run; waits for one. Without one the thread has ended."""
        with self.changed:
            if not self.runs and not self.changed.wait_for(lambda: self.runs, IDLE):
                self.thread = None
                if sys.getswitchinterval() == self.ours:  # or the user has set one since
                    sys.setswitchinterval(self.usual)
                return False
        return True


launcher = Launcher()
