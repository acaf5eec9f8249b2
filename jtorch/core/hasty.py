"""Executables that are made quickly: XLA's CPU compiler takes a half to a fifth of its time without optimisation.

For programs that numpy does not run at first (`by_numpy.py`), and operations by themselves. Those of a first step, of a last batch, or of a
sentence's length may not come back, and then the time goes into the compiler, not into what was compiled. What does come back is
compiled again with everything on, after a number of runs that follows from what it is made of: the clock has no say in which executable makes a run.
"""

import functools
import os

import jax

from .. import config
from . import costs, crowd, gpu
from .channel_order import FOLLOWS
from .device import cpu
from .hosted import Hosted
from .packing import placed
from .seen import seen

ENOUGH = 3  # runs at least of a program made in haste
ENOUGH_BY_OP = 32  # the same of one operation by itself
SMALL = 1 << 26  # bytes of one run: with more, running in haste takes longer than compiling most programs
RUNS = 16  # in haste, at least, that a larger one is worth: it is made of much, which takes the compiler half a minute
SMALL_BY_OP = 1 << 18  # bytes of the operands and results of one operation
UNALIKE = 0.5  # share of operations that are like no other before them in a program
MANY = 32  # of them: with fewer, what the compiler takes is little, and an MLP's step was an eighth slower
# What XLA takes from the library of kernels that it has for the CPU: sums and products, each product by itself (together with what
# surrounds them an MLP's step takes 1.03 to 1.17 of the time, a transformer's 0.92 to 1.04), but no convolutions, of which its own take
# half as long in jaxlib 0.10 (a ResNet's step 0.82) and as long in 0.12.
_OF_LIBRARY = "xla_cpu_experimental_ynn_fusion_type"
_KINDS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
LARGE = 1 << 24  # bytes of what has no operands
# Between the operations of a fused loop XLA would keep float32 where a result is a shorter float; PyTorch rounds each.
_ROUNDED = {"xla_allow_excess_precision": False}
_EACH_LOOP = {"xla_cpu_use_fusion_emitters": False}
HASTE = {"xla_backend_optimization_level": 0, **_EACH_LOOP}


@functools.cache
def _is_known(option, value) -> bool:
    """Whether XLA's CPU compiler knows an option: jaxlib 0.7 lacks the one about the library, 0.11 the one about fused loops."""

    def nothing():
        return 0.0

    try:
        with jax.ensure_compile_time_eval(), placed(cpu):
            jax.jit(nothing).lower().compile(compiler_options={option: value})
    except Exception:  # jaxlib says in several ways that it does not know an option
        return False
    return True


def known(told: dict) -> dict:
    """Of some options those that XLA knows."""
    return {option: value for option, value in told.items() if _is_known(option, value)}


def library() -> dict:
    """The option about the library, where XLA can be told about it and the user has told it nothing else."""
    if _OF_LIBRARY in os.environ.get("XLA_FLAGS", ""):
        return {}
    return known({_OF_LIBRARY: _KINDS})


def _kernels(prog) -> dict:
    """What the compiler is told of a program however it is made."""
    return library() | (_ROUNDED if any(map(_is_short, prog.nodes)) else {})


def _is_short(node) -> bool:
    return any(spec.dtype.np.itemsize == 2 and spec.dtype.is_floating_point for spec in node.plan.specs)


def wanted(prog) -> bool:
    """Whether a program has little to compute, or little beside what it takes to compile it."""
    return prog.device.type == "cpu" and (costs.nbytes(prog) <= SMALL or costs.in_haste(prog, 0).few >= RUNS)


def options(prog):
    """What the compiler is told of a program that is made with everything on, or None.

    XLA's fusion emitters take time for each kind of loop, and hardly any for the next one of a kind; without them every loop takes half
    of that.
    """
    plans = {node.plan for node in prog.nodes}
    if prog.device.type != "cpu":
        return _of_accelerator(prog.device, plans)
    kinds = len(plans)
    return _kernels(prog) | (known(_EACH_LOOP) if kinds >= max(MANY, UNALIKE * len(prog.nodes)) else {}) or None


def _of_accelerator(device, plans):
    """What the compiler of an accelerator is told, or None."""
    return device.type == "cuda" and known(gpu.options(plans)) or None


def _under(compiler_options, fn, usual, **donation):
    """`fn` made with these options; the usual one without any, and within somebody's `jax.jit`, which takes no options of a part."""
    if not compiler_options:
        return usual
    made = jax.jit(fn, compiler_options=compiler_options, **donation)

    def call(*args):
        try:
            return made(*args)
        except ValueError as error:
            if "compiler_options" not in str(error):
                raise
            return usual(*args)

    return call


def in_full(prog):
    """What calls a program that is made with everything on."""
    usual, given = prog.traced(), options(prog)
    return usual if given is None else _under(given, usual.__wrapped__, usual, donate_argnums=prog.donate)


def of_program(prog):
    """What calls a program for its first runs; after these the program is called with everything on."""
    usual = prog.traced()
    quick = _under(known(HASTE) | _kernels(prog), usual.__wrapped__, usual, donate_argnums=prog.donate)
    wait = prog.hasty = costs.in_haste(prog, ENOUGH)
    made = 0

    def call(*args):
        nonlocal made
        made += 1
        if wait.done(made):
            prog.call = in_full(prog)
            prog.settled = True
        return quick(*args)

    return call


def of_plan(plan):
    """What runs a plan by itself for its first runs: `plan.first` from now on."""
    crowd.made()
    size = plan.nbytes + sum(spec.nbytes for spec in plan.operands)
    usual = plan.by_itself()
    given = None if plan.channels is FOLLOWS else _of_accelerator(plan.device, [plan])
    if given is not None:
        usual = plan.alone = _under(given, usual.__wrapped__, usual)
    is_large = size > (SMALL_BY_OP if plan.operands else LARGE)
    # one that comes with sizes of its own each time is seldom worth the compiler, and numpy may round it in its own way
    alike = costs.by_itself(plan) if plan.device.type == "cpu" and not config.deterministic and seen.varies(plan) else 0
    if is_large:
        plan.first = Hosted(plan, usual, alike, alike) if alike else usual
    elif plan.device.type == "cpu":
        plan.first = Hosted(plan, _under(known(HASTE), usual.__wrapped__, usual), alike=alike)
    else:  # a program of an accelerator takes longer to compile than some kilobytes to come and go
        plan.first = Hosted(plan, usual, ENOUGH_BY_OP)
    return plan.first
