"""Events of a profile, their sums by name, and the table of these."""

import dataclasses
import glob
import os
import warnings

import jax


@dataclasses.dataclass
class FunctionEvent:
    """One thing that ran: a named range of the program, or a kernel. Times are in microseconds.

    `key` is the name that equal events share; a kernel's is that of its HLO instruction without the number.
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

    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cpu_time = property(lambda self: self.cpu_time_total / self.count)
    device_time = property(lambda self: self.device_time_total / self.count)
    cuda_time = device_time
    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    flops = 0
    input_shapes = ()
    stack = ()

    def add(self, other) -> None:
        """Add the times and the count of an event of the same name."""
        self.count += other.count
        for name in ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


FunctionEventAvg = FunctionEvent


class EventList(list):
    """Events, or their averages."""

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of what each took without what ran inside it."""
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """One entry a name: times and counts added up."""
        sums = {}
        for event in self:
            if event.key in sums:
                sums[event.key].add(event)
            else:
                sums[event.key] = dataclasses.replace(event, name=event.key)
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
        rows = rows if row_limit < 0 else rows[:row_limit]
        cpu = sum(e.self_cpu_time_total for e in self)
        device = sum(e.self_device_time_total for e in self)
        columns = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
        if device:
            columns += ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
        lines = [_row(e, cpu, device, max_name_column_width) for e in rows]
        return _draw([*columns, "# of Calls"], lines, header, cpu, device)

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path) -> None:
        """Raises: `profile.export_chrome_trace` has the whole trace."""
        raise AttributeError("call export_chrome_trace on the profile, which has the whole trace")


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
    return FunctionEvent(
        event.name, head if head and number.isdigit() else str(instruction), event.start_ns / 1e3, **times
    )


def nested(ranges) -> list[FunctionEvent]:
    """Events of named ranges (name, start ns, end ns): their own time is without the ranges inside them."""
    events, stack = [], []
    for name, start, end in sorted(ranges, key=lambda r: (r[1], -r[2])):
        while stack and stack[-1][1] <= start:
            stack.pop()
        us = (end - start) / 1e3
        event = FunctionEvent(name, name, start / 1e3, us, us, is_user_annotation=True)
        if stack:
            stack[-1][0].self_cpu_time_total -= us
        stack.append((event, end))
        events.append(event)
    return events
