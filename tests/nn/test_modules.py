"""Every layer: repr, start values, forward, gradients, buffers and evaluation, against torch at the same seed."""

import numpy as np
import pytest

import jtorch
from tests.oracle import both, torch


def R(*shape):
    return ("normal", shape)


def U(*shape):
    return ("uniform", shape)


def S(*shape):
    return ("signs", shape)


def N(high, *shape):
    return ("ints", shape, high)


LAYERS = [
    ("Linear(3,4)", R(2, 3)),
    ("Bilinear(3,4,5)", R(2, 3), R(2, 4)),
    ("Conv1d(2,4,3,padding=1)", R(2, 2, 8)),
    ("Conv2d(2,4,3,stride=2,padding=1,groups=2,dilation=1)", R(2, 2, 8, 8)),
    ("Conv2d(2,4,3,padding='same',padding_mode='circular')", R(2, 2, 8, 8)),
    ("Conv2d(2,4,3,padding=1,padding_mode='reflect')", R(2, 2, 8, 8)),
    ("Conv3d(2,3,2)", R(1, 2, 4, 4, 4)),
    ("ConvTranspose2d(2,3,3,stride=2,padding=1,output_padding=1)", R(2, 2, 5, 5)),
    ("ConvTranspose1d(2,3,3)", R(2, 2, 5)),
    ("ConvTranspose3d(2,3,2)", R(1, 2, 3, 3, 3)),
    ("BatchNorm1d(3)", R(4, 3)),
    ("BatchNorm1d(3,momentum=.3)", R(0, 3)),
    ("BatchNorm2d(3,momentum=None)", R(4, 3, 2, 2)),
    ("BatchNorm3d(3,affine=False)", R(2, 3, 2, 2, 2)),
    ("InstanceNorm2d(3,affine=True,track_running_stats=True)", R(4, 3, 2, 2)),
    ("InstanceNorm1d(3)", R(3, 5)),
    ("InstanceNorm1d(3,track_running_stats=True)", R(2, 3, 0)),
    ("LayerNorm((2,3))", R(4, 2, 3)),
    ("RMSNorm(3)", R(4, 3)),
    ("GroupNorm(2,4)", R(2, 4, 3)),
    ("LocalResponseNorm(2)", R(2, 4, 3)),
    ("Embedding(5,4,padding_idx=1)", N(5, 2, 3)),
    ("Embedding(5,4,max_norm=.5)", N(5, 2, 3)),
    ("EmbeddingBag(5,4)", N(5, 2, 3)),
    ("EmbeddingBag(5,4,mode='max')", N(5, 2, 3)),
    ("Threshold(.1,2)", R(3, 4)),
    ("ReLU()", R(3, 4)),
    ("ReLU(True)", R(3, 4)),
    ("Hardtanh()", R(3, 4)),
    ("ReLU6()", R(3, 4)),
    ("Sigmoid()", R(3, 4)),
    ("Hardsigmoid()", R(3, 4)),
    ("Tanh()", R(3, 4)),
    ("SiLU()", R(3, 4)),
    ("SiLU(True)", R(3, 4)),
    ("Mish()", R(3, 4)),
    ("Hardswish()", R(3, 4)),
    ("ELU()", R(3, 4)),
    ("ELU(1.,True)", R(3, 4)),
    ("CELU()", R(3, 4)),
    ("SELU()", R(3, 4)),
    ("GLU()", R(3, 4)),
    ("GELU()", R(3, 4)),
    ("GELU('tanh')", R(3, 4)),
    ("Hardshrink()", R(3, 4)),
    ("LeakyReLU()", R(3, 4)),
    ("LeakyReLU(.1,True)", R(3, 4)),
    ("LogSigmoid()", R(3, 4)),
    ("Softplus()", R(3, 4)),
    ("Softshrink()", R(3, 4)),
    ("PReLU()", R(3, 4)),
    ("PReLU(4)", R(3, 4)),
    ("Softsign()", R(3, 4)),
    ("Tanhshrink()", R(3, 4)),
    ("Softmin(1)", R(3, 4)),
    ("Softmax(1)", R(3, 4)),
    ("Softmax2d()", R(3, 4, 2)),
    ("LogSoftmax(1)", R(3, 4)),
    ("MaxPool1d(2)", R(2, 3, 6)),
    ("MaxPool2d(2,return_indices=True)", R(2, 3, 6, 6)),
    ("MaxPool3d(2)", R(1, 2, 4, 4, 4)),
    ("AvgPool1d(2)", R(2, 3, 6)),
    ("AvgPool2d(3,2,1,True,False)", R(2, 3, 6, 6)),
    ("AvgPool3d(2)", R(1, 2, 4, 4, 4)),
    ("LPPool1d(2,3)", R(2, 3, 6)),
    ("LPPool2d(2,3)", R(2, 3, 6, 6)),
    ("LPPool3d(2,3)", R(1, 3, 6, 6, 6)),
    ("AdaptiveAvgPool1d(4)", R(2, 3, 6)),
    ("AdaptiveAvgPool2d((2,None))", R(2, 3, 6, 6)),
    ("AdaptiveAvgPool3d(2)", R(1, 3, 6, 6, 6)),
    ("AdaptiveMaxPool1d(4)", R(2, 3, 6)),
    ("AdaptiveMaxPool2d(2)", R(2, 3, 6, 6)),
    ("AdaptiveMaxPool3d(2)", R(1, 3, 6, 6, 6)),
    ("ConstantPad1d(1,2)", R(2, 3)),
    ("ConstantPad2d(1,2.)", R(2, 3, 3)),
    ("ConstantPad3d(1,2.)", R(1, 2, 3, 3)),
    ("ZeroPad2d(1)", R(2, 3, 3)),
    ("ReflectionPad1d(1)", R(2, 3)),
    ("ReflectionPad2d(1)", R(2, 3, 3)),
    ("ReflectionPad3d(1)", R(2, 3, 3, 3)),
    ("ReplicationPad1d(1)", R(2, 3)),
    ("ReplicationPad2d(1)", R(2, 3, 3)),
    ("ReplicationPad3d(1)", R(2, 3, 3, 3)),
    ("CircularPad1d((1,2))", R(2, 3)),
    ("CircularPad2d(1)", R(2, 3, 3)),
    ("CircularPad3d(1)", R(2, 3, 3, 3)),
    ("L1Loss()", R(3, 4), R(3, 4)),
    ("MSELoss(reduction='sum')", R(3, 4), R(3, 4)),
    ("NLLLoss()", R(3, 4), N(4, 3)),
    ("CrossEntropyLoss(label_smoothing=.1)", R(3, 4), N(4, 3)),
    ("KLDivLoss()", R(3, 4), U(3, 4)),
    ("BCELoss()", U(3, 4), U(3, 4)),
    ("BCEWithLogitsLoss()", R(3, 4), U(3, 4)),
    ("HuberLoss()", R(3, 4), R(3, 4)),
    ("SmoothL1Loss()", R(3, 4), R(3, 4)),
    ("PoissonNLLLoss()", R(3, 4), R(3, 4)),
    ("GaussianNLLLoss()", R(3, 4), R(3, 4), U(3, 4)),
    ("GaussianNLLLoss(full=True)", R(3, 4), R(3, 4), U(1, 4)),
    ("HingeEmbeddingLoss()", R(3, 4), R(3, 4)),
    ("SoftMarginLoss()", R(3, 4), R(3, 4)),
    ("MultiLabelSoftMarginLoss()", R(3, 4), U(3, 4)),
    ("CosineEmbeddingLoss()", R(3, 4), R(3, 4), S(3)),
    ("MarginRankingLoss(.5)", R(3), R(3), S(3)),
    ("MultiMarginLoss()", R(3, 4), N(4, 3)),
    ("MultiLabelMarginLoss()", R(3, 4), N(4, 3, 4)),
    ("TripletMarginLoss()", R(3, 4), R(3, 4), R(3, 4)),
    ("TripletMarginWithDistanceLoss()", R(3, 4), R(3, 4), R(3, 4)),
    ("Upsample(scale_factor=2)", R(1, 2, 3, 3)),
    ("Upsample(size=5,mode='bilinear')", R(1, 2, 3, 3)),
    ("UpsamplingNearest2d(4)", R(1, 2, 3, 3)),
    ("UpsamplingBilinear2d(scale_factor=2)", R(1, 2, 3, 3)),
    ("PixelShuffle(2)", R(1, 4, 3, 3)),
    ("PixelUnshuffle(2)", R(1, 2, 4, 4)),
    ("ChannelShuffle(2)", R(1, 4, 3, 3)),
    ("Fold(4,2)", R(1, 8, 9)),
    ("Unfold(2)", R(1, 2, 4, 4)),
    ("CosineSimilarity()", R(3, 4), R(3, 4)),
    ("PairwiseDistance()", R(3, 4), R(3, 4)),
    ("Flatten()", R(2, 3, 4)),
    ("Unflatten(1,(2,3))", R(2, 6)),
    ("MultiheadAttention(4,2)", R(3, 2, 4), R(5, 2, 4), R(5, 2, 4)),
    (
        "MultiheadAttention(4,2,kdim=3,vdim=5,add_bias_kv=True,add_zero_attn=True,batch_first=True)",
        R(3, 2, 4),
        R(3, 4, 3),
        R(3, 4, 5),
    ),
    ("TransformerEncoderLayer(4,2,8,dropout=0.)", R(3, 2, 4)),
    ("TransformerDecoderLayer(4,2,8,dropout=0.,norm_first=True,activation='gelu')", R(3, 2, 4), R(5, 2, 4)),
    ("TransformerEncoder(nn.TransformerEncoderLayer(4,2,8,0.,batch_first=True),2)", R(2, 3, 4)),
    ("Transformer(4,2,1,1,8,0.)", R(3, 2, 4), R(5, 2, 4)),
    ("RNN(2,3)", R(4, 2, 2)),
    ("RNN(2,3,nonlinearity='relu',bidirectional=True,num_layers=2)", R(4, 2, 2)),
    ("LSTM(2,3,2,batch_first=True,bidirectional=True)", R(4, 2, 2)),
    ("LSTM(2,3,proj_size=2)", R(4, 2)),
    ("GRU(2,3,2)", R(4, 2, 2)),
    ("GRU(2,3,bias=False)", R(4, 2, 2)),
    ("RNNCell(2,3)", R(4, 2)),
    ("LSTMCell(2,3)", R(4, 2)),
    ("GRUCell(2,3)", R(2)),
    ("AdaptiveLogSoftmaxWithLoss(8,20,[5,10],div_value=2.)", R(6, 8), N(20, 6)),
    ("LazyLinear(3)", R(2, 5)),
    ("LazyConv2d(3,2)", R(2, 2, 4, 4)),
    ("LazyConvTranspose1d(3,2)", R(2, 2, 4)),
    ("LazyBatchNorm2d()", R(2, 3, 2, 2)),
    ("LinearCrossEntropyLoss(3,4)", R(2, 3), N(4, 2)),
    ("Dropout(0.)", R(2, 3)),
    ("Sequential(nn.Linear(3,4),nn.ReLU(),nn.Linear(4,1))", R(2, 3)),
]

