"""Coverage of a program: which names are found in its text, and what is said of those that are lacking."""

import pytest

from jtorch.swap import advice, scan
from tests.swap import programs

SOURCES = [
    ("import torch\ntorch.a.b(1)", ["torch", "torch.a.b"]),
    ("import torch.nn as nn\nnn.Thing", ["torch.nn", "torch.nn.Thing"]),
    ("import torch.x.y\ntorch.z", ["torch.x.y", "torch.z"]),
    ("from torch import nn as n, a\nn.f.g\na(1)", ["torch.a", "torch.nn", "torch.nn.f.g"]),
    ("import torch\nF = torch.nn.functional\nF.thing", ["torch", "torch.nn.functional", "torch.nn.functional.thing"]),
    ("import torch\ntorch.ones(2).thing()", ["torch", "torch.Tensor.thing", "torch.ones"]),
    ("import torch\ngetattr(torch, 'x')", ["torch", "torch.x"]),
    ("import torch\ngetattr(torch, 'x', None)\nhasattr(torch, 'y')", ["torch"]),
    ("from .torch import x\nimport torchvision\nx.y", []),
    ("import torch\ntorch.x = 1", ["torch"]),
    ("from torch import a, b\ndef f(a, *b):\n    return a.x, b.x\na.y", ["torch.a", "torch.a.y", "torch.b"]),
    (
        "from torch import a\ndef f(x=a.y) -> a.z:\n    for a in x:\n        a.x\nlambda a: a.x",
        ["torch.a", "torch.a.y", "torch.a.z"],
    ),
    (
        "from torch import a\ndef f():\n    global a\n    a = a.x\n    def g(q):\n        return a.y",
        ["torch.a", "torch.a.x", "torch.a.y"],
    ),
    ("def f():\n    from torch import a\n    x = a.y\n    x.z", ["torch.a", "torch.a.y", "torch.a.y.z"]),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch.x", []),
]


@pytest.mark.parametrize("source, expected", SOURCES, ids=range(len(SOURCES)))
def test_names(source, expected):
    assert sorted({name for _, name, _ in scan.names(source)}) == expected


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import torch.x\nexcept ImportError:\n    pass",
        "import torch\nif hasattr(torch, 'x'):\n    torch.x",
        "import torch\ntry:\n    torch.x\nexcept (AttributeError, RuntimeError):\n    pass",
    ],
)
def test_optional(source):
    assert {name: optional for _, name, optional in scan.names(source)}["torch.x"]


def test_advice():
    assert "TorchScript" in advice.advice("torch.jit.trace")
    assert advice.advice("torch.cuda.CUDAGraph.replay") != advice.advice("torch.cuda.other")
    assert "take this call out" in advice.advice("torch.nothing_like_it")


def test_command(tmp_path):
    text = "import torch\nfrom torch import nn\n\nx = torch.ones(2).relu()\nnn.Linear(2, 2)\ntorch.no_such(x)\nraise SystemExit('ran')\n"
    done = programs.run(text, tmp_path, command=("coverage",), check=False)
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith(f"{tmp_path / 'program.py'}:6: torch.no_such: ")
    assert last == "6 torch names used; jtorch lacks 1"
    refused = "import torch\nfrom torch.utils import cpp_extension\nx = torch.quantize_per_tensor\ncpp_extension.load\n"
    lines = programs.run(refused, tmp_path, command=("coverage",), check=False).stdout.splitlines()
    assert "3: torch.quantize_per_tensor: quantization is not supported" in lines[0]
    assert "4: torch.utils.cpp_extension.load: C++" in lines[1] and lines[2].endswith("jtorch lacks 2")
    done = programs.call(["coverage", str(tmp_path / "nowhere")], tmp_path, check=False)
    assert done.returncode == 2 and "no file or folder" in done.stdout
    (tmp_path / "program.py").write_text("import torch\ntorch.ones(1)\n")
    assert programs.call(["coverage", str(tmp_path)], tmp_path).stdout == "2 torch names used; jtorch lacks 0\n"
