"""Taking a profile: when it is on, the ranges that the program names, and where the trace goes."""

import contextlib
import enum
import functools
import gzip
import json
import os
import shutil
import socket
import tempfile
import time
import weakref

import jax

from .. import errors
from ..core import device as devices
from ..streams import wait
from .calls import Calls
from .events import EventList, chrome_events, kernels, nested, trace_files


class ProfilerAction(enum.Enum):
    """What a step of the profiler does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class ProfilerActivity(enum.Enum):
    """What is recorded: jax records the host and every device at once."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set:
    """The activities that there are here."""
    return {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if devices.accelerator() else set())


def kineto_available() -> bool:
    """True: a profile can be taken."""
    return True


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """A function of the step's number: skip, then cycles of `wait` steps off, `warmup` steps, `active` steps recorded.

    The last active step of a cycle saves. `repeat` 0: for ever. Raises AssertionError for negative numbers or no active step.
    """

    def action(step: int) -> ProfilerAction:
        assert step >= 0, f"Step must be non-negative. Got {step}."
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:  # the first cycle does not wait
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        at = step % length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < length - 1 else ProfilerAction.RECORD_AND_SAVE

    assert wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0, (
        f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), active={active} (need > 0), "
        f"repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
    )
    if warmup == 0:
        errors.warn("Profiler won't be using warmup, this can skew profiler results", UserWarning)
    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An on_trace_ready that writes a trace that TensorBoard's profile plugin reads, and a Chrome trace beside it."""

    def handler(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))
        shutil.copytree(prof._folder, dir_name, dirs_exist_ok=True)

    return handler


_active: list = []
_ANCHOR = "jtorch.profiler.start"  # where a moment of this process lies in jax's trace


class record_function(contextlib.ContextDecorator):
    """A named range of the program, as a context or a decorator. While a profile is taken, a range ends when its work is done."""

    def __init__(self, name, args=None):
        if not isinstance(name, str):
            raise TypeError(f"record_function: the name must be a str, not {type(name).__name__}")
        self.name = name
        self.args = args
        self._entered = []

    def __enter__(self):
        if _active:
            wait("record_function")
            annotation = jax.profiler.TraceAnnotation(self.name)
            annotation.__enter__()
            self._entered.append((annotation, _active[-1], time.perf_counter_ns()))
        return self

    def __exit__(self, *exc):
        if self._entered:
            annotation, owner, start = self._entered.pop()
            wait("record_function")
            annotation.__exit__(*exc)
            if owner._recording:
                owner._calls.add(self.name, start, annotation=True)

    def _recreate_cm(self):
        return type(self)(self.name, self.args)


