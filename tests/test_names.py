"""Public names that belong to no other test: symbolic sizes, control flow, fake quantization's relatives, what is refused."""

import pytest

import jtorch
from tests.oracle import torch

X = "torch.tensor([[0.0, 1.0], [2.0, 3.0]])"
SAME = [
    "torch.sym_max(1, 2.0)", "torch.sym_min(3, 2)", "torch.sym_int(-2.7)", "torch.sym_float(2)", "torch.sym_not(True)",
    "torch.sym_ite(True, 1, 2)", "torch.sym_sum([1, 2, 3])", "torch.sym_sqrt(4)", "torch.sym_constrain_range(3, min=1, max=5)",
    "isinstance(3, (int, torch.SymInt))", "torch.uint1, torch.int7, torch.bits8, torch.qint8, torch.complex32, torch.quint4x2",
    "torch.chalf is torch.complex32", "torch.bit is torch.uint1", "torch.complex32.itemsize, torch.complex32.is_complex",
    "torch.qint32.itemsize, torch.bits16.itemsize, torch.uint3.is_signed, torch.int3.is_signed", "torch.float4_e2m1fn_x2",
    "torch.per_tensor_affine, type(torch.per_tensor_affine).__name__", "torch.jagged, torch.legacy_contiguous_format",
    "torch.AVG, torch.SUM, torch.AggregationType.SUM.value", "int(torch.Tag.pointwise)", "torch.is_vulkan_available()",
    "torch.get_device(x)", "torch.is_distributed(x)", "torch.dequantize(x)", "torch.spmm(x, x)", "torch.dsmm(x, x)",
    "torch.slice_inverse(x[1:], x)", "x.slice_inverse(x, 0)", "x.resize(4)", "x.resize_as(x)", "x.dense_dim(), x.sparse_dim()",
    "x.volatile", "x.name", "x.grad_dtype", "x.is_mtia", "x.module_load(x + 1)", "x.const_data_ptr() == x.data_ptr()",
    "torch.cond(True, lambda a: a + 1, lambda a: a - 1, (x,))", "torch.cond(x.sum() > 100, lambda a: a + 1, lambda a: a - 1, (x,))",
    "torch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x))",
    "torch.lobpcg(torch.diag(torch.arange(1.0, 10.0)), k=2)[0]", "torch.lobpcg(torch.diag(torch.arange(1.0, 10.0)), largest=False)[0]",
    "torch.batch_norm_update_stats(x, torch.zeros(2), torch.ones(2), 0.1)",
    "torch.fake_quantize_per_tensor_affine(x, torch.tensor(0.1), torch.tensor(3, dtype=torch.int32), 0, 20)",
    "torch.nn.functional.GRID_SAMPLE_PADDING_MODES", "torch.nn.functional.BroadcastingList2[int]",
    "torch.nn.functional.assert_int_or_pair(1, 'a', 'm')", "torch.nn.factory_kwargs({'device': 1})", "torch.random.thread_safe_generator()",
    "torch.func.rearrange(torch.arange(24).reshape(2, 3, 4), 'a b (c d) -> (a c) b d', c=2)",
    "torch.func.rearrange(torch.arange(24).reshape(2, 3, 4), 'a ... -> ... a')",
    "torch.func.rearrange([x, x], 'n a b -> a (n b)')", "torch.jit.is_scripting(), torch.jit.is_tracing()",
    "torch.jit.annotate(int, 3)", "isinstance(torch.nn.Linear(1, 1), torch.jit.ScriptModule)",
    "torch.set_autocast_ipu_enabled(True), torch.set_autocast_xla_dtype(torch.float16), torch.is_autocast_ipu_enabled(), "
    "torch.get_autocast_xla_dtype(), torch.get_autocast_ipu_dtype(), torch.set_autocast_ipu_enabled(False), "
    "torch.set_autocast_xla_dtype(torch.bfloat16)",
    "torch.get_autocast_cpu_dtype(), torch.get_autocast_gpu_dtype(), torch.is_autocast_cpu_enabled()",
    "torch.jit.wait(torch.jit.fork(lambda a: a + 1, x))", "torch.autograd.set_multithreading_enabled(False) and 1",
    "torch.embedding_bag(torch.arange(8.0).reshape(4, 2), torch.tensor([1, 2, 3]), torch.tensor([0, 2]))[0]",
    "torch.embedding_bag(torch.arange(8.0).reshape(4, 2), torch.tensor([1, 2, 3]), torch.tensor([0, 2]), mode=2)",
    "torch.typename(3), torch.typename(int), torch.typename(None), torch.typename(x)",
    "torch.typename(len), torch.typename([].append), torch.typename(str.join), torch.typename(int.__add__)",
    "torch.values_copy(x.to_sparse_csr()), torch.crow_indices_copy(x.to_sparse_csr()), torch.row_indices_copy(x.to_sparse_csc())",
    "torch.backends.fp32_precision, torch.backends.mkldnn.fp32_precision, torch.backends.mkldnn.conv.fp32_precision",
    "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True), torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()",
    "torch.backends.cuda.can_use_flash_attention(torch.backends.cuda.SDPAParams(x, x, x, None, 0.0, False, False))",
    "torch.compiler.save_cache_artifacts(), torch.compiler.set_enable_guard_collectives(True), torch.compiler.set_enable_guard_collectives(False)",
    "torch.version.rocm, torch.version.hip", "torch.compiler.wrap_numpy(lambda a: {'a': a + 1, 'n': 3})(x)",
]  # fmt: skip
RAISES = [
    "torch.eig(x)", "torch.lstsq(x, x)", "torch.solve(x, x)", "torch.symeig(x)", "torch.matrix_rank(x)", "x.eig()", "x.reinforce(1)",
    "x.indices()", "x.values()", "x.coalesce()", "x.crow_indices()", "x.row_indices()", "x.int_repr()", "x.q_scale()",
    "torch.values_copy(x)", "torch.native_norm(x)", "torch.bits1x8.is_signed", "torch.qint8.is_signed",
    "torch.sym_constrain_range(7, min=1, max=5)", "torch.cond('a', abs, abs)", "torch.cond(x > 0, abs, abs)",
    "torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 2)", "torch.fake_quantize_per_tensor_affine(x, 0.1, 99, 0, 7)",
    "torch.autograd.variable(x)", "torch.nn.factory_kwargs({'other': 1})", "torch.lobpcg(x, k=1)",
]  # fmt: skip
UNSUPPORTED = [
    "torch.quantize_per_tensor(x, 1.0, 0, torch.qint8)", "x.to_mkldnn()", "torch.import_ir_module()", "torch.utils.mobile_optimizer.optimize_for_mobile(None)",
    "torch.empty(2, dtype=torch.uint3)", "torch.empty(2, dtype=torch.qint8)",
]  # fmt: skip


