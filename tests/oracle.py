"""PyTorch as the judge: the only test file that imports it. Programs, samples and comparisons for all the others."""

import contextlib
import functools
import io
import itertools
import re
import types
import warnings
from dataclasses import dataclass, field

import numpy as np

import jtorch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import torch
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_device_type import toleranceOverride
    from torch.testing._internal.common_methods_invocations import DecorateInfo, op_db
    from torch.testing._internal.common_modules import module_db
    from torch.testing._internal.opinfo import core
    from torch.testing._internal.opinfo.core import (
        OpInfo,
        SampleInput,
        gradcheck_wrapper_masked_operation,
    )

__all__ = [
    "Mismatch",
    "agree",
    "both",
    "compare",
    "counterpart",
    "from_torch",
    "module_builds",
    "run",
    "swap_import",
    "to_torch",
    "torch",
]

# PyTorch's products of bytes saturate, and its LSTM in bfloat16 raises, on a processor without them.
HAS_AVX512 = torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2")
torch.set_num_threads(1)
torch.sparse.check_sparse_tensor_invariants.disable()  # said once, and not a warning at the first sparse tensor
# Every manual_seed notes the whole stack for accelerators that are never started, every sample looks through it
# for a unittest: more time than the samples themselves.
for _accelerator in (torch.cuda, torch.xpu, torch.mtia):
    _accelerator.manual_seed_all = lambda seed: None
common_utils.extract_test_fn = core.extract_test_fn = lambda: None

# --- tensors across the border ------------------------------------------------------------------------------

_WIDE = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
_WIDE |= {d: torch.float32 for d in vars(torch).values() if isinstance(d, torch.dtype) and "float8" in str(d)}
_CONSTANTS = (torch.layout, torch.memory_format)


def dtype_in(module, d):
    """The dtype of the same name."""
    return getattr(module, str(d).rpartition(".")[2])


def _array(t):
    if t.dtype in _WIDE:
        return jtorch.tensor(t.to(_WIDE[t.dtype]).numpy().copy()).to(dtype_in(jtorch, t.dtype))
    return jtorch.tensor(t.clone().numpy())  # the clone: numpy() makes a storage that cannot be resized


def leaf_from_torch(t, storages=None):
    """A jtorch tensor with the values, strides, offset and requires_grad of a torch tensor.

    storages: {address: the tensor made of a storage} keeps tensors that share memory together.
    """
    needs, t = t.requires_grad, t.detach().resolve_conj().resolve_neg()
    if t.layout is not torch.strided:
        made = _sparse(t, jtorch, leaf_from_torch)
        return made.requires_grad_() if needs else made
    size = t.untyped_storage().nbytes() // t.element_size()
    place = (t.untyped_storage().data_ptr(), t.dtype)
    if storages is not None and not needs and size:
        if place in storages:
            return storages[place].as_strided(tuple(t.shape), t.stride(), t.storage_offset())
        made = storages[place] = leaf_from_torch(t)
        return made
    if t.ndim > 64:
        made = _array(t.reshape(-1)).reshape(tuple(t.shape))  # numpy has 64 dimensions at most
    elif t.is_contiguous() and size == t.numel():
        made = _array(t)
    else:
        made = _array(t.as_strided((size,), (1,), 0)).as_strided(tuple(t.shape), t.stride(), t.storage_offset())
    return made.requires_grad_() if needs else made


class _Memo(dict):
    """id of a torch tensor -> its counterpart; keeps the originals alive."""

    def __init__(self):
        super().__init__()
        self.alive = []
        self.storages = {}


