"""What the recorder did: flushes, compiles, breaks, from which source line and why."""

from ..core import ledger


class Report:
    """Rows of (line, cause, nodes, runs, fused, compiles, milliseconds), newest last; prints as a table."""

    def __init__(self, entries, counters):
        self.rows = [
            {
                "line": e.line,
                "cause": e.cause,
                "nodes": e.nodes,
                "runs": e.runs,
                "fused": e.fused,
                "compiles": e.compiles,
                "ms": round(e.seconds * 1e3, 3),
                "first_ms": round(e.first_seconds * 1e3, 3),
            }
            for e in entries
        ]
        self.flushes = counters.flushes
        self.compiles = counters.compiles
        self.reused = counters.reused
        self.by_op = counters.by_op
        self.promotions = counters.promotions
        self.data_wait = counters.data_wait  # seconds for which loops over a DataLoader waited for their next batch
        self.data_loop = counters.data_loop  # seconds that those loops took in all, on the host's clock
        self.data_wait_fraction = self.data_wait / self.data_loop if self.data_loop else 0.0

    def __str__(self):
        head = f"{'where':40} {'why':16} {'nodes':>6} {'runs':>7} {'fused':>7} {'compiles':>8} {'ms':>10}"
        lines = [head]
        for r in self.rows:
            where = r["line"] if len(r["line"]) <= 40 else "..." + r["line"][-37:]
            lines.append(
                f"{where:40} {r['cause']:16} {r['nodes']:>6} {r['runs']:>7} {r['fused']:>7} {r['compiles']:>8} {r['ms']:>10.2f}"
            )
        lines.append(
            f"{self.flushes} flushes, {self.compiles} compiles, {self.reused} reused whole, {self.by_op} run by op, "
            f"{self.promotions} numbers made run-time inputs"
        )
        if self.data_loop:
            lines.append(
                f"{100 * self.data_wait_fraction:.1f}% of the time of loops over a DataLoader was waiting for data "
                f"({self.data_wait:.3f} of {self.data_loop:.3f} s)"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def report(clear: bool = False) -> Report:
    """The ledger so far: one row for each program, and sums."""
    made = Report(ledger.entries, ledger.counters)
    if clear:
        ledger.entries.clear()
        ledger.counters.clear()
    return made


def explain(fn):
    """Call `fn` once as a compiled region and say what happened: explain(fn)(*args) -> Report of that call."""

    def run(*args, **kwargs):
        before = len(ledger.entries)
        old = {id(e): (e, e.runs) for e in ledger.entries}  # held, so that no other takes its id
        fn(*args, **kwargs)
        entries = [e for k, e in enumerate(ledger.entries) if k >= before or e.runs != old.get(id(e), (e, None))[1]]
        return Report(entries, ledger.counters)

    return run
