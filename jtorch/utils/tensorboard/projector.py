"""The files of TensorBoard's projector: points, their labels and pictures, and the list of them."""

import math
import os
import tempfile

import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from . import arrays

__all__ = ["write"]

_LIST = "projector_config.pbtxt"


def write(log_dir, points, metadata, pictures, step, tag, header) -> None:
    """Write the files of one set of points, and add it to the list.

    Everything is checked before the first file is written.
    """
    assert points.ndim == 2, "mat should be 2D, where mat.size(0) is the number of data points"
    n = len(points)
    if metadata is not None:
        assert len(metadata) == n, "#labels should equal with #data points"
        if header:
            assert all(len(row) == len(header) for row in metadata), (
                "len of header must be equal to the number of columns"
            )
    pictures = None if pictures is None else arrays.as_array(pictures)
    if pictures is not None:
        assert len(pictures) == n, "#images should equal with #data points"
        assert pictures.shape[2] == pictures.shape[3], "Image should be square, see tensorflow/tensorboard#670"
    number = f"{0 if step is None else int(step):0>5}"
    inner = f"{number}/{_escaped(tag)}"
    folder = os.path.join(log_dir, inner)
    os.makedirs(folder, exist_ok=True)
    info = EmbeddingInfo(tensor_name=f"{tag}:{number}", tensor_path=f"{inner}/tensors.tsv")
    if metadata is not None:
        _replace(os.path.join(folder, "metadata.tsv"), _rows(metadata, header).encode())
        info.metadata_path = f"{inner}/metadata.tsv"
    if pictures is not None:
        _replace(os.path.join(folder, "sprite.png"), _sprite(pictures))
        info.sprite.image_path = f"{inner}/sprite.png"
        info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    lines = ["\t".join(map(str, row)) + "\n" for row in points.tolist()]
    _replace(os.path.join(folder, "tensors.tsv"), "".join(lines).encode())
    _list(os.path.join(log_dir, _LIST), info)


def _escaped(tag):
    for sign, code in (("%", "%25"), ("/", "%2f"), ("\\", "%5c")):
        tag = tag.replace(sign, code)
    return tag


def _rows(metadata, header):
    if not header:
        return "".join(f"{x}\n" for x in metadata)
    return "".join("\t".join(map(str, row)) + "\n" for row in [header, *metadata])


def _sprite(pictures):
    """One square picture of all, row by row."""
    side = math.ceil(len(pictures) ** 0.5)
    missing = side * side - len(pictures)
    pictures = np.concatenate([pictures, np.zeros((missing, *pictures.shape[1:]), pictures.dtype)])
    rows = pictures.reshape(side, side, *pictures.shape[1:])  # (row, column, C, H, W)
    whole = rows.transpose(2, 0, 3, 1, 4).reshape(pictures.shape[1], side * pictures.shape[2], side * pictures.shape[3])
    return arrays.png(arrays.to_bytes(arrays.as_image(whole, "CHW")))[0]


def _list(path, info):
    config = ProjectorConfig()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text_format.Parse(file.read(), config)
    config.embeddings.append(info)
    _replace(path, text_format.MessageToString(config).encode())


def _replace(path, data):
    """Write a file so that nobody ever sees half of it."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as out:
        out.write(data)
    os.replace(out.name, path)
