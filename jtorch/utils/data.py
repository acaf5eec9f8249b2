"""torch.utils.data under PyTorch's name, with the submodules that programs import from it."""

import sys
import types

from .. import data as _data
from ..data import *  # noqa: F403
from ..data import collate, dataloader, datapipes, dataset, distributed, fetch, sampler, worker
from ..data.datapipes import common, datapipe, decorators, graph, graph_settings, passes, snapshot
from ..data.datapipes import steps as _steps

__all__ = _data.__all__  # or a star import would take the submodules along: one is named iter, one map
_DatasetKind = _data._DatasetKind


def _module(name, words, *sources, **names):
    """A module of PyTorch's name, with the public names of some of jtorch's."""
    made = types.ModuleType(f"{__name__}.{name}", words)
    for source in sources:
        made.__dict__.update({n: getattr(source, n) for n in source.__all__})
    made.__dict__.update(names)
    return made


_ENDINGS = {"iter": "The steps of iterable pipes.", "map": "The steps of pipes by key."}
_iter = _module("datapipes.iter", _ENDINGS["iter"], **datapipes.ITER, __all__=sorted(datapipes.ITER))
_map = _module("datapipes.map", _ENDINGS["map"], **datapipes.MAP, __all__=sorted(datapipes.MAP))

# PyTorch's file -> jtorch's
_FILES = {
    "iter.callable": (_steps.callable,), "iter.combinatorics": (_steps.ordering,), "iter.combining": (_steps.combining, _steps.splitting),
    "iter.filelister": (_steps.wrapping,), "iter.fileopener": (_steps.wrapping,), "iter.grouping": (_steps.grouping,), "iter.selecting": (_steps.callable,),
    "iter.sharding": (_steps.ordering,), "iter.streamreader": (_steps.wrapping,), "iter.utils": (_steps.wrapping,),
    "map.combinatorics": (_steps.keyed,), "map.callable": (_steps.keyed,), "map.combining": (_steps.keyed,), "map.grouping": (_steps.keyed,), "map.utils": (_steps.keyed,),
}  # fmt: skip

# `import jtorch.utils.data.sampler` must give the module that jtorch.data uses, not load the file once more
_MODULES = {
    "dataset": dataset,
    "sampler": sampler,
    "dataloader": dataloader,
    "distributed": distributed,
    "graph": graph,
    "graph_settings": graph_settings,
    "_utils": _module(
        "_utils", "Where PyTorch keeps the parts of its loader.", collate=collate, fetch=fetch, worker=worker
    ),
    "_utils.collate": collate,
    "_utils.fetch": fetch,
    "_utils.worker": worker,
    "datapipes": datapipes,
    "datapipes.datapipe": datapipe,
    "datapipes._decorator": decorators,
    "datapipes._hook_iterator": _module(
        "datapipes._hook_iterator", passes.__doc__, _SnapshotState=passes.SnapshotState
    ),
    "datapipes.utils": _module("datapipes.utils", "What several steps need.", common=common, snapshot=snapshot),
    "datapipes.utils.common": common,
    "datapipes.utils.snapshot": snapshot,
    "datapipes.iter": _iter,
    "datapipes.map": _map,
    **{f"datapipes.{n}": _module(f"datapipes.{n}", _ENDINGS[n.split(".")[0]], *files) for n, files in _FILES.items()},
}
datapipes.iter, datapipes.map, datapipes.utils = _iter, _map, _MODULES["datapipes.utils"]
_utils = _MODULES["_utils"]
for _name, _found in _MODULES.items():
    sys.modules[f"{__name__}.{_name}"] = _found
del _name, _found
