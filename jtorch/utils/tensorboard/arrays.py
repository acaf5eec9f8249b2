"""What a summary is made of: numbers and pictures as numpy arrays, and their encodings."""

import importlib
import io
import wave

import numpy as np

from ...convert import as_numpy
from ...tensor import Tensor

__all__ = ["as_array", "as_image", "png"]


def as_array(x) -> np.ndarray:
    """A tensor, array or number as an array."""
    if isinstance(x, Tensor):
        x = np.asarray(as_numpy(x.detach()))
        # TensorBoard knows no bfloat16 and no float8
        return x.astype(np.float32) if x.dtype.kind == "V" or x.dtype.name.startswith(("bfloat", "float8")) else x
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if hasattr(x, "__array__"):
        return np.asarray(x)
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


def as_scalar(x) -> float:
    """The one number of a tensor, array or number."""
    if isinstance(x, str):
        return float(x)
    array = as_array(x)
    squeezed = array.squeeze()
    assert squeezed.ndim == 0, (
        f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and {squeezed.ndim} dimensions."
    )
    return float(squeezed)


def as_image(array: np.ndarray, dataformats: str) -> np.ndarray:
    """Pictures in any order of N, C, H and W as one of (H, W, 3 or 4); several lie side by side, eight in a row."""
    assert len(set(dataformats)) == len(dataformats), (
        f"You can not use the same dimension shorthand twice.         input_format: {dataformats}"
    )
    assert array.ndim == len(dataformats), (
        "size of input tensor and input format are different. "
        f"        tensor shape: {array.shape}, input_format: {dataformats}"
    )
    order = dataformats.upper()
    if set(order) == set("NCHW"):
        return _grid(array.transpose([order.index(d) for d in "NHWC"]))
    if set(order) == set("HWC"):
        return _coloured(array.transpose([order.index(d) for d in "HWC"]))
    if set(order) == set("HW"):
        return _coloured(array.transpose([order.index(d) for d in "HW"])[..., None])
    raise ValueError(f"dataformats should name the dimensions N, C, H and W, but got {dataformats}")


def _coloured(array):
    return np.concatenate([array] * 3, -1) if array.shape[-1] == 1 else array


def _grid(array, columns=8):
    array = _coloured(array)
    n, height, width, channels = array.shape
    columns = min(n, columns)
    rows = -(-n // columns)
    whole = np.zeros((rows * height, columns * width, channels), array.dtype)
    for k, image in enumerate(array):
        top, left = k // columns * height, k % columns * width
        whole[top : top + height, left : left + width] = image
    return whole


def to_bytes(array: np.ndarray) -> np.ndarray:
    """Colours as 0 to 255: floats count from 0 to 1."""
    scale = 1 if array.dtype == np.uint8 else 255
    return (array.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def pillow():
    """PIL.Image; a clear error without it."""
    try:
        return importlib.import_module("PIL.Image")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "pictures need the package pillow: install it with `pip install jtorch-xla[tensorboard]`"
        ) from None


def png(array: np.ndarray, rescale: float = 1, boxes=None, labels=None):
    """(encoded bytes, height, width, channels) of a picture (H, W, C) of uint8, with boxes drawn into it."""
    height, width, channels = array.shape
    image = pillow().fromarray(array)
    if boxes is not None:
        _draw(image, boxes, labels)
    if rescale != 1:
        height, width = int(height * rescale), int(width * rescale)
        image = image.resize((width, height))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue(), height, width, channels


def _draw(image, boxes, labels):
    pen = importlib.import_module("PIL.ImageDraw").Draw(image)
    for k, (left, top, right, bottom) in enumerate(np.asarray(boxes).tolist()):
        pen.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        if labels is not None:
            pen.text((left + 2, top + 2), str(labels[k]), fill="White")


def gif(frames: np.ndarray, fps: float) -> bytes:
    """Frames (T, H, W, C) of uint8 as a moving picture that repeats."""
    images = [pillow().fromarray(f) for f in frames]
    file = io.BytesIO()
    images[0].save(file, format="GIF", save_all=True, append_images=images[1:], duration=1000 / fps, loop=0)
    return file.getvalue()


def wav(samples: np.ndarray, rate: int) -> bytes:
    """One channel of samples from -1 to 1 as a sound of 16 bits."""
    data = (samples.clip(-1, 1) * 32767.0).astype("<i2").tobytes()
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(data)
    return file.getvalue()
