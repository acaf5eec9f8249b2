"""utils/tensorboard: the events that PyTorch's SummaryWriter writes."""

import importlib
import io
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import jtorch
from jtorch import nn
from tests.oracle import torch

pytest.importorskip("tensorboard")
Image = pytest.importorskip("PIL.Image")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    loading = importlib.import_module("tensorboard.backend.event_processing.event_file_loader")
    event_pb2 = importlib.import_module("tensorboard.compat.proto.event_pb2")
    graph_pb2 = importlib.import_module("tensorboard.compat.proto.graph_pb2")
    hparams_pb2 = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2")
    THEIRS = importlib.import_module(f"{torch.__name__}.utils.tensorboard").SummaryWriter
from jtorch.utils.tensorboard import SummaryWriter  # noqa: E402

RNG = np.random.default_rng(0)
COLOURS = RNG.random((3, 6, 5)).astype(np.float32)
MANY = RNG.random((5, 1, 4, 4)).astype(np.float32)


def events(folder):
    """file's folder -> events without dates, in the order written."""
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*tfevents*")):
        rows = []
        for raw in loading.RawEventFileLoader(str(path)).Load():
            event = event_pb2.Event.FromString(raw)
            event.ClearField("wall_time")
            rows.append(event)
        found.setdefault(str(path.parent.relative_to(folder)), []).append(rows)
    return found


def other_files(folder):
    folder = pathlib.Path(folder)
    paths = [p for p in sorted(folder.rglob("*")) if p.is_file() and "tfevents" not in p.name]
    return {str(p.relative_to(folder)): p.read_text() if p.suffix != ".png" else pixels(p.read_bytes()) for p in paths}


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data))).tolist()


def comparable(event):
    """Pictures by their pixels, hyper-parameters by their meaning, anything else as it is."""
    for value in event.summary.value:
        if value.HasField("image"):
            return value.tag, value.image.height, value.image.colorspace, pixels(value.image.encoded_image_string)
        if value.metadata.plugin_data.plugin_name == "hparams":
            return value.tag, str(hparams_pb2.HParamsPluginData.FromString(value.metadata.plugin_data.content))
    return str(event)


def both(tmp_path, call):
    """What each library's writer has written after `call(writer, lib)`."""
    made = []
    for name, cls, lib in (("theirs", THEIRS, torch), ("ours", SummaryWriter, jtorch)):
        folder = tmp_path / name
        with cls(str(folder)) as writer:
            call(writer, lib)
        rows = {k: [[comparable(e) for e in f] for f in files] for k, files in events(folder).items()}
        made.append((rows, other_files(folder)))
    return made


def figure():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    drawn, axes = pyplot.subplots(figsize=(1, 1))
    axes.plot([0, 1], [1, 0])
    return drawn


