"""Events of a profile, their sums by name, and the table of these."""

import dataclasses
import enum
import glob
import json
import os
import typing
import warnings

import jax


class DeviceType(enum.Enum):
    """Kinds of devices."""

    CPU = 0
    CUDA = 1


class Span(typing.NamedTuple):
    """What a thread did from `start` to `end`, in nanoseconds of time.perf_counter."""

    name: str
    start: int
    end: int
    thread: int
    shapes: list | tuple = ()
    stack: list | tuple = ()
    annotation: bool = False
    apart: bool = False  # it went on beside what the thread did


class Interval:
    """A time range in microseconds."""

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """Its length."""
        return self.end - self.start

    def __repr__(self):
        return f"Interval(start={self.start}, end={self.end})"


_TIMES = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total")


@dataclasses.dataclass(eq=False, repr=False)
class FunctionEvent:
    """One thing that ran: an operator's call, a node of a backward pass, a named range of the program, or a kernel.

    Times are in microseconds. `key` is the name that equal events share; a kernel's is that of its HLO instruction without the
    number. Of sums by name `count` says how many there were, and times are added up.
    """

    name: str
    key: str
    start: float
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    count: int = 1
    is_user_annotation: bool = False
    input_shapes: typing.Any = ()
    stack: typing.Any = ()
    thread: int = 0
    id: int = 0
    is_kernel: bool = False
    is_async: bool = False
    cpu_parent: typing.Any = None
    cpu_children: list = dataclasses.field(default_factory=list)

    trace_name = property(lambda self: self.name)
    cpu_time = property(lambda self: self.cpu_time_total / self.count if self.count else 0.0)
    device_time = property(lambda self: self.device_time_total / self.count if self.count else 0.0)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_time = device_time
    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    device_time_str = property(lambda self: time_text(self.device_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    device_time_total_str = property(lambda self: time_text(self.device_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    self_device_time_total_str = property(lambda self: time_text(self.self_device_time_total))
    device_type = property(lambda self: DeviceType.CUDA if self.self_device_time_total else DeviceType.CPU)
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    flops = node_id = device_index = scope = 0
    fwd_thread = use_device = None
    kernels = concrete_inputs = ()
    overload_name = ""
    sequence_nr = -1
    is_remote = is_legacy = False

    @property
    def time_range(self):
        """When it ran; for sums by name, of the first."""
        return Interval(self.start, self.start + (self.cpu_time_total or self.device_time_total))

    def add(self, other, group_by_input_shapes=False, group_by_stack_n=0):
        """Add the times and the count of an event of the same name."""
        self.count += other.count
        for name in _TIMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.start} "
            f"cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} input_shapes={self.input_shapes}>"
        )


FunctionEventAvg = FunctionEvent


class EventList(list):
    """Events, or their averages."""

    supported_export_stacks_metrics = ("self_cpu_time_total", "self_device_time_total")

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of what each took without what ran inside it."""
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One entry a name: times and counts added up. By shapes, and by the innermost frames of the stack, where that is asked."""
        sums = {}
        for event in self:
            shapes = event.input_shapes if group_by_input_shapes else ""
            stack = event.stack[:group_by_stack_n] if group_by_stack_n else ()
            key = (event.key, str(shapes), tuple(stack), event.is_user_annotation)
            if key in sums:
                sums[key].add(event)
            else:
                sums[key] = dataclasses.replace(event, name=event.key, input_shapes=shapes, stack=list(stack))
        return EventList(sums.values())

    def total_average(self):
        """One entry of everything."""
        total = FunctionEvent("Total", "Total", 0.0, count=0)
        for event in self:
            total.add(event)
        return total

    def table(
        self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80,
        header=None, top_level_events_only=False, time_unit=None,
    ) -> str:  # fmt: skip
        """A table for printing: one row an entry, in the order of `sort_by` (cpu_time_total, self_cpu_time_total, count, ...).

        Raises AttributeError for a `sort_by` that events do not have.
        """
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by.replace("cuda", "device")), reverse=True)
        if top_level_events_only:
            rows = [e for e in rows if e.cpu_parent is None]
        rows = rows if row_limit < 0 else rows[:row_limit]
        totals = [sum(getattr(e, name) for e in self) for name in ("self_cpu_time_total", "self_device_time_total")]
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if totals[1]:
            columns += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
        columns.append("# of Calls")
        lines = [_row(e, *totals, max_name_column_width) for e in rows]
        for name, title, width in (
            ("input_shapes", "Input Shapes", max_shapes_column_width),
            ("stack", "Source Location", max_src_column_width),
        ):
            if any(getattr(e, name) for e in self):
                columns.append(title)
                for e, line in zip(rows, lines):
                    found = getattr(e, name)
                    text = str(found[0] if found else "") if name == "stack" else str(found or [])
                    line.append(text if len(text) <= width else text[: width - 3] + "...")
        return _draw(columns, lines, header, *totals)

    def __str__(self):
        return self.table()

    def export_stacks(self, path, metric="self_cpu_time_total") -> None:
        """Write one line a stack, outermost frame first, with the sum of a time: what flame graphs are drawn of.

        Raises ValueError for another metric than `self_cpu_time_total` and `self_device_time_total`.
        """
        metric = metric.replace("cuda", "device")
        if metric not in self.supported_export_stacks_metrics:
            raise ValueError(f"metric should be one of: {list(self.supported_export_stacks_metrics)}")
        forbidden = str.maketrans(" ;\t\n", "____")
        sums = {}
        for event in self:
            if event.stack:
                line = ";".join(frame.translate(forbidden) for frame in reversed(event.stack))
                sums[line] = sums.get(line, 0) + getattr(event, metric)
        with open(path, "w") as file:
            file.writelines(f"{line} {int(us)}\n" for line, us in sums.items() if int(us) > 0)

    def export_chrome_trace(self, path) -> None:
        """Write the calls and ranges for chrome://tracing or Perfetto; the kernels are in `profile.export_chrome_trace`."""
        with open(path, "w") as file:
            json.dump({"traceEvents": chrome_events(self)}, file)