class profile:
    """Context that records what runs.

    Args:
        activities: accepted: jax records the host and all devices
        schedule: which steps are recorded; call `step()` at the end of each. Default: everything
        on_trace_ready: called with the profile when a cycle of the schedule is over, and at the end
        record_shapes: events of calls have the shapes of their arguments
        with_stack: events of calls have the program's frames above them
        profile_memory, with_flops, with_modules: accepted; events have neither bytes nor flops, since a kernel of XLA computes
            many ops

    Calls of operators are listed as `aten::add`, nodes of a backward pass as `MulBackward0`; their time is that of recording them,
    in `execution_mode("eager")` of running them. What ran in their place are `jtorch::flush` and XLA's kernels.

    Raises RuntimeError where another profile is on: jax takes one at a time.
    Source: https://docs.pytorch.org/docs/stable/profiler.html
    """

    def __init__(
        self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False,
        with_stack=False, with_flops=False, with_modules=False, experimental_config=None, execution_trace_observer=None,
        acc_events=False, use_cuda=None, custom_trace_id_callback=None, post_processing_timeout_s=None,
    ):  # fmt: skip
        given = supported_activities() if activities is None else activities
        # an entry may say which kinds of an activity's events are wanted
        given = [a for entry in given for a in (entry if isinstance(entry, dict) else (entry,))]
        self.activities = {a for a in given if isinstance(a, ProfilerActivity)}
        assert self.activities, "No valid profiler activities found"
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on = False
        self._stepwise = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._folder = None
        self._remove = None
        self._calls = None
        self._noted = {"shapes": record_shapes, "stacks": with_stack}
        self._events = EventList()
        self._recording = False
        self._metadata = {}
        self._step_start = 0

    # -- on and off

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        if _active:
            raise RuntimeError("another profile is being taken: jax records one at a time")
        self._on = True
        self.current_action = self.schedule(0)
        self._turn(self.current_action)

    def stop(self) -> None:
        """End; what was recorded is handed to on_trace_ready. Raises AssertionError where nothing has begun."""
        assert self._on or self._folder is not None, "Profiler must be initialized before stopping trace"
        if self._recording:
            self._end_step()
            self._save()
        self._on = False
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """The step is over: go on to what the schedule says of the next."""
        if self._recording:
            self._end_step()
        before = self.current_action
        self.step_num += 1
        if not self._on:
            return
        self.current_action = self.schedule(self.step_num)
        if before is ProfilerAction.RECORD_AND_SAVE or (
            before is ProfilerAction.RECORD and self.current_action in (ProfilerAction.NONE, ProfilerAction.WARMUP)
        ):
            self._save()
        self._turn(self.current_action)

    def _turn(self, action):
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self._recording:
            wait("profile")
            if self._remove is not None:
                self._remove()
            self._folder = tempfile.mkdtemp(prefix="jtorch-profile-")
            self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            options = jax.profiler.ProfileOptions()
            options.python_tracer_level = 0  # calls are noted here; jax's tracer of all Python would slow each of them
            jax.profiler.start_trace(self._folder, profiler_options=options)
            self._anchor = time.perf_counter_ns() / 1e3
            with jax.profiler.TraceAnnotation(_ANCHOR):
                pass
            _active.append(self)
            self._calls = Calls(**self._noted)
            self._calls.start()
            self._recording = True
        self._step_start = time.perf_counter_ns()

    def _end_step(self):
        if self._stepwise:
            wait("profile")
            self._calls.add(f"ProfilerStep#{self.step_num}", self._step_start, annotation=True)

    def _save(self):
        wait("profile")
        self._recording = False
        self._calls.stop()
        _active.remove(self)
        jax.profiler.stop_trace()
        self._events = EventList([*nested(self._calls.spans), *kernels(self._folder)])
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # -- what was found

    def events(self) -> EventList:
        """Everything that ran. Raises AssertionError before a profile has been taken."""
        return self._taken("accessing events")

    def _taken(self, what) -> EventList:
        assert self._folder is not None, f"Profiler must be initialized before {what}"
        assert not self._recording, f"Profiler must be stopped before {what}"
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False) -> EventList:
        """Sums by name: of calls, of the program's ranges, and of kernels by their HLO instruction."""
        return self._taken("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self):
        """The sum of everything."""
        return self.events().total_average()

    def add_metadata(self, key, value) -> None:
        """Put text into the Chrome trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key, value) -> None:
        """Put JSON into the Chrome trace."""
        self._metadata[key] = json.loads(value)

    def preset_metadata_json(self, key, value) -> None:
        """As add_metadata_json."""
        self.add_metadata_json(key, value)

    def export_chrome_trace(self, path) -> None:
        """Write the trace for chrome://tracing or Perfetto; compressed where the name ends in .gz."""
        self._taken("exporting chrome trace")
        found = {"traceEvents": []}
        for source in trace_files(self._folder, ".trace.json.gz"):
            with gzip.open(source, "rt") as file:
                part = json.load(file)
            found = {**part, "traceEvents": found["traceEvents"] + part.get("traceEvents", [])}
        found["traceEvents"] = self._with_calls(found["traceEvents"])
        found.update(self._metadata)
        temporary = f"{path}.{os.getpid()}.part"
        opener = (
            functools.partial(gzip.open, mode="wt") if str(path).endswith(".gz") else functools.partial(open, mode="w")
        )
        with opener(temporary) as file:
            json.dump(found, file)
        os.replace(temporary, path)

    def _with_calls(self, traced):
        """The events of jax's trace and those noted here, on one clock; ranges are in both, and stay once."""
        anchor = next((e["ts"] for e in traced if e.get("name") == _ANCHOR), None)
        noted = chrome_events(self._events, 0.0 if anchor is None else anchor - self._anchor)
        twice = {e["name"] for e in noted if e["cat"] == "user_annotation"} | {_ANCHOR}
        return [e for e in traced if e.get("ph") != "X" or e["name"] not in twice] + noted

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write one line a stack of calls, with the sum of a time. `with_stack=True` is needed for stacks."""
        assert self._noted["stacks"], "export_stacks() requires with_stack=True"
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Raises: jax has no timeline of memory."""
        raise errors.unsupported("a timeline of memory", instead="jax.profiler.save_device_memory_profile(path)")

    def toggle_collection_dynamic(self, enable, activities) -> None:
        """Accepted."""

    def __str__(self):
        return str(self.key_averages())


_KinetoProfile = profile


class ExecutionTraceObserver:
    """Accepted: graphs of ops are not written."""

    def register_callback(self, output_file_path):
        """Accepted."""
        return self

    def unregister_callback(self) -> None:
        """Accepted."""

    start = stop = cleanup = unregister_callback
