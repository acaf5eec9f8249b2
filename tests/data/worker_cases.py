"""What both libraries are asked for with worker processes: each scenario is a function of `lib` and gives plain values.

PyTorch forks its workers, which a process that runs JAX's threads must not do. So its side runs in a process of its own:
`python -m tests.data.worker_cases FILE` writes what PyTorch gives for all scenarios.
"""

import importlib
import pathlib
import pickle
import re
import sys
from functools import partial

import numpy as np

from tests.data import worker_sets as sets


def plain(x):
    """Batches of either library, as something that compares by ==."""
    if hasattr(x, "requires_grad"):
        return str(x.dtype).rpartition(".")[2], tuple(x.shape), x.tolist()
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x).__name__, [plain(y) for y in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(plain(y) for y in x)
    if isinstance(x, np.ndarray):
        return "array", str(x.dtype), x.tolist()
    return x


def loader(lib, dataset, **settings):
    """A loader with two workers and batches of three, unless told otherwise."""
    settings = {"num_workers": 2, "batch_size": 3, **settings}
    own = {k: v(lib) if k in ("sampler", "batch_sampler", "collate_fn") else v for k, v in settings.items()}
    return lib.utils.data.DataLoader(dataset(lib), **own)


def rows(kind):
    return partial(_rows, kind=kind)


def _rows(lib, kind):
    return sets.Rows(lib, kind)


SAMPLERS = {
    "sequential": lambda lib: lib.utils.data.SequentialSampler(range(11)),
    "random": lambda lib: lib.utils.data.RandomSampler(range(11)),
    "replacement": lambda lib: lib.utils.data.RandomSampler(range(11), replacement=True, num_samples=40),
    "subset": lambda lib: lib.utils.data.SubsetRandomSampler([9, 3, 1, 4]),
    "weighted": lambda lib: lib.utils.data.WeightedRandomSampler([1.0, 2.0, 0.5, 3.0], 9),
    "distributed": lambda lib: lib.utils.data.DistributedSampler(range(11), num_replicas=2, rank=1, seed=3),
    "list": lambda lib: [2, 0, 2],
}
CASES = {
    **{kind: (rows(kind), {}) for kind in sets.KINDS},
    **{f"{kind} shuffled": (rows(kind), {"shuffle": True}) for kind in ("drawn", "dict")},
    **{f"sampler {name}": (rows("tensor"), {"sampler": s}) for name, s in SAMPLERS.items()},
    "batch sampler": (
        rows("tensor"),
        {"batch_size": 1, "batch_sampler": lambda lib: lib.utils.data.BatchSampler(SAMPLERS["random"](lib), 4, True)},
    ),
    "drop_last": (rows("tensor"), {"drop_last": True}),
    "single": (rows("scalars"), {"batch_size": None}),
    "drawn single": (rows("drawn"), {"batch_size": None, "shuffle": True}),
    "one worker": (rows("drawn"), {"num_workers": 1, "prefetch_factor": 1}),
    "prefetch": (rows("drawn"), {"prefetch_factor": 5}),
    "init": (rows("drawn"), {"worker_init_fn": sets.reseed}),
    "collate": (lambda lib: range(9), {"collate_fn": lambda lib: partial(sets.padded, lib)}),
    "tensors": (
        lambda lib: lib.utils.data.TensorDataset(lib.arange(22.0).reshape(11, 2), lib.arange(11)),
        {"shuffle": True},
    ),
    "subset": (
        lambda lib: lib.utils.data.Subset(lib.utils.data.TensorDataset(lib.arange(22.0).reshape(11, 2)[1:]), [4, 9, -1]),
        {},
    ),
    "concat": (lambda lib: lib.utils.data.ConcatDataset([range(4), sets.Rows(lib, "scalars", 0), range(5)]), {}),
    "stack": (lambda lib: lib.utils.data.StackDataset(a=range(5), b=sets.Rows(lib, "array", 5)), {"shuffle": True}),
    "stream": (sets.stream, {}),
    "stream single": (sets.stream, {"batch_size": None}),
    "stream drop_last": (sets.stream, {"drop_last": True, "batch_size": 2}),
    "stream of all": (partial(sets.stream, sharded=False), {"batch_size": 4}),
}  # fmt: skip


FAULTS = {
    "value": {1: ValueError("v")},
    "key": {0: KeyError("no such\nkey"), 2: IndexError(3)},
    "odd": {1: sets.Odd(1, 2)},
    "stop": {1: StopIteration()},
    "last": {11: RuntimeError("r")},
}


def outcomes(made, n):
    """What the first n calls of next give: a value, or class and first words of an exception."""
    found, batches = [], iter(made)
    for _ in range(n):
        try:
            found.append(plain(next(batches)))
        except Exception as error:
            words = re.sub(r"\(pid\(s\) \d+\)", "(pid(s) N)", str(error))
            found.append((type(error).__name__, words.splitlines()[:2]))
    return found


def epochs(lib, dataset, settings, n=1):
    made = loader(lib, dataset, **settings)
    return [plain(list(made)) for _ in range(n)]


def after_a_break(lib):
    made = loader(lib, rows("scalars"), persistent_workers=True, shuffle=True)
    next(iter(made))
    return plain(list(made))


def with_generator(lib):
    g = lib.Generator().manual_seed(5)
    made = lib.utils.data.DataLoader(sets.Rows(lib, "drawn"), 2, shuffle=True, generator=g, num_workers=2)
    return [plain(list(made)), g.get_state().tolist()]


def any_order(lib, dataset, settings):
    return sorted(map(repr, plain(list(loader(lib, dataset, in_order=False, **settings)))))


def faults(lib, name, workers):
    return outcomes(loader(lib, lambda _: sets.Faulty(FAULTS[name]), num_workers=workers, batch_size=1), 14)


def bad_start(lib):
    return outcomes(loader(lib, rows("scalars"), num_workers=1, worker_init_fn=sets.refuse), 1)


SCENARIOS = {name: partial(epochs, dataset=d, settings=s) for name, (d, s) in CASES.items()}
for _name in ("drawn", "dict shuffled", "stream"):
    _dataset, _settings = CASES[_name]
    SCENARIOS[f"persistent {_name}"] = partial(
        epochs, dataset=_dataset, settings={**_settings, "persistent_workers": True}, n=2
    )
SCENARIOS["two epochs"] = partial(epochs, dataset=rows("drawn"), settings={"shuffle": True}, n=2)
for _name in ("scalars", "stream", "stream single"):
    SCENARIOS[f"any order {_name}"] = partial(any_order, dataset=CASES[_name][0], settings=CASES[_name][1])
for _name in FAULTS:
    for _n in (1, 2):
        SCENARIOS[f"fault {_name} {_n}"] = partial(faults, name=_name, workers=_n)
SCENARIOS |= {"after a break": after_a_break, "generator": with_generator, "bad start": bad_start}


def play(lib, name):
    """What a scenario gives, and where the default generator then stands."""
    lib.manual_seed(7)
    return SCENARIOS[name](lib), lib.get_rng_state().tolist()


if __name__ == "__main__":
    torch = importlib.import_module("torch")
    torch.multiprocessing.set_sharing_strategy("file_system")
    pathlib.Path(sys.argv[1]).write_bytes(pickle.dumps({name: play(torch, name) for name in SCENARIOS}))
