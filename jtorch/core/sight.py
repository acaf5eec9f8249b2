"""Whether a program is compiled at first sight, left to numpy at first, or run op by op until it comes back."""

from itertools import repeat

from .. import config
from . import by_numpy, costs, hasty, parts
from .seen import seen


def numpys(prog, cause) -> costs.Wait | None:
    """Whether numpy runs a program at first, and how often: where compiling it is likely in vain.

    A loop whose graph is another one at each pass (by an episode's length, a sentence's, a slice's) would compile for ever: what is
    a program that was compiled at sight with other shapes, or is made of what two of them were made of, waits until it comes back. So does
    one of very many nodes: many passes of a loop that looks at none of its values. Where most operations come with many sizes, the loop's
    tensors grow (a cache of keys, slices up to a pivot), and XLA would compile each pass by itself. An update of parameters whose
    gradients are there already, since the loss was looked at before, is very many primitives of little work.
    """
    if config.deterministic:
        return None
    plans = {node.plan for node in prog.nodes}
    very_many = prog.n_nodes > _VERY_MANY
    growing = False
    if cause != "optimizer.step":  # a step of a deep network comes again and again
        very_many = very_many or prog.n_nodes > max(_MANY, _ALIKE * len(plans))
        growing = cause != _COMPILED and len(plans) > _LONG and len(plans) > _SIZES * len({plan.name for plan in plans})
    update = _only_updates(prog)
    if not (very_many or update) and len(_cold(prog)) <= config.cold_ops:
        return None
    names = _names(prog)
    varied = very_many or growing or names in seen.kinds or _mostly(map(seen.names.get, names, repeat(0))) >= _VARIED
    if not (varied or update):
        return None
    least, quickly = _ENOUGH_OF_MANY if very_many else _ENOUGH, hasty.wanted(prog)
    return costs.by_numpy(prog, least, quickly, parts.compiling) if by_numpy.wanted(prog, least, quickly) else None


def _only_updates(prog) -> bool:
    """Whether most of what a program makes are parameters and their states, and none of it gradients."""
    made = updated = 0
    for plan in [node.plan for node in prog.nodes]:
        made += plan.n_out
        if plan.op is None and plan.grad_name is not None:
            return False
        if plan.op is None and plan.runtime and plan.n_out > _PARAMETERS:
            updated += plan.n_out
    return 2 * updated > made and prog.device.type == "cpu" and costs.nbytes(prog) <= by_numpy.LITTLE


def at_sight(prog, inputs) -> bool:
    """Whether to compile a program now: where it has come back often enough for what compiling it takes, or has many ops of which none
    has an executable yet.

    Where numpy does not run it, and most nodes are of ops that several programs compiled so have had, each op gets its executable
    instead; and where a few of them make a very long program.
    """
    if config.deterministic:
        return True
    if prog.by_numpy and by_numpy.spread(inputs):
        prog.by_numpy = False
        prog.wait = None
    if prog.wait is not None:
        return prog.wait.done(prog.runs)
    cold, few = _cold(prog), 1
    quickly = hasty.wanted(prog)
    if len(cold) > config.cold_ops:
        tries = _mostly(node.plan.tries if not node.plan.warm else _OFTEN for node in prog.nodes)
        if tries >= _TRIES and len(cold) <= max(_FEW, _FRESH * prog.n_nodes * tries / _TRIES):
            few = _PATIENCE
        elif prog.n_nodes < _REPEATED * len(cold) or parts.of(prog) or not _much_longer(prog, cold, quickly):
            for plan in cold:
                plan.tries += 1
            seen.add(_names(prog))
            return True
    prog.wait = costs.by_op(prog, few, quickly, parts.compiling)
    return False


def _much_longer(prog, cold, quickly) -> bool:
    return costs.compiling(prog, quickly) > _LONGER * costs.by_op_at_once(prog, cold)


def _cold(prog):
    return {node.plan for node in prog.nodes if not node.plan.warm}


def _names(prog):
    return tuple([node.plan.name for node in prog.nodes])


def _mostly(counts) -> int:
    """What most of them are, at least."""
    counts = sorted(counts, reverse=True)
    return counts[int(_MOSTLY * len(counts))]


_TRIES, _OFTEN = 3, 1 << 20
_VARIED = 2
_VERY_MANY = 1000  # nodes, which take some 10 s to compile
_MANY, _ALIKE = 200, 8  # nodes; so many times the plans that they are made of
_COMPILED = "compiled region"  # by torch.compile, whose caller asked for it
_LONG, _SIZES = 64, 12  # plans, and for each kind of operation, of a loop whose tensors grow
_ENOUGH, _ENOUGH_OF_MANY = 2, 16  # runs by numpy
_PARAMETERS = 4  # results, of which an operation that updates a group of parameters has more
_MOSTLY = 0.7
# So many ops, or this part of the nodes, may need executables of their own: one takes as long as eight nodes of a program. More when
# more programs than the first few have been compiled in vain.
_FEW, _FRESH = 16, 0.125
# A loop written out: nodes for each op, and how much longer it takes to compile than to run op by op at first.
_REPEATED, _LONGER = 5, 5
_PATIENCE = 4  # programs that differ so seldom come back, and take seconds to compile
