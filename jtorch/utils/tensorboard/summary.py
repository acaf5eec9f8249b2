"""TensorBoard's protocol messages: one function a kind of summary, from arrays to a Summary."""

import json

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData
from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

from ...tensor import Tensor
from . import arrays

_TYPES = {
    "float16": ("DT_HALF", "half_val"), "float32": ("DT_FLOAT", "float_val"), "float64": ("DT_DOUBLE", "double_val"),
    "int8": ("DT_INT8", "int_val"), "uint8": ("DT_UINT8", "int_val"), "int16": ("DT_INT16", "int_val"),
    "int32": ("DT_INT32", "int_val"), "int64": ("DT_INT64", "int64_val"), "bool": ("DT_BOOL", "bool_val"),
    "complex64": ("DT_COMPLEX64", "scomplex_val"), "complex128": ("DT_COMPLEX128", "dcomplex_val"),
}  # fmt: skip
_TINY = 1e-7
MOST_THRESHOLDS = 127


def _shape(shape):
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in shape])


def _plugin(name, content=b""):
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=name, content=content))


def _one(tag, **fields):
    return Summary(value=[Summary.Value(tag=tag, **fields)])


def _proto(array: np.ndarray, shape=True) -> TensorProto:
    """An array as a message."""
    kind, field = _TYPES.get(array.dtype.name, (None, None))
    if kind is None:
        raise ValueError(f"Unsupported tensor type: {array.dtype}")
    values = array.reshape(-1)
    if array.dtype == np.float16:
        values = values.view(np.uint16)
    elif array.dtype.kind == "c":
        values = values.view(values.real.dtype)
    extra = {"tensor_shape": _shape(array.shape)} if shape else {}
    return TensorProto(dtype=kind, **{field: values.tolist()}, **extra)


def _text_proto(values, shape):
    return TensorProto(dtype="DT_STRING", string_val=values, tensor_shape=_shape(shape))


def scalar(name, tensor, collections=None, new_style=False, double_precision=False) -> Summary:
    """One number."""
    number = arrays.as_scalar(tensor)
    if not new_style:
        return _one(name, simple_value=number)
    proto = _proto(np.array(number, np.float64 if double_precision else np.float32), shape=False)
    return _one(name, tensor=proto, metadata=_plugin("scalars"))


def tensor_proto(tag, tensor) -> Summary:
    """All elements of a tensor."""
    return _one(tag, tensor=_proto(arrays.as_array(tensor)), metadata=_plugin("tensor"))


def histogram(tag, values, bins, max_bins=None) -> Summary:
    """How many values fall between which limits."""
    values = arrays.as_array(values).reshape(-1)
    if not values.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        together = len(counts) // max_bins
        counts = np.pad(counts, (0, -len(counts) % together)).reshape(-1, together).sum(1)
        last, limits = limits[-1], limits[:-1:together]
        limits = np.append(limits, last)
    counts, limits = _trimmed(counts, limits)
    values = values.astype(np.float64)
    return histogram_raw(
        tag, values.min(), values.max(), len(values), values.sum(), values @ values, limits.tolist(), counts.tolist()
    )


def _trimmed(counts, limits):
    """Without the empty buckets at both ends but one before the first; each count with its right limit."""
    if not counts.any():
        raise ValueError("The histogram is empty, please file a bug report.")
    full = np.flatnonzero(counts)
    first, last = full[0], full[-1]
    return np.concatenate([[0], counts[first : last + 1]]), limits[first : last + 2]


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts) -> Summary:
    """A histogram that somebody else has made."""
    made = HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _one(tag, histo=made)


def image(tag, tensor, rescale=1, dataformats="NCHW") -> Summary:
    """A picture, or several side by side."""
    return image_boxes(tag, tensor, None, rescale, dataformats)


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None) -> Summary:
    """A picture with boxes (N, 4), each left, top, right, bottom, and a label each where there are some."""
    boxes = None if tensor_boxes is None else arrays.as_array(tensor_boxes)
    array = arrays.to_bytes(arrays.as_image(arrays.as_array(tensor_image), dataformats))
    data, height, width, channels = arrays.png(array, rescale, boxes, labels)
    made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=data)
    return _one(tag, image=made)


def video(tag, tensor, fps=4) -> Summary:
    """Films (N, T, C, H, W), side by side, as one moving picture."""
    films = arrays.to_bytes(arrays.as_array(tensor))
    frames = np.stack([arrays.as_image(films[:, t], "NCHW") for t in range(films.shape[1])])
    _, height, width, channels = frames.shape
    made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=arrays.gif(frames, fps))
    return _one(tag, image=made)


def audio(tag, tensor, sample_rate=44100) -> Summary:
    """A sound of one channel."""
    samples = arrays.as_array(tensor).squeeze()
    assert samples.ndim == 1, "input tensor should be 1 dimensional."
    made = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), content_type="audio/wav",
        encoded_audio_string=arrays.wav(samples, sample_rate),
    )  # fmt: skip
    return _one(tag, audio=made)


