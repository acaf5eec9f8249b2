"""Rows of jtorch/ops/activation.py."""

from .. import defined
from . import T, row

ROWS = [
    row("softmax"),
    row("log_softmax"),
    row("nn.functional.relu"),
    row("nn.functional.hardtanh"),
    row("nn.functional.relu6"),
    row("nn.functional.leaky_relu"),
    row("nn.functional.elu"),
    row("nn.functional.celu"),
    row("nn.functional.selu"),
    row("nn.functional.prelu"),
    row("nn.functional.gelu"),
    row("nn.functional.silu"),
    row("nn.functional.mish"),
    row("nn.functional.glu"),
    row("nn.functional.softplus"),
    row("nn.functional.logsigmoid"),
    row("nn.functional.tanhshrink"),
    row("nn.functional.softsign"),
    row("nn.functional.hardsigmoid"),
    row("nn.functional.hardswish"),
    row("nn.functional.hardshrink"),
    row("nn.functional.softshrink"),
    row("nn.functional.softmin"),
    row(
        "nn.functional.rrelu",
        only=defined.unless(lambda s: s.kwargs.get("training")),
        random=True,
    ),
    row(
        "nn.functional.gumbel_softmax",
        samples=[[T(3, 4)]],
        only=defined.nothing,
        random=True,
    ),
    row("nn.functional.softmax", samples=[[T(3, 4), 1], [T(3, 4), -1, {"dtype": None}]]),
    row("nn.functional.log_softmax", samples=[[T(3, 4), 1]]),
]
