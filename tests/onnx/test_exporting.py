"""torch.onnx.export: names, sizes that may change, files, and what it refuses."""

import io

import numpy as np
import pytest

import jtorch as torch
import jtorch.nn.functional as F
from jtorch import nn

onnx = pytest.importorskip("onnx")


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)).eval()  # fmt: skip


def shapes(values):
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}


def agree(module, program, *args):
    want = module(*args)
    torch.testing.assert_close(
        program.call_reference(*args)[0], want[0] if isinstance(want, tuple) else want, rtol=1e-4, atol=1e-5
    )


def test_a_file_of_a_module(tmp_path):
    module, x, path = net(), torch.randn(2, 3, 6, 6), tmp_path / "net.onnx"
    program = torch.onnx.export(module, (x,), path, input_names=["image"], output_names=["scores"])
    model = onnx.load(path)
    assert shapes(model.graph.input) == {"image": [2, 3, 6, 6]} and shapes(model.graph.output) == {"scores": [2, 2]}
    names = {t.name for t in model.graph.initializer}
    assert names == {
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "5.weight",
        "5.bias",
    }
    [op] = model.opset_import
    assert op.version == 20 and model.producer_name == "jtorch"
    assert [n.op_type for n in model.graph.node] == [
        "Conv",
        "BatchNormalization",
        "Relu",
        "GlobalAveragePool",
        "Flatten",
        "Gemm",
    ]
    agree(module, program, x)