def text(tag, words) -> Summary:
    """Words, shown as Markdown."""
    content = TextPluginData(version=0).SerializeToString()
    proto = _text_proto([words.encode(encoding="utf_8")], (1,))
    return _one(tag + "/text_summary", tensor=proto, metadata=_plugin("text", content))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None) -> Summary:
    """Precision and recall at thresholds from 0 to 1."""
    n = min(num_thresholds, MOST_THRESHOLDS)
    labels, predictions = arrays.as_array(labels).reshape(-1), arrays.as_array(predictions).reshape(-1)
    weights = np.ones(labels.shape) if weights is None else np.broadcast_to(arrays.as_array(weights), labels.shape)
    where = np.floor(predictions * (n - 1)).astype(np.int64)
    positive = labels.astype(np.float64) * weights
    negative = (1.0 - labels) * weights
    hits, misses = (np.bincount(where, w, n)[:n] for w in (positive, negative))
    tp, fp = hits[::-1].cumsum()[::-1], misses[::-1].cumsum()[::-1]
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(_TINY, tp + fp)
    recall = tp / np.maximum(_TINY, tp + fn)
    return pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, n)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds=127, weights=None) -> Summary:
    """A curve that somebody else has made."""
    n = min(num_thresholds, MOST_THRESHOLDS)
    rows = np.stack(
        [np.asarray(x) if isinstance(x, list) else arrays.as_array(x) for x in (tp, fp, tn, fn, precision, recall)]
    ).astype(np.float32)
    content = PrCurvePluginData(version=0, num_thresholds=n).SerializeToString()
    return _one(tag, tensor=_proto(rows), metadata=_plugin("pr_curves", content))


def custom_scalars(layout) -> Summary:
    """Which charts the page of custom scalars has: {category: {title: (kind, tags)}}."""
    categories = []
    for category, titles in layout.items():
        charts = []
        for title, (kind, tags) in titles.items():
            if kind == "Margin":
                assert len(tags) == 3, f"Expected 3 tags, got {len(tags)}."
                series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                charts.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                charts.append(layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags)))
        categories.append(layout_pb2.Category(title=category, chart=charts))
    proto = TensorProto(
        dtype="DT_STRING", tensor_shape=TensorShapeProto(),
        string_val=[layout_pb2.Layout(category=categories).SerializeToString()],
    )  # fmt: skip
    return _one("custom_scalars__config__", tensor=proto, metadata=_plugin("custom_scalars"))


def mesh(tag, vertices, colors, faces, config) -> Summary:
    """Points (N, P, 3), with colours (N, P, 3) and triangles (N, F, 3)."""
    kinds = MeshPluginData
    parts = [(vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR)]
    parts = [(arrays.as_array(x), kind) for x, kind in parts if x is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in parts])
    values = []
    for array, kind in parts:
        metadata = mesh_metadata.create_summary_metadata(
            tag, None, kind, components, array.shape, json_config=json.dumps(config or {}, sort_keys=True)
        )
        name = mesh_metadata.get_instance_name(tag, kind)
        values.append(Summary.Value(tag=name, tensor=_proto(array.astype(np.float32)), metadata=metadata))
    return Summary(value=values)


# --- hyper-parameters ----------------------------------------------------------------------------------------------------


def hparams(hparam_dict, metric_dict, domain=None):
    """(experiment, start, end): which hyper-parameters and metrics there are, this run's values, and that it is over."""
    if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    domain = domain or {}
    if not isinstance(domain, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary")
    for name, values in domain.items():
        if name not in hparam_dict or not isinstance(values, list):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of values of a hyper-parameter"
            )
    infos, start = [], plugin_data_pb2.SessionStartInfo()
    for name, value in hparam_dict.items():
        if value is None:
            continue
        field, kind, value = _hparam(value)
        setattr(start.hparams[name], field, value)
        info = api_pb2.HParamInfo(name=name, type=kind)
        for v in domain.get(name, ()):
            setattr(info.domain_discrete.values.add(), field, v)
        infos.append(info)
    metrics = [api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag)) for tag in metric_dict]
    experiment = api_pb2.Experiment(hparam_infos=infos, metric_infos=metrics)
    ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
    return (
        _hparams(hparams_metadata.EXPERIMENT_TAG, experiment=experiment),
        _hparams(hparams_metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _hparams(hparams_metadata.SESSION_END_INFO_TAG, session_end_info=ended),
    )


def _hparam(value):
    """(field, type, value) of a hyper-parameter."""
    if isinstance(value, Tensor):
        value = arrays.as_scalar(value)
    if isinstance(value, str):
        return "string_value", api_pb2.DATA_TYPE_STRING, value
    if isinstance(value, int | float | np.number):  # bools too, as PyTorch counts them
        return "number_value", api_pb2.DATA_TYPE_FLOAT64, float(value)
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _hparams(tag, **fields):
    content = plugin_data_pb2.HParamsPluginData(version=hparams_metadata.PLUGIN_DATA_VERSION, **fields)
    return _one(tag, metadata=_plugin("hparams", content.SerializeToString()))
