"""torch.utils.data under PyTorch's name, with the submodules that programs import from it."""

import sys
import types

from .. import data as _data
from ..data import *  # noqa: F403
from ..data import collate, dataloader, datapipes, dataset, distributed, fetch, sampler, worker

__all__ = _data.__all__  # or a star import would take the submodules along: one is named iter, one map
_DatasetKind = _data._DatasetKind

_utils = types.ModuleType(f"{__name__}._utils", "Where PyTorch keeps the parts of its loader.")
_utils.collate = collate
_utils.fetch = fetch
_utils.worker = worker

_iter = types.ModuleType(f"{__name__}.datapipes.iter", "The steps of iterable pipes.")
_iter.__dict__.update(datapipes.ITER)
_map = types.ModuleType(f"{__name__}.datapipes.map", "The steps of pipes by key.")
_map.__dict__.update(datapipes.MAP)

# `import jtorch.utils.data.sampler` must give the module that jtorch.data uses, not load the file once more
for _name, _module in {
    "dataset": dataset,
    "sampler": sampler,
    "dataloader": dataloader,
    "distributed": distributed,
    "_utils": _utils,
    "_utils.collate": collate,
    "_utils.fetch": fetch,
    "_utils.worker": worker,
    "datapipes": datapipes,
    "datapipes.datapipe": datapipes,
    "datapipes.iter": _iter,
    "datapipes.map": _map,
}.items():
    sys.modules[f"{__name__}.{_name}"] = _module
del _name, _module
