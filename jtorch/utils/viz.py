"""The graph of a tensor's history as text (indented, Mermaid, Graphviz) and, where graphviz is installed, as a picture."""

import shutil
import subprocess

from ..autograd.node import AccumulateGrad
from ..tensor import Tensor


class Graph:
    """The history of some tensors: boxes with labels, and the edges that gradients flow along."""

    def __init__(self, outputs, params=None):
        self.names = {id(t): name for name, t in dict(params or {}).items()}
        self.boxes = []  # (key, label, kind) with kind "output", "step" or "leaf"
        self.edges = []  # (from, to), in the direction of the gradients
        self.keys = {}
        outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        stack = []
        for k, t in enumerate(outputs):
            key = self._add(t, self._describe(t, "output" if len(outputs) == 1 else f"output {k}"), "output")
            function = t.grad_fn
            if function is not None:
                stack.append((key, function))
        self._walk(stack)

    def _describe(self, t, name):
        name = self.names.get(id(t), name)
        return f"{name} ({', '.join(map(str, t.shape))})"

    def _add(self, obj, label, kind):
        key = f"n{len(self.boxes)}"
        self.keys[id(obj)] = key
        self.boxes.append((key, label, kind, obj))
        return key

    def _walk(self, stack):
        while stack:
            source, function = stack.pop()
            identity = id(function.variable) if isinstance(function, AccumulateGrad) else id(function)
            if identity in self.keys:
                self.edges.append((source, self.keys[identity]))
                continue
            if isinstance(function, AccumulateGrad):
                leaf = function.variable
                key = self._add(leaf, self._describe(leaf, "leaf"), "leaf")
                self.edges.append((source, key))
                continue
            key = self._add(function, type(function).__name__, "step")
            self.edges.append((source, key))
            stack += [(key, f) for f, _ in reversed(function.next_functions) if f is not None]

    def text(self) -> str:
        """Indented text: below each step those that its gradients go to; what was shown before is only named."""
        after = {}
        for a, b in self.edges:
            after.setdefault(a, []).append(b)
        labels = {key: label for key, label, *_ in self.boxes}
        targets = {b for _, b in self.edges}
        lines, seen = [], set()
        stack = [(key, 0) for key, *_ in reversed(self.boxes) if key not in targets]
        while stack:
            key, depth = stack.pop()
            again = key in seen and key in after
            lines.append("  " * depth + labels[key] + (" (above)" if again else ""))
            if not again:
                seen.add(key)
                stack += [(k, depth + 1) for k in reversed(after.get(key, ()))]
        return "\n".join(lines)

    def mermaid(self) -> str:
        """A Mermaid flowchart."""
        shapes = {"output": ("([", "])"), "step": ("[", "]"), "leaf": ("[(", ")]")}
        lines = ["flowchart TD"]
        for key, label, kind, _ in self.boxes:
            left, right = shapes[kind]
            lines.append(f'    {key}{left}"{label}"{right}')
        lines += [f"    {a} --> {b}" for a, b in self.edges]
        return "\n".join(lines)

    def dot(self) -> str:
        """Graphviz source."""
        colours = {"output": "palegreen", "step": "lightgrey", "leaf": "lightblue"}
        lines = ["digraph {", '    node [shape=box style=filled fontname="monospace"]']
        for key, label, kind, _ in self.boxes:
            lines.append(f'    {key} [label="{label}" fillcolor={colours[kind]}]')
        lines += [f"    {a} -> {b}" for a, b in self.edges]
        return "\n".join([*lines, "}"])

    def render(self, path) -> str:
        """Write a picture; its format is the end of the path (svg, png, pdf). Needs Graphviz's program `dot`."""
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError("Graphviz's program `dot` was not found: install graphviz, or use mermaid() or dot()")
        kind = str(path).rpartition(".")[2]
        subprocess.run([program, f"-T{kind}", "-o", str(path)], input=self.dot(), text=True, check=True)
        return str(path)

    def __str__(self):
        return self.text()


def graph(outputs, params=None) -> Graph:
    """The graph behind one tensor or several; `params` (name -> tensor, or pairs) gives leaves their names."""
    return Graph(outputs, params)


def text(outputs, params=None) -> str:
    """The graph as indented text."""
    return Graph(outputs, params).text()


def mermaid(outputs, params=None) -> str:
    """The graph as a Mermaid flowchart."""
    return Graph(outputs, params).mermaid()


def dot(outputs, params=None) -> str:
    """The graph as Graphviz source."""
    return Graph(outputs, params).dot()


def render(outputs, path, params=None) -> str:
    """The graph as a picture in a file (svg, png, pdf)."""
    return Graph(outputs, params).render(path)


__all__ = ["Graph", "dot", "graph", "mermaid", "render", "text"]
