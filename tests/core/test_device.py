"""Device names: parsing, printing, errors; the accelerator that is there."""

import pathlib
import pickle
import subprocess
import sys

import jax
import pytest

import jtorch
from jtorch.core import device
from tests.oracle import both, torch


@pytest.mark.parametrize(
    "name", ["cpu", "cuda", "cuda:1", "meta", "cpu:0", "mps", "xla:3", "hpu", "vulkan", "privateuseone:1", "hip"]
)
def test_names(name):
    both(
        lambda torch: [
            repr(torch.device(name)),
            str(torch.device(name)),
            torch.device(name).type,
            torch.device(name).index,
        ]
    )


@pytest.mark.parametrize(
    "name",
    ["gpu", "cuda:x", "", "cuda:-1", "cpu:0:1", "CPU", "cpu0", "float16", "cuda:01", "a b", "cpu ", "1", "foo_bar"],
)
def test_wrong_names(name):
    both(lambda torch: torch.device(name))


@pytest.mark.parametrize(
    "misuse",
    [
        lambda d: setattr(d, "index", 3),
        lambda d: setattr(d, "type", "cuda"),
        lambda d: setattr(d, "name", "a"),
        lambda d: delattr(d, "index"),
        lambda d: d < d,
        lambda d: type(d)("cpu", -1),
    ],
)
def test_devices_are_constants(misuse):
    """One device serves all tensors there."""
    both(lambda torch: misuse(torch.device("cpu")))
    assert jtorch.zeros(1).device.index is None


def test_wrong_types():
    both(lambda torch: torch.device("cuda:0", 1))
    with pytest.raises(TypeError, match="must be"):
        jtorch.device(1.5)


def test_equal_devices():
    both(lambda torch: [torch.device("cpu") == torch.device("cpu"), torch.device("cuda") == torch.device("cuda:0")])
    assert len({jtorch.device("cuda:0"), jtorch.device("cuda", 0)}) == 1
    assert pickle.loads(pickle.dumps(jtorch.device("cuda:1"))) is jtorch.device("cuda:1")


def test_tensors_live_on_the_cpu_unless_told():
    both(lambda torch: [str(torch.ones(2).device), str(torch.ones(2, device="cpu:0").device), torch.ones(2).is_cuda])


@pytest.mark.skipif(device.accelerator() is not None, reason="there is an accelerator here")
def test_cuda_without_an_accelerator():
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        jtorch.ones(2, device="cuda")
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        jtorch.ones(2).cuda()
    assert jtorch.cuda.is_available() is False


cpu_build = pytest.mark.skipif(torch.version.cuda is not None, reason="PyTorch is built for CUDA here")


@cpu_build
@pytest.mark.skipif(device.accelerator() is not None, reason="there is an accelerator here")
def test_devices_that_are_not_there():
    for program in (
        lambda torch: torch.device(0),
        lambda torch: torch.device(-1),
        lambda torch: torch.ones(2, device=0),
        lambda torch: torch.zeros(2, device=1),
        lambda torch: torch.ones(2).to(0),
        lambda torch: torch.nn.Linear(1, 1).to(0),
        lambda torch: torch.nn.Linear(1, 1).to("float16"),
        lambda torch: torch.ones(2).to("mps"),
        lambda torch: torch.ones(2, device="xpu"),
        lambda torch: torch.cuda.get_device_name(0),
        lambda torch: torch.cuda.get_device_properties(0),
        lambda torch: torch.cuda.get_device_capability(0),
    ):
        both(program)


def test_default_device():
    def program(torch):
        with torch.device("meta"):
            a = torch.ones(2, 3)
        torch.set_default_device("meta")
        try:
            b = torch.zeros(4)
        finally:
            torch.set_default_device(None)
        return [str(a.device), str(b.device), str(torch.zeros(1).device), list(a.shape)]

    both(program)


