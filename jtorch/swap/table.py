"""Where each of PyTorch's modules is in jtorch. Names only: nothing is imported here."""

# Top-level modules that are under the same name in jtorch, with all that is inside them.
SAME = frozenset((
    "__future__", "accelerator", "amp", "autograd", "backends", "compiler", "cpu", "cuda", "distributed", "distributions", "export", "fft",
    "func", "futures", "fx", "hub", "jit", "library", "linalg", "masked", "monitor", "mps", "mtia", "multiprocessing", "nested", "nn",
    "onnx", "ops", "optim", "overrides", "profiler", "quasirandom", "random", "return_types", "serialization", "signal", "sparse",
    "special", "storage", "testing", "torch_version", "types", "typing", "utils", "version", "xpu",
))  # fmt: skip

# functorch and its modules -> those of `jtorch.swap.internal`.
FUNCTORCH = {
    "functorch": "functorch_package", "functorch.compile": "ahead_of_time", "functorch.experimental": "functorch_experimental",
    "functorch.experimental.control_flow": "functorch_control_flow",
}  # fmt: skip

# PyTorch's module -> the modules of jtorch that have its names, searched in this order.
ELSEWHERE = {
    "_C": ("_C", "swap.internal.c"),
    "_C._autograd": ("swap.internal.c_autograd",),
    "_C._functions": ("swap.internal.c_functions",),
    "_C._functorch": ("swap.internal.functorch",),
    "_C._profiler": ("swap.internal.profiler",),
    "_C._nn": ("_C._nn", "swap.internal.nn"),
    "_VF": ("functions",),
    "_custom_ops": ("library",),
    **dict.fromkeys(
        (
            "_decomp", "_decomp.decompositions", "_dynamo.backends", "_dynamo.backends.common", "_functorch.aot_autograd",
            "_functorch.compilers", "_functorch.partitioners",
        ),
        ("swap.internal.ahead_of_time",),
    ),
    "_dynamo": ("swap.internal.dynamo",),
    "_dynamo._trace_wrapped_higher_order_op": ("swap.internal.dynamo",),
    "_dynamo.config": ("swap.internal.dynamo.config",),
    "_dynamo.eval_frame": ("swap.internal.dynamo",),
    "_dynamo.exc": ("swap.internal.dynamo",),
    "_dynamo.utils": ("swap.internal.dynamo",),
    "_higher_order_ops": ("swap.internal.higher_order_package",),
    **{
        f"_higher_order_ops.{name}": ("swap.internal.higher_order",)
        for name in ("associative_scan", "cond", "foreach_map", "inline_asm_elementwise", "map", "out_dtype", "scan", "while_loop")
    },
    "_inductor": ("swap.internal.inductor",),
    "_inductor.codecache": ("swap.internal.inductor",),
    "_inductor.config": ("swap.internal.inductor.config",),
    "_inductor.decomposition": ("swap.internal.inductor",),
    "_jit_internal": ("swap.internal.jit",),
    "_library": ("swap.internal.library_package",),
    "_library.custom_ops": ("library",),
    "_library.infer_schema": ("schema",),
    "_logging": ("swap.internal.logging",),
    "_lowrank": ("lowrank", "functions"),
    "__config__": ("swap.internal.build",),
    "_ops": ("dispatch.dispatched", "aten"),
    "_prims_common": ("swap.internal.prims_common",),
    "_subclasses": ("swap.internal.fake",),
    "_subclasses.fake_tensor": ("swap.internal.fake",),
    "_tensor": ("tensor",),
    "_tensor_str": ("swap.internal.tensor_str",),
    "_utils": ("swap.internal.utils",),
    **dict.fromkeys(("_functorch", "_functorch.pyfunctorch", "_functorch.vmap"), ("swap.internal.functorch",)),
    "_vmap_internals": ("func", "api", "swap.internal.functorch"),
    "amp.autocast_mode": ("amp.autocast", "amp"),
    "autograd.profiler": ("profiler.autograd",),
    "autograd.variable": ("autograd.function",),
    "cpu.amp": ("amp.cpu",),
    "cpu.amp.autocast_mode": ("amp.cpu", "amp.autocast"),
    "cpu.amp.grad_scaler": ("amp.cpu", "amp.grad_scaler"),
    "cuda.amp": ("amp.cuda",),
    "cuda.amp.autocast_mode": ("amp.cuda", "amp.autocast"),
    "cuda.amp.common": ("amp.cuda",),
    "cuda.amp.grad_scaler": ("amp.cuda", "amp.grad_scaler"),
    "cuda.random": ("cuda",),
    "cuda.streams": ("cuda",),
    "distributed.constants": ("distributed.status",),
    "distributed.distributed_c10d": tuple(
        f"distributed.{n}" for n in ("collectives", "group_methods", "messages", "process_group", "status", "stores", "world")
    ),
    **dict.fromkeys(
        ("distributed._composable_state", "distributed.fsdp._common_utils"), ("swap.internal.composable_state",)
    ),
    "distributed.launcher.api": ("distributed.launcher",),
    "distributed.nn.functional": ("distributed.nn",),
    "distributed.algorithms.join": ("distributed.join",),
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": ("distributed.local_sgd",),
    **{f"distributed.algorithms.model_averaging{n}": ("distributed.local_sgd",) for n in ("", ".averagers", ".utils")},
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": ("distributed.power_sgd",),
    **dict.fromkeys(
        ("distributed.algorithms.ddp_comm_hooks", "distributed.algorithms.ddp_comm_hooks.default_hooks"), ("distributed.comm_hooks",)
    ),
    "distributed.algorithms": ("swap.internal.checkpoint_wrapper.algorithms",),
    "distributed.algorithms._checkpoint": ("swap.internal.checkpoint_wrapper.algorithms_checkpoint",),
    "distributed.algorithms._checkpoint.checkpoint_wrapper": ("swap.internal.checkpoint_wrapper",),
    **{f"distributed.checkpoint.{n}": ("distributed.checkpoint.folder",) for n in ("api", "filesystem")},
    **{f"distributed.checkpoint.{n}": ("distributed.checkpoint.plans",) for n in ("default_planner", "planner", "storage")},
    "distributed._composable": ("distributed.fsdp",),
    "distributed._composable.fsdp": ("distributed.fsdp",),
    "distributed.fsdp.api": ("distributed.fsdp",),
    "distributed.fsdp.fully_sharded_data_parallel": ("distributed.fsdp",),
    "distributed.fsdp.wrap": ("distributed.wrap",),
    "distributed._tensor": ("distributed.tensor",),
    "distributed._tensor.experimental": ("distributed.tensor",),
    "distributed.tensor.experimental": ("distributed.tensor",),
    "distributed.tensor._api": ("distributed.tensor",),
    "distributed.tensor._utils": ("distributed.tensor",),
    **dict.fromkeys(
        ("distributed.tensor.parallel", "distributed.tensor.parallel.api", "distributed.tensor.parallel.style"),
        ("distributed.tensor_parallel",),
    ),
    "distributed.tensor.placement_types": ("distributed.tensor",),
    "export.dynamic_shapes": ("export.specs", "export.dim"),
    "export.exported_program": ("export.program",),
    "export.graph_signature": ("export.program",),
    "functional": ("functional", "functions"),
    "fx.experimental": ("fx.experimental", "swap.internal.fake"),
    "fx.experimental.proxy_tensor": ("fx.experimental.proxy_tensor", "swap.internal.fake"),
    "fx.experimental.symbolic_shapes": ("swap.internal.shapes",),
    "hub": ("hub", "swap.internal.hub", "swap.internal.model_zoo"),
    **dict.fromkeys(("sparse._triton_ops", "sparse._triton_ops_meta"), ("swap.internal.triton_ops",)),
    "utils._triton": ("swap.internal.triton",),
    "utils.model_zoo": ("swap.internal.model_zoo",),
    **{f"onnx.symbolic_opset{n}": ("onnx.symbolic_opset",) for n in range(7, 21)},
    **{f"masked.{part}": ("masked",) for part in ("maskedtensor", "maskedtensor.core", "maskedtensor.creation", "_ops")},
    "nn.common_types": ("swap.internal.common_types",),
    "utils.data.dataloader": ("data.dataloader", "swap.internal.loading"),
    "utils.data._utils": ("utils.data._utils", "swap.internal.loader"),
    "utils.data._utils.collate": ("data.collate", "swap.internal.loading"),
    "utils.data._utils.pin_memory": ("swap.internal.loading",),
    "utils.data._utils.signal_handling": ("swap.internal.loading",),
    "utils.data._utils.worker": ("data.worker", "swap.internal.loading"),
    "distributions.multivariate_normal": ("distributions.multivariate_normal", "swap.internal.densities"),
    "distributions.transforms": ("distributions.transforms", "swap.internal.densities"),
    "accelerator.graphs": ("accelerator",),
    "accelerator.memory": ("accelerator",),
    "autograd.profiler_util": ("profiler.events",),
    "profiler.profiler": ("profiler.session", "profiler"),
    "signal.windows.windows": ("signal.windows",),
    "utils.benchmark.utils": ("utils.benchmark",),
    "utils.benchmark.utils.common": ("utils.benchmark.timer", "utils.benchmark"),
    "utils.benchmark.utils.compare": ("utils.benchmark.compare",),
    "utils.benchmark.utils.timer": ("utils.benchmark.timer",),
    "utils._contextlib": ("swap.internal.contexts",),
    "utils._foreach_utils": ("swap.internal.foreach",),
    "jit.annotations": ("swap.internal.jit",),
    "jit._script": ("jit",),
    "jit._state": ("swap.internal.jit",),
    "jit._trace": ("jit",),
    "nn._reduction": ("swap.internal.reduction",),
    "nn.modules.activation": ("nn.modules.activation", "nn.modules.attention"),
    "nn.modules.channelshuffle": ("nn.modules.reshape",),
    "nn.modules.flatten": ("nn.modules.reshape",),
    "nn.modules.fold": ("nn.modules.reshape",),
    "nn.modules.instancenorm": ("nn.modules.batchnorm",),
    "nn.modules.linear_cross_entropy_options": ("nn.modules.adaptive",),
    "nn.modules.loss": ("nn.modules.loss", "nn.modules.adaptive"),
    "nn.modules.pixelshuffle": ("nn.modules.reshape",),
    "nn.modules.transformer": ("nn.modules.attention", "nn.modules.container", "swap.internal.private"),
    "nn.modules.upsampling": ("nn.modules.reshape",),
    "nn.parallel.data_parallel": ("nn.parallel",),
    **{f"nn.parallel.{n}": ("nn.parallel.replicas",) for n in ("parallel_apply", "replicate", "scatter_gather")},
    "nn.utils._named_member_accessor": ("swap.internal.members",),
    **dict.fromkeys(("nn.utils._expanded_weights", "nn.utils._per_sample_grad"), ("func.per_sample",)),
}  # fmt: skip
_QUANTIZED = ("swap.internal.quantize", "swap.internal.quantized_dynamic", "swap.internal.quantized_recurrent")
_WATCHING = tuple(f"swap.internal.{name}" for name in ("fake_quantizers", "histograms", "observers"))
_QUANTIZATION = ("ao", "ao.nn", "ao.nn.quantized", "ao.quantization", "nn.quantized", "quantization")
ELSEWHERE |= {name: ("swap.internal.quantization", *_WATCHING, *_QUANTIZED) for name in _QUANTIZATION}
ELSEWHERE |= {
    f"{home}.{name}": _WATCHING
    for home in ("ao.quantization", "quantization")
    for name in ("fake_quantize", "observer", "qconfig")
}
_DYNAMIC = (
    "ao.nn.quantized.dynamic",
    "ao.nn.quantized.dynamic.modules",
    "ao.quantization.quantize",
    "nn.quantized.dynamic",
)
ELSEWHERE |= {name: _QUANTIZED for name in _DYNAMIC}
ELSEWHERE |= {f"ao.quantization.fx{inner}": ("swap.internal.decomposed",) for inner in ("", "._decomposed")}
_WITH_PRIVATE = (
    "autograd.functional", "nn.init", "nn.modules.container", "nn.modules.conv", "nn.modules.module", "nn.modules.padding",
    "optim.lbfgs", "optim.lr_scheduler", "optim.optimizer",
)  # fmt: skip
ELSEWHERE |= {name: (name, "swap.internal.private") for name in _WITH_PRIVATE}
ELSEWHERE["optim.swa_utils"] = "optim.swa_utils", "swap.internal.foreach"
ELSEWHERE["nn.functional"] = "nn.functional", "swap.internal.functional"