def chrome_events(events, shift=0.0) -> list[dict]:
    """The calls and ranges among events as Chrome's complete events; `shift`: microseconds to add to their times."""
    made = []
    for e in events:
        if not e.is_kernel:
            args = {"External id": e.id}
            if e.input_shapes:
                args["Input Dims"] = e.input_shapes
            if e.stack:
                args["Call stack"] = ";".join(reversed(e.stack))
            category = "user_annotation" if e.is_user_annotation else "cpu_op"
            made.append(
                {"ph": "X", "cat": category, "name": e.name, "pid": os.getpid(), "tid": e.thread, "ts": e.start + shift,
                 "dur": e.cpu_time_total, "args": args}
            )  # fmt: skip
    return made


def _row(event, cpu, device, width):
    name = event.key if len(event.key) <= width else event.key[: width - 3] + "..."
    cells = [
        name, _share(event.self_cpu_time_total, cpu), time_text(event.self_cpu_time_total), _share(event.cpu_time_total, cpu),
        time_text(event.cpu_time_total), time_text(event.cpu_time),
    ]  # fmt: skip
    if device:
        cells += [
            time_text(event.self_device_time_total), _share(event.self_device_time_total, device),
            time_text(event.device_time_total), time_text(event.device_time),
        ]  # fmt: skip
    return [*cells, str(event.count)]


def _share(part, whole):
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def time_text(us: float) -> str:
    """Microseconds as text with a unit."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _draw(columns, lines, header, cpu, device):
    widths = [max(len(c), *(len(row[i]) for row in lines), 0) if lines else len(c) for i, c in enumerate(columns)]
    rule = "  ".join("-" * w for w in widths)
    place = lambda cells: "  ".join(c.rjust(w) for c, w in zip(cells, widths))
    text = [rule, place(columns), rule, *map(place, lines), rule, f"Self CPU time total: {time_text(cpu)}"]
    if device:
        text.append(f"Self CUDA time total: {time_text(device)}")
    return "\n".join([*([header] if header else []), *text]) + "\n"


# --- from jax's trace ----------------------------------------------------------------------------------------------


def trace_files(folder, ending) -> list[str]:
    """The files of a trace folder with this ending."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "**", f"*{ending}"), recursive=True))


def kernels(folder) -> list[FunctionEvent]:
    """The kernels of a trace: everything that jax ties to an HLO instruction."""
    found = []
    with warnings.catch_warnings():
        # jaxlib 0.7 makes its classes when they are first used, with a warning under Python 3.13; as an error it aborts
        warnings.simplefilter("ignore", DeprecationWarning)
        for path in trace_files(folder, ".xplane.pb"):
            for plane in jax.profiler.ProfileData.from_file(path).planes:
                on_host = plane.name.startswith("/host")
                for line in plane.lines:
                    found += [e for e in (_kernel(event, on_host) for event in line.events) if e is not None]
    return found


def _kernel(event, on_host):
    stats = dict(event.stats)
    instruction = stats.get("hlo_op")
    if instruction is None or event.name.startswith("end: "):
        return None
    us = event.duration_ns / 1e3
    times = {"cpu_time_total": us, "self_cpu_time_total": us}
    if not on_host:
        times = {"device_time_total": us, "self_device_time_total": us}
    head, _, number = str(instruction).rpartition(".")
    key = head if head and number.isdigit() else str(instruction)
    return FunctionEvent(event.name, key, event.start_ns / 1e3, **times, is_kernel=True)


def nested(spans) -> list[FunctionEvent]:
    """Events of spans: their own time is without the spans inside them."""
    events, stacks = [], {}
    # A range that starts and ends with another is inside that which was noted later.
    order = sorted(enumerate(spans), key=lambda s: (s[1].start, -s[1].end, -s[0]))
    for k, (_, span) in enumerate(order):
        stack = stacks.setdefault(span.thread, [])
        while stack and stack[-1][1] <= span.start:
            stack.pop()
        us = (span.end - span.start) / 1e3
        event = FunctionEvent(
            span.name, span.name, span.start / 1e3, us, us, is_user_annotation=span.annotation, input_shapes=span.shapes,
            stack=span.stack, thread=span.thread, id=k + 1, is_async=span.apart,
        )  # fmt: skip
        if span.apart:
            events.append(event)
            continue
        if stack:
            event.cpu_parent = parent = stack[-1][0]
            parent.cpu_children.append(event)
            parent.self_cpu_time_total -= us
        stack.append((event, span.end))
        events.append(event)
    return events
