"""`python -m jtorch coverage PATH`: the torch names of a script or package that jtorch lacks, with what to do; it runs nothing."""

import argparse

from .. import swap
from ..swap import scan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`PATH`, and whether to list what the program can do without."""
    parser.add_argument("path", metavar="PATH", help="a Python file, or a folder of them")
    parser.add_argument(
        "--all", action="store_true", help="also names that are tried under try/except or after a probe"
    )


def run(args: argparse.Namespace) -> int:
    """Print one line for each use. 0 when nothing is lacking, 1 when something is, 2 when the path cannot be read."""
    swap.install_as_torch()
    try:
        uses, unread, looked_up = scan.scan(args.path)
    except FileNotFoundError as error:
        print(f"python -m jtorch coverage: {error}")
        return 2
    needed = [u for u in uses if not u.optional]
    for use in uses if args.all else needed:
        note = " (optional there)" if use.optional else ""
        print(f"{use.path}:{use.line}: {use.name}{note}: {use.advice}")
    for path, why in unread.items():
        print(f"{path}: not read: {why}")
    missing = len({u.name for u in needed})
    spare = len({u.name for u in uses}) - missing
    print(
        f"{looked_up} torch names used; jtorch lacks {missing}"
        + (f", and {spare} that are optional there" if spare > 0 else "")
    )
    return 1 if needed else 2 if unread else 0