CALLS = {
    "scalar": lambda w, lib: w.add_scalar("a b", 1.5, 3),
    "scalar of a tensor": lambda w, lib: w.add_scalar("t", lib.tensor([2.5])),
    "scalar of an array": lambda w, lib: w.add_scalar("t", np.float32(2.5), lib.tensor(4)),
    "new style": lambda w, lib: w.add_scalar("t", 2.1, 1, new_style=True),
    "double": lambda w, lib: w.add_scalar("t", 2.1, 1, new_style=True, double_precision=True),
    "scalars": lambda w, lib: [w.add_scalars("a/b", {"x": k, "y": lib.tensor(k)}, k) for k in range(3)],
    "tensor": lambda w, lib: w.add_tensor("t", lib.arange(6.0).reshape(2, 3), 1),
    "integers": lambda w, lib: w.add_tensor("t", lib.arange(6), 1),
    "histogram": lambda w, lib: w.add_histogram("h", np.sin(np.arange(500.0)), 1),
    "histogram of integers": lambda w, lib: w.add_histogram("h", lib.arange(40) - 9, 1),
    "histogram auto": lambda w, lib: w.add_histogram("h", lib.tensor([1.0, 2, 2, 3, -1]), 1, bins="auto"),
    "histogram of few bins": lambda w, lib: w.add_histogram("h", np.arange(9.0), 1, bins=list(range(3, 12)), max_bins=3),
    "histogram outside": lambda w, lib: w.add_histogram("h", np.array([1.0, 5, 6]), 1, bins=[0, 2, 4, 5.5, 8, 9]),
    "histogram raw": lambda w, lib: w.add_histogram_raw("h", 0.0, 3.0, 4, 6.0, 14.0, [1.0, 2.0, 3.0], [1, 1, 2], 1),
    "image": lambda w, lib: w.add_image("i", COLOURS, 1),
    "image of a tensor": lambda w, lib: w.add_image("i", lib.tensor(COLOURS[:1]), 1),
    "image HW": lambda w, lib: w.add_image("i", np.arange(20, dtype=np.uint8).reshape(4, 5), 1, dataformats="HW"),
    "image HWC": lambda w, lib: w.add_image("i", COLOURS.transpose(1, 2, 0), 1, dataformats="HWC"),
    "images": lambda w, lib: w.add_images("i", lib.tensor(MANY), 1),
    "images NHWC": lambda w, lib: w.add_images("i", np.tile(COLOURS.transpose(1, 2, 0), (10, 1, 1, 1)), dataformats="NHWC"),
    "boxes": lambda w, lib: w.add_image_with_boxes("b", np.zeros((3, 20, 20), np.uint8), np.array([[2, 2, 9, 12]]), 1),
    "figure": lambda w, lib: w.add_figure("f", figure(), 1),
    "figures": lambda w, lib: w.add_figure("f", [figure(), figure()], 1),
    "audio": lambda w, lib: w.add_audio("s", lib.linspace(-1.5, 1.5, 10), 1, 8000),
    "text": lambda w, lib: w.add_text("t", "# Héading", 1),
    "pr": lambda w, lib: w.add_pr_curve("p", np.array([0, 1, 1, 0]), np.array([0.1, 0.9, 0.4, 0.6]), 1, 5),
    "pr many": lambda w, lib: w.add_pr_curve(
        "p", lib.arange(50) % 3 == 0, lib.linspace(0, 1, 50), 1, 300, weights=np.linspace(0, 2, 50)
    ),
    "pr of lists": lambda w, lib: w.add_pr_curve_raw("p", *[[75, 64, 21]] * 4, *[[0.5, 0.25, 1.0]] * 2, 1),
    "pr raw": lambda w, lib: w.add_pr_curve_raw("p", *[np.arange(3.0)] * 6, 1, 3),
    "custom": lambda w, lib: w.add_custom_scalars({"A": {"x": ["Multiline", ["a/b"]], "y": ["Margin", ["x", "y", "z"]]}}),
    "multiline": lambda w, lib: w.add_custom_scalars_multilinechart(["a", "b"]),
    "margin": lambda w, lib: w.add_custom_scalars_marginchart(["a", "b", "c"], "k", "t"),
    "mesh": lambda w, lib: w.add_mesh(
        "m", lib.rand(1, 3, 3) * 0, lib.zeros(1, 3, 3, dtype=lib.uint8), lib.zeros(1, 1, 3, dtype=lib.int32), {"c": 1}
    ),
    "embedding": lambda w, lib: w.add_embedding(
        lib.arange(10.0).reshape(5, 2), list("abcde"), lib.tensor(np.tile(MANY, (1, 3, 1, 1))), 2, "a/tag"
    ),
    "embeddings": lambda w, lib: [
        w.add_embedding(np.eye(3), [["a", 1], ["b", 2], ["c", k]], None, k, metadata_header=["n", "k"]) for k in range(2)
    ],
    "hparams": lambda w, lib: w.add_hparams(
        {"lr": 0.1, "n": 3, "s": "x", "o": True, "t": lib.tensor([2.0]), "none": None}, {"acc": lib.tensor(0.5), "l": 1},
        {"s": ["x", "y"], "n": [1, 3]}, "run", 4,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_same_events(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = both(tmp_path, CALLS[name])
    assert ours == theirs


WRONG = {
    "a word": lambda w, lib: w.add_scalar("a", "x"),
    "two numbers": lambda w, lib: w.add_scalar("a", lib.ones(2)),
    "nothing": lambda w, lib: w.add_scalar("a", None),
    "a list": lambda w, lib: w.add_scalar("a", [1.0]),
    "no dict": lambda w, lib: w.add_hparams(1, 2),
    "an hparam list": lambda w, lib: w.add_hparams({"a": [1]}, {}),
    "a domain": lambda w, lib: w.add_hparams({"a": 1}, {}, 3),
    "formats": lambda w, lib: w.add_image("a", np.zeros((2, 2))),
    "twice": lambda w, lib: w.add_image("a", np.zeros((2, 2, 2)), dataformats="CHH"),
    "empty": lambda w, lib: w.add_histogram("h", np.array([])),
    "all outside": lambda w, lib: w.add_histogram("h", np.ones(3), bins=[5, 6, 7]),
    "lengths": lambda w, lib: w.add_histogram_raw("h", 0, 1, 2, 3, 4, [1], [1, 2]),
    "labels": lambda w, lib: w.add_embedding(lib.ones(3, 2), metadata=["a"]),
    "1-D": lambda w, lib: w.add_embedding(lib.ones(3)),
    "pictures": lambda w, lib: w.add_embedding(lib.ones(3, 2), label_img=lib.ones(2, 3, 4, 4)),
    "tags": lambda w, lib: w.add_custom_scalars_marginchart(["a"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_same_errors(tmp_path, name):
    words = []
    for cls, lib in ((THEIRS, torch), (SummaryWriter, jtorch)):
        with cls(str(tmp_path / lib.__name__)) as writer, pytest.raises(Exception) as caught:
            WRONG[name](writer, lib)
        words.append((type(caught.value), " ".join(str(caught.value).split())[:40]))
    assert words[0] == words[1]


def test_purge_step(tmp_path):
    made = []
    for cls in (THEIRS, SummaryWriter):
        folder = tmp_path / cls.__module__
        cls(str(folder), purge_step=7, filename_suffix=".end").close()
        (path,) = folder.iterdir()
        assert path.name.endswith(".end")
        made.append([[str(e) for e in f] for f in events(folder)["."]])
    assert made[0] == made[1]


def test_folder_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_note") as writer:
        writer.add_scalar("a", 1)
        assert writer.get_logdir() == writer.log_dir
    assert pathlib.Path(writer.log_dir).parent.name == "runs" and writer.log_dir.endswith("_note")
    assert events(tmp_path / writer.log_dir)["."][0][-1].summary.value[0].simple_value == 1


def test_a_closed_writer_opens_again(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.close()
    writer.close()
    writer.add_scalar("a", 1)
    writer.close()
    assert sum(len(f) for f in events(tmp_path)["."]) == 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, x, y):
        return self.head(self.body(x)) * 2 + y, {"y": y}


def test_graph(tmp_path, capsys):
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net(), (jtorch.ones(5, 3), jtorch.from_numpy(np.ones(2, np.float32))), verbose=True)
    (event,) = [e for e in events(tmp_path)["."][0] if e.graph_def]
    nodes = {n.name: n for n in graph_pb2.GraphDef.FromString(event.graph_def).node}
    assert "body" in capsys.readouterr().out
    scopes = {name.rpartition("/")[0]: n.op for name, n in nodes.items() if n.op not in ("IO Node", "Parameter")}
    assert set(scopes) == {"Net", "Net/Sequential[body]/Linear[0]", "Net/Sequential[body]/ReLU[1]", "Net/Linear[head]"}
    shapes = [[d.size for d in n.attr["_output_shapes"].list.shape[0].dim] for n in nodes.values() if n.op == "relu"]
    assert shapes == [[5, 4]]
    parameters = [n for n in nodes.values() if n.op == "Parameter"]
    assert {n.attr["attr"].s.decode() for n in parameters} == {k for k, _ in Net().named_parameters()}
    assert all(i in nodes for n in nodes.values() for i in n.input)
    output = nodes["output/output.1"]
    reached, stack = set(), list(output.input)
    while stack:
        name = stack.pop()
        if name not in reached:
            reached.add(name)
            stack += nodes[name].input
    assert {"input/input.1", "input/input.2"} <= reached and {n.name for n in parameters} <= reached


def test_graph_needs_an_input_and_a_recording(tmp_path):
    class Reads(nn.Module):
        def forward(self, x):
            return jtorch.tensor(x.sum().item())

    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="add_graph needs input_to_model"):
            writer.add_graph(Net())
        with pytest.raises(NotImplementedError, match="whose forward needs a value"):
            writer.add_graph(Reads(), jtorch.ones(2))
        with pytest.raises(NotImplementedError, match="ONNX"):
            writer.add_onnx_graph("file")


def test_video(tmp_path):
    film = np.zeros((1, 3, 3, 4, 4), np.float32)
    film[0, 1, 0] = 1
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("v", film, 1, fps=10)
    picture = events(tmp_path)["."][0][-1].summary.value[0].image
    moving = Image.open(io.BytesIO(picture.encoded_image_string))
    assert (moving.format, moving.n_frames, picture.height, picture.width) == ("GIF", 3, 4, 4)
    moving.seek(1)
    assert np.asarray(moving.convert("RGB"))[0, 0].tolist() == [255, 0, 0]


def test_without_tensorboard():
    code = "import sys; sys.modules['tensorboard'] = None\nimport jtorch\njtorch.utils.tensorboard"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert "needs the package tensorboard: install it with `pip install jtorch-xla[tensorboard]`" in done.stderr


MESSAGES = {
    "scalar": lambda made, lib: made.scalar("a", 2.0, None, True),
    "tensor": lambda made, lib: made.tensor_proto("a", lib.ones(2, 3)),
    "images": lambda made, lib: made.image("a", lib.zeros(2, 3, 4, 4)),
    "boxes": lambda made, lib: made.image_boxes("a", lib.zeros(3, 8, 8), lib.tensor([[1, 1, 4, 4]])),
    "sound": lambda made, lib: made.audio("a", lib.zeros(10)),
    "curve": lambda made, lib: made.pr_curve("a", np.array([1, 0, 1]), np.array([0.9, 0.1, 0.4])),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_by_themselves(name):
    """The functions that make them are called by programs with a writer of their own."""
    made = [
        MESSAGES[name](importlib.import_module(f"{lib.__name__}.utils.tensorboard.summary"), lib)
        for lib in (jtorch, torch)
    ]
    mine, theirs = (str(m).split("encoded_image_string")[0] for m in made)
    assert mine == theirs
