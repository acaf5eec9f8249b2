"""torch.utils.tensorboard: event files that TensorBoard shows. Needs the extra `tensorboard`."""

import importlib

try:
    importlib.import_module("tensorboard")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "jtorch.utils.tensorboard needs the package tensorboard: install it with `pip install jtorch-xla[tensorboard]`",
        name=error.name,
    ) from None

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
