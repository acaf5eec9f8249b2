"""Runs PyTorch's own test databases against jtorch, some units at a time, and prints one table of all that was run.

    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance        # run what is not there yet
    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance --table
    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance --again '^(sort|Linear)$'

--suite is the folder of the `conformance` package, whose README says what each check is. Units (operators, modules, optimizers) go
in batches, those with the fewest samples first; a batch is one JSON file in --folder, and a unit that is in one is not run again, so
an interrupted run goes on where it stopped. --again runs the units of that name once more: the table takes the last result of each.
Compiled programs are kept in --folder for the next run. Arguments after `--` go to the suite.
"""

import argparse
import collections
import importlib
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEED = ROOT / "tools" / "conformance_speed"
SAMPLES = 4000  # of a batch, about; a unit counts as 100 more
# Programs run once, so most of the time is XLA's: this takes 41 ms of CPU for one where it takes 93 by itself.
QUICK = f"--xla_backend_optimization_level=0 {runpy.run_path(ROOT / 'tests' / 'flags.py')['quick']()}"


def commit():
    """The commit that is run, as far as git knows it."""
    said = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def files(folder):
    """What was run, in its order."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("[0-9]*.json"))]


def sizes(suite):
    """Unit -> how many samples it has, about."""
    sys.path.insert(0, str(suite))
    runpy.run_path(str(SPEED / "sitecustomize.py"))  # before torch
    torch = importlib.import_module("torch")
    testing = "torch.testing._internal.common_"
    only_cuda = importlib.import_module("conformance.special").CUDA_ONLY
    found = {f"module {m.name}": 200 for m in importlib.import_module(f"{testing}modules").module_db}
    found |= {f"optimizer {o.name}": 1000 for o in importlib.import_module(f"{testing}optimizers").optim_db}
    for op in importlib.import_module(f"{testing}methods_invocations").op_db:
        if not only_cuda.fullmatch(op.full_name):
            kinds = sorted(op.dtypes, key=lambda d: (d is not torch.float32, str(d)))
            try:
                count = sum(1 for _ in op.sample_inputs("cpu", kinds[0])) * len(kinds)
            except Exception:
                count = 0  # no samples of this dtype, or no dtype at all
            found[op.full_name] = count
    return found


def measure(pattern, suite, folder, more, label):
    """The units of a name, into the next file."""
    env = dict(os.environ, JTORCH_CACHE="0", JAX_TRACEBACK_IN_LOCATIONS_LIMIT="0")
    env["JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS"] = "0"
    env.setdefault("XLA_FLAGS", QUICK)
    env.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "programs"))
    env.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    env["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, suite, SPEED)))
    unfinished = folder / "unfinished"
    command = [sys.executable, "-m", "conformance", "--impl", "jtorch", "--ops", pattern, "--out", unfinished, *more]
    subprocess.run(command, check=True, env=env, cwd=folder)
    results = json.loads(unfinished.read_text())
    unfinished.write_text(json.dumps(results | {"commit": label}, indent=1))
    unfinished.rename(folder / f"{len(files(folder)):03}.json")


def run(suite, folder, *more):
    """Every unit that is in no file yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = sizes(suite)
    for results in files(folder):
        left = {name: size for name, size in left.items() if name not in results["units"]}
    while left:
        batch, total = [], 0
        for name in sorted(left, key=left.get):
            if batch and total + left[name] > SAMPLES:
                break
            batch.append(re.escape(name.rpartition(" ")[2]))
            total += left.pop(name) + 100
        print(f"{len(batch)} units, then {len(left)} are left", file=sys.stderr, flush=True)
        measure(f"^({'|'.join(batch)})$", suite, folder, *more)


def table(suite, folder):
    """All files as one: a row for each check, then what fails, with its first failure."""
    sys.path.insert(0, str(suite))
    report = importlib.import_module("conformance.report")
    units, ran = {}, {}
    for results in files(folder):
        units |= results["units"]
        ran |= dict.fromkeys(results["units"], results["commit"])
    kinds = collections.Counter(name.partition(" ")[0] if " " in name else "operator" for name in units)
    print(", ".join(f"{count} {kind}s" for kind, count in kinds.items()))
    for label, count in collections.Counter(ran.values()).items():
        print(f"{count} units on {label}")
    print("| check | units whole | | samples right | |\n|---|---|---|---|---|")
    for check in report.checks_of(units):
        whole, count, passed, total, _ = report.tally(units, check)
        print(f"| `{check}` | {whole} of {count} | {whole / count:.1%} | {passed} of {total} | {passed / total:.2%} |")
    report.print_worst(units, 1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print what the files say")
    parser.add_argument("--again", metavar="REGEX", help="run the units of this name once more")
    parser.add_argument("--commit", default=commit(), help="what to call the version that is run")
    options, more = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    where = options.suite.resolve(), options.folder.resolve(), [a for a in more if a != "--"], options.commit
    if options.again:
        measure(options.again, *where)
    elif not options.table:
        run(*where)
    table(options.suite, options.folder)


if __name__ == "__main__":
    main()
