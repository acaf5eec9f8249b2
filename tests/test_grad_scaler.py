"""amp/grad_scaler.py: what trainers read of a scaler between its calls."""

import pytest

import jtorch
from jtorch.amp import grad_scaler
from jtorch.amp.cuda import amp_definitely_not_available

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("bad", [False, True])
def test_states_of_optimizers(bad):
    seen = []
    for lib, module in ((torch, torch.amp.grad_scaler), (jtorch, grad_scaler)):
        p = lib.ones(2, requires_grad=True)
        opt = lib.optim.SGD([p], lr=0.1)
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
        said = [scaler._per_optimizer_states[id(opt)]["stage"].name]
        scaler.scale((p * (float("inf") if bad else 1.0)).sum()).backward()
        scaler.unscale_(opt)
        state = scaler._per_optimizer_states[id(opt)]
        said.append(
            (state["stage"] is module.OptState.UNSCALED, [f.item() for f in scaler._found_inf_per_device(opt).values()])
        )
        scaler.step(opt)
        said.append(state["stage"] is module.OptState.STEPPED)
        scaler.update()
        said += [len(scaler._per_optimizer_states), scaler.get_scale(), p.tolist(), [s.name for s in module.OptState]]
        seen.append(said)
    assert seen[0] == seen[1]


def test_whether_there_is_an_accelerator():
    assert amp_definitely_not_available() is (not jtorch.cuda.is_available())
    called = []
    jtorch.cuda._lazy_call(lambda: called.append(1))
    assert bool(called) is jtorch.cuda.is_available()