@cpu_build
@pytest.mark.parametrize("name", ["cuda", "cuda:1", "xpu", "cuda:foo"])
def test_absent_default_device(name):
    def program(torch):
        def told(call):
            try:
                return str(call())
            except (AssertionError, RuntimeError) as error:
                return type(error).__name__, str(error).splitlines()[0]

        makers = (lambda: torch.ones(2), lambda: torch.tensor([1.0]), lambda: torch.ones(2, device="cpu").new_zeros(2))
        try:
            found = [told(lambda: torch.set_default_device(name)), told(torch.get_default_device), *map(told, makers)]
            with torch.device("cpu"):
                found.append(told(makers[0]))
        finally:
            torch.set_default_device(None)
        return [*found, told(makers[0]), told(torch.get_default_device)]

    both(program)


def test_meta_tensors_have_no_values():
    both(lambda torch: (torch.ones(2, 3, device="meta") @ torch.ones(3, 4, device="meta")).shape)
    with pytest.raises((RuntimeError, NotImplementedError)):
        jtorch.ones(2, device="meta").tolist()


@pytest.mark.parametrize(
    "call",
    ["device(type='cpu')", "device(type='cuda', index=1)", "device(device='cpu')", "device(type='cpu:0')", "device('cpu', type='cpu')",
     "device(type='cpu', index=-1)"],
)  # fmt: skip
def test_a_device_by_keywords(call):
    said = []
    for t in (jtorch, torch):
        try:
            said.append(repr(eval(call, {"device": t.device})))
        except (RuntimeError, TypeError) as error:
            said.append((type(error), str(error)))
    assert said[0] == said[1]


def test_products_are_float32s_where_there_is_an_accelerator(monkeypatch):
    before = jax.config.jax_default_matmul_precision
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    try:
        for chosen, then in (("tensorfloat32", "tensorfloat32"), (None, "highest")):
            jax.config.update("jax_default_matmul_precision", chosen)
            assert device.accelerator.__wrapped__() == "tpu"
            assert jax.config.jax_default_matmul_precision == then
    finally:
        jax.config.update("jax_default_matmul_precision", before)


_BESIDE = """
there, here = jax.devices()  # an accelerator, which is jax's default device; the place of CPU tensors beside it
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
losses = []
for _ in range(60):
    loss = net(torch.randn(16, 4) + torch.tensor([1.0, 2, 3, 4]) * 0.5).pow(2).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 2, losses
for k in range(12):
    far = torch.ones(3, device="cuda") * 2
    near = far.cpu().exp() + torch.arange(3)
    made = [*net.parameters(), torch.zeros(3) + 0.1 * k, torch.arange(5).sin(), near, (far.sin(), far)[1]]
    values = [v.get() if hasattr(v, "graph") else v for v in [t._storage.value for t in made]]
    assert [v.devices() for v in values] == [{here}] * (len(made) - 1) + [{there}], [v.devices() for v in values]
print("all there")
"""


def test_cpu_tensors_beside_another_default_device():
    assert on_accelerator(_BESIDE) == "all there\n"


_COMPILED = """
import logging
said = []
class Said(logging.Handler):
    def emit(self, record): said.append(record.getMessage())
logging.getLogger("jax._src.dispatch").addHandler(Said())
logging.getLogger("jax._src.dispatch").propagate = False
jax.config.update("jax_log_compiles", True)
PROGRAM
print(*[s.split()[4] for s in said if "Finished XLA compilation" in s])
"""
_ONCE = """
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).to("cuda")
optimizer = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9)
rows = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
for x, y in torch.utils.data.DataLoader(rows, 8, pin_memory=True):
    loss = torch.nn.functional.cross_entropy(net(x.to("cuda")), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    loss.item()
"""
_LONGER = """
net = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), 2).to("cuda")
words = torch.randn(1, 3, 8, device="cuda")
with torch.no_grad():
    for _ in range(12):
        words = torch.cat([words, net(words)[:, -1:].clamp(-3, 3)], 1)
        words.sum().item()
"""


def test_a_training_step_on_an_accelerator_is_compiled_once():
    made = on_accelerator(_COMPILED.replace("PROGRAM", _ONCE)).split()
    steps = [name for name in made if "_nodes" in name]
    assert steps and len(steps) == len(set(steps)), made
    assert made.count("jit(<lambda>)") < 4, made  # the first state of the optimizer is sent


def test_a_sentence_that_grows_on_an_accelerator_is_compiled_a_few_times():
    made = on_accelerator(_COMPILED.replace("PROGRAM", _LONGER)).split()
    assert 0 < len(made) < 12, made


