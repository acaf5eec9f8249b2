"""Small classes and functions that PyTorch has from its C++ module: types, schemas, typed containers, text checks, archives, vendors' names."""

import io
import pathlib

import numpy as np
import pytest

import jtorch
from jtorch.swap.internal import c
from tests import oracle

torch = oracle.torch
ALL = lambda T: [
    *(getattr(T, f"{n}Type").get() for n in (
        "Any", "Bool", "Complex", "DeviceObj", "Float", "Int", "None", "Number", "PyObject", "StreamObj", "String", "SymInt", "Tensor")),
    T.DictType(T.StringType.get(), T.IntType.get()), T.FutureType(T.IntType.get()), T.ListType(T.TensorType.get()), T.ListType.ofInts(),
    T.OptionalType(T.IntType.get()), T.OptionalType.ofTensor(), T.TupleType([T.IntType.get(), T.FloatType.get()]), T.TupleType([]),
    T.UnionType([T.IntType.get(), T.StringType.get()]), T.UnionType([T.IntType.get(), T.NoneType.get()]),
]  # fmt: skip


def test_types():
    def facts(T):
        kinds = ALL(T)
        said = [(str(t), t.annotation_str, t.kind(), [str(p) for p in t.containedTypes()]) for t in kinds]
        return said, [[a.isSubtypeOf(b) for b in kinds] for a in kinds], [[a == b for b in kinds] for a in kinds]

    assert facts(jtorch) == facts(torch)


@pytest.mark.parametrize("names", ["Int Int", "Int None", "None Int", "Int Number", "Int Float", ""])
def test_unified_types(names):
    def found(T):
        try:
            return str(T.unify_type_list([getattr(T, f"{n}Type").get() for n in names.split()]))
        except RuntimeError as error:
            return str(error)

    assert found(jtorch) == found(torch)


@pytest.mark.parametrize("text", [
    "aten::a.b(Tensor(a!) x, int[2] k=[1, 2], *, float? y=None) -> (Tensor(a!), int)",
    'mine::f(SymInt[] size, Tensor?[] many, str mode="sum", bool t=True, *, Tensor(b!) out) -> Tensor(b!)',
    "mine::g() -> ()",
    "mine::w(Tensor A, Tensor! out, Tensor(a!) x, Tensor! w) -> ()",
])  # fmt: skip
def test_schemas(text):
    def facts(T):
        s = T.parse_schema(text)
        told = [
            (a.name, str(a.real_type), a.N, a.has_default_value() and a.default_value, a.kwarg_only, a.is_out, a.is_write,
             a.alias_info and (a.alias_info.is_write, a.alias_info.before_set, a.alias_info.after_set))
            for a in s.arguments
        ]  # fmt: skip
        return str(s), s.name, s.overload_name, s.is_mutable, [str(r.real_type) for r in s.returns], told

    assert isinstance(jtorch.parse_schema(text), jtorch.FunctionSchema)
    assert facts(jtorch) == facts(torch)


CHECKS = [
    (lambda f: f.check("abc").check("b"), "abc abd b"), (lambda f: f.check("b").check("a"), "a b"),
    (lambda f: f.check("a").check_next("b"), "a\nb"), (lambda f: f.check("a").check_next("b"), "a\n\nb"),
    (lambda f: f.check("a").check_next("b"), "a b"), (lambda f: f.check("a").check_same("b"), "a b"),
    (lambda f: f.check("a").check_same("b"), "a\nb"), (lambda f: f.check("a").check_not("x").check("b"), "a x b"),
    (lambda f: f.check_not("x").check("b"), "a b x"), (lambda f: f.check("b").check_not("x"), "x b"),
    (lambda f: f.check("b").check_not("x"), "b x"), (lambda f: f.check_count("a", 2), "a a a"),
    (lambda f: f.check_count("a", 2, exactly=True), "a a a"), (lambda f: f.check_count("a", 3), "a a"),
    (lambda f: f.check_dag("b").check_dag("a").check("c"), "a b c"), (lambda f: f.check_dag("b").check_dag("a").check("a"), "a b c"),
    (lambda f: f.check_regex("a.c").check_regex("d+"), "abc ddd"), (lambda f: f.check_regex("a.c"), "ac"), (lambda f: f, "abc"),
    (lambda f: f.check_source_highlighted("f(x)"), "y = f(x)\n    ~~~~ here"),
    (lambda f: f.check_source_highlighted("f(x)"), "y = f(x)\n    ~~ here"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(CHECKS)))