REPRS = [
    "BatchNorm2d(3)",
    "BatchNorm2d(3,bias=False)",
    "BatchNorm1d(3,affine=False)",
    "InstanceNorm2d(3)",
    "LayerNorm((2,3))",
    "LayerNorm(3,bias=False)",
    "LayerNorm(3,elementwise_affine=False)",
    "RMSNorm(3)",
    "GroupNorm(2,4)",
    "GroupNorm(2,4,affine=False)",
    "GroupNorm(2,4,bias=False)",
    "LocalResponseNorm(2)",
    "CrossMapLRN2d(2)",
    "Embedding(3,4)",
    "Embedding(3,4,padding_idx=1,max_norm=2.,norm_type=1.,scale_grad_by_freq=True,sparse=True)",
    "EmbeddingBag(3,4)",
    "EmbeddingBag(3,4,max_norm=1.,mode='sum',padding_idx=0,sparse=True,scale_grad_by_freq=True,norm_type=3.)",
    "Dropout()",
    "Dropout2d(0.3,True)",
    "AlphaDropout()",
    "FeatureAlphaDropout()",
    "Threshold(1,2)",
    "Threshold(1,2,True)",
    "ReLU()",
    "ReLU(True)",
    "RReLU()",
    "RReLU(inplace=True)",
    "Hardtanh()",
    "Hardtanh(inplace=True)",
    "ReLU6()",
    "ReLU6(True)",
    "Sigmoid()",
    "Hardsigmoid()",
    "Hardsigmoid(True)",
    "Tanh()",
    "SiLU()",
    "SiLU(True)",
    "Mish()",
    "Mish(True)",
    "Hardswish()",
    "Hardswish(True)",
    "ELU()",
    "ELU(2,True)",
    "CELU()",
    "CELU(2.,True)",
    "SELU()",
    "SELU(True)",
    "GLU()",
    "GELU()",
    "GELU('tanh')",
    "Hardshrink()",
    "LeakyReLU()",
    "LeakyReLU(0.2,True)",
    "LogSigmoid()",
    "Softplus()",
    "Softshrink()",
    "PReLU()",
    "PReLU(3)",
    "Softsign()",
    "Tanhshrink()",
    "Softmin(1)",
    "Softmax(1)",
    "Softmax()",
    "Softmax2d()",
    "LogSoftmax(1)",
    "MaxPool2d(2)",
    "MaxPool1d(2,return_indices=True)",
    "MaxUnpool2d(2)",
    "AvgPool1d(2)",
    "AvgPool2d(2)",
    "AvgPool3d(2)",
    "FractionalMaxPool2d(2,output_ratio=.5)",
    "FractionalMaxPool3d(2,3)",
    "LPPool2d(2,3)",
    "LPPool1d(2,3,stride=2)",
    "AdaptiveAvgPool2d((2,None))",
    "AdaptiveMaxPool2d(2)",
    "ConstantPad1d(1,2)",
    "ConstantPad2d(1,2.)",
    "ZeroPad2d(1)",
    "ReflectionPad2d(1)",
    "ReplicationPad3d(1)",
    "CircularPad1d((1,2))",
    "ZeroPad1d(2)",
    "L1Loss()",
    "NLLLoss()",
    "CrossEntropyLoss()",
    "BCELoss()",
    "MSELoss(reduction='sum')",
    "KLDivLoss()",
    "CTCLoss()",
    "HuberLoss()",
    "SmoothL1Loss()",
    "PoissonNLLLoss()",
    "GaussianNLLLoss()",
    "TripletMarginLoss()",
    "MultiMarginLoss()",
    "Upsample(scale_factor=2)",
    "Upsample(size=3,mode='bilinear')",
    "UpsamplingNearest2d(2)",
    "UpsamplingBilinear2d(scale_factor=2)",
    "PixelShuffle(2)",
    "PixelUnshuffle(2)",
    "ChannelShuffle(2)",
    "Fold(2,3)",
    "Unfold(2)",
    "CosineSimilarity()",
    "PairwiseDistance()",
    "Flatten()",
    "Unflatten(1,(2,3))",
    "MultiheadAttention(4,2)",
    "TransformerEncoderLayer(4,2,8)",
    "TransformerDecoderLayer(4,2,8)",
    "TransformerEncoder(nn.TransformerEncoderLayer(4,2,8,batch_first=True),2)",
    "RNN(2,3)",
    "LSTM(2,3,2,bias=False,batch_first=True,dropout=.1,bidirectional=True)",
    "LSTM(2,3,proj_size=2)",
    "GRU(2,3)",
    "RNNCell(2,3)",
    "RNNCell(2,3,nonlinearity='relu',bias=False)",
    "LSTMCell(2,3)",
    "GRUCell(2,3)",
    "AdaptiveLogSoftmaxWithLoss(8,20,[5,10])",
    "LazyLinear(3)",
    "LazyConv2d(3,2)",
    "LazyBatchNorm2d()",
    "SyncBatchNorm(3)",
    "LinearCrossEntropyLoss(3,4)",
    "HingeEmbeddingLoss()",
    "TripletMarginWithDistanceLoss()",
    "Transformer(4,2,1,1,8).decoder",
]


