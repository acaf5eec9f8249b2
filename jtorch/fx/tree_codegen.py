"""Code of a function that was traced with nested arguments: it takes them apart, and puts its results together."""

from typing import Any, NamedTuple

from ..utils import _pytree
from . import _pytree as fx_pytree
from .codegen import CodeGen, _repr

__all__ = ["_PyTreeCodeGen", "_PyTreeInfo"]


class _PyTreeInfo(NamedTuple):
    """The names of the arguments, their containers, and those of the results."""

    orig_args: list
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Writes a signature with the arguments as they were, and what is between them and the graph's inputs."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def gen_fn_def(self, free_vars, maybe_return_annotation) -> str:
        names = [n for n in self.pytree_info.orig_args if n != "self"]
        inputs = [v.partition(":")[0].partition("=")[0].strip() for v in free_vars]
        head = super().gen_fn_def([*names], maybe_return_annotation)
        if not inputs:
            return head
        return f"{head}\n    {', '.join(inputs)}, = fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"

    def generate_output(self, output_args) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({_repr(list(output_args))}, self._out_spec)"

    def process_inputs(self, *args):
        return _pytree.arg_tree_leaves(*args)

    def process_outputs(self, outputs):
        spec = self.pytree_info.out_spec
        if spec is None:
            return outputs
        return _pytree.tree_unflatten(outputs if isinstance(outputs, (list, tuple)) else [outputs], spec)

    def additional_globals(self) -> list:
        return [("fx_pytree", fx_pytree), ("pytree", _pytree)]
