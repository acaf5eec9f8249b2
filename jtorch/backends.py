"""torch.backends: settings of the libraries that PyTorch calls. XLA takes their place, so most are kept and change nothing."""

import contextlib
import sys
import types

from . import config, errors, settings
from .core import device as devices
from .core import processor
from .handles import enter, leave, mutations
from .namespaces import Namespace

__allow_nonbracketed_mutation_flag = True  # by PyTorch's names, which programs write


def disable_global_flags():
    """Refuse assignments to settings from now on, outside of the contexts that put them back."""
    global __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = False


def flags_frozen():
    """Whether assignments are refused."""
    return not __allow_nonbracketed_mutation_flag


@contextlib.contextmanager
def __allow_nonbracketed_mutation():
    global __allow_nonbracketed_mutation_flag
    before = __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = True
    try:
        yield
    finally:
        __allow_nonbracketed_mutation_flag = before


class _Backend(Namespace):
    """One namespace of settings; it also answers `import jtorch.backends.<name>`. frozen: which `disable_global_flags` freezes."""

    def __init__(self, name, doc, frozen=(), **contents):
        super().__init__(f"{__name__}.{name}", doc)
        self.__dict__.update(contents, _frozen=frozen)
        sys.modules[self.__name__] = self

    def __setattr__(self, name, value):
        if name in self._frozen and flags_frozen():
            raise RuntimeError(
                f"not allowed to set {self.__name__} flags after disable_global_flags; please use flags() context manager instead"
            )
        super().__setattr__(name, value)


def _flags(backend, names):
    """A context manager that sets some settings of a backend and puts them back."""

    @contextlib.contextmanager
    def flags(**values):
        unknown = set(values) - set(names)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument '{sorted(unknown)[0]}'")
        before = {name: getattr(backend, name) for name in values}
        try:
            with __allow_nonbracketed_mutation():
                for name, value in values.items():
                    setattr(backend, name, value)
            yield
        finally:
            with __allow_nonbracketed_mutation():
                for name, value in before.items():
                    setattr(backend, name, value)

    return flags


class _Matmul(types.SimpleNamespace):
    """Settings of matrix products; allow_tf32 is set_float32_matmul_precision by another name."""

    @property
    def allow_tf32(self):
        return settings.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, allowed):
        settings.set_float32_matmul_precision("high" if allowed else "highest")

    _exact = "none"  # the name of float32's own precision that was asked for last

    @property
    def fp32_precision(self):
        return "tf32" if self.allow_tf32 else self._exact

    @fp32_precision.setter
    def fp32_precision(self, asked):
        self.allow_tf32 = asked == "tf32"
        if not self.allow_tf32:
            self._exact = asked


class _Conv:
    """`fp32_precision` of convolutions: "tf32", or "ieee"."""

    fp32_precision = property(
        lambda self: "tf32" if config.conv_tf32 else "ieee",
        lambda self, asked: settings.allow_conv_tf32(asked == "tf32"),
    )


def _no():
    return False


def _yes():
    return True


def _on_cuda():
    return devices.accelerator() == "cuda"


class _Convolutions(_Backend):
    @property
    def allow_tf32(self):
        return config.conv_tf32

    @allow_tf32.setter
    def allow_tf32(self, allowed):
        settings.allow_conv_tf32(allowed)


_CUDNN = "enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32"
_MKLDNN = "enabled", "deterministic"
cudnn = _Convolutions(
    "cudnn", "XLA picks its own algorithms: of the settings allow_tf32 has a meaning.", frozen=_CUDNN, enabled=True, benchmark=False, benchmark_limit=10,
    deterministic=False, is_available=_on_cuda, is_acceptable=lambda tensor: False, version=lambda: None,
)  # fmt: skip
cudnn.flags = _flags(cudnn, _CUDNN)
attention_kernels = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}  # what programs have allowed


@contextlib.contextmanager
def allowing(**allowed):
    """Context: attention may use these kernels."""
    before = dict(attention_kernels)
    attention_kernels.update(allowed)
    counts = enter(tuple(attention_kernels.items()))  # compiled regions may ask for it
    try:
        yield {}
    finally:
        attention_kernels.update(before)
        leave(counts)


def _attention(kernel):
    """(whether a kernel may be used, how that is set)."""

    def allow(enabled):
        attention_kernels[kernel] = bool(enabled)
        mutations[0] += 1

    return lambda: attention_kernels[kernel], allow


