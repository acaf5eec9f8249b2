"""Graphs as text and pictures."""

import shutil

import pytest

import jtorch
from jtorch.utils import viz


def _example():
    x = jtorch.tensor([1.0, 2.0], requires_grad=True)
    w = jtorch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    return {"x": x, "w": w}, (y + y.exp()).sum()


def test_text():
    params, out = _example()
    assert viz.text(out, params) == (
        "output ()\n"
        "  SumBackward0\n"
        "    AddBackward0\n"
        "      MulBackward0\n"
        "        x (2)\n"
        "        w (2)\n"
        "      ExpBackward0\n"
        "        MulBackward0 (above)"
    )


def test_mermaid():
    params, out = _example()
    lines = viz.mermaid(out, params).splitlines()
    assert lines[0] == "flowchart TD"
    assert '    n0(["output ()"])' in lines
    assert sum("-->" in line for line in lines) == 7
    assert any('"x (2)"' in line for line in lines)


def test_dot():
    params, out = _example()
    source = viz.dot([out, out * 2], params)
    assert source.startswith("digraph {")
    assert source.endswith("}")
    assert 'label="output 1 ()"' in source


def test_leaf_and_module():
    net = jtorch.nn.Linear(2, 1)
    named = dict(net.named_parameters())
    assert "weight (1, 2)" in viz.text(net(jtorch.ones(3, 2)), named)
    assert "bias (1)" in viz.text(net.bias, named)


def test_picture(tmp_path):
    params, out = _example()
    if shutil.which("dot") is None:
        with pytest.raises(RuntimeError, match="Graphviz's program `dot` was not found"):
            viz.render(out, tmp_path / "g.svg", params)
    else:
        assert "<svg" in open(viz.render(out, tmp_path / "g.svg", params)).read()


def test_long_chains():
    x = jtorch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(3000):
        y = y + 1
    assert viz.text(y).count("AddBackward0") == 3000