# (a class of jtorch) -> the PyTorch module it says it is from, where that is not its own path. For modules that have
# several homes the class decides.
CLASS_HOMES = {
    "nn.modules.attention": {"MultiheadAttention": "nn.modules.activation", None: "nn.modules.transformer"},
    "nn.modules.reshape": {
        "Flatten": "nn.modules.flatten", "Unflatten": "nn.modules.flatten", "Fold": "nn.modules.fold",
        "Unfold": "nn.modules.fold", "PixelShuffle": "nn.modules.pixelshuffle", "PixelUnshuffle": "nn.modules.pixelshuffle",
        "ChannelShuffle": "nn.modules.channelshuffle", None: "nn.modules.upsampling",
    },
    "nn.modules.batchnorm": {
        **{f"{lazy}InstanceNorm{n}d": "nn.modules.instancenorm" for lazy in ("", "Lazy") for n in (1, 2, 3)},
        "_InstanceNorm": "nn.modules.instancenorm", None: "nn.modules.batchnorm",
    },
    "nn.modules.adaptive": {
        "LinearCrossEntropyLoss": "nn.modules.loss", "LinearCrossEntropyOptions": "nn.modules.linear_cross_entropy_options",
        None: "nn.modules.adaptive",
    },
    "tensor": {None: ""},
    "core.spec": {"Size": ""},
    "core.device": {"device": ""},
    "core.dtype": {"dtype": ""},
    "core.rng": {"Generator": "_C"},
    "creation": dict.fromkeys(("layout", "memory_format", "qscheme"), ""),
    "limits": dict.fromkeys(("finfo", "iinfo"), ""),
    "amp.autocast": {None: "amp.autocast_mode"},
    "amp.grad_scaler": {None: "amp.grad_scaler"},
    "autograd.mode": {None: "autograd.grad_mode"},
    "storage_api": dict.fromkeys(("TypedStorage", "UntypedStorage"), "storage"),
    "profiler.session": {None: "profiler.profiler"},
    "handles": {"RemovableHandle": "utils.hooks"},
    "quasirandom": {None: "quasirandom"},
    "compile.region": {"OptimizedModule": "_dynamo.eval_frame"},
    "compile.failures": {None: "_dynamo.exc"},
    "jit.traced": {"ScriptFunction": "jit", "TopLevelTracedModule": "jit._trace", None: "jit._script"},
    "masked": {None: "masked.maskedtensor.core"},
    "utils.benchmark.timer": {"Measurement": "utils.benchmark.utils.common", None: "utils.benchmark.utils.timer"},
    "data.dataloader": {None: "utils.data.dataloader"},
    "data.dataset": {None: "utils.data.dataset"},
    "data.sampler": {None: "utils.data.sampler"},
}  # fmt: skip


def sources(name: str) -> tuple[str, ...] | None:
    """The modules of jtorch (without the package's name) that PyTorch's module `name` (without "torch.") is; None: unknown."""
    found = ELSEWHERE.get(name)
    if found is None and name.partition(".")[0] in SAME:
        found = (name,)
    return found


def home(module: str, cls: str) -> str | None:
    """The PyTorch module that a class defined in jtorch's `module` belongs to ("" is torch itself); None: it has none."""
    known = CLASS_HOMES.get(module)
    if known is not None:
        return known.get(cls, known.get(None))
    if module.startswith(("nn.", "optim.", "utils.", "distributions.", "autograd.", "fx.")):
        return module
    return None


def children(name: str) -> frozenset[str]:
    """The submodules of PyTorch's module `name` that are under another name in jtorch, or have such submodules."""
    return frozenset(n[len(name) + 1 :].partition(".")[0] for n in ELSEWHERE if n.startswith(f"{name}."))
