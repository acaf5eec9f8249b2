"""The import hook: one process a subject, each a program full of assertions."""

import pytest

import jtorch
from jtorch.swap import hook, table
from tests.oracle import torch
from tests.swap import programs

NAMES = """
    import importlib.metadata, importlib.util, inspect, sys
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch import Tensor, nn as again
    from torch.utils.data import DataLoader, TensorDataset
    from torch.nn.modules.flatten import Flatten
    from torch.nn.modules.activation import MultiheadAttention, ReLU
    import torch.backends.cudnn as cudnn
    import torch.special
    import jtorch

    assert nn.modules.instancenorm._InstanceNorm and torch.fx.graph_module.GraphModule
    from torch.masked.maskedtensor.core import MaskedTensor
    assert torch.__version__ == "2.13.0" and torch.__version__ >= (2, 4) and torch.__version__ < "2.14"
    assert jtorch.__version__ != torch.__version__
    assert importlib.metadata.version("torch") == "2.13.0"
    assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
    assert "torch" in importlib.metadata.packages_distributions()["torch"]
    assert importlib.util.find_spec("torch") is not None
    assert importlib.util.find_spec("torch.core") is None and not hasattr(torch, "core") and not hasattr(torch, "dispatch")
    assert nn is again is jtorch.nn is sys.modules["torch.nn"] is torch.nn
    assert torch._tensor_str._str(torch.ones(2)) == "tensor([1., 1.])"
    assert vars(torch)["float32"] is torch.float32 and torch.bfloat16 in [d for d in vars(torch).values() if isinstance(d, torch.dtype)]
    assert Tensor is jtorch.Tensor and isinstance(torch.ones(2), Tensor)
    assert Flatten is nn.Flatten and MultiheadAttention is nn.MultiheadAttention and ReLU is nn.ReLU
    assert torch.nn.modules.flatten.Flatten is Flatten and torch.nn.modules.conv._ConvNd in nn.Conv2d.__mro__
    assert DataLoader is jtorch.utils.data.DataLoader
    assert cudnn.benchmark is False and torch.special.erf(torch.zeros(1)) == 0
    assert (type(torch.ones(1)).__module__, nn.Linear.__module__, Flatten.__module__) == (
        "torch", "torch.nn.modules.linear", "torch.nn.modules.flatten")
    shown = {torch.Generator: "_C", torch.autocast: "amp.autocast_mode", torch.no_grad: "autograd.grad_mode", torch.finfo: "",
             torch.jit.ScriptFunction: "jit", torch.optim.SGD: "optim.sgd", type(torch.compile(nn.ReLU())): "_dynamo.eval_frame",
             torch.utils.hooks.RemovableHandle: "utils.hooks"}
    import torch._dynamo.exc
    shown[torch._dynamo.exc.Unsupported] = "_dynamo.exc"
    wrong = {cls: cls.__module__ for cls, home in shown.items() if cls.__module__ != f"torch.{home}".rstrip(".")}
    assert not wrong, wrong
    assert isinstance(torch.compile(nn.ReLU()), torch._dynamo.eval_frame.OptimizedModule)
    for cls in (nn.Linear, nn.Conv2d, nn.Module, nn.Sequential, nn.CrossEntropyLoss, torch.optim.SGD, torch.optim.LBFGS):
        assert cls.__module__ in sys.modules and inspect.getsource(cls).startswith("class "), cls
    try:
        import torch.nowhere
    except ModuleNotFoundError as error:
        assert error.name == "torch.nowhere" and str(error) == "No module named 'torch.nowhere'"
    else:
        raise AssertionError
    try:
        torch.nowhere
    except AttributeError as error:
        assert str(error) == "module 'torch' has no attribute 'nowhere'"
    assert not torch.cuda.is_available() and torch.distributed.is_available() and not torch.backends.mps.is_available()
    assert not torch.xpu.is_available() and torch.version.cuda is None
    from torch.distributions.utils import _standard_normal, _sum_rightmost
    from torch.distributed import rpc
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.fx.experimental.proxy_tensor import get_proxy_mode
    from torch.hub import HASH_REGEX, urlparse
    from torch.serialization import MAP_LOCATION
    from torch.utils.checkpoint import get_device_states, set_device_states
    from torch._C import _TensorMeta
    from torch._C._functorch import TransformType, _unwrap_for_grad, _wrap_for_grad, get_interpreter_stack, is_batchedtensor
    from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
    from torch.nn.modules.transformer import _detect_is_causal_mask, _get_seq_len
    from torch._subclasses.fake_tensor import is_fake, unset_fake_temporarily
    assert torch.torch is torch and isinstance(Tensor, _TensorMeta) and "jax" in torch.__config__.show()
    assert not rpc.is_available() and torch.distributed.device_mesh.DeviceMesh and torch.distributed.ProcessGroup
    assert torch._tensor_str._tensor_str(torch.ones(2, 2), 0).split() == ["[[1.,", "1.],", "[1.,", "1.]]"]
    assert _standard_normal((2, 3), torch.float64, "cpu").shape == _sum_rightmost(torch.ones(2, 3, 4, 5), 2).shape
    assert torch._C._nn._parse_to("cpu", torch.float16) == (torch.device("cpu"), torch.float16, False, None)
    assert torch.ops.aten.zeros_like(torch.ones(2)).sum() == 0 and get_device_states(torch.ones(1)) == ([], [])
    with unset_fake_temporarily() as mode:
        assert mode is None
    assert not is_fake(torch.ones(1)) and not is_batchedtensor(torch.ones(1)) and get_proxy_mode() is None
    assert torch.func.vmap(lambda x: x * is_batchedtensor(x))(torch.ones(2)).sum() == 2
    assert get_interpreter_stack() is None and TransformType.Jvp.value == 3
    causal = torch.nn.Transformer.generate_square_subsequent_mask(3)
    assert [_detect_is_causal_mask(*a) for a in ((None,), (causal,), (causal, None, 3), (causal * 0,), (causal, False))] == [
        False, True, True, False, False,
    ]
    values = [torch.tensor([1.0, 5.0]), torch.tensor([3.0])]
    assert torch._foreach_maximum_(values, 2.0) is values and [v.tolist() for v in values] == [[2.0, 5.0], [3.0]]
    jtorch.install_as_torch()  # twice is once
    assert sys.modules["torch"] is torch
    namespace = {}
    exec("from torch import *", namespace)
    assert namespace["tensor"]([1]).shape == (1,)
"""


