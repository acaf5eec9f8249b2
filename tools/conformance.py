"""Runs PyTorch's own test databases against jtorch, slice by slice, and prints one table of all slices.

    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance        # run what is not there yet
    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance --table
    python tools/conformance.py --suite SHARED/conformance --folder /tmp/conformance --again '^(sort|Linear)$'

--suite is the folder of the `conformance` package, whose README says what each check is. A slice is one JSON file in --folder;
one that is there is not run again, so an interrupted run goes on where it stopped. --again runs the units of that name once more,
and the table then takes these results. Compiled programs are kept in --folder for the next run. Arguments after `--` go to the suite.
"""

import argparse
import collections
import importlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

OPS = "forward,grad,gradgrad,inplace,out,method,dtype,stride,alias,errors"
SLICES = {
    "optimizers": ("", "optimizers"), "nn-modules": ("", "modules"),
    **{name: (pattern, OPS) for name, pattern in {
        "c": "^c", "d": "^[d-f](?!ft)", "fft": "^fft", "g": "^[gh]", "i": "^[i-k]", "l": "^(l[a-h]|l[j-z]|li$)",
        "linalg": "^linalg", "lin": "^lin[^a]", "m": "^m[bcdTH]|^ma[^s]", "masked": "^masked", "me": "^m[e-z]", "n": "^n[a-m]|^n[o-z]",
        "o": "^[o-r]", "s": "^(s[a-o]|s[q-z])", "sp": "^special", "sq": "^sp[^e]", "t": "^t", "u": "^[u-z]",
        "nn-a": "^nn.functional.a", "nn-b": "^nn.functional.b", "nn-c": "^nn.functional.c", "nn-d": "^nn.functional.d",
        "nn-e": "^nn.functional.[e-h]", "nn-i": "^nn.functional.[ijk]", "nn-l": "^nn.functional.l", "nn-m": "^nn.functional.m",
        "nn-n": "^nn.functional.n", "nn-o": "^nn.functional.[o-r]", "nn-s": "^nn.functional.[s-z]",
        "b": "^b", "a": "^(T$|H$|a)", "_": "^_",
    }.items()},
}  # fmt: skip


def commit():
    """The commit that is run, as far as git knows it."""
    said = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def measure(name, pattern, what, suite, folder, more, label):
    """One slice, into the file of its name."""
    env = dict(os.environ, JTORCH_CACHE="0", JAX_TRACEBACK_IN_LOCATIONS_LIMIT="0")
    env["JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS"] = "0"
    env.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "programs"))
    env.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    env["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, suite, ROOT / "tools" / "conformance_speed")))
    command = [sys.executable, "-m", "conformance", "--impl", "jtorch", "--ops", pattern, "--what", what]
    unfinished = folder / f"{name}.unfinished"
    subprocess.run([*command, "--out", unfinished, *more], check=True, env=env, cwd=folder)
    results = json.loads(unfinished.read_text())
    unfinished.write_text(json.dumps(results | {"commit": label}, indent=1))
    unfinished.rename(folder / f"{name}.json")


def run(names, suite, folder, more, label):
    """Every slice of these without a file yet."""
    for name in names:
        if not (folder / f"{name}.json").exists():
            measure(name, *SLICES[name], suite, folder, more, label)


def again(pattern, suite, folder, more, label):
    """The units of that name once more, as the next file of its kind."""
    number = len(list(folder.glob("again-*.json")))
    measure(f"again-{number:03}", pattern, f"{OPS},modules,optimizers", suite, folder, more, label)


def table(suite, folder):
    """All slices as one: a row for each check, then what fails, with its first failure."""
    sys.path.insert(0, str(suite))
    report = importlib.import_module("conformance.report")
    units, ran = {}, {}
    for file in [*(folder / f"{name}.json" for name in SLICES), *sorted(folder.glob("again-*.json"))]:
        if file.exists():
            results = json.loads(file.read_text())
            units |= results["units"]
            ran |= dict.fromkeys(results["units"], results["commit"])
        else:
            print(f"not run: {file.stem} {SLICES[file.stem]}")
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
    parser.add_argument(
        "--slices", default=",".join(SLICES), help="which, and in which order (for two runs side by side)"
    )
    parser.add_argument("--commit", default=commit(), help="what to call the version that is run")
    options, more = parser.parse_known_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    where = options.suite.resolve(), options.folder.resolve(), [a for a in more if a != "--"], options.commit
    if options.again:
        again(options.again, *where)
    elif not options.table:
        run(options.slices.split(","), *where)
    table(options.suite, options.folder)


if __name__ == "__main__":
    main()