def test_file_check(k):
    build, text = CHECKS[k]

    def found(T):
        try:
            return build(T.FileCheck()).run(text)
        except RuntimeError as error:
            return str(error).partition("\n")[0]

    assert found(jtorch.testing) == found(torch.testing)


def test_file_check_reads_its_checks():
    for T in (jtorch, torch):
        checks = "# CHECK: abc\n# CHECK-NEXT: d\n# CHECK-NOT: x\n# CHECK-COUNT-2: e"
        T.testing.FileCheck().run(checks, "abc\nd e e")
        with pytest.raises(RuntimeError, match='Expected to find "e" but did not find it'):
            T.testing.FileCheck().run(checks, "abc\nd e")


def test_containers_have_one_type():
    for T in (jtorch, torch):
        items = T._C.ScriptList([3, 1]) if T is torch else T.ScriptList([3, 1])
        items.append(2)
        items.extend([5])
        del items[0]
        assert (
            list(items) == [1, 2, 5] and len(items) == 3 and items.pop() == 5 and repr(items) == "[1, 2]" and 2 in items
        )
        with pytest.raises(TypeError):
            items.append("two")
        pairs = T.ScriptDict({"a": 1.0})
        pairs["b"] = 2.0
        assert (
            list(pairs) == ["a", "b"]
            and dict(pairs.items()) == {"a": 1.0, "b": 2.0}
            and "a" in pairs
            and len(pairs) == 2
        )
        with pytest.raises(TypeError):
            pairs[1] = 2.0


def test_counters():
    for T in (jtorch, torch):
        assert isinstance(T.NoopLogger(), T.LoggerBase) and T.LockingLogger().get_counter_val("x") == 0
        with pytest.raises(TypeError, match="No constructor defined"):
            T.LoggerBase()
    counts = jtorch.LockingLogger()
    counts.set_aggregation_type("b", jtorch.AggregationType.AVG)
    for name, value in (("a", 2), ("a", 4), ("b", 2), ("b", 4)):
        counts.add_stat_value(name, value)
    assert counts.get_counter_val("a") == 6 and counts.get_counter_val("b") == 3


def test_parts_of_a_module():
    net = jtorch.nn.Sequential(jtorch.nn.BatchNorm1d(2))
    assert [n for n, _ in jtorch.ModuleDict(net).items()] == ["0"]
    parameters = jtorch.ParameterDict(net[0])
    parameters.setattr("bias", jtorch.nn.Parameter(jtorch.ones(2)))
    assert (
        parameters.contains("weight")
        and net[0].bias.sum().item() == 2
        and jtorch.BufferDict(net[0]).contains("running_mean")
    )
    with pytest.raises(RuntimeError, match="no part 'eps'"):
        parameters.getattr("eps")


def test_archives_each_way(tmp_path):
    for write, read in ((jtorch, torch), (torch, jtorch), (jtorch, jtorch)):
        path = str(tmp_path / "some.pt")
        writer = write.PyTorchFileWriter(path)
        writer.write_record("data/0", b"12345678", 8)
        writer.write_record("note", "hello", 5)
        assert writer.get_all_written_records() >= {"data/0", "note"} and writer.archive_name() == "some"
        writer.write_end_of_file()
        reader = read.PyTorchFileReader(path)
        assert (
            reader.get_record("note") == b"hello" and reader.has_record("version") and not reader.has_record("nothing")
        )
        assert set(reader.get_all_records()) >= {"data/0", "note", "version"}
        at = reader.get_record_offset("data/0")
        assert at % 64 == 0 and pathlib.Path(path).read_bytes()[at : at + 8] == b"12345678"
        empty = reader.get_storage_from_record("data/0", 2, read.int32)
        assert empty.shape == (0,) and empty.untyped_storage().tolist() == list(b"12345678")
        assert reader.serialization_id() == writer.serialization_id()
    with pytest.raises(RuntimeError, match="PytorchStreamReader|archive"):
        jtorch.PyTorchFileReader(io.BytesIO(b"no archive"))


