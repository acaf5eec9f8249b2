"""`python -m jtorch` run, coverage, bench and doctor."""

import argparse
import importlib
import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jtorch", description=__doc__)
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "run": "run an unmodified PyTorch program on jtorch",
        "coverage": "which torch names of a program jtorch lacks, without running it",
        "bench": "speed against hand-written JAX and PyTorch",
        "doctor": "what is installed and what to fix",
    }
    given = sys.argv[1:] if argv is None else argv
    # Only the command that is run is imported: doctor must work where the rest does not.
    for name, text in helps.items():
        sub = commands.add_parser(name, help=text, description=text)
        if name in given[:1]:
            module = importlib.import_module(f"jtorch.cli.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    args = parser.parse_args(given)
    if args.command == "run":  # what a program raises is its own
        return args.run(args)
    try:
        status = args.run(args)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return stopped(args.command, "interrupted", 130)
    except BrokenPipeError:  # who read the output has seen enough, as of other programs
        return stopped(args.command, "", 141)
    except OSError as error:
        return stopped(args.command, str(error), 2)
    return status


class _Version(argparse.Action):
    """`--version`: the release, and PyTorch's whose behaviour it follows."""

    def __init__(self, option_strings, dest):
        super().__init__(option_strings, dest, nargs=0, help="say the version and exit")

    def __call__(self, parser, namespace, values, option_string=None):
        release = importlib.import_module("jtorch.version").torch
        print(f"jtorch {importlib.import_module('jtorch').__version__} (PyTorch {release})")
        parser.exit()


def stopped(command: str, words: str, status: int) -> int:
    """Say why a command could not end. What is left of its output goes nowhere: Python's end would fail at it again."""
    if words:
        print(f"python -m jtorch {command}: {words}", file=sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


if __name__ == "__main__":
    sys.exit(main())
