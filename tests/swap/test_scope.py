"""as_torch(): packages imported inside are swapped for good, everything else is left alone."""

from tests.swap import programs

PACKAGE = {
    "__init__.py": "import torch\nfrom torch import nn\nfrom .layer import Layer\n",
    "layer.py": "import torch.nn as nn\n\n\nclass Layer(nn.Linear):\n    pass\n",
    "late.py": "import torch\nfrom torch.nn import functional as F\n\n\ndef go():\n    import torch.nn.init\n    return torch.nn.init\n",
}


def test_scope(tmp_path):
    (tmp_path / "model").mkdir()
    for name, text in PACKAGE.items():
        (tmp_path / "model" / name).write_text(text)
    (tmp_path / "torch.py").write_text("real = True\n")
    programs.python(
        """
        import importlib.metadata, sys
        import jtorch
        with jtorch.as_torch() as inside:
            import model
            import torch
            assert torch is inside and torch.nn is jtorch.nn and importlib.metadata.version("torch") == "2.13.0"
        assert issubclass(model.Layer, jtorch.nn.Linear) and model.Layer(2, 3)(jtorch.ones(1, 2)).shape == (1, 3)
        assert "torch" not in sys.modules and "torch.nn" not in sys.modules
        import torch
        assert torch.real and not hasattr(torch, "nn")
        import model.late  # imported after the scope, by a package that was imported in it
        assert model.late.torch is inside and model.late.go() is jtorch.nn.init
        assert sys.modules["torch"] is torch and torch.real
        assert model.Layer.__module__ == "model.layer" and type(jtorch.ones(1)).__module__ == "jtorch.tensor"
        """,
        tmp_path,
    )