def test_throughput():
    for config in (None, jtorch.BenchmarkConfig()):
        bench = jtorch.utils.ThroughputBenchmark(jtorch.nn.Linear(2, 3))
        with pytest.raises(RuntimeError, match="add_input first"):
            bench.benchmark(config)
        bench.add_input(jtorch.ones(1, 2))
        assert bench.run_once(jtorch.ones(4, 2)).shape == (4, 3)
        if config is None:
            stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=6)
            assert stats.iters_per_second > 0 and "Total number of iterations: 6" in str(stats)
        else:
            config.num_iters = 3
            stats = bench.benchmark(config)
        assert stats.latency_avg_ms > 0 and stats.num_iters in (6, 3)


def _lowbit(T):
    T.manual_seed(0)
    w, x, b, made = T.randn(8, 3), T.randn(5, 3), T.randn(8), []
    q, sums, scale, zero = T.fbgemm_linear_quantize_weight(w)
    packed = T.fbgemm_pack_quantized_matrix(q)
    made += [
        q,
        sums,
        T.tensor([scale, zero]),
        T.fbgemm_linear_int8_weight_fp32_activation(x, q, packed, sums, scale, zero, b),
    ]
    made += [T.fbgemm_linear_fp16_weight_fp32_activation(x, T.fbgemm_pack_gemm_matrix_fp16(w), b)]
    for numel, bins, ratio, bits in ((15, 200, 0.16, 8), (15, 200, 0.9, 2), (10, 100, 0.5, 4)):
        made += T.choose_qparams_optimized(x, numel, bins, ratio, bits)
    for gates, name in ((4, "lstm"), (3, "gru"), (1, "rnn_relu"), (1, "rnn_tanh")):
        wi, wh, bi, bh, h, c = T.randn(gates * 4, 3), T.randn(gates * 4, 4), *T.randn(2, gates * 4), *T.randn(2, 5, 4)
        (qi, ci, si, zi), (qh, ch, sh, zh) = map(T.fbgemm_linear_quantize_weight, (wi, wh))
        pi, ph = map(T.fbgemm_pack_quantized_matrix, (qi, qh))
        state = [h, c] if name == "lstm" else h
        got = getattr(T, f"quantized_{name}_cell")(x, state, qi, qh, bi, bh, pi, ph, ci, ch, si, sh, zi, zh)
        made += got if isinstance(got, tuple) else [got]
    return made


def _observed(T, row, symmetric):
    T.manual_seed(1)
    n, made = 5 if row else 1, []
    state = T.full((n,), float("inf")), T.full((n,), float("-inf")), T.ones(n), T.zeros(n, dtype=T.int32)
    low, high = (-128, 127) if symmetric else (0, 255)
    on, shift = T.tensor([1]), T.tensor([[0.0], [0], [3], [-3], [0]])
    for k in range(3):
        x = (T.randn(5, 3) + k * 0.3 + shift).requires_grad_()
        out = T.fused_moving_avg_obs_fake_quant(x, on, on, *state, 0.1, low, high, 0, row, symmetric)
        made += [out, *(s.clone() for s in state), T.autograd.grad(out.sum(), x)[0]]
    return made


_SATURATES = pytest.mark.skipif(not oracle.HAS_AVX512, reason="PyTorch's products of bytes saturate without AVX-512")


@pytest.mark.filterwarnings("ignore:fbgemm")
@pytest.mark.parametrize(
    "build",
    [
        pytest.param(_lowbit, marks=_SATURATES),
        *(lambda T, r=r, s=s: _observed(T, r, s) for r in (False, True) for s in (False, True)),
    ],
)
def test_low_precision(build):
    for got, want in zip(build(jtorch), build(torch), strict=True):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-5, atol=2e-5)