def said(module, call):
    scope = {"torch": module}
    scope["x"] = eval(X, scope)
    return plain(eval(call, scope))


def plain(x):
    if isinstance(x, (tuple, list)):
        return type(x)(plain(y) for y in x)
    return (
        [str(x.dtype), [round(v, 4) for v in x.flatten().tolist()], tuple(x.shape)] if hasattr(x, "tolist") else str(x)
    )


@pytest.mark.parametrize("call", SAME)
@pytest.mark.filterwarnings("ignore")
def test_same(call):
    assert said(jtorch, call) == said(torch, call)


@pytest.mark.parametrize("call", RAISES)
def test_same_errors(call):
    found = []
    for module in (torch, jtorch):
        with pytest.raises(Exception) as error:
            said(module, call)
        found.append((type(error.value), str(error.value)[:50]))
    assert found[0] == found[1]


@pytest.mark.parametrize("call", UNSUPPORTED)
def test_what_is_refused_says_what_to_use(call):
    with pytest.raises(NotImplementedError, match=r"jtorch does not support [\s\S]*\n  use .* instead"):
        said(jtorch, call)


def test_cond_and_while_loop_inside_a_transformation():
    def halve(x):
        return jtorch.cond(x.sum() > 1, lambda a: a / 2, lambda a: a * 3, (x,))

    x = jtorch.tensor([[1.0, 2.0], [0.1, 0.2]])
    assert jtorch.allclose(jtorch.vmap(halve)(x), jtorch.tensor([[0.5, 1.0], [0.3, 0.6]]))
    assert jtorch.func.grad(lambda a: halve(a).sum())(x[0]).tolist() == [0.5, 0.5]

    def grow(x):
        return jtorch.while_loop(lambda v: v.sum() < 10, lambda v: (v * 2,), (x,))[0]

    assert jtorch.vmap(grow)(jtorch.tensor([[1.0, 2.0], [4.0, 7.0]])).tolist() == [[4.0, 8.0], [4.0, 7.0]]


