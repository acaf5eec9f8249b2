"""Selective checkpointing: a policy says of each op whether its result is kept or computed again."""

import enum
from collections import defaultdict

from .. import errors_extend
from ..core.record import tls
from ..dispatch import dispatched, slow
from ..ops import registry
from ..tensor import Tensor, value_of

# What PyTorch computes in parts: whoever asks to keep a part gets the whole.
_PARTS = {"linear": {"mm", "addmm"}, "matmul": {"mm", "bmm"}}
SAC_IGNORED_OPS = set()  # ops that a policy is not asked about


class CheckpointPolicy(enum.Enum):
    """What a policy may answer."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """The first argument of a policy: whether this is the second time, and what has been computed so far."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute = is_recompute
        self.op_output = op_output


_SAVED = (
    CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD,
    CheckpointPolicy.PREFER_CPU_OFFLOAD,
)  # fmt: skip


_AGAIN, _GONE = object(), object()  # in the place of results: to be computed again; handed out already


class _Watch:
    """Sees every op called inside: the first time it asks the policy and keeps results.

    kept: op -> for each of its calls what is kept, or _AGAIN.
    """

    def __init__(self, policy, kept):
        self.policy = policy
        self.kept = kept

    def __enter__(self):
        me = tls.me
        self.outer = me.special
        me.special = self.handle

    def __exit__(self, *exc):
        tls.me.special = self.outer

    def handle(self, op, args, out=None, inplace=False):
        me = tls.me
        if inplace or out is not None:
            return self.outer(op, args, out, inplace) if self.outer is not None else (False, None)
        me.special = self.outer
        try:
            result = slow(op, args)
        finally:
            me.special = self.handle
        self.seen(
            op, args, result, [r for r in (result if isinstance(result, tuple) else (result,)) if isinstance(r, Tensor)]
        )
        return True, result

    def seen(self, op, args, result, outs):
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        answer = self.policy(context, dispatched.overload_of(op, args), *args)
        if isinstance(answer, bool):
            answer = CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        held = [(value_of(r), r._storage, r._storage.version) for r in outs] if answer in _SAVED else _AGAIN
        self.kept[op.name].append(held)


class _HandOut(_Watch):
    """The second time: hands out what was kept.

    An op whose result is handed out is recorded all the same, for its place on the tape; since nothing reads what it would
    compute, it never runs.
    """

    def __init__(self, kept, mutable):
        self.kept = kept
        self.mutable = mutable

    def __enter__(self):
        self.counts = defaultdict(int)
        super().__enter__()

    def seen(self, op, args, result, outs):
        at = self.counts[op.name]
        self.counts[op.name] = at + 1
        held = self.kept[op.name]
        if at >= len(held):
            raise errors_extend.not_seen_before(dispatched.overload_of(op, args), at)
        if held[at] is _GONE:
            raise errors_extend.handed_out_already()
        if held[at] is _AGAIN:
            return
        if not self.mutable and any(storage.version != version for _, storage, version in held[at]):
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        for r, (value, _, _) in zip(outs, held[at]):
            r._storage.value = value
        held[at] = _GONE


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The two contexts that `checkpoint(context_fn=...)` wants, from a policy or from a list of ops to keep.

    A policy is called as policy(ctx, op, *args, **kwargs) and answers with a CheckpointPolicy, once for each call of the first
    time. A result that was kept and has been written to since is refused, but with allow_cache_entry_mutation.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if isinstance(op, dispatched.OpOverloadPacket) or not callable(op):
                raise errors_extend.no_overload_to_keep(op)
        names = {_name(f) for f in policy_fn_or_list}
        names |= {whole for whole, parts in _PARTS.items() if names & parts}

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if _name(op) in names else CheckpointPolicy.PREFER_RECOMPUTE
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept = defaultdict(list)
    return _Watch(policy, kept), _HandOut(kept, allow_cache_entry_mutation)


def _name(fn):
    name = getattr(fn, "__name__", str(fn)).split(".")[0]
    for op in registry.OPS.values():
        if name in (op.name, *getattr(op, "aliases", ())):
            return op.name
    return name