# What is said of a device, and what PyTorch says with CUDA.
SAID = (
    ("b[torch.tensor([0, 2])]", "tensor([1., 1.], device='cuda:0')"),
    ("b[torch.tensor([True, False, True])]", "tensor([1., 1.], device='cuda:0')"),
    ("a[torch.tensor([0], device='cuda')]", "indices should be either on cpu or on the same device as the indexed tensor (cpu)"),
    ("set_(torch.zeros(3, device='cuda'), torch.tensor([True, False, False]), 2)", "tensor([2., 0., 0.], device='cuda:0')"),
    ("set_(torch.zeros(3, device='cuda'), torch.tensor([0, 1]), torch.tensor(3.0))", "tensor([3., 3., 0.], device='cuda:0')"),
    ("set_(torch.zeros(3, device='cuda'), torch.tensor([0, 1]), torch.ones(2))", "Expected all tensors to be on the same device"),
    ("torch.zeros(3, device='cuda').index_put_((torch.tensor([0, 1]),), b[:2])", "tensor([1., 1., 0.], device='cuda:0')"),
    ("b.index_select(0, torch.tensor([0]))", "Expected all tensors to be on the same device"),
    (
        "torch.nn.functional.ctc_loss(torch.zeros(5, 1, 4, device='cuda').log_softmax(-1), torch.tensor([[1, 2]], device='cuda'), "
        "torch.tensor([5]), torch.tensor([2]))",
        "tensor(1.6881, device='cuda:0')",
    ),
    ("a + b", "Expected all tensors to be on the same device"),
    ("b + torch.tensor(2.0)", "tensor([3., 3., 3.], device='cuda:0')"),
    ("b.numpy()", "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."),
    ("within(lambda: torch.ones(2).device)", "cuda:0"),
    ("within(torch.get_default_device)", "cuda:0"),
    ("within(lambda: torch.ones(3) + b)", "tensor([2., 2., 2.], device='cuda:0')"),
    ("torch.rand(2, generator=torch.Generator(), device='cuda')", "Expected a 'cuda' device type for generator but found 'cpu'"),
    ("b.clone().normal_(generator=torch.Generator())", "Expected a 'cuda' device type for generator but found 'cpu'"),
    ("typed('torch.cuda.FloatTensor')", "cuda:0"),
    ("typed('torch.FloatTensor')", "cpu"),
    ("torch.ones(2, requires_grad=True).cuda()", "tensor([1., 1.], device='cuda:0', grad_fn=<ToCopyBackward0>)"),
    ("torch.get_device_module().__name__.rpartition('.')[2]", "cuda"),
)  # fmt: skip
_SAID = """
a, b = torch.ones(3), torch.ones(3, device="cuda")
def set_(x, index, value):
    x[index] = value
    return x
def within(f):
    with torch.device("cuda"):
        return f()
def typed(name):
    torch.set_default_tensor_type(name)
    return torch.ones(1).device
for call in CALLS:
    try:
        print(eval(call))
    except Exception as error:
        print(str(error).partition(chr(10))[0])
"""


def test_what_an_accelerator_says():
    said = on_accelerator(_SAID.replace("CALLS", repr([call for call, _ in SAID]))).splitlines()
    assert len(said) == len(SAID)
    for (call, expected), got in zip(SAID, said):
        assert got.startswith(expected), (call, got)


def on_accelerator(program) -> str:
    """What a program prints beside a simulated accelerator."""
    script = pathlib.Path(__file__).parents[1] / "simulated_accelerator.py"
    done = subprocess.run([sys.executable, script], input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_meta_tensors_in_eager_mode():
    layer = jtorch.nn.Linear(3, 2)
    with jtorch.execution_mode("eager"):
        rows = (jtorch.ones(4, 3) * 2).to("meta")
        out = layer.to("meta")(rows)
        assert out.shape == (4, 2) and out.device.type == "meta"
        assert (jtorch.ones(10**7, 10**6, device="meta") + 1).sum().shape == ()  # no memory is made for either
        out.sum().backward()
        assert layer.weight.grad.shape == (2, 3)