def test_names(tmp_path):
    programs.run(NAMES, tmp_path)


FUNCTIONS = """
    import importlib, types
    import {0} as torch
    names = ("autograd.gradcheck", "multiprocessing.spawn", "nn.parallel.data_parallel", "nn.parallel.parallel_apply",
             "nn.parallel.replicate", "nn.utils.spectral_norm", "nn.utils.weight_norm")
    for name in names:
        package, _, own = name.rpartition(".")
        assert isinstance(importlib.import_module(f"{0}." + name), types.ModuleType), name
        found = getattr(importlib.import_module(f"{0}." + package), own)
        assert isinstance(found, types.FunctionType) and found.__name__ == own, name
    from {0}.nn.utils.weight_norm import WeightNorm
    layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))
    assert torch.autograd.gradcheck(lambda x: x * x, torch.ones(2, dtype=torch.float64, requires_grad=True))
"""


@pytest.mark.parametrize("name", ["torch", "jtorch"])
def test_functions_with_the_name_of_a_submodule(name, tmp_path):
    programs.run(FUNCTIONS.replace("{0}", name), tmp_path)


def test_every_home_is_there():
    """A path of the table leads to modules; those of other branches of the package may be missing, never all."""
    wrong = [
        n for n, found in table.ELSEWHERE.items() if not hook.exists(n) and not n.startswith(("_custom_ops", "hub"))
    ]
    assert not wrong, wrong


