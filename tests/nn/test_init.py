"""nn.init: the same seed gives the same numbers as torch."""

import pytest

from tests.oracle import both

FILLS = {
    "uniform": lambda i, w: i.uniform_(w, -1, 2),
    "normal": lambda i, w: i.normal_(w, 1, 2),
    "trunc_normal": lambda i, w: i.trunc_normal_(w),
    "trunc_normal narrow": lambda i, w: i.trunc_normal_(w, 0, 1, 0.1, 0.3),
    "constant": lambda i, w: i.constant_(w, 3),
    "ones": lambda i, w: i.ones_(w),
    "zeros": lambda i, w: i.zeros_(w),
    "eye": lambda i, w: i.eye_(w),
    "xavier_uniform": lambda i, w: i.xavier_uniform_(w, 2),
    "xavier_normal": lambda i, w: i.xavier_normal_(w),
    "kaiming_uniform": lambda i, w: i.kaiming_uniform_(w, a=1, mode="fan_out"),
    "kaiming_normal": lambda i, w: i.kaiming_normal_(w, nonlinearity="relu"),
    "orthogonal": lambda i, w: i.orthogonal_(w, 2),
    "orthogonal wide": lambda i, w: i.orthogonal_(w.t()),
    "sparse": lambda i, w: i.sparse_(w, 0.3),
    "dirac": lambda i, w: i.dirac_(w.view(4, 2, 3), 2),
}
ERRORS = {
    "gain": lambda i, t: i.calculate_gain("x"),
    "slope": lambda i, t: i.calculate_gain("leaky_relu", True),
    "eye": lambda i, t: i.eye_(t.ones(3)),
    "dirac": lambda i, t: i.dirac_(t.ones(3)),
    "fan": lambda i, t: i.xavier_uniform_(t.ones(3)),
    "mode": lambda i, t: i.kaiming_uniform_(t.ones(3, 3), mode="x"),
    "orthogonal": lambda i, t: i.orthogonal_(t.ones(3)),
    "sparse": lambda i, t: i.sparse_(t.ones(3), 0.1),
}


@pytest.mark.parametrize("name", FILLS)
def test_fill(name):
    def run(torch):
        torch.manual_seed(3)
        w = torch.nn.Parameter(torch.empty(6, 4))
        FILLS[name](torch.nn.init, w.data if " wide" in name or name == "dirac" else w)
        return w.detach(), torch.rand(2)

    both(run, layout=False)


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    assert both(lambda torch: ERRORS[name](torch.nn.init, torch)).error is not None


def test_gains():
    names = ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
    both(lambda torch: [torch.nn.init.calculate_gain(n) for n in names])
