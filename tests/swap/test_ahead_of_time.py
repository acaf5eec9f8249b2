"""The modules of PyTorch that take graphs of ATen's operators: packages import them, and few call what is in them."""

import importlib
import socket

import jtorch
from jtorch.distributed.elastic.utils.distributed import get_free_port, get_socket_with_port
from jtorch.swap.internal import ahead_of_time
from tests.oracle import torch
from tests.swap import programs

IMPORTS = """
    import functorch.compile, torch._decomp, torch._dynamo.backends.common, torch.distributed.elastic.utils.distributed
    from functorch.compile import make_boxed_compiler, make_boxed_func, nop
    from torch._decomp import core_aten_decompositions, get_decompositions, register_decomposition
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import _is_primal, _is_tangent, default_partition

    import torch.distributed.launcher as launcher
    from torch._inductor import codecache
    from torch._ops import _OpNamespace
    from torch.distributed._composable_state import _get_module_state
    from torch.distributed.constants import default_pg_timeout
    from torch.distributed.fsdp._common_utils import _FSDPState
    from torch.optim.swa_utils import AveragedModel, _group_tensors_by_device_and_dtype

    assert _get_module_state(torch.nn.ReLU()) is None and torch.distributed.GradBucket
    assert launcher.elastic_launch(launcher.LaunchConfig(1, 1, 1), max)(2, 3) == {0: 3}
    assert functorch.compile.make_boxed_func is make_boxed_func
    assert torch._decomp.core_aten_decompositions() == {} and torch.distributed.elastic.utils.distributed.get_free_port() > 0
    try:
        import functorch.nowhere
    except ModuleNotFoundError as error:
        assert error.name == "functorch.nowhere"
    else:
        raise AssertionError
"""


def test_imports(tmp_path):
    programs.run(IMPORTS, tmp_path)


def test_boxed_functions():
    assert ahead_of_time.make_boxed_func(lambda a, b: a - b)([5, 3]) == 2
    assert ahead_of_time.nop(lambda a: a * 2, [4])([4]) == 8


def test_inputs_by_name():
    theirs = importlib.import_module("torch._functorch.partitioners")
    for name in ("primals_1", "tangents_1", "fwd_seed_offset", "fwd_base_offset", "x"):
        for ask in ("_is_primal", "_is_tangent"):
            mine, its = jtorch.fx.Graph().placeholder(name), torch.fx.Graph().placeholder(name)
            assert getattr(ahead_of_time, ask)(mine) == getattr(theirs, ask)(its), (name, ask)


def test_decompositions_are_noted():
    mul, registry = jtorch.ops.aten.mul, {}

    @ahead_of_time.register_decomposition([mul.Tensor], registry)
    def taken_apart(a, b):
        return a * b

    assert registry == {mul.Tensor: taken_apart}
    assert ahead_of_time.get_decompositions([mul]) == {}
    ahead_of_time.register_decomposition(mul.Tensor)(taken_apart)
    assert ahead_of_time.get_decompositions([mul]) == {mul.Tensor: taken_apart}
    ahead_of_time.remove_decompositions(ahead_of_time.decomposition_table, [mul])
    assert ahead_of_time.get_decompositions([mul.Tensor]) == {}


def test_a_free_port():
    with get_socket_with_port() as held:
        assert held.getsockname()[1] != get_free_port()
    with socket.socket() as again:
        again.bind(("localhost", get_free_port()))