def _reached(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def test_submodules_are_attributes(tmp_path):
    """What PyTorch has imported by itself is there by its dotted name, with no import of the program's, in any order."""
    names = [name for name in table.ELSEWHERE if _reached(name)]
    text = f"""
        import functools, sys
        import torch
        lacking = []
        for name in {names!r}:
            try:
                functools.reduce(getattr, name.split("."), torch)
            except AttributeError as error:
                lacking.append((name, str(error)))
        assert not lacking, lacking
        names = [name for name in sys.modules if name.startswith("torch.") and not name.startswith("torch._")]
        wrong = {{name: sys.modules[name].__name__ for name in names if sys.modules[name].__name__.startswith("jtorch.")}}
        assert not wrong, wrong
        assert torch.jit.__name__ == "torch.jit" and torch.nn.functional.__name__ == "torch.nn.functional"
        from jtorch import func
        assert func.__path__ and func.__spec__.name == "jtorch.func"  # one of those that are _vmap_internals
    """
    programs.run(text, tmp_path)


def test_homes_of_classes_are_torchs():
    """The module that a layer says it is from is the one that PyTorch's is from."""
    wrong = {}
    for name in torch.nn.__all__ if hasattr(torch.nn, "__all__") else dir(torch.nn):
        its, mine = getattr(torch.nn, name), getattr(jtorch.nn, name, None)
        if isinstance(its, type) and isinstance(mine, type) and mine.__module__.startswith("jtorch."):
            home = table.home(mine.__module__.removeprefix("jtorch."), mine.__name__)
            if f"torch.{home}" != its.__module__:
                wrong[name] = (home, its.__module__)
    assert not wrong, wrong


FUNCTORCH = """
    import warnings
    import jtorch
    jtorch.install_as_torch()
    import functorch, torch
    from torch import nn
    try:
        from functorch import dim
    except ImportError:
        pass
    else:
        raise AssertionError
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
        call, params, buffers = functorch.make_functional_with_buffers(net)
        x = torch.ones(4, 2)
        assert torch.equal(call(params, buffers, x), net(x)) and len(params) == 4 and len(buffers) == 3
        line = nn.Linear(2, 1)
        call, params = functorch.make_functional(line)
        slopes = functorch.grad(lambda p: call(p, x).sum())(params)
        assert slopes[0].tolist() == [[4.0, 4.0]] and slopes[1].tolist() == [4.0]
        call, params, buffers = functorch.combine_state_for_ensemble([line, line])
        both = functorch.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
        assert both.shape == (2, 4, 1) and torch.allclose(both[0], line(x))
    assert said and all("integrated functorch into PyTorch" in str(w.message) for w in said)
    from functorch.experimental import chunk_vmap, control_flow
    from functorch.experimental.control_flow import cond, map
    assert functorch.experimental.control_flow is control_flow and control_flow.cond is cond is torch.cond
    given = torch.arange(10.0).view(5, 2)
    assert torch.equal(chunk_vmap(lambda a, b: a * b, in_dims=(0, None), chunks=3)(given, given[1]), given * given[1])
    assert torch.equal(map(lambda a, b: a + b, given, given[1].clone()), given + given[1])
    try:
        functorch.make_functional(net)
    except RuntimeError as error:
        assert "has buffers" in str(error)
    else:
        raise AssertionError
"""


PRIVATE = """
    import contextlib, warnings
    import jtorch
    jtorch.install_as_torch()
    import torch
    import torch._inductor.config as inductor_config
    from torch import nn
    from torch._dynamo.exc import BackendCompilerFailed, TorchDynamoException, Unsupported
    from torch._dynamo.utils import counters, disable_cache_limit, warn_once
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._tensor_str import printoptions
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
        CheckpointImpl, CheckpointWrapper, apply_activation_checkpointing, checkpoint_wrapper)
    from torch.distributed.fsdp.api import CPUOffload, ShardingStrategy
    from torch.distributed._composable.fsdp import CPUOffloadPolicy
    from torch.distributed.fsdp import FullOptimStateDictConfig, LocalOptimStateDictConfig, register_fsdp_forward_method
    from torch.distributed._tensor.placement_types import DTensorSpec, TensorMeta
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    from torch.distributed.tensor.parallel.style import ParallelStyle, SequenceParallel
    from torch.distributed.tensor.experimental import implicit_replication, local_map, register_sharding
    from torch._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise
    from torch.optim.optimizer import ParamsT, StateDict
    from torch._subclasses.fake_tensor import FakeTensorConverter
    from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel, OptimStateKeyType
    from torch.hub import tqdm
    from torch.utils._triton import has_triton
    from torch.utils.checkpoint import DefaultDeviceType, check_backward_validity, detach_variable
    from torch.nn.utils._per_sample_grad import call_for_per_sample_grads
    from torch._ops import OpOverload, OpOverloadPacket

    assert isinstance(torch.ops.aten.add.Tensor, OpOverload) and isinstance(torch.ops.aten.add, torch._ops.OpOverloadPacket)
    assert issubclass(FullyShardedDataParallel, nn.Module) and OptimStateKeyType.PARAM_ID.value == 2
    assert ShardingStrategy.NO_SHARD.name == "NO_SHARD" and not CPUOffload().offload_params
    assert CPUOffloadPolicy().pin_memory and repr(FullOptimStateDictConfig()).endswith("(offload_to_cpu=True, rank0_only=False)")
    assert not LocalOptimStateDictConfig().offload_to_cpu and register_fsdp_forward_method(nn.Linear(1, 1), "forward") is None
    assert isinstance(ColwiseParallel(output_layouts=3), ParallelStyle) and SequenceParallel().sequence_dim == 1
    assert DTensorSpec and TensorMeta(shape=(2,), stride=(1,), dtype=torch.float32)[1] == (1,)
    from torch._C._profiler import _ExperimentalConfig
    with torch.profiler.profile(experimental_config=_ExperimentalConfig(verbose=True)):
        assert torch._C._profiler._ExperimentalConfig is _ExperimentalConfig
    assert StateDict == dict[str, object] and ParamsT
    for refused in (FakeTensorConverter, local_map, inline_asm_elementwise, lambda: parallelize_module(nn.Linear(1, 1), None, {})):
        try:
            refused()
        except NotImplementedError as said:
            assert "jtorch does not support" in str(said)
        else:
            raise AssertionError(refused)
    assert DefaultDeviceType.get_device_type() == "cpu" and call_for_per_sample_grads(nn.Linear(1, 1))
    shadowed = {}
    exec("from torch.utils.data import *", shadowed)
    assert "map" not in shadowed and "iter" not in shadowed and "_DatasetKind" in shadowed
    exec("from torch.profiler.profiler import *; from torch.autograd import *; from torch.amp.autocast_mode import *", shadowed)
    assert shadowed["schedule"] and shadowed["gradcheck"] and shadowed["custom_fwd"]

    assert issubclass(Unsupported, TorchDynamoException) and not has_triton() and not counters["frames"]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            warn_once("told once")
        check_backward_validity((torch.ones(2), 3))
    assert [str(w.message)[:9] for w in said] == ["told once", "None of t"]
    with disable_cache_limit(), inductor_config.patch(max_autotune=True):
        assert inductor_config.max_autotune
    assert not torch._inductor.config.max_autotune
    with printoptions(precision=1):
        assert str(torch.tensor(0.25)) == "tensor(0.2)"
    leaf, number = detach_variable((torch.ones(2, requires_grad=True) * 2, 3))
    assert leaf.is_leaf and leaf.requires_grad and number == 3

    for n in (1, 2, 5, 8):
        for reverse in (False, True):
            x = torch.arange(2.0 * n).view(2, n) / 7 + 0.5
            got = associative_scan(lambda p, q: {"a": p["a"] * q["a"], "b": q["a"] * p["b"] + q["b"]}, {"a": x, "b": x * 0.3},
                                   -1, reverse, combine_mode="generic")
            each = list(x.unbind(1))[:: -1 if reverse else 1]
            want, running = [], torch.zeros(2)
            for a in each:
                running = running * a + 0.3 * a
                want.append(running)
            assert torch.allclose(got["b"], torch.stack(want[:: -1 if reverse else 1], 1)), (n, reverse)
            assert torch.allclose(got["a"], x.flip(1).cumprod(1).flip(1) if reverse else x.cumprod(1))
    try:
        associative_scan(torch.add, torch.ones(2), 0)
    except ValueError as error:
        assert "all input tensors need to be on CUDA or XPU" in str(error)
    else:
        raise AssertionError

    x = torch.ones(2, 3)
    for impl in CheckpointImpl:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 2)))
        want = torch.autograd.grad(net(x).sum(), net.parameters())
        state = dict(net.state_dict())
        apply_activation_checkpointing(
            net, lambda m: checkpoint_wrapper(m, impl), lambda m: isinstance(m, (nn.Linear, nn.Tanh)))
        assert isinstance(net[0], CheckpointWrapper) and net[0].in_features == 3 and type(net[2]) is nn.Sequential
        assert [*net.state_dict()] == [*state] and [n for n, _ in net[0].named_parameters()] == ["weight", "bias"]
        assert not any(net.load_state_dict(state))
        net(x.requires_grad_()).sum().backward()
        assert all(torch.equal(p.grad, w) for p, w in zip(net.parameters(), want))
"""


VMAP_PARTS = """
    import torch
    import torch._functorch.vmap as parts
    from torch import nn, vmap
    from torch._C._functorch import _add_batch_dim
    from torch._functorch.vmap import _maybe_remove_batch_dim

    class Bag:
        def __init__(self, **tensors):
            self.tensors = tensors
        def each(self, function):
            return Bag(**{k: function(v) for k, v in self.tensors.items()})

    def process(in_dims, args, func):
        dims = (in_dims,) * len(args) if isinstance(in_dims, int) else in_dims
        first = next(x for x, d in zip(args, dims) if d is not None)
        first = next(iter(first.tensors.values())) if isinstance(first, Bag) else first
        return first.shape[next(d for d in dims if d is not None)], dims, args, None
    def over(x, function):
        return x.each(function) if isinstance(x, Bag) else function(x)
    def create(dims, args, level, spec):
        return [x if d is None else over(x, lambda t: _add_batch_dim(t, d, level)) for x, d in zip(args, dims)]
    def unwrap(out, out_dims, level, size, func):
        def back(t):
            t = _maybe_remove_batch_dim("f", t, level, size, out_dims)
            assert out_dims is None or t.shape[out_dims] == size
            return t
        return over(out, back)

    scale, net = torch.tensor(0.5, requires_grad=True), nn.Linear(3, 2)
    def f(bag, x):
        return Bag(y=net(bag.tensors["a"] * x).tanh() * scale, z=bag.tensors["b"] + x.sum())
    def plain(a, b, x):
        return tuple(f(Bag(a=a, b=b), x).tensors.values())
    a, b, x = torch.randn(4, 5, 3, requires_grad=True), torch.randn(4, 2), torch.randn(3, 4)
    want = vmap(vmap(plain, (0, None, None)), (0, 0, 1), 1)(a, b, x)
    grads = torch.autograd.grad(sum(w.cos().sum() for w in want), (a, scale, *net.parameters()))
    error = None
    parts._process_batched_inputs, parts._create_batched_inputs, parts._unwrap_batched = process, create, unwrap
    got = vmap(vmap(lambda a, b, x: f(Bag(a=a, b=b), x), (0, None, None)), (0, 0, 1), 1)(a, b, x)
    bags = vmap(vmap(f, (0, None)), (0, 1), 1)(Bag(a=a, b=b[:, None].expand(4, 5, 2)), x)
    for out in (got, bags):
        assert [*out.tensors] == ["y", "z"]
        for g, w in zip(out.tensors.values(), want):
            torch.testing.assert_close(g, w)
        again = torch.autograd.grad(sum(w.cos().sum() for w in out.tensors.values()), (a, scale, *net.parameters()))
        for g, w in zip(again, grads):
            torch.testing.assert_close(g, w)
    apart = vmap(lambda q: q + torch.rand(()), randomness="different")(torch.zeros(6))
    assert len(set(apart.tolist())) == 6
    assert len(set(vmap(lambda q: q + torch.rand(()), randomness="same")(torch.zeros(6)).tolist())) == 1
    for wrong, dim, words in ((lambda q: "text", 0, "must only return Tensors, got type <class 'str'>"),
                              (lambda q: q, None, "can not return a BatchedTensor when out_dim is None")):
        try:
            vmap(wrong, out_dims=dim)(torch.zeros(6))
        except ValueError as caught:
            error = str(caught)
        assert words in error, error
"""


def test_vmap_parts(tmp_path):
    """A program replaces the parts of vmap, so that containers of its own take the batch dimension off and give it back."""
    programs.run(VMAP_PARTS, tmp_path)


def test_private_names(tmp_path):
    programs.python(PRIVATE, tmp_path)


def test_functorch(tmp_path):
    programs.python(FUNCTORCH, tmp_path)


def test_from_code(tmp_path):
    done = programs.python(
        """
        import jtorch
        jtorch.install_as_torch()
        import torch
        assert torch.ones(2).sum().item() == 2 and torch.nn is jtorch.nn
        """,
        tmp_path,
    )
    assert done.stderr == ""


def test_refuses_the_real_torch(tmp_path):
    text = """
        import sys, types
        import jtorch
        sys.modules["torch"] = real = types.ModuleType("torch")
        real.__file__ = "/somewhere/torch/__init__.py"
        for install in (jtorch.install_as_torch, lambda: jtorch.as_torch().__enter__()):
            try:
                install()
            except RuntimeError as error:
                assert "has been imported already" in str(error) and "/somewhere/torch" in str(error)
            else:
                raise AssertionError
        assert sys.modules["torch"] is real
        """
    programs.python(text, tmp_path)
