"""Compare: measurements side by side as a table."""

import enum

from .timer import Measurement, select_unit


class Colorize(enum.Enum):
    """How a table is coloured: accepted."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: rows by sub_label (or statement), columns by description, a table for each label."""

    def __init__(self, results):
        self._results = list(results)
        self._trim = False

    def extend_results(self, results) -> None:
        """Add measurements. Raises ValueError for anything else."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show three figures."""
        self._trim = True

    def colorize(self, rowwise=False) -> None:
        """Accepted."""

    def highlight_warnings(self) -> None:
        """Accepted."""

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self):
        merged = Measurement.merge(self._results)
        labels = list(dict.fromkeys(m.label for m in merged))
        return "\n\n".join(self._table(label, [m for m in merged if m.label == label]) for label in labels)

    def _table(self, label, found):
        rows = list(dict.fromkeys((m.num_threads, m.sub_label or m.stmt) for m in found))
        columns = list(dict.fromkeys(m.description or "" for m in found))
        unit, size = select_unit(min(m.median for m in found))
        form = "{:.3g}" if self._trim else "{:.1f}"
        cells = {
            ((m.num_threads, m.sub_label or m.stmt), m.description or ""): form.format(m.median / size) for m in found
        }
        first = max(len(r[1]) for r in rows) + 6
        widths = [max(len(c), 8) for c in columns]
        lines = [" " * first + "  |  ".join(["", *(c.rjust(w) for c, w in zip(columns, widths))])]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(lines[0]), "-"))
            values = [cells.get((row, c), "").rjust(w) for c, w in zip(columns, widths)]
            lines.append(f"      {row[1]}".ljust(first) + "  |  ".join(["", *values]))
        width = max(map(len, lines))
        name = {"s": "seconds (s)", "ms": "milliseconds (ms)", "us": "microseconds (us)", "ns": "nanoseconds (ns)"}[
            unit
        ]
        title = f" {label or ''} ".center(width, "-")
        return "\n".join([f"[{title[1:-1]}]", *lines, f"\nTimes are in {name}."])
