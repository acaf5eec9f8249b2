"""Runs PyTorch's own test databases against jtorch, slice by slice, and prints one table of all slices.

    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance        # run what is not there yet
    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance --table

--suite is the folder of the `conformance` package, whose README says what each check is. A slice is one JSON file in --folder;
one that is there is not run again, so an interrupted run goes on where it stopped. Arguments after `--` go to the suite.
"""

import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

SLICES = {
    "a": "^(_|T$|H$|[ab])", "c": "^c", "d": "^[d-h]", "i": "^[i-k]", "l": "^(l[a-h]|l[j-z]|li$)", "linalg": "^linalg",
    "lin": "^lin[^a]", "m": "^m", "n": "^n[a-m]|^n[o-z]", "o": "^[o-r]", "s": "^(s[a-o]|s[q-z])", "sp": "^special",
    "sq": "^sp[^e]", "t": "^[t-z]", "nn-a": "^nn.functional.[ab]", "nn-c": "^nn.functional.[cd]",
    "nn-e": "^nn.functional.[e-k]", "nn-l": "^nn.functional.l", "nn-m": "^nn.functional.[mn]",
    "nn-o": "^nn.functional.[o-r]", "nn-s": "^nn.functional.[s-z]",
}  # fmt: skip
OPS = "forward,grad,gradgrad,inplace,out,method,dtype,stride,alias,errors"


def run(suite, folder, more):
    """Every slice without a file yet; modules and optimizers are the last one."""
    env = dict(os.environ, JTORCH_CACHE="0", JAX_TRACEBACK_IN_LOCATIONS_LIMIT="0")
    env["JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS"] = "0"
    env["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, suite, ROOT / "tools" / "conformance_speed")))
    folder.mkdir(parents=True, exist_ok=True)
    parts = [(name, pattern, OPS) for name, pattern in SLICES.items()]
    for name, pattern, what in [*parts, ("modules", "", "modules,optimizers")]:
        out = folder / f"{name}.json"
        if out.exists():
            continue
        command = [sys.executable, "-m", "conformance", "--impl", "jtorch", "--ops", pattern, "--what", what]
        unfinished = folder / f"{name}.unfinished"
        subprocess.run([*command, "--out", unfinished, *more], check=True, env=env, cwd=folder)
        unfinished.rename(out)


def table(suite, folder):
    """All slices as one: a row for each check, then what fails, with its first failure."""
    sys.path.insert(0, str(suite))
    report = importlib.import_module("conformance.report")
    units = {}
    for name in (*SLICES, "modules"):
        file = folder / f"{name}.json"
        if file.exists():
            units |= json.loads(file.read_text())["units"]
        else:
            print(f"not run: {name} ({SLICES.get(name, 'modules and optimizers')})")
    print("| check | units right | | samples right | |\n|---|---|---|---|---|")
    for check in report.checks_of(units):
        whole, count, passed, total, _ = report.tally(units, check)
        print(f"| {check} | {whole} of {count} | {whole / count:.1%} | {passed} of {total} | {passed / total:.2%} |")
    report.print_worst(units, 1000)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print what the files say")
    options, more = parser.parse_known_args()
    if not options.table:
        run(options.suite.resolve(), options.folder.resolve(), [a for a in more if a != "--"])
    table(options.suite, options.folder)


if __name__ == "__main__":
    main()