def test_larger_parameters_lie_beside_the_model(tmp_path):
    module, x, path = nn.Linear(64, 32), torch.randn(2, 64), tmp_path / "net.onnx"
    torch.onnx.export(module.eval(), x, str(path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data"]
    model = onnx.load(path)
    kept = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_array_equal(kept["weight"], module.weight.detach().numpy())
    torch.onnx.export(module, x, tmp_path / "whole.onnx", external_data=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.onnx.data", "whole.onnx"]
    file = io.BytesIO()
    torch.onnx.export(module, x, file)
    onnx.checker.check_model(onnx.load_from_string(file.getvalue()))


def test_neither_file_is_written_where_one_cannot_be(tmp_path):
    (tmp_path / "net.onnx").mkdir()
    with pytest.raises(RuntimeError, match="Is a directory"):
        torch.onnx.export(nn.Linear(64, 64).eval(), (torch.ones(1, 64),), tmp_path / "net.onnx", external_data=True)
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]


def test_nothing_is_written_where_the_export_fails(tmp_path):
    class Bad(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[1]

    with pytest.raises(torch.onnx.OnnxExporterError, match="svd"):
        torch.onnx.export(Bad().eval(), (torch.eye(3),), tmp_path / "bad.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options, want",
    [
        (
            {
                "dynamic_axes": {"x": {0: "batch", 2: "h"}, "y": {0: "batch"}},
                "input_names": ["x"],
                "output_names": ["y"],
            },
            "batch",
        ),
        ({"dynamic_axes": {"input": [0, 2]}}, "s0"),
        ({"dynamic_shapes": ({0: "batch", 2: "h"},)}, "batch"),
        ({"dynamic_shapes": {"input": {0: torch.export.Dim("batch"), 2: torch.export.Dim("h")}}}, "batch"),
        ({"dynamic_shapes": ({0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.AUTO},)}, "s0"),
    ],
)
def test_sizes_that_change(options, want):
    module = net()
    program = torch.onnx.export(module, (torch.randn(1, 3, 6, 6),), **options)
    [[batch, channels, *_]] = shapes(program.model_proto.graph.input).values()
    assert (batch, channels) == (want, 3)
    assert list(shapes(program.model_proto.graph.output).values()) == [[want, 2]]
    for n in (1, 4):
        agree(module, program, torch.randn(n, 3, 5 + n, 6))


class Attended(nn.Module):
    """A decoder as programs write it, whose mask is cut to the length."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.joint = nn.Embedding(20, 8), nn.Embedding(12, 8), nn.Linear(8, 24)
        self.register_buffer("mask", torch.tril(torch.ones(12, 12)).view(1, 1, 12, 12))

    def forward(self, ids):
        n, t = ids.shape
        x = self.tokens(ids) + self.places(torch.arange(t, device=ids.device))
        q, k, v = (y.view(n, t, 2, 4).transpose(1, 2) for y in self.joint(x).split(8, dim=2))
        scores = (q @ k.transpose(-2, -1)).masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(n, t, 8) @ self.tokens.weight.t()


def test_a_decoder_of_any_length():
    module = Attended().eval()
    program = torch.onnx.export(module, (torch.randint(0, 20, (2, 8)),), dynamic_shapes=({0: "n", 1: "t"},))
    assert list(shapes(program.model_proto.graph.output).values()) == [["n", "t", 20]]
    for n, t in ((2, 8), (3, 11), (1, 1)):
        agree(module, program, torch.randint(0, 20, (n, t)))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind):
    module = kind(3, 4, 2, bidirectional=True, batch_first=True).eval()
    x = torch.randn(2, 5, 3)
    program = torch.onnx.export(module, (x,), dynamic_shapes=({0: "n", 1: "t"},))
    for other in (x, torch.randn(3, 2, 3)):
        want = torch.utils._pytree.tree_leaves(module(other))
        for found, w in zip(program.call_reference(other), want, strict=True):
            torch.testing.assert_close(found, w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_with_a_padding_mask(norm_first):
    module = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    mask = torch.tensor([[False] * 4, [False] * 2 + [True] * 2])
    args = {"src_key_padding_mask": mask}
    x = torch.randn(2, 4, 8)
    program = torch.onnx.export(module, (x, args))
    torch.testing.assert_close(program.call_reference(x, **args)[0], module(x, **args), rtol=1e-4, atol=1e-5)


def test_what_parameters_decide_is_constant():
    module = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)).eval()
    program = torch.onnx.export(module, (torch.randn(2, 3),), verify=True)
    assert [n.op_type for n in program.model_proto.graph.node] == ["Gemm"]


def test_results_of_other_kinds():
    class Several(nn.Module):
        def forward(self, x, flag=True, y=None):
            return {"a": x, "b": [x + 1 if flag else x, None], "c": x + 1}

    program = torch.onnx.export(Several().eval(), (torch.ones(2),), kwargs={"flag": True})
    assert [tuple(t.tolist()) for t in program.call_reference(torch.ones(2), flag=True)] == [(1, 1), (2, 2), (2, 2)]
    assert [v.name for v in program.model_proto.graph.input] == ["x"]


def test_writes_in_place():
    class Written(nn.Module):
        def forward(self, x):
            y = x * 2
            y += 1
            y.relu_()
            return y + x

    agree(Written(), torch.onnx.export(Written().eval(), (torch.randn(3),)), torch.randn(3))

    class Named(nn.Module):
        def forward(self, x):
            y = x * 2
            z = y.mul_(2)
            z += 1
            return y - F.relu(z, inplace=True) * y

    agree(Named(), torch.onnx.export(Named().eval(), (torch.randn(3),)), torch.randn(3))

    class Through(nn.Module):
        def forward(self, x):
            y = x * 2
            y.view(3)[0].add_(1)
            return y

    with pytest.raises(torch.onnx.OnnxExporterError, match="in place"):
        torch.onnx.export(Through().eval(), (torch.randn(3),))


def test_a_buffer_is_read_before_and_after_it_is_written():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            before = x + self.seen
            self.seen.add_(1)
            return before * (x + self.seen)

    module, x = Counts().eval(), torch.tensor([1.0, 2.0, 3.0])
    assert torch.onnx.export(module, (x,)).call_reference(x)[0].tolist() == [2, 6, 12]


def test_buffers_stay_as_they_are():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            self.seen.add_(1)
            return self.norm(x) + self.seen

    module = Counts()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    x = torch.randn(4, 3)
    with pytest.warns(UserWarning, match="training mode"):
        program = torch.onnx.export(module, (x,))
    for k, v in module.state_dict().items():
        assert torch.equal(v, before[k]), k
    torch.testing.assert_close(program.call_reference(x)[0], module(x))


@pytest.mark.parametrize("version", [11, 13, 17, 21])
def test_other_versions_of_the_operators(version):
    module = net()
    if version < 14:  # onnx's evaluator trains where it runs an earlier BatchNormalization
        module[1] = nn.Identity()
    program = torch.onnx.export(module, (torch.randn(2, 3, 6, 6),), opset_version=version)
    assert program.model_proto.opset_import[0].version == version
    agree(module, program, torch.randn(2, 3, 6, 6))


def test_reductions_and_attention_of_earlier_versions():
    class Pooled(nn.Module):
        def forward(self, x):
            return (x.softmax(-1) - x.mean(1, keepdim=True)).unsqueeze(1).sum(0).squeeze(0)

    for version in (11, 12, 13, 17, 18):
        program = torch.onnx.export(Pooled().eval(), (torch.randn(2, 3),), opset_version=version)
        assert program.model_proto.opset_import[0].version == version
        agree(Pooled(), program, torch.randn(2, 3))


def test_a_version_without_a_way_back():
    with pytest.warns(UserWarning, match="opset 11"):
        program = torch.onnx.export(nn.GELU("tanh").eval(), (torch.randn(2, 3),), opset_version=11)
    assert program.model_proto.opset_import[0].version == 20


def test_words():
    seen = []

    class Asked(nn.Module):
        def forward(self, x):
            seen.append(torch.onnx.is_in_onnx_export())
            return x + 1

    with pytest.warns(UserWarning, match="Exporting a model while it is in training mode"):
        torch.onnx.export(Asked(), (torch.ones(2),))
    assert seen == [True] and not torch.onnx.is_in_onnx_export()
    with pytest.raises(NotImplementedError, match="custom_translation_table"):
        torch.onnx.export(Asked().eval(), (torch.ones(2),), custom_translation_table={len: len})
    with pytest.raises(torch.onnx.UnsupportedOperatorError, match="label_smoothing"):
        torch.onnx.export(nn.CrossEntropyLoss(label_smoothing=0.1).eval(), (torch.randn(2, 3), torch.tensor([0, 1])))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match="pip install onnx"):
        torch.onnx.export(net(), (torch.randn(2, 3, 6, 6),))
