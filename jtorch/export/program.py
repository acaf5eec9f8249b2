"""ExportedProgram: a graph, what its placeholders stand for, and the values that they stand for."""

import copy
import dataclasses
import enum

from ..autograd.grad_mode import no_grad
from ..creation import zeros
from ..fx.codegen import CodeGen
from ..fx.experimental.proxy_tensor import Trace
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.interpreter import Interpreter
from ..fx.node import Node
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor
from ..utils import _pytree
from . import errors
from .sizes import check_sizes


class InputKind(enum.Enum):
    """What a placeholder stands for."""

    USER_INPUT = 1
    PARAMETER = 2
    BUFFER = 3
    CONSTANT_TENSOR = 4


class OutputKind(enum.Enum):
    """What a result is: there are no others, since buffers are written to in place."""

    USER_OUTPUT = 1


@dataclasses.dataclass
class TensorArgument:
    """A tensor that goes in or comes out: the name of its node."""

    name: str


@dataclasses.dataclass
class ConstantArgument:
    """A value of another kind that goes in (with the name of its placeholder) or comes out (without a name)."""

    name: str
    value: object = None


def _said(arg):
    """What a signature lists for an argument: a tensor's name, or the value."""
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclasses.dataclass
class InputSpec:
    """One placeholder: its kind, what it holds, and the name of the parameter, buffer or constant."""

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None
    persistent: bool | None = None

    def __str__(self):
        target = f" target='{self.target}'" if self.target is not None else ""
        persistent = f" persistent={self.persistent}" if self.persistent is not None else ""
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """One result: its kind, what it is, and the buffer that it would change (never here)."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None

    def __str__(self):
        return f"{self.arg.name}: {self.kind.name}"


@dataclasses.dataclass
class ExportGraphSignature:
    """What goes into a graph and comes out of it."""

    input_specs: list
    output_specs: list

    def _of(self, kind):
        return tuple(s.target for s in self.input_specs if s.kind is kind)

    @property
    def placeholders(self):
        """The names of the placeholders that the caller gives."""
        return [s.arg.name for s in self.input_specs if s.kind is InputKind.USER_INPUT]

    @property
    def parameters(self):
        """The names of the parameters."""
        return self._of(InputKind.PARAMETER)

    @property
    def buffers(self):
        """The names of the buffers."""
        return self._of(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self):
        """The names of the buffers that no state dict has."""
        return tuple(s.target for s in self.input_specs if s.kind is InputKind.BUFFER and s.persistent is False)

    @property
    def lifted_tensor_constants(self):
        """The names of the tensors that are no parameters or buffers."""
        return self._of(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self):
        """Of what the caller gives: the placeholder's name for a tensor, the value for anything else."""
        return tuple(_said(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT)

    @property
    def user_outputs(self):
        """Of the results: the node's name for a tensor, the value for anything else."""
        return tuple(_said(s.arg) for s in self.output_specs)

    @property
    def inputs_to_parameters(self):
        """{placeholder: parameter}."""
        return {s.arg.name: s.target for s in self.input_specs if s.kind is InputKind.PARAMETER}

    @property
    def inputs_to_buffers(self):
        """{placeholder: buffer}."""
        return {s.arg.name: s.target for s in self.input_specs if s.kind is InputKind.BUFFER}

    def __str__(self):
        inputs, outputs = ("\n".join(map(str, specs)) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"


class _TreeCodeGen(CodeGen):
    """forward with the module's own signature: arguments are flattened and looked at, results put together."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        wanted = "".join(f"{v.partition(' ')[0]}, " for v in free_vars if v != "self")
        free_vars[:] = []
        line = super().gen_fn_def(free_vars, maybe_return_annotation).replace("self", "self, *args, **kwargs")
        return f"{line}\n    {wanted}= self._program.flatten(args, kwargs)" if wanted else line

    def generate_output(self, output_args):
        return super().generate_output(output_args).replace("return ", "return self._program.unflatten(", 1) + ")"


class ExportedProgram:
    """What `torch.export.export` returns. Call `.module()` for a module that runs it."""

    def __init__(self, graph_module, graph_signature, state_dict, constants, in_spec, out_spec, example_inputs, checks):
        self.graph_module, self.graph_signature = graph_module, graph_signature
        self.state_dict, self.constants = state_dict, constants
        self.in_spec, self.out_spec = in_spec, out_spec
        self.example_inputs = example_inputs
        self.checks = checks  # for each leaf of the arguments: (shape, dtype) of a tensor, ("value", value) of another
        self.relations = []  # of the sizes that may change to one another, as `sizes.check_sizes` takes them
        self.range_constraints = {}
        self.dialect = "TORCH"

    @property
    def graph(self):
        """The graph: parameters, buffers and constants are placeholders, before those of the caller."""
        return self.graph_module.graph

    tensor_constants = property(lambda self: self.constants)

    def parameters(self):
        """The parameters."""
        return (p for _, p in self.named_parameters())

    def named_parameters(self):
        """(name, parameter)."""
        return ((n, self.state_dict[n]) for n in self.graph_signature.parameters)

    def buffers(self):
        """The buffers."""
        return (b for _, b in self.named_buffers())

    def named_buffers(self):
        """(name, buffer)."""
        return ((n, self.value_of(n)) for n in self.graph_signature.buffers)

    def value_of(self, name):
        """The tensor of a parameter, buffer or constant."""
        return self.state_dict[name] if name in self.state_dict else self.constants[name]

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def run_decompositions(self, decomp_table=None):
        """The program in operators of ATen: those that its functions call, with the ones in `decomp_table` taken apart.

        decomp_table: {operator: function called in its place}. NotImplementedError: sizes may change.
        """
        if any(None in check[0] for check in self.checks if check[0] != "value"):
            raise errors.decompositions()
        given = iter(self.checks)
        values = [self._example(spec, given) for spec in self.graph_signature.input_specs]
        with no_grad():
            made = Trace(decomp_table or {}).run(lambda *flat: Interpreter(self.graph_module).run(*flat), values)
        for node, named in zip(made.graph.find_nodes(op="placeholder"), self.graph.find_nodes(op="placeholder")):
            node.name = node.target = named.name
        outputs = [
            dataclasses.replace(s, arg=TensorArgument(n.name) if isinstance(n, Node) else s.arg)
            for s, n in zip(self.graph_signature.output_specs, made.graph.output_node().args[0])
        ]
        program = copy.copy(self)
        program.constants, inputs = dict(self.constants), list(self.graph_signature.input_specs)
        _lift(made, program.constants, inputs)
        made.recompile()
        program.graph_module, program.dialect = made, "ATEN"
        program.graph_signature = ExportGraphSignature(inputs, outputs)
        return program

    def _example(self, spec, given):
        """A value for a placeholder. given: the checks of what the caller gives, in order."""
        if spec.kind is not InputKind.USER_INPUT:
            return self.value_of(spec.target)
        shape, found = next(given)
        return found if shape == "value" else zeros(shape, dtype=found)

    def flatten(self, args, kwargs):
        """The leaves of a call's arguments. AssertionError: they are not of the kind that the program was made for."""
        order = list(self.in_spec_kwargs)
        if kwargs.keys() != set(order):
            raise errors.keywords(list(kwargs), order)
        leaves, spec = _pytree.tree_flatten((tuple(args), {k: kwargs[k] for k in order if k in kwargs} | kwargs))
        if spec != self.in_spec:
            if not _same_keys(spec, self.in_spec):
                raise errors.structure(self.in_spec, spec)
            leaves = self.in_spec.flatten_up_to((tuple(args), {k: kwargs[k] for k in order}))
        found = []
        for k, (leaf, check, name) in enumerate(
            zip(leaves, self.checks, self.graph_signature.placeholders, strict=True)
        ):
            if check[0] == "value":
                if leaf != check[1]:
                    raise AssertionError(f"Guard failed: {name} == {check[1]!r}")
                found.append(leaf)
                continue
            if not isinstance(leaf, Tensor):
                raise AssertionError(f"Guard failed: {name} is a tensor (input {k} is {type(leaf).__name__})")
            if leaf.dim() != len(check[0]):
                raise AssertionError(f"Guard failed: {name}.dim() == {len(check[0])}")
            for d, (n, want) in enumerate(zip(leaf.shape, check[0])):
                if want is not None and n != want:
                    raise AssertionError(f"Guard failed: {name}.size()[{d}] == {want}")
            if leaf.dtype is not check[1]:
                raise AssertionError(f"Guard failed: {name}.dtype == {check[1]}")
            found.append(leaf)
        check_sizes(found, self.relations)
        return found

    @property
    def in_spec_kwargs(self):
        """The names of the keyword arguments, in their order."""
        return self.example_inputs[1]

    def unflatten(self, leaves):
        """The results in the form in which the module returns them."""
        return _pytree.tree_unflatten(list(leaves), self.out_spec)

    def module(self, check_guards=True):
        """A module that runs the program on the same parameters and buffers."""
        root = Module()
        graph, given = Graph(), {}
        for spec, node in zip(self.graph_signature.input_specs, self.graph.find_nodes(op="placeholder")):
            if spec.kind is InputKind.USER_INPUT:
                given[node] = graph.node_copy(node)
            else:
                _place(root, spec, self.value_of(spec.target))
                given[node] = graph.get_attr(spec.target)
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output"):
                given[node] = graph.node_copy(node, given.__getitem__)
            elif node.op == "output":
                graph.node_copy(node, given.__getitem__)
        graph.set_codegen(_TreeCodeGen(self.graph_signature.placeholders))
        object.__setattr__(root, "_program", self)
        made = GraphModule(root, graph)
        for spec in self.graph_signature.input_specs:
            _as_it_was(made, spec)
        object.__setattr__(made, "_program", self)
        for name in ("train", "eval"):
            object.__setattr__(made, name, _refuse(name))
        return made

    def __deepcopy__(self, memo):
        apart = ("range_constraints", "relations", "dialect")
        made = type(self)(**copy.deepcopy({k: v for k, v in vars(self).items() if k not in apart}, memo))
        made.relations, made.range_constraints = list(self.relations), dict(self.range_constraints)
        return made

    def __str__(self):
        code = "\n".join("    " + line for line in self.graph_module.code.strip("\n").split("\n"))
        return (
            f"ExportedProgram:\n    class GraphModule(torch.nn.Module):\n    {code.lstrip()}\n\n"
            f"Graph signature: {self.graph_signature}\nRange constraints: {self.range_constraints}\n"
        )

    __repr__ = __str__


def _lift(module, constants, inputs):
    """Make placeholders, before those of the caller, of the tensors that a graph holds."""
    made = {}
    for node in module.graph.find_nodes(op="get_attr"):
        if node.target not in made:
            name = f"lifted_tensor_{len(constants)}"
            constants[name] = getattr(module, node.target)
            at = next(k for k, spec in enumerate(inputs) if spec.kind is InputKind.USER_INPUT)
            inputs.insert(at, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(f"c_{name}"), name))
            with module.graph.inserting_before(module.graph.find_nodes(op="placeholder")[at]):
                made[node.target] = module.graph.placeholder(f"c_{name}")
        node.replace_all_uses_with(made[node.target])
        module.graph.erase_node(node)


def _as_it_was(root, spec):
    """What a graph's module holds is a buffer to it: make it what it was where that is in no state dict."""
    *path, name = (spec.target or "").split(".")
    for part in path:
        root = root._modules.get(part)
    if root is None or name not in root._buffers:
        return
    if spec.kind is InputKind.CONSTANT_TENSOR:
        root.__dict__[name] = root._buffers.pop(name)
    elif spec.persistent is False:
        root._non_persistent_buffers_set.add(name)


def _same_keys(a, b) -> bool:
    """Whether two specs differ at most in the order of the keys of dicts."""
    if a.type is not b.type or a.num_children != b.num_children:
        return False
    if a.type is not dict:
        return a.context == b.context and all(map(_same_keys, a.children(), b.children()))
    mine, other = (dict(zip(s.context, s.children())) for s in (a, b))
    return mine.keys() == other.keys() and all(_same_keys(mine[k], other[k]) for k in mine)


def _refuse(name):
    def refuse(mode=True):
        raise NotImplementedError(f"Calling {name}() is not supported yet.")

    return refuse


def _place(root, spec, value):
    *path, name = spec.target.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    if isinstance(value, Parameter):
        root.register_parameter(name, value)
    elif spec.kind is InputKind.CONSTANT_TENSOR:
        setattr(root, name, value)
    else:
        root.register_buffer(name, value, persistent=bool(spec.persistent))
