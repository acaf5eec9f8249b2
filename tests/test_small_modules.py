"""torch.nn.grad, torch.utils.weak, swap_tensors, cpp_extension, backends and compiler: small modules, against PyTorch where it can be."""

import gc
import importlib
import warnings

import numpy as np
import pytest

import jtorch
from tests import oracle

torch = oracle.torch


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions(n):
    def found(T):
        T.manual_seed(0)
        x, w, g = T.randn(2, 4, *[5] * n), T.randn(6, 2, *[3] * n), T.randn(2, 6, *[3] * n)
        by = T.nn.grad
        return (
            getattr(by, f"conv{n}d_input")(x.shape, w, g, 2, 1, 1, 2), getattr(by, f"conv{n}d_weight")(x, w.shape, g, 2, 1, 1, 2),
        )  # fmt: skip

    for got, want in zip(found(jtorch), found(torch)):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_weak_keys():
    for T in (jtorch, torch):
        weak = importlib.import_module(f"{T.__name__}.utils.weak")
        kept, key, d = T.ones(2), T.ones(2), weak.WeakTensorKeyDictionary()
        d[key], d[kept] = 3, 4
        assert d[key] == 3 and len(d) == 2 and key in d and T.ones(2) not in d and dict(d.copy().items())[kept] == 4
        del key
        gc.collect()
        assert len(d) == 1 and d.pop(kept) == 4 and not d
        reference = weak.TensorWeakRef(kept)
        assert reference() is kept


def test_swapped_tensors():
    for T in (jtorch, torch):
        a, b = T.nn.Parameter(T.ones(2)), T.zeros(3)
        a.tag, holder = 5, [a]
        T.utils.swap_tensors(a, b)
        assert holder[0] is a and a.tolist() == [0, 0, 0] and type(a) is T.Tensor and not a.requires_grad
        assert type(b) is T.nn.Parameter and b.requires_grad and b.tag == 5 and not hasattr(a, "tag")
        b.sum().backward()
        assert b.grad.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["OutOfMemoryError", "AcceleratorError"])
def test_errors_of_the_accelerator(name):
    """Programs catch them under two names."""
    for T in (jtorch, torch):
        assert getattr(T.cuda, name) is getattr(T, name) and issubclass(getattr(T, name), RuntimeError)
    with pytest.raises(jtorch.cuda.OutOfMemoryError):
        jtorch.empty(10**15)


def test_extensions_are_refused_and_questions_answered():
    made = jtorch.utils.cpp_extension
    assert made.CUDA_HOME is None and isinstance(made.is_ninja_available(), bool)
    with pytest.raises(NotImplementedError, match="custom_op"):
        made.load("mine", ["mine.cpp"])


def test_questions_about_backends():
    questions = {
        "backends": lambda T: (T.backends.cpu.get_cpu_capability(), T.backends.mha.get_fastpath_enabled()),
        "cuda": lambda T: T.cuda.memory_stats_as_nested_dict(),
        "without cuda": lambda T: (T.cuda.list_gpu_processes(), T.backends.cuda.is_flash_attention_available(), T.backends.cusparselt.is_available()),
        "compiler": lambda T: (T.compiler.get_default_backend(), T.nn.attention.SDPBackend.MATH.name),
    }  # fmt: skip
    if torch.version.cuda is not None:
        del questions["without cuda"]  # PyTorch's builds for CUDA answer otherwise, with and without a GPU
    for name, call in questions.items():
        assert call(jtorch) == call(torch), name
    for T in (jtorch, torch):
        cuda, kernels = T.backends.cuda, T.nn.attention.SDPBackend
        asked = (cuda.flash_sdp_enabled, cuda.math_sdp_enabled, cuda.mem_efficient_sdp_enabled, cuda.cudnn_sdp_enabled)
        with T.nn.attention.sdpa_kernel([kernels.MATH, kernels.CUDNN_ATTENTION]):
            assert [f() for f in asked] == [False, True, False, True]
            with T.nn.attention.sdpa_kernel(kernels.EFFICIENT_ATTENTION):
                assert [f() for f in asked] == [False, False, True, False]
        cuda.enable_math_sdp(False)
        assert [f() for f in asked] == [True, False, True, True]
        cuda.enable_math_sdp(True)
    double = jtorch.compiler.wrap_numpy(lambda x: {"y": x * 2})
    assert (
        double(np.ones(2, np.float32))["y"].tolist() == [2, 2]
        and jtorch.compiler.compile(lambda x: x + 1)(jtorch.ones(1)).item() == 2
    )


