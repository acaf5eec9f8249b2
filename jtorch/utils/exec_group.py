"""Backward passes that share what checkpointed regions compute again."""

from ..core.record import tls


class GraphExecGroup:
    """While it holds, a region is recomputed once for all backward passes together; no two may need the same saved tensor."""

    def __enter__(self):
        me = tls.me
        if me.extra.get("exec_group") is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {me.extra['exec_group']}"
            )
        me.put("exec_group", self)
        return self

    def __exit__(self, *exc):
        tls.me.put("exec_group", None)
