"""torch.ao.quantization's observers and fake quantizers, against PyTorch's."""

import warnings

import pytest

import jtorch
from jtorch.swap.internal import fake_quantizers, histograms, observers
from tests.oracle import torch
from tests.swap import programs

theirs = torch.ao.quantization
HOMES = observers, histograms, fake_quantizers


def mine(name):
    return next(getattr(home, name) for home in HOMES if hasattr(home, name))


def inputs(t):
    x = ((t.arange(96) * 37 % 104 - 45) / 64).view(2, 3, 16)  # an odd range: no value is halfway between two steps
    return [x, x * 2 + 0.25, x[:1] / 8]


WATCH = {
    "default": ("MinMaxObserver", {}), "symmetric": ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    "symmetric bytes": ("MinMaxObserver", {"qscheme": "per_tensor_symmetric"}), "reduced": ("MinMaxObserver", {"reduce_range": True}),
    "four bits": ("MinMaxObserver", {"dtype": "qint8", "quant_min": -8, "quant_max": 7}), "eps": ("MinMaxObserver", {"eps": 1.0}),
    "32 bits": ("MinMaxObserver", {"dtype": "qint32"}), "averages": ("MovingAverageMinMaxObserver", {"averaging_constant": 0.3}),
    "channels": ("PerChannelMinMaxObserver", {"ch_axis": 1}),
    "channels, symmetric": ("PerChannelMinMaxObserver", {"ch_axis": -1, "dtype": "qint8", "qscheme": "per_channel_symmetric"}),
    "channels of floats": ("PerChannelMinMaxObserver", {"ch_axis": 1, "qscheme": "per_channel_affine_float_qparams"}),
    "averages of channels": ("MovingAveragePerChannelMinMaxObserver", {"ch_axis": 1}),
    "histogram": ("HistogramObserver", {}), "histogram, symmetric": ("HistogramObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    "few bins": ("HistogramObserver", {"bins": 64, "reduce_range": True}),
}  # fmt: skip


def given(t, kwargs):
    return {k: getattr(t, v) if isinstance(v, str) else v for k, v in kwargs.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WATCH)
def test_ranges(name):
    cls, kwargs = WATCH[name]
    found = {}
    for t, home in ((torch, lambda n: getattr(theirs, n)), (jtorch, mine)):
        observer = home(cls)(**given(t, kwargs))
        said = []
        for x in inputs(t):
            assert observer(x) is x
            scale, zero = observer.calculate_qparams()
            said += [scale, zero, observer.min_val, observer.max_val]
            said = [s.clone() for s in said]
        found[t] = said + [observer.state_dict()[k] for k in sorted(observer.state_dict())]
    for its, our in zip(found[torch], found[jtorch], strict=True):
        assert tuple(its.shape) == tuple(our.shape) and str(its.dtype) == str(our.dtype).replace("jtorch", "torch")
        jtorch.testing.assert_close(our, jtorch.from_numpy(its.numpy()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["default_fake_quant", "default_weight_fake_quant", "default_per_channel_weight_fake_quant"]
)
def test_rounding(name):
    found = {}
    for t, make in ((torch, getattr(theirs, name)), (jtorch, mine(name))):
        module, said = make(), []
        for k, x in enumerate(inputs(t)):
            x = x.clone().requires_grad_()
            y = module(x)
            y.pow(2).sum().backward()
            said += [y.detach(), x.grad, module.scale.clone(), module.zero_point.clone()]
            if k == 1:
                module.disable_observer() if name == "default_fake_quant" else module.disable_fake_quant()
        found[t] = said
    for its, our in zip(found[torch], found[jtorch], strict=True):
        assert str(its.dtype) == str(our.dtype).replace("jtorch", "torch")
        jtorch.testing.assert_close(our, jtorch.from_numpy(its.numpy()))


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="MinMaxObserver's qscheme only support"):
        observers.MinMaxObserver(qscheme=jtorch.per_channel_affine)
    with pytest.raises(AssertionError, match="must include 0"):
        observers.MinMaxObserver(quant_min=1, quant_max=3)
    with pytest.raises(ValueError, match="QConfig received observer instance"):
        fake_quantizers.QConfig(observers.MinMaxObserver(), observers.MinMaxObserver)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scale, zero = observers.MinMaxObserver().calculate_qparams()
    assert (scale.tolist(), zero.tolist()) == ([1.0], [0]) and "must run observer" in str(said[0].message)


def test_imports(tmp_path):
    text = """
        import torch
        from torch.quantization.observer import HistogramObserver, MinMaxObserver, PerChannelMinMaxObserver
        from torch.ao.quantization.fake_quantize import FakeQuantize
        from torch.quantization.fake_quantize import FakeQuantizeBase
        from torch.quantization.qconfig import QConfig
        from torch.ao.quantization import QuantStub, get_default_qconfig, quantize_dynamic

        from torch.nn.quantized import BatchNorm2d
        from torch.jit._state import _enabled

        assert _enabled.enabled and torch.cuda._initialized == torch.cuda.is_available()
        try:
            BatchNorm2d(3)
        except NotImplementedError as error:
            assert "layers of quantized tensors" in str(error)
        else:
            raise AssertionError
        made = QConfig(MinMaxObserver.with_args(dtype=torch.qint8), FakeQuantize).activation()
        assert isinstance(made, torch.ao.quantization.ObserverBase) and isinstance(FakeQuantize(), FakeQuantizeBase)
        assert isinstance(get_default_qconfig().activation(), HistogramObserver)
    """
    programs.run(text, tmp_path)
