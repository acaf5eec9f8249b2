"""`python -m jtorch` run, coverage, bench and doctor."""

import argparse
import importlib
import sys


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m jtorch", description=__doc__)
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
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
