"""Randomised factorisations of low rank: torch.svd_lowrank and torch.pca_lowrank."""

from . import random_tensors
from .functions import lookup


def _basis(A, q, niter):
    """An orthonormal basis of (nearly) the range of A, from q random vectors and `niter` power iterations.

    All matrices of a batch start from the same vectors, as in PyTorch.
    """
    qr = lookup("linalg", "qr")
    R = random_tensors.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)
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


def lobpcg(
    A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None,
    ortho_iparams=None, ortho_fparams=None, ortho_bparams=None,
):  # fmt: skip
    """The k largest (or smallest) eigenvalues and eigenvectors of a symmetric positive definite matrix A, or of A x = w B x.

    They are found directly, by eigh: the arguments that steer an iteration change nothing. ValueError: A has fewer than 3 k rows.
    """
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if m < 3 * k:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={k})"
        )
    eigh = lookup("linalg", "eigh")
    if B is None:
        values, vectors = eigh(A)
    else:
        solve = lookup("linalg", "solve_triangular")
        L = lookup("linalg", "cholesky")(B)
        values, vectors = eigh(solve(L, solve(L, A, upper=False).mH, upper=False))
        vectors = solve(L.mH, vectors, upper=True)
    if largest is None or largest:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :k], vectors[..., :k]