def _sdp_kernel(enable_flash=True, enable_math=True, enable_mem_efficient=True, enable_cudnn=True):
    """Context: attention may use these kernels. XLA has one lowering: the result does not depend on it."""
    errors.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please see "
        "`torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
    )
    return allowing(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)


_sdp = {
    f"{verb}{kernel}_sdp{ending}": function
    for kernel in attention_kernels
    for (verb, ending), function in zip((("", "_enabled"), ("enable_", "")), _attention(kernel))
}
cuda = _Backend(
    "cuda", "Settings of matrix products and attention on NVIDIA GPUs: accepted.",
    matmul=_Matmul(
        allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
    ),
    is_built=_on_cuda, sdp_kernel=_sdp_kernel, **_sdp,
)  # fmt: skip
mps = _Backend("mps", "Apple's GPUs.", is_available=_no, is_built=_no, is_macos_or_newer=lambda major, minor: False)
mkl = _Backend("mkl", "XLA brings its own matrix products.", is_available=_no)
mkldnn = _Backend(
    "mkldnn", "XLA brings its own convolutions.", _MKLDNN, is_available=_no, enabled=True, deterministic=False
)
mkldnn.flags = _flags(mkldnn, _MKLDNN)
openmp = _Backend("openmp", "XLA brings its own threads.", is_available=_no)
nnpack = _Backend("nnpack", "XLA brings its own convolutions.", is_available=_no)
quantized = _Backend(
    "quantized",
    "There are no quantized tensors: no engine computes with them.",
    engine="none",
    supported_engines=["none"],
)
opt_einsum = _Backend(
    "opt_einsum", "einsum plans its contractions itself.", enabled=True, strategy="auto", is_available=_yes
)


def _preference(name):
    """A question and setting of which library computes something: what is set is kept, XLA decides."""

    def prefer(backend=None):
        if backend is not None:
            prefer.value = backend
            mutations[0] += 1
        return prefer.value

    prefer.value, prefer.__name__ = "default", name
    prefer.__doc__ = "What was set, or the default; XLA computes."
    return prefer


cuda.is_flash_attention_available, cuda.is_ck_sdpa_available = _no, _no
cuda.preferred_linalg_library = _preference("preferred_linalg_library")
cuda.preferred_blas_library = _preference("preferred_blas_library")
for _name in ("can_use_flash_attention", "can_use_efficient_attention", "can_use_cudnn_attention"):
    setattr(cuda, _name, lambda params, debug=False: False)
_reduced = [False]
cuda.allow_fp16_bf16_reduction_math_sdp = lambda enabled: _reduced.__setitem__(0, bool(enabled))
cuda.fp16_bf16_reduction_math_sdp_allowed = lambda: _reduced[0]


class SDPAParams:
    """What a call of attention is, for the questions whether a kernel could compute it (none: XLA does)."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa=False):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


cuda.SDPAParams = SDPAParams
fp32_precision = "none"  # kept: set_float32_matmul_precision decides
for _backend, _kinds in ((cudnn, ("rnn",)), (mkldnn, ("matmul", "conv", "rnn"))):
    _backend.fp32_precision = "none"
    for _kind in _kinds:
        setattr(_backend, _kind, types.SimpleNamespace(fp32_precision="tf32" if _backend is cudnn else "none"))
cudnn.conv = _Conv()
del _backend, _kinds, _kind
cpu = _Backend("cpu", "The processor.", get_cpu_capability=processor.vectors)
mha = _Backend("mha", "The fast path of MultiheadAttention: accepted, its results are those of the other.")
mha.get_fastpath_enabled, mha.set_fastpath_enabled = _yes, lambda value: None
cusparselt = _Backend(
    "cusparselt", "A vendor's library.", is_available=_no, version=lambda: None, get_max_alg_id=lambda: None
)
kleidiai = _Backend("kleidiai", "A vendor's library.", is_available=_no)
miopen = _Backend("miopen", "A vendor's library.", ("immediate",), immediate=False)
mkl.VERBOSE_OFF, mkl.VERBOSE_ON, mkl.verbose = 0, 1, contextlib.nullcontext
mps.get_core_count, mps.get_name, mps.is_macos13_or_newer = lambda: 0, lambda: "", lambda minor=0: False
nnpack.flags, nnpack.set_flags = lambda enabled=False: contextlib.nullcontext(), lambda _enabled: (_enabled,)
del _name

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
]