def make(spec, rng):
    kind, shape, *high = spec
    if kind == "normal":
        return rng.standard_normal(shape).astype("float32")
    if kind == "uniform":
        return rng.uniform(0.05, 0.95, shape).astype("float32")
    if kind == "signs":
        return np.sign(rng.standard_normal(shape)).astype("float32")
    return rng.integers(0, high[0], shape)


def tensors(x):
    if isinstance(x, (tuple, list)):
        return [t for y in x for t in tensors(y)]
    return [] if x is None else [x]


@pytest.mark.parametrize("layer,specs", [(name, specs) for name, *specs in LAYERS], ids=[row[0] for row in LAYERS])
def test_layer(layer, specs):
    rng = np.random.default_rng(0)
    arrays = [make(spec, rng) for spec in specs]

    def run(torch):
        torch.manual_seed(0)
        module = eval("nn." + layer, {"nn": torch.nn})
        inputs = [
            torch.tensor(a).requires_grad_(s[0] == "normal" and k == 0) for k, (a, s) in enumerate(zip(arrays, specs))
        ]
        seen = []
        for _ in range(2):
            out = tensors(module(*[t * 1 if t.is_floating_point() else t for t in inputs]))
            loss = sum((o * o).sum() for o in out if o.is_floating_point())
            if loss.requires_grad:
                loss.backward()
            seen += [o.detach() for o in out]
        seen += [t.grad for t in inputs if t.grad is not None]
        seen += [p.grad for p in module.parameters() if p.grad is not None]
        seen += [b.clone() for b in module.buffers()]
        module.eval()
        seen += [o.detach() for o in tensors(module(*[t.detach().clone() for t in inputs]))]
        return [repr(module), list(module.state_dict()), *seen]

    # two steps of sums in another order; measured on recurrent layers and transformers
    both(run, layout=False, least=(2e-4, 2e-5))