def test_batch_norm_in_steps():
    """The steps of synchronised batch norm, on two halves, give batch_norm of the whole and its gradient."""
    jtorch.manual_seed(0)
    x = jtorch.randn(8, 3, 4, requires_grad=True)
    w, b, g = jtorch.randn(3), jtorch.randn(3), jtorch.randn(8, 3, 4)
    whole = jtorch.nn.functional.batch_norm(x, None, None, w, b, True, 0.1, 1e-5)
    whole.backward(g)
    halves = [x.detach()[:4], x.detach()[4:]]
    means, stds = zip(*(jtorch.batch_norm_stats(h, 1e-5) for h in halves))
    mean, invstd = jtorch.batch_norm_gather_stats(x, jtorch.stack(means), jtorch.stack(stds), None, None, 0.1, 1e-5, 16)
    made = jtorch.cat([jtorch.batch_norm_elemt(h, w, b, mean, invstd, 1e-5) for h in halves])
    sums = [
        jtorch.batch_norm_backward_reduce(k, h, mean, invstd, w, True, True, True)
        for k, h in zip((g[:4], g[4:]), halves)
    ]
    count = jtorch.tensor([16, 16])
    dy, xmu = sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]
    grads = [
        jtorch.batch_norm_backward_elemt(k, h, mean, invstd, w, dy, xmu, count) for k, h in zip((g[:4], g[4:]), halves)
    ]
    assert jtorch.allclose(made, whole, atol=1e-5)
    assert jtorch.allclose(jtorch.cat(grads), x.grad, atol=1e-5)


def test_futures():
    first, second = jtorch.futures.Future(), jtorch.futures.Future()
    seen = []
    after = first.then(lambda f: f.wait() + 1)
    first.add_done_callback(lambda f: seen.append(f.value()))
    first.set_result(1)
    second.set_exception(ValueError("no"))
    assert (after.wait(), seen, first.done()) == (2, [1], True)
    with pytest.raises(RuntimeError, match="complete again"):
        first.set_result(2)
    with pytest.raises(ValueError, match="no"):
        jtorch.futures.wait_all([first, second])


def test_streams_and_events():
    start, end = jtorch.Event(enable_timing=True), jtorch.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    with jtorch.Stream("cpu") as stream:
        jtorch.ones(3) + 1
    stream.record_event(end)
    assert stream.query() and end.query() and start.elapsed_time(end) >= 0
    assert stream == jtorch.Stream("cpu")


def test_from_file(tmp_path):
    path = tmp_path / "numbers"
    jtorch.arange(4, dtype=jtorch.float32).numpy().tofile(path)
    assert jtorch.from_file(str(path), size=3).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="required mapping size <400>"):
        jtorch.from_file(str(path), size=100)


def test_swapped_optimizer():
    p, q = jtorch.nn.Parameter(jtorch.ones(2)), jtorch.nn.Parameter(jtorch.zeros(2))
    optimizer = jtorch.optim.Adam([p], lr=0.1)
    p.grad = q.grad = jtorch.ones(2)
    optimizer.step()
    before, state = p.tolist(), optimizer.state_dict()
    with jtorch.optim.swap_in_optimizer_params_and_state(optimizer, {"q": q}, state):
        optimizer.step()
    assert p.tolist() == before and q.tolist() != [0.0, 0.0]
    assert optimizer.param_groups[0]["params"][0] is p and p in optimizer.state
