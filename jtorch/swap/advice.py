"""What to do about a PyTorch name that jtorch lacks: a table by the beginning of the name."""

_ELSE = "not in jtorch: take this call out, or write it with names that are"

# The longest beginning decides.
_ADVICE = {
    "torch._C": "internal to PyTorch's implementation: use the public name of the same thing",
    "torch._dynamo": "jtorch has no dynamo: torch.compile and torch.compiler have the public switches",
    "torch._export": "use jax.export on a jitted function",
    "torch._functorch": "use torch.func",
    "torch._inductor": "XLA takes inductor's place: leave its settings out",
    "torch._prims": "internal to PyTorch's implementation: use torch's public functions",
    "torch._refs": "internal to PyTorch's implementation: use torch's public functions",
    "torch._subclasses": "fake tensors are not supported: use device='meta'",
    "torch.ao": "of quantization there are quantize_dynamic of linear and recurrent layers, observers and fake quantizers: else keep the model in float, or bfloat16 by .to(torch.bfloat16)",
    "torch.backends": "a setting of a library that XLA replaces: leave it out",
    "torch.classes": "custom C++ classes cannot be loaded: XLA runs the model",
    "torch.cuda": "a detail of NVIDIA's runtime: torch.accelerator has what jax's devices answer",
    "torch.cuda.CUDAGraph": "a training loop is one XLA program already: call it as it is, or under torch.compile",
    "torch.cuda.graph": "a training loop is one XLA program already: call it as it is, or under torch.compile",
    "torch.cuda.make_graphed_callables": "use torch.compile(fn)",
    "torch.cuda.nccl": "collectives are jax's: one process sees all devices of a host",
    "torch.cuda.nvtx": "use torch.profiler.record_function",
    "torch.distributed": "process groups, collectives and DistributedDataParallel are there; sharded tensors, FSDP and RPC are not: one process sees all devices",
    "torch.export": "export, save and load are there: the graph calls torch's functions, not ATen's",
    "torch.fx": "jtorch's torch.fx has graphs, tracers and interpreters, not this: work on Graph and Node",
    "torch.jit": "TorchScript is not part of jtorch: call the function or module itself, or torch.compile(it)",
    "torch.nested": "nested tensors are not supported: pad, or use torch.nn.utils.rnn.pack_padded_sequence",
    "torch.nn.parallel": "one process sees all devices: shard with jax, or train on one device",
    "torch.nn.qat": "quantization is not supported",
    "torch.nn.quantized": "quantization is not supported",
    "torch.package": "use torch.save of a state_dict, and the code as a package",
    "torch.quantization": "quantization is not supported: keep the model in float, or bfloat16 by .to(torch.bfloat16)",
    "torch.quantize": "quantization is not supported: keep the tensor in float",
    "torch.sparse": "not supported for sparse tensors: use to_dense(), or compute with values()",
    "torch.utils.cpp_extension": "C++ and CUDA sources cannot be built against jtorch: write the operation in torch or jax",
    "torch.utils.mobile_optimizer": "there is no mobile runtime",
}


def advice(name: str) -> str:
    """One line of advice for a name such as "torch.jit.trace"."""
    best = max((k for k in _ADVICE if name == k or name.startswith(k)), key=len, default=None)
    return _ELSE if best is None else _ADVICE[best]
