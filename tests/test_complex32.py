"""Complex numbers of two float16: what PyTorch's CPU has of them, and what more there is here."""

import numpy as np
import pytest

import jtorch
from jtorch.data import fetch, handover
from tests.oracle import both

START = """
import io
H = torch.complex32
x = torch.tensor([1 + 2j, 1 / 3 - 0.1j], dtype=H)
y = torch.tensor([0.3 - 1j, 2j], dtype=H)
h = torch.tensor([1 / 3, 2.0], dtype=torch.float16)
s = slice(1, None)
"""
# Each leaves its results in `r`; START is not compared again.
PROGRAMS = {
    "what it is": "r = H.itemsize, H.is_complex, H.to_real(), torch.float16.to_complex(), x.nbytes, x.type(), torch.finfo(H).max",
    "printed": "r = repr(x), repr(x[1]), str(torch.zeros(0, dtype=H))",
    "made": "r = [f(2, dtype=H) for f in (torch.zeros, torch.ones)] + [torch.full((2,), 1 / 3 + 70000j, dtype=H), torch.zeros_like(x)]",
    "drawn": "torch.manual_seed(1); r = torch.randn(3, dtype=H), torch.rand(3, dtype=H), torch.zeros(2, 2, dtype=H).normal_()",
    "converted": "r = [x.to(d) for d in (torch.complex64, torch.complex128, torch.bool)] + [h.chalf(), torch.arange(3).to(H), x.chalf() is x]",
    "small and large": "r = torch.tensor([1e-6 + 3e-8j, 65519 + 65520j, 7e-5j]).to(H)",
    "arithmetic": "r = x + y, x - y, x * y, -x, x.abs(), x.sgn(), x == y, x + 1.5, x * 2j, h * 2j, h + x, x + torch.ones(2, dtype=torch.int64)",
    "wider operands": "r = [x + torch.full((2,), 1 / 3, dtype=d) for d in (torch.bfloat16, torch.float32, torch.float64, torch.complex64)]",
    "results are rounded": "r = (x * y - x * y.clone() + x * (1 / 3)).to(torch.complex64)",
    "made of parts": "r = torch.complex(h, h), torch.view_as_complex(torch.stack([h, h], -1)), torch.view_as_complex(h)",
    "parts are views": "torch.view_as_real(x)[0, 1] = 1 / 3; x.real[s] = 7; x.imag.add_(1); r = x, x.real.stride(), x[s].imag.storage_offset()",
    "a view of float16": "p = torch.stack([h, h], -1); c = torch.view_as_complex(p); c[0] = 9j; p[1, 1] = 5; r = p, c",
    "other views of the bytes": "r = x.view(torch.float16), x.view(torch.float32), h.view(torch.int32), h.view(H), x.untyped_storage().nbytes()",
    "shared with numpy": "n = torch.view_as_real(x).numpy(); n[0, 0] = 3; x[1] = 5j; p = torch.stack([h, h]); q = p.numpy(); "
    "c = torch.view_as_complex(p); c[0] = 2 - 1j; r = x, n.tolist(), c, q.tolist(), c * 2",
    "written to": "x.add_(1 / 3).mul_(h); x[0] = 1j; r = x.clone(), x.add_(torch.ones(2, dtype=torch.complex64) / 3), y.copy_(x), y.fill_(1 / 3)",
    "into out=": "r = torch.mul(x, y, out=torch.empty(0, dtype=H)), torch.mul(x.to(torch.complex64), 1 / 3, out=torch.zeros(2, dtype=H))",
    "moved about": "r = torch.stack([x, y]), torch.cat([x, y]), x.reshape(2, 1).expand(2, 2).T, torch.where(x == y, x, y), x.repeat(2), x[s]",
    "picked": "r = x.masked_select(x == x), x.index_select(0, torch.tensor([1])), x.nonzero(), x.tolist(), x[0].item()",
    "saved": "f = io.BytesIO(); torch.save([x, y[s], x], f); f.seek(0); r = torch.load(f); r[0][0] = 4",
    "gradient": "a = x.clone().requires_grad_(); (a * a * y).abs().sum().backward(); r = a.grad",
    "gradient of what was wider": "a = torch.tensor([1.0, 2.0], requires_grad=True); (a.chalf() * (1 / 3 + 1j)).real.sum().backward(); r = a.grad",
    "no numpy": "x.numpy()",
    "no order": "x.max()",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_torch(name):
    both(START + "\n" + PROGRAMS[name])


def test_what_torch_has_no_kernels_for():
    x = jtorch.tensor([3 + 4j, 1j], dtype=jtorch.complex32)
    assert (x / 3).dtype is x.sum().dtype is x.exp().dtype is jtorch.complex32
    assert x.sum().item() == 3 + 5j
    assert (x / 3)[0].item() == 1 + 1.3330078125j  # 4 / 3 in float16


def test_to_a_worker_and_back():
    x = jtorch.tensor([[1 / 3 + 4j, 1j]], dtype=jtorch.complex32)
    there = handover.loads(handover.dumps(x))
    joined = fetch._taken(x, np.array([0, 0]))
    assert there.dtype is joined.dtype is jtorch.complex32
    assert there.tolist() == x.tolist() and joined.tolist() == x.tolist() * 2


def test_optimizer_keeps_it_rounded():
    p = jtorch.nn.Parameter(jtorch.tensor([1 + 2j, 3j], dtype=jtorch.complex32))
    p.grad = jtorch.ones_like(p)
    jtorch.optim.SGD([p], lr=0.1).step()
    assert p.tolist() == p.detach().clone().chalf().to(jtorch.complex64).tolist()
    assert jtorch.view_as_real(p.detach()).float().flatten().tolist() == [
        x for z in p.tolist() for x in (z.real, z.imag)
    ]


def test_transformed_by_jax():
    with pytest.raises(NotImplementedError, match="complex32 where JAX transforms a function\n  use complex64"):
        jtorch.func.vmap(lambda x: x * x)(jtorch.ones(2, dtype=jtorch.complex32))


def test_handed_to_other_libraries():
    with pytest.raises(NotImplementedError, match="complex32 in DLPack\n  use view_as_real"):
        jtorch.ones(2, dtype=jtorch.complex32).__dlpack__()


@pytest.mark.parametrize("call", ["max_pool2d(x, 1)", "mse_loss(x, x)", "softmax(x, 0)", "logsigmoid(x)"])
def test_what_refuses_it_names_it(call):
    both(lambda t: eval(call, vars(t.nn.functional) | {"x": t.zeros(1, 1, 2, 2, dtype=t.complex32)}))