def test_vendor_names():
    """Those that PyTorch runs on the CPU against PyTorch, the others against their public counterparts."""
    F, T = jtorch.nn.functional, jtorch
    x, w, b = T.randn(1, 2, 5, 5), T.randn(4, 2, 3, 3), T.randn(4)
    at, plain = ([1, 1], [2, 2], [1, 1], 1), F.conv2d(x, w, None, 2, 1)
    biased, z = F.conv2d(x, w, b, 2, 1), T.randn(1, 4, 3, 3)
    mean, var, wb = T.zeros(2), T.ones(2), T.ones(2)
    grid = F.affine_grid(T.eye(2, 3)[None], (1, 2, 4, 4), align_corners=True)
    up = F.conv_transpose2d(z, w, None, 2, 1, 1)
    for got, want in [
        (T.cudnn_convolution(x, w, *at, False, False, False), plain), (T.mkldnn_convolution(x, w, b, *at), biased),
        (T.miopen_convolution(x, w, b, *at, False, False), biased), (T.cudnn_convolution_relu(x, w, b, [2, 2], [1, 1], [1, 1], 1), biased.relu()),
        (T.miopen_convolution_add_relu(x, w, z, 0.5, b, [2, 2], [1, 1], [1, 1], 1), (biased + 0.5 * z).relu()),
        (T.cudnn_convolution_transpose(z, w, [1, 1], [1, 1], [2, 2], [1, 1], 1, False, False, False), up),
        (T.miopen_convolution_transpose(z, w, None, [1, 1], [1, 1], [2, 2], [1, 1], 1, False, False), up),
        (T.cudnn_batch_norm(x, wb, wb, mean, var, False, 0.1, 1e-5)[0], F.batch_norm(x, mean, var, wb, wb)),
        (T.miopen_batch_norm(x, wb, wb, None, None, True, 0.1, 1e-5)[1], x.mean((0, 2, 3))),
        (T.cudnn_affine_grid_generator(T.eye(2, 3)[None], 1, 2, 4, 4), grid),
        (T.cudnn_grid_sampler(x, grid), F.grid_sample(x, grid, align_corners=True)),
        (T.mkldnn_adaptive_avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 2)), (T.mkldnn_max_pool2d(x, 2), F.max_pool2d(x, 2)),
        (T.mkldnn_linear_backward_weights(z[0, 0], x[0, 0, :3, :2], T.ones(3, 2), True)[0], z[0, 0].T @ x[0, 0, :3, :2]),
    ]:  # fmt: skip
        T.testing.assert_close(got, want)
    logs = T.randn(6, 1, 4).log_softmax(2).requires_grad_()
    loss, gradient = T.miopen_ctc_loss(logs, T.tensor([[1, 2]]), [6], [2], 0, False, False)
    T.testing.assert_close(gradient, T.autograd.grad(loss.sum(), logs)[0])
    assert not T.cudnn_is_acceptable(x) and T.profiler_allow_cudagraph_cupti_lazy_reinit_cuda12()


def test_recurrent_layers_of_vendors():
    def layer(T, reverse):
        T.manual_seed(0)
        x, weights, h, c = (
            T.randn(4, 2, 3),
            (T.randn(20, 3), T.randn(20, 5), T.randn(20), T.randn(20)),
            *T.randn(2, 1, 2, 5),
        )
        found = T.mkldnn_rnn_layer(x, *weights, h, c, reverse, [], 2, 5, 1, True, False, False, False)
        return x, weights, h, c, [f.numpy() for f in found[:3]]

    for reverse in (False, True):
        x, weights, h, c, got = layer(jtorch, reverse)
        for a, b in zip(got, layer(torch, reverse)[-1]):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    want = jtorch.lstm(x, (h, c), list(weights), True, 1, 0.0, False, False, False)
    found = jtorch.miopen_rnn(x, list(weights), 4, h, c, 2, 5, 1, False, 0.0, False, False, [], None)
    for a, b in zip(found, want):
        jtorch.testing.assert_close(a, b)


def test_storages_and_sizes():
    for T in (jtorch, torch):
        assert T.sym_fresh_size(3) == 3 and issubclass(T.UntypedStorage, T.StorageBase) and T.Storage is T.FloatStorage
        with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
            T.StorageBase()
    keys = jtorch.DispatchKeySet(jtorch.DispatchKey.CPU).add(jtorch.DispatchKey.CUDA)
    assert (
        repr(keys) == "DispatchKeySet(CPU, CUDA)"
        and repr(keys.remove(jtorch.DispatchKey.CPU)) == "DispatchKeySet(CUDA)"
    )


def test_what_the_build_has():
    names = [n for n in dir(torch._C) if n.startswith(("_has_", "has_")) and isinstance(getattr(torch._C, n), bool)]
    assert names and all(isinstance(getattr(c, n), bool) for n in names)
    assert not c._mps_is_available() and not c._mps_is_in_bad_fork()
