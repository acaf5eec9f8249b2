"""`python -m jtorch run`: an unmodified PyTorch program, in a process in which `import torch` is jtorch."""

import argparse
import os
import runpy
import sys

from .. import swap, tracebacks
from ..swap import errors, main


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`[-m] TARGET ARGS`."""
    parser.add_argument("-m", dest="module", action="store_true", help="TARGET is a module, as in `python -m TARGET`")
    parser.add_argument("target", metavar="TARGET", help="a script, - for the standard input, or with -m a module")
    rest = parser.add_argument(
        "args", nargs=argparse.REMAINDER, metavar="ARGS", help="what the program gets in sys.argv"
    )
    rest.required = False  # argparse's word where TARGET is missing


def run(args: argparse.Namespace) -> int:
    """Run the program as `__main__`; its exit status is the command's."""
    swap.install_as_torch()
    sys.argv[1:] = args.args
    try:
        if args.module:
            sys.path[0] = os.getcwd()
            main.run_module(args.target)
        elif args.target == "-":
            sys.path[0], sys.argv[0] = "", "-"
            main.run_text(sys.stdin.buffer.read())
        elif not os.path.exists(args.target):
            raise errors.no_script(args.target)
        elif not os.path.isfile(args.target) or args.target.endswith((".zip", ".pyz")):
            sys.argv[0] = args.target
            runpy.run_path(args.target, run_name="__main__")
        else:
            path = os.path.abspath(args.target)
            sys.path[0], sys.argv[0] = os.path.dirname(path), args.target
            main.run_script(path)
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _beyond_here(error.__traceback__)
        if error.__traceback__ is None and isinstance(error, (ImportError, OSError, ValueError)):
            print(f"python -m jtorch run: {error}", file=sys.stderr)  # the program could not be started
            return 1
        tracebacks.end_at_program(error)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _beyond_here(traceback):
    """The traceback from the program's own first frame on; None where no line of it has run."""
    here = (__file__, main.__file__, runpy.__file__)
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name not in here and not name.startswith("<frozen "):
            break
        traceback = traceback.tb_next
    return traceback
