"""Rows of jtorch/ops/draws.py. What they draw and its derivatives are tested in tests/ops/test_kernels_draws.py."""

from . import PROPERTIES, T, row

POSITIVE = dict(skip=PROPERTIES, why="PyTorch's own kernel does not end for negative concentrations, which T makes")

ROWS = [
    row("_standard_gamma", samples=[[T(3)]], **POSITIVE),
    row("_standard_gamma_grad", samples=[[T(3), T(3)]], **POSITIVE),
    row("_sample_dirichlet", samples=[[T(3)]], **POSITIVE),
    row("_dirichlet_grad", samples=[[T(3), T(3), T(3)]], **POSITIVE),
]
