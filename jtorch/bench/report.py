"""What the measurements look like: a table, a JSON file, a picture."""

import importlib
import json
import os
import tempfile
from pathlib import Path

COLUMNS = [
    # key, head, format
    ("model", "model", "{}"),
    ("way", "way", "{}"),
    ("steps_per_s", "steps/s", "{:.1f}"),
    ("ratio_jax", "x jax", "{:.2f}"),
    ("ratio_torch", "x torch", "{:.2f}"),
    ("first_step_s", "first step s", "{:.2f}"),
    ("warm_first_step_s", "cached s", "{:.2f}"),
    ("steady_s", "steady s", "{:.2f}"),
    ("own_steps_per_s", "alone steps/s", "{:.1f}"),
    ("peak_memory_mb", "peak MB", "{:.0f}"),
    ("device_peak_mb", "device MB", "{:.0f}"),
]

LABELS = {
    "eager": "jtorch eager",
    "auto": "jtorch auto",
    "compile": "jtorch compile",
    "jax": "hand-written jax",
    "torch": "torch eager",
    "torch-compile": "torch compile",
}


def table(rows: list[dict]) -> str:
    """The rows as aligned text; columns that no row fills are left out."""
    columns = [c for c in COLUMNS if any(row.get(c[0]) is not None for row in rows)]
    cells = [[head for _, head, _ in columns]]
    for row in rows:
        shown = row | {"way": LABELS[row["way"]]}
        cells.append(["-" if shown.get(k) is None else form.format(shown[k]) for k, _, form in columns])
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = []
    for line in cells:
        left = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths))]
        lines.append("  ".join(left).rstrip())
    return "\n".join(lines)


def replace(path: str | Path, data: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, never half of it."""
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp's 0600 is for secrets
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_json(path: str, report: dict) -> None:
    replace(path, (json.dumps(report, indent=2) + "\n").encode())


def _suffix(path: str) -> str:
    return Path(path).suffix or ".png"


def no_such_picture(path: str) -> str | None:
    """Why matplotlib cannot draw into a file of this name; None where it can."""
    known = importlib.import_module("matplotlib.figure").Figure().canvas.get_supported_filetypes()
    suffix = _suffix(path)
    if suffix[1:].lower() in known:
        return None
    return f"no pictures in {suffix} files; there are {', '.join(sorted(known))}"


def write_plot(path: str, rows: list[dict]) -> None:
    """Bars of speed against hand-written JAX, one group a model. The suffix of `path` picks the format."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    rows = [row for row in rows if row.get("ratio_jax") is not None]
    names = list(dict.fromkeys(row["model"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))
    figure, axes = plt.subplots(figsize=(2 + 1.6 * len(names), 4))
    width = 0.8 / max(1, len(ways))
    for i, way in enumerate(ways):
        at = {row["model"]: row["ratio_jax"] for row in rows if row["way"] == way}
        places = [names.index(name) + (i - (len(ways) - 1) / 2) * width for name in at]
        axes.bar(places, list(at.values()), width, label=LABELS[way])
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("steps/s, hand-written jax = 1")
    axes.legend(fontsize="small")
    figure.tight_layout()
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / f"plot{_suffix(path)}"
        figure.savefig(drawn, dpi=150)
        replace(path, drawn.read_bytes())
    plt.close(figure)