def test_numpy_of_a_parameter_where_nothing_is_taped():
    for T in (jtorch, torch):
        p = T.nn.Parameter(T.ones(2))
        with T.no_grad():
            assert p.numpy().tolist() == [1, 1] and np.asarray(p * 2).tolist() == [2, 2]
            p.numpy()[0] = 5
        assert p.tolist() == [5, 1]
        for take in (p.numpy, lambda: np.asarray(p)):  # noqa: B023  called at once
            with pytest.raises(RuntimeError, match="Can't call numpy"):
                take()


def test_numpy_functions_of_tensors_give_tensors():
    def found(T):
        t = T.tensor([1.0, 4.0])
        made = [
            np.sqrt(t),
            np.add(t, 1),
            np.isnan(t),
            np.exp(T.tensor(1.0)),
            np.sqrt(T.arange(3)),
            np.maximum(t, np.ones(2, np.float32)),
        ]
        return [(type(x) is T.Tensor, str(x.dtype), x.tolist()) for x in made]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy 2 asks PyTorch's method for two more arguments
        assert found(jtorch) == found(torch)


def test_betas_of_adam_are_floats():
    for T in (jtorch, torch):
        for kind in (T.optim.Adam, T.optim.AdamW):
            with pytest.raises(ValueError, match="betas must be either both floats or both Tensors"):
                kind([T.ones(1, requires_grad=True)], betas=(0, 0.9))


def test_deterministic_algorithms():
    def program(t):
        found = [t.utils.deterministic.fill_uninitialized_memory]
        for change in (
            lambda: t.use_deterministic_algorithms(True, warn_only=True),
            lambda: t.use_deterministic_algorithms(1),
            lambda: t.set_deterministic_debug_mode("error"),
            lambda: t.set_deterministic_debug_mode(1.5),
            lambda: t.use_deterministic_algorithms(False),
        ):
            try:
                change()
            except TypeError as error:
                found.append(str(error))
            found.append(t.get_deterministic_debug_mode())
        return found

    oracle.both(program)


def test_what_benchmarks_say():
    def said(T):
        b = importlib.import_module(f"{T.__name__}.utils.benchmark")
        specs = [
            b.TaskSpec("x", "pass", label="l", sub_label="s", description="d"), b.TaskSpec("x", "a=1"),
            b.TaskSpec("x\ny", "a=1\nb=2", description="d"),
        ]  # fmt: skip
        return (
            [b.select_unit(t) for t in (3.0, 2e-3, 1e-5, 1e-9)], [b.trim_sigfig(x, 2) for x in (0.00123, 987654.0, -12.5, 10.0)],
            [b.unit_to_english(u) for u in ("s", "ms", "us", "ns")], b.ordered_unique([3, 1, 3]), [t.summarize() for t in specs],
            [(d.name, d.value) for d in importlib.import_module(f"{T.__name__}.utils.dlpack").DLDeviceType],
        )  # fmt: skip

    assert said(jtorch) == said(torch)
    with pytest.raises(NotImplementedError, match="the backend mine"):
        jtorch.utils.rename_privateuse1_backend("mine")


def test_precision_by_its_new_names():
    backends = jtorch.backends
    for asked, name, allowed in (("tf32", "high", True), ("ieee", "highest", False)):
        backends.cuda.matmul.fp32_precision = backends.cudnn.conv.fp32_precision = asked
        assert jtorch.get_float32_matmul_precision() == name
        assert backends.cuda.matmul.allow_tf32 is backends.cudnn.allow_tf32 is allowed
        assert backends.cuda.matmul.fp32_precision == backends.cudnn.conv.fp32_precision == asked
    backends.cudnn.allow_tf32 = True


def test_settings_that_are_frozen():
    def told(T):
        backends, said, frozen = T.backends, [], T.backends.flags_frozen()
        allow = getattr(backends, "__allow_nonbracketed_mutation")
        try:
            backends.disable_global_flags()
            for name, setting in (
                ("cudnn", "benchmark"),
                ("cudnn", "enabled"),
                ("mkldnn", "deterministic"),
                ("miopen", "immediate"),
            ):
                backend = getattr(backends, name)
                before = getattr(backend, setting)
                with pytest.raises(RuntimeError) as refused:
                    setattr(backend, setting, not before)
                with allow():
                    setattr(backend, setting, not before)
                    said += [str(refused.value), backends.flags_frozen(), getattr(backend, setting) is not before]
                    setattr(backend, setting, before)
            with backends.cudnn.flags(enabled=False):
                said += [backends.flags_frozen(), backends.cudnn.enabled]
            said += [backends.flags_frozen(), backends.cudnn.enabled]
        finally:
            setattr(getattr(backends, "m", backends), "__allow_nonbracketed_mutation_flag", not frozen)
        return [str(s).replace("jtorch", "torch") for s in said]

    assert told(jtorch) == told(torch)
