"""SummaryWriter: one method a kind of summary; what they write is in summary.py."""

import datetime
import importlib
import os
import socket
import time

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from ... import errors
from . import arrays, projector, summary
from .graph import graph_of

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Appends events to one file, from a thread of its own.

    Args:
        log_dir: the folder
        max_queue: events that may wait to be written. Default: 10
        flush_secs: seconds after which they are written at the latest. Default: 120
        filename_suffix: what the file's name ends with
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self.event_writer.get_logdir()

    def add_event(self, event, step=None, walltime=None) -> None:
        """Append an event, dated now unless told otherwise."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step=None, walltime=None) -> None:
        """Append a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile, walltime=None) -> None:
        """Append a graph: the first of a pair, as PyTorch passes it."""
        self.add_event(Event(graph_def=graph_profile[0].SerializeToString()), None, walltime)

    def add_onnx_graph(self, graph, walltime=None) -> None:
        """Append a GraphDef."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Open a file again after `close`."""
        self.event_writer.reopen()


def _default_bins() -> list[float]:
    """TensorBoard's buckets: 10% wider each, from 1e-12 to 1e20 on both sides of zero."""
    right, value = [], 1e-12
    while value < 1e20:
        right.append(value)
        value *= 1.1
    return [-v for v in reversed(right)] + [0.0] + right


class SummaryWriter:
    """Writes what TensorBoard shows to event files in a folder. Also a context manager.

    Args:
        log_dir: the folder. Default: runs/DATE_HOST followed by `comment`
        comment: see `log_dir`
        purge_step: hide events of earlier runs from this step on
        max_queue: events that may wait to be written. Default: 10
        flush_secs: seconds after which they are written at the latest. Default: 120
        filename_suffix: what the names of files end with

    Source: https://docs.pytorch.org/docs/stable/tensorboard.html
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer = self.all_writers = None
        self._get_file_writer()
        self.default_bins = _default_bins()

    def _open(self, folder):
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        if self.all_writers is None or self.file_writer is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                step = self.purge_step
                self.file_writer.add_event(Event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=step, session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def _add(self, made, step, walltime):
        self._get_file_writer().add_summary(made, step, walltime)

    def add_scalar(
        self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False
    ) -> None:
        """One number: a float, or a tensor or array of one element."""
        self._add(summary.scalar(tag, scalar_value, None, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Numbers in one chart: each is written to a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = self._open(name)
            self.all_writers[name].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None) -> None:
        """All elements of a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None) -> None:
        """The distribution of the elements of a tensor or array.

        `bins`: "tensorflow" (TensorBoard's own), or whatever `numpy.histogram` takes.
        """
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ) -> None:
        """A distribution that somebody else has counted."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(made, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW") -> None:
        """A picture: uint8 from 0 to 255, or floats from 0 to 1, of 1, 3 or 4 channels."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW") -> None:
        """Pictures, side by side."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(
        self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None
    ) -> None:
        """A picture with boxes (N, 4), each left, top, right, bottom, and a label each where there are some."""
        if isinstance(labels, str):
            labels = [labels]
        boxes = arrays.as_array(box_tensor)
        if labels is not None and len(labels) != len(boxes):
            labels = None
        self._add(summary.image_boxes(tag, img_tensor, boxes, rescale, dataformats, labels), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None) -> None:
        """A matplotlib figure as a picture; several, of one size, side by side. They are closed unless told otherwise."""
        figures = figure if isinstance(figure, list) else [figure]
        pictures = [_drawn(f, close) for f in figures]
        if isinstance(figure, list):
            self.add_images(tag, np.stack(pictures), global_step, walltime, "NHWC")
        else:
            self.add_image(tag, pictures[0], global_step, walltime, "HWC")

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None) -> None:
        """Films (N, T, C, H, W), side by side, as one moving picture."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None) -> None:
        """A sound: samples (1, L) or (L,) from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """Words, shown as Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True) -> None:
        """The graph that `model` records for an input, or a tuple of them. `use_strict_trace` has no meaning here."""
        if input_to_model is None:
            raise ValueError("add_graph needs input_to_model: the graph is what the model records for it")
        made = graph_of(model, input_to_model, verbose)
        self._get_file_writer().add_graph((made, None))

    def add_onnx_graph(self, prototxt) -> None:
        """Not supported: raises."""
        raise errors.unsupported("ONNX graphs in TensorBoard", "add_graph(model, input)")

    def add_embedding(
        self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None
    ) -> None:
        """Points (N, D) for TensorBoard's projector.

        Args:
            metadata: a label for each point, or a list of labels as `metadata_header` names them
            label_img: a picture for each point (N, C, H, W)
        """
        projector.write(
            self._get_file_writer().get_logdir(), arrays.as_array(mat), metadata, label_img, global_step, tag,
            metadata_header,
        )  # fmt: skip

    def add_pr_curve(
        self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None
    ) -> None:
        """Precision and recall: labels 0 or 1, predictions from 0 to 1, at thresholds (127 at most) between."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
        recall, global_step=None, num_thresholds=127, weights=None, walltime=None,
    ) -> None:  # fmt: skip
        """Precision and recall that somebody else has counted."""
        made = summary.pr_curve_raw(
            tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision,
            recall, num_thresholds, weights,
        )  # fmt: skip
        self._add(made, global_step, walltime)

    def add_custom_scalars(self, layout) -> None:
        """Which charts join which scalars: {category: {title: ("Multiline" or "Margin", tags)}}."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled") -> None:
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ("Multiline", tags)}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled") -> None:
        """One chart of a scalar between a lower and an upper one: three tags."""
        assert len(tags) == 3, f"Expected 3 tags, got {len(tags)}."
        self.add_custom_scalars({category: {title: ("Margin", tags)}})

    def add_mesh(
        self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None
    ) -> None:
        """Points (N, P, 3), with colours (N, P, 3) and triangles (N, F, 3)."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(
        self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        """A run's hyper-parameters and what they led to, in a folder of its own.

        Args:
            hparam_domain_discrete: the values that a hyper-parameter may have
            run_name: the folder. Default: the time
        """
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(folder) as inner:
            for one in made:
                inner.file_writer.add_summary(one)
            for name, value in metric_dict.items():
                inner.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _drawn(figure, close):
    """A figure's pixels (H, W, 3)."""
    canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    if close:
        importlib.import_module("matplotlib.pyplot").close(figure)
    return pixels
