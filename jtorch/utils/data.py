"""torch.utils.data under PyTorch's name, with the submodules that programs import from it."""

import sys
import types

from .. import data as _data
from ..data import *  # noqa: F403
from ..data import collate, dataloader, dataset, distributed, fetch, sampler

_DatasetKind = _data._DatasetKind

_utils = types.ModuleType(f"{__name__}._utils", "Where PyTorch keeps the parts of its loader.")
_utils.collate = collate
_utils.fetch = fetch

# `import jtorch.utils.data.sampler` must give the module that jtorch.data uses, not load the file once more
for _name, _module in {
    "dataset": dataset,
    "sampler": sampler,
    "dataloader": dataloader,
    "distributed": distributed,
    "_utils": _utils,
    "_utils.collate": collate,
    "_utils.fetch": fetch,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
del _name, _module