def from_torch(x, memo=None):
    """Anything that a sample may hold, for jtorch; equal objects stay one object."""
    memo = _Memo() if memo is None else memo
    if isinstance(x, torch.Tensor):
        if id(x) not in memo:
            memo[id(x)] = leaf_from_torch(x, memo.storages)
            memo.alive.append(x)
        return memo[id(x)]
    if isinstance(x, torch.Size):
        return jtorch.Size(tuple(x))
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[from_torch(y, memo) for y in x])
    if isinstance(x, (list, tuple)):
        return type(x)(from_torch(y, memo) for y in x)
    if isinstance(x, dict):
        return {k: from_torch(v, memo) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(*[from_torch(y, memo) for y in (x.start, x.stop, x.step)])
    if isinstance(x, torch.dtype):
        return dtype_in(jtorch, x)
    if isinstance(x, torch.device):
        return jtorch.device(str(x))
    if isinstance(x, _CONSTANTS):
        return getattr(jtorch, str(x).removeprefix("torch."))
    if isinstance(x, torch.Generator):
        return jtorch.Generator().manual_seed(x.initial_seed())
    if isinstance(x, torch.nn.Module):
        args, kwargs = getattr(x, "_built_with", ((), {}))
        made = getattr(jtorch.nn, type(x).__name__)(*from_torch(args), **from_torch(kwargs))
        made.load_state_dict(from_torch(dict(x.state_dict())))
        return made
    return counterpart(x) if callable(x) else x


def _sparse(x, module, of):
    """A sparse tensor of the other module, part by part."""
    if str(x.layout) == "torch.sparse_coo":
        made = module.sparse_coo_tensor(of(x._indices()), of(x._values()), tuple(x.shape))
        return made._coalesced_(x.is_coalesced()) if module is torch else made.coalesce() if x.is_coalesced() else made
    by_row = str(x.layout) in ("torch.sparse_csr", "torch.sparse_bsr")
    parts = (x.crow_indices(), x.col_indices()) if by_row else (x.ccol_indices(), x.row_indices())
    layout = getattr(module, str(x.layout).removeprefix("torch."))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, that compressed layouts are new
        return module.sparse_compressed_tensor(*map(of, (*parts, x.values())), tuple(x.shape), layout=layout)


def to_torch(x):
    """Results of jtorch as torch's: fresh tensors of the same dtype, containers, dtypes, sizes."""
    if isinstance(x, jtorch.Tensor) and x.layout is not jtorch.strided:
        return _sparse(x.detach(), torch, to_torch)
    if isinstance(x, jtorch.Tensor):
        d = dtype_in(torch, x.dtype)
        x = x.detach()
        if d in _WIDE:
            x = x.to(dtype_in(jtorch, _WIDE[d]))
        return torch.from_numpy(np.array(np.asarray(x), order="C")).to(d)
    if isinstance(x, jtorch.Size):
        return torch.Size(x)
    if isinstance(x, (list, tuple)):
        return [to_torch(y) for y in x] if isinstance(x, list) else tuple(map(to_torch, x))
    if isinstance(x, dict):
        return {k: to_torch(v) for k, v in x.items()}
    if isinstance(x, type(jtorch.float32)):
        return dtype_in(torch, x)
    return x


# --- the counterpart of a torch callable --------------------------------------------------------------------

_SPACES = ("", "nn.functional", "linalg", "fft", "special", "masked", "signal.windows", "_C._nn")


class Missing(Exception):
    """jtorch has no function of this name."""


def _get(root, path):
    return functools.reduce(getattr, path.split("."), root) if path else root


@functools.cache
def _torch_names():
    names = {}
    for space in _SPACES:
        holder = _get(torch, space)
        for name in dir(holder):
            with contextlib.suppress(AttributeError, RuntimeError):
                found = getattr(holder, name)
                if callable(found) and not isinstance(found, types.ModuleType):
                    names.setdefault(id(found), f"{space}.{name}".lstrip("."))
    return names


@functools.cache
def _method_names():
    return {id(m): n for n in dir(torch.Tensor) if callable(m := getattr(torch.Tensor, n, None))}


def _missing(name):
    def stub(*args, **kwargs):
        raise Missing(name)

    return stub


_rebound = {}


def counterpart(fn, name=None):
    """jtorch's function for a torch function, method, partial, or function of PyTorch's test code."""
    path = None
    if name:
        with contextlib.suppress(AttributeError):
            path = name if _get(torch, name) is fn else None
    if path is None and isinstance(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        path = f"ops.{fn}"
    path = path or _torch_names().get(id(fn))
    if path:
        with contextlib.suppress(AttributeError):
            return _get(jtorch, path)
    method = _method_names().get(id(fn)) or ("" if "." in (path or ".") else path)
    if method and hasattr(jtorch.Tensor, method):
        return lambda x, *a, **kw: getattr(jtorch.Tensor, method)(x, *a, **kw)
    if isinstance(fn, functools.partial):
        return functools.partial(counterpart(fn.func), *fn.args, **fn.keywords)
    if isinstance(fn, types.FunctionType) and fn.__module__.startswith("torch.testing."):
        return _rebind(fn)
    return _missing(path or method or name or repr(fn))


def _rebind(fn):
    """A function of PyTorch's test code with jtorch in the place of torch among its globals."""
    if fn in _rebound:
        return _rebound[fn]
    if fn.__name__ == "wrapper_set_seed":

        def seeded(op, *args, **kwargs):
            jtorch.manual_seed(42)
            return op(*args, **kwargs)

        return seeded
    scope = {"__builtins__": __builtins__}
    cells = tuple(types.CellType() for _ in fn.__closure__ or ())
    clone = _rebound[fn] = types.FunctionType(fn.__code__, scope, fn.__name__, fn.__defaults__, cells)
    clone.__kwdefaults__ = fn.__kwdefaults__
    for name in _names_used(fn.__code__):
        if name in fn.__globals__:
            scope[name] = _value(fn.__globals__[name])
    for old, new in zip(fn.__closure__ or (), cells, strict=True):
        new.cell_contents = _value(old.cell_contents)
    return clone


def _names_used(code):
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*map(_names_used, inner))


def _value(x):
    if isinstance(x, types.ModuleType):
        if x.__name__ == "torch":
            return jtorch
        if x.__name__.startswith("torch."):
            with contextlib.suppress(AttributeError):
                return _get(jtorch, x.__name__.removeprefix("torch."))
        return x
    if isinstance(x, (torch.dtype, *_CONSTANTS)):
        return from_torch(x)
    if not callable(x) or not str(getattr(x, "__module__", "")).startswith(("torch", "None")) or isinstance(x, OpInfo):
        return x
    if isinstance(x, type):
        try:
            return _get(jtorch, _torch_names()[id(x)]) if id(x) in _torch_names() else x
        except AttributeError:
            return _missing(x.__name__)
    return counterpart(x)


# --- comparing ----------------------------------------------------------------------------------------------

# rtol, atol, and how many eps of the largest magnitude an op that sums may be off: its order of summation is free.
_TOLERANCES = {
    torch.float16: (2e-3, 1e-5, 2),
    torch.bfloat16: (2.4e-2, 1e-5, 2),
    torch.float32: (5.2e-6, 1e-5, 32),
    torch.complex64: (5.2e-6, 1e-5, 32),
}
_DOUBLE = (1e-7, 1e-7, 1024)


class Mismatch(AssertionError):
    """torch and jtorch differ."""


def allowed(expected, least=(0.0, 0.0), slack=1):
    rtol, atol, ulps = _TOLERANCES.get(expected.dtype, _DOUBLE)
    size = expected.abs().double()
    size = torch.where(size.isfinite(), size, 0.0)
    atol = max(atol, least[1])
    if size.numel():
        atol += ulps * torch.finfo(expected.dtype).eps * size.max().item()
    return slack * (atol + max(rtol, least[0]) * size)


def compare(expected, got, where="result", least=(0.0, 0.0), slack=1):
    """Raise Mismatch unless torch values `got` (from to_torch) equal `expected`: structure, dtypes, shapes, numbers."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            raise Mismatch(f"{where}: a tensor expected, got {type(got).__name__}")
        if expected.shape != got.shape:
            raise Mismatch(f"{where}: shape {tuple(expected.shape)} expected, got {tuple(got.shape)}")
        if expected.dtype != got.dtype:
            raise Mismatch(f"{where}: {expected.dtype} expected, got {got.dtype}")
        if expected.layout != got.layout:
            raise Mismatch(f"{where}: {expected.layout} expected, got {got.layout}")
        _compare_values(expected.detach(), got, where, least, slack)
    elif isinstance(expected, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(expected) != len(got):
            raise Mismatch(f"{where}: {type(expected).__name__} of {len(expected)} expected, got {got!r}")
        if isinstance(expected, list) != isinstance(got, list):
            raise Mismatch(f"{where}: {type(expected).__name__} expected, got {type(got).__name__}")
        for i, (x, y) in enumerate(zip(expected, got)):
            compare(x, y, f"{where}[{i}]", least, slack)
    elif isinstance(expected, dict):
        if not isinstance(got, dict) or list(expected) != list(got):
            raise Mismatch(f"{where}: keys {list(expected)} expected, got {got!r}")
        for k in expected:
            compare(expected[k], got[k], f"{where}[{k!r}]", least, slack)
    elif isinstance(expected, (float, complex)) and not isinstance(expected, bool):
        if type(expected) is not type(got):
            raise Mismatch(f"{where}: {expected!r} expected, got {got!r}")
        single = torch.complex64 if isinstance(expected, complex) else torch.float32
        _compare_values(torch.tensor(expected, dtype=single), torch.tensor(got, dtype=single), where, least, slack)
    elif type(expected).__module__.startswith(("torch", "builtins")) and not _same(expected, got):
        raise Mismatch(f"{where}: {expected!r} expected, got {got!r}")


def _same(expected, got):
    if isinstance(expected, (int, str, bytes, bool, type(None))):
        return type(expected) is type(got) and expected == got
    if isinstance(expected, (torch.dtype, torch.device, *_CONSTANTS)):
        return str(expected).removeprefix("torch.") == str(got).removeprefix("torch.").removeprefix("jtorch.")
    return True


def _compare_values(expected, got, where, least, slack):
    if expected.layout is not torch.strided:
        expected, got = expected.to_dense(), got.to_dense()
    expected = expected.resolve_conj().resolve_neg()
    if not (expected.is_floating_point() or expected.is_complex()):
        bad = expected != got
    else:
        wide = torch.complex128 if expected.is_complex() else torch.float64
        distance = (got.to(wide) - expected.to(wide)).abs()
        if expected.element_size() == 1:
            expected, got = expected.float(), got.float()
        bad = ~(distance <= allowed(expected, least, slack))
        same = (expected.isnan() & got.isnan()) | (expected == got)
        if expected.is_complex():
            same |= expected.isinf() & got.isinf()
        bad &= ~same
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        raise Mismatch(
            f"{where}: {int(bad.sum())} of {bad.numel()} differ, first at {at}: "
            f"{expected[at].item()!r} expected, got {got[at].item()!r}"
        )


def strides(tree, of):
    """Strides of the dimensions that have any, of all tensors of class `of` in a result."""
    if isinstance(tree, of):
        if getattr(tree, "layout", None) not in (torch.strided, getattr(jtorch, "strided", None)):
            return None
        return tuple(s for s, n in zip(tree.stride(), tree.shape) if n > 1) if tree.numel() else ()
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [strides(x, of) for x in tree] if isinstance(tree, (list, tuple)) else None


# --- running ------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a program did: its result or its error, and what it printed."""

    value: object = None
    error: Exception | None = None
    printed: str = ""
    inputs: list = field(default_factory=list)


def run(fn, *args, **kwargs):
    """Call and catch."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            return Outcome(fn(*args, **kwargs), None, printed.getvalue())
    except Exception as e:
        return Outcome(None, e, printed.getvalue())


def swap_import(text):
    """The text of a PyTorch program with the import swapped."""
    text = re.sub(r"^(\s*)import torch$", r"\1import jtorch as torch", text, flags=re.M)
    return re.sub(r"^(\s*)(import|from) torch\b", r"\1\2 jtorch", text, flags=re.M)


def execute(text, name="torch"):
    """Run a program text; its public variables are its result."""
    scope = {"__name__": "program", name: torch}
    if name != "torch":
        scope = {"__name__": "program", "torch": jtorch}
        text = swap_import(text)
    exec(compile(text, f"<{name} program>", "exec"), scope)
    plain = (torch.Tensor, jtorch.Tensor, int, float, complex, bool, str, list, tuple, dict)
    return {k: v for k, v in scope.items() if not k.startswith("_") and isinstance(v, plain)}


def first_line(error):
    """The words that must be the same: without the name of the package and torch's plea to improve its words."""
    line = (str(error).splitlines() or [""])[0].partition("  (Could this error message be improved?")[0]
    return line.rstrip().replace("module 'jtorch", "module 'torch")


def same_error(expected, got, regex=None):
    """Raise Mismatch unless both raised, the same class and the same first line (or what `regex` asks for)."""
    if (expected is None) != (got is None):
        raise Mismatch(f"torch: {expected!r}; jtorch: {got!r}") from got
    if expected is None:
        return
    if type(expected).__name__.lstrip("_") not in {c.__name__.lstrip("_") for c in type(got).__mro__}:
        raise Mismatch(f"error {expected!r} expected, got {got!r}") from got
    want, have = first_line(expected), first_line(got)
    if want != have and not (regex and re.search(regex, str(got))):
        raise Mismatch(f"error words expected: {want!r}, got: {have!r}") from got


def _flags(tree, of):
    if isinstance(tree, of):
        return bool(tree.requires_grad)
    if isinstance(tree, dict):
        return {k: _flags(v, of) for k, v in tree.items()}
    return [_flags(x, of) for x in tree] if isinstance(tree, (list, tuple)) else None


def agree(expected, got, *, layout=True, least=(0.0, 0.0), slack=1):
    """Raise Mismatch unless two outcomes agree: errors, prints, values, strides, requires_grad."""
    if expected.error is not None or got.error is not None:
        return same_error(expected.error, got.error)
    if expected.printed != got.printed:
        raise Mismatch(f"printed\n{expected.printed}\nexpected, got\n{got.printed}")
    compare(expected.value, to_torch(got.value), least=least, slack=slack)
    want, have = _flags(expected.value, torch.Tensor), _flags(got.value, jtorch.Tensor)
    if want != have:
        raise Mismatch(f"requires_grad {want} expected, got {have}")
    if layout:
        want, have = strides(expected.value, torch.Tensor), strides(got.value, jtorch.Tensor)
        if want != have:
            raise Mismatch(f"strides {want} expected, got {have}")


def both(program, *args, **options):
    """Run a program in torch and in jtorch and compare all that can be seen of it; returns jtorch's outcome.

    program: a function of the module and `args`, or a text with `torch` (its public variables are compared).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(program, str):
            expected, got = run(execute, program), run(execute, program, "jtorch")
        else:
            expected, got = run(program, torch, *args), run(program, jtorch, *args)
    agree(expected, got, **options)
    return got


# --- samples ------------------------------------------------------------------------------------------------

CPU_ONLY = re.compile(r"jiterator_.*|.*triton.*|.*_(flash|efficient)_attention_forward|.*_scaled_mm.*")


@functools.cache
def opinfos():
    """Full name (with its variant) -> OpInfo, of what PyTorch has on the CPU."""
    found = {}
    for info in op_db:
        if not CPU_ONLY.fullmatch(info.name):
            found.setdefault(info.full_name, info)
    return found


def module_builds():
    """(name, class of torch, its arguments, a call's arguments): every way in which PyTorch's tests build modules."""
    layer = torch.nn.TransformerEncoderLayer  # the one module that is an argument of another
    plain = layer.__init__

    def remember(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        self._built_with = args, kwargs

    layer.__init__ = remember
    try:
        for info in module_db:
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
            )
            for given in inputs:
                made, called = given.constructor_input, given.forward_input
                yield info.name, info.module_cls, (made.args, made.kwargs), (called.args, called.kwargs)
    finally:
        layer.__init__ = plain


def choose(samples, cap):
    """At most `cap` samples: the first, an empty one, a 0-d one, and others spread evenly."""
    samples = list(samples)
    if len(samples) <= cap:
        return samples
    picked = {0: samples[0]}
    for test in (lambda t: t.numel() == 0, lambda t: t.ndim == 0):
        for i, s in enumerate(samples):
            if len(picked) < cap and isinstance(s.input, torch.Tensor) and test(s.input):
                picked.setdefault(i, s)
                break
    for i in (len(samples) - 1 - k * len(samples) // cap for k in range(cap)):
        if len(picked) < cap:
            picked.setdefault(i, samples[i])
    return [picked[i] for i in sorted(picked)]


def samples(info, dtype, cap, *, grad=False, limit=60):
    """A fixed choice of an OpInfo's samples; none if PyTorch does not make any of this dtype."""
    usable = info.supported_backward_dtypes("cpu") if grad else info.supported_dtypes("cpu")
    d = dtype_in(torch, dtype)
    if d not in usable:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        np.random.seed(0)
        limit = limit if cap > 1 else 1  # which is what is chosen then
        return choose(itertools.islice(info.sample_inputs("cpu", d, requires_grad=grad), limit), cap)


def error_samples(info, cap):
    """(sample, error type, regex) of inputs that must be refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        found = list(itertools.islice(info.error_inputs("cpu"), 40))
    step = max(1, -(-len(found) // cap))
    return [(e.sample_input, e.error_regex) for e in found[::step]]


def tensors(tree, of):
    """All tensors of class `of` in nested containers."""
    if isinstance(tree, of):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [t for x in tree for t in tensors(x, of)] if isinstance(tree, (list, tuple)) else []


class Given:
    """Hand-made samples of one function, with the face of an OpInfo."""

    gradcheck_wrapper = staticmethod(OpInfo.gradcheck_wrapper)
    inplace_variant = None
    error_inputs_func = None
    decorators = ()
    supports_gradgrad = True
    supports_out = False

    def __init__(self, name, rows, placeholder):
        self.name = self.full_name = name
        self.rows = rows
        self.placeholder = placeholder
        try:
            self.op = _get(torch, name)
        except AttributeError:
            self.op = _missing(name)
        self.supports_autograd = True

    def supported_dtypes(self, device):
        return {torch.float32, torch.float64}

    supported_backward_dtypes = supported_dtypes

    def sample_inputs(self, device, dtype, requires_grad=False):
        generator = torch.Generator().manual_seed(0)

        def make(x):
            if isinstance(x, self.placeholder):
                if x.kind == "int":
                    return torch.randint(0, 2, x.shape, generator=generator)
                if x.kind == "int8":
                    return torch.randint(-128, 128, x.shape, generator=generator, dtype=torch.int8)
                if x.kind == "bool":
                    return torch.rand(x.shape, generator=generator) > 0.5
                if x.kind == "complex":
                    return torch.randn(x.shape, dtype=dtype.to_complex(), generator=generator).requires_grad_(
                        requires_grad
                    )
                t = torch.randn(x.shape, dtype=torch.float64, generator=generator).to(dtype)
                return t.requires_grad_(requires_grad)
            return type(x)(map(make, x)) if isinstance(x, (list, tuple)) else x

        for args in self.rows:
            args = list(args)
            kwargs = {k: make(v) for k, v in args.pop().items()} if isinstance(args[-1], dict) else {}
            first, *rest = map(make, args)
            yield SampleInput(first, args=tuple(rest), kwargs=kwargs)


plain_wrapper = OpInfo.gradcheck_wrapper


def is_masked(info):
    """Whether results are undefined where a mask argument says so."""
    return getattr(info.gradcheck_wrapper, "__name__", "").startswith("gradcheck_wrapper_masked")


def output_mask(info, sample):
    """Where a masked operator's result is defined."""
    masks = [sample.kwargs.get(k) for k in ("mask", "input_mask", "other_mask")]
    masks = [m for m in masks if m is not None]
    if not masks:
        return True
    if info.gradcheck_wrapper is gradcheck_wrapper_masked_operation:
        return torch.masked._output_mask(info.op, sample.input, *sample.args, **sample.kwargs)
    return functools.reduce(torch.logical_and, masks)


def overrides(info, dtype):
    """The widest tolerance that PyTorch's own tests grant the op on the CPU."""
    rtol = atol = 0.0
    for d in info.decorators:
        if isinstance(d, DecorateInfo) and d.device_type in (None, "cpu"):
            for tolerance in d.decorators:
                found = tolerance.d.get(dtype_in(torch, dtype)) if isinstance(tolerance, toleranceOverride) else None
                if found is not None:
                    rtol, atol = max(rtol, found.rtol), max(atol, found.atol)
    return rtol, atol


def strided(sample):
    """The sample with non-contiguous tensors, where it has tensors to make so."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [sample.noncontiguous()]
    except Exception:
        return []


def cotangent(t, seed, module):
    """Fixed pseudo-random numbers of the shape and dtype of a result of either library."""
    d = dtype_in(torch, t.dtype)
    made = torch.randn(tuple(t.shape), dtype=d, generator=torch.Generator().manual_seed(seed))
    return made if module is torch else from_torch(made)


def like_filled(t):
    return torch.full(t.shape, 77, dtype=t.dtype)


def like_empty(t):
    return torch.empty(0, dtype=t.dtype)


def tree_map(fn, tree):
    """A result with its tensors changed."""
    if isinstance(tree, torch.Tensor):
        return fn(tree)
    if isinstance(tree, (list, tuple)):
        return (
            type(tree)(tree_map(fn, x) for x in tree)
            if type(tree) in (list, tuple)
            else tuple(tree_map(fn, x) for x in tree)
        )
    return tree


def as_leaves(tree, memo=None):
    """A sample's arguments with every tensor a leaf: some are views of others, of which they would be the history."""
    memo = {} if memo is None else memo
    if isinstance(tree, torch.Tensor):
        if id(tree) not in memo:
            memo[id(tree)] = tree.detach().requires_grad_(tree.requires_grad)
        return memo[id(tree)]
    if type(tree) in (list, tuple):
        return type(tree)(as_leaves(x, memo) for x in tree)
    return {k: as_leaves(v, memo) for k, v in tree.items()} if type(tree) is dict else tree


def same_kind(expected, got):
    """Raise Mismatch unless structure, shapes and dtypes agree; numbers are not looked at."""
    nothing = functools.partial(tree_map, lambda t: torch.zeros(t.shape, dtype=t.dtype))
    if not isinstance(expected, (int, float, complex, str)):
        compare(nothing(expected), nothing(got))
