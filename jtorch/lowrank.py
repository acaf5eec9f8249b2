"""Randomised factorisations of low rank: torch.svd_lowrank and torch.pca_lowrank."""

from . import creation
from .functions import lookup


def _basis(A, q, niter):
    """An orthonormal basis of (nearly) the range of A, from q random vectors and `niter` power iterations.

    All matrices of a batch start from the same vectors, as in PyTorch.
    """
    qr = lookup("linalg", "qr")
    R = creation.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
    Q = qr(A @ R)[0]
    for _ in range(niter):
        Q = qr(A.mH @ Q)[0]
        Q = qr(A @ Q)[0]
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S and V of a matrix of low rank q, less M if given."""
    A = A if M is None else A - M
    m, n = A.shape[-2:]
    wide = m < n
    Q = _basis(A.mH if wide else A, q, niter)
    B = (A @ Q).mH if wide else Q.mH @ A
    U, S, Vh = lookup("linalg", "svd")(B, False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A: `svd_lowrank`, columns centred unless told otherwise."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