@pytest.mark.parametrize("layer", REPRS)
def test_repr_and_start(layer):
    def run(torch):
        torch.manual_seed(0)
        module = eval("nn." + layer, {"nn": torch.nn})
        lazy = "Lazy" in layer
        state = module.state_dict()
        return [repr(module), list(state), str(state._metadata), [] if lazy else [v.detach() for v in state.values()]]

    both(run)


@pytest.mark.parametrize("t", [jtorch, torch], ids=["jtorch", "torch"])
@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (lambda nn: nn.ReLU(), "relu"),
        (lambda nn: nn.Hardswish(), "hardswish"),
        (lambda nn: nn.Dropout2d(), "dropout2d"),
        (lambda nn: nn.Conv2d(4, 2, 2), "conv2d"),
        (lambda nn: nn.ConvTranspose2d(4, 2, 2), "conv_transpose2d"),
        (lambda nn: nn.MaxPool2d(2), "max_pool2d"),
        (lambda nn: nn.AvgPool2d(2), "avg_pool2d"),
        (lambda nn: nn.LPPool2d(2, 2), "lp_pool2d"),
        (lambda nn: nn.AdaptiveAvgPool2d(2), "adaptive_avg_pool2d"),
        (lambda nn: nn.AdaptiveMaxPool2d(2), "adaptive_max_pool2d"),
        (lambda nn: nn.FractionalMaxPool2d(2, output_size=3), "fractional_max_pool2d"),
    ],
)
def test_layers_call_what_a_program_puts_in_place_of_their_function(t, layer, function, monkeypatch):
    """As counters of operations do."""
    monkeypatch.setattr(t.nn.functional, function, lambda *args, **kwargs: "mine")
    assert layer(t.nn)(t.ones(1, 4, 8, 8)) == "mine"
