"""Ready-made parametrizations: orthogonal, weight norm, spectral norm."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.record import statistics
from jtorch.nn import functional as F
from jtorch.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from jtorch.nn.modules.module import Module
from jtorch.nn.utils import parametrize
from jtorch.nn.utils.spectral_norm import as_matrix
from jtorch.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _identity(n, like):
    return torch.eye(n, dtype=like.dtype, device=like.device)


def _is_orthogonal(q, eps=None):
    n, k = q.size(-2), q.size(-1)
    if eps is None:
        eps = 10.0 * n * torch.finfo(q.dtype).eps
    gram = q.mT.conj() @ q
    return bool(((gram - _identity(k, q)).abs() < eps).all())


def _make_orthogonal(a):
    """An orthogonal factor of `a`, unique by the signs of the triangular one."""
    q, r = torch.lookup("linalg", "qr")(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Maps any matrix to an orthogonal one."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        n, k = X.size(-2), X.size(-1)
        wide = n < k
        if wide:
            X, n, k = X.mT, k, n
        if self.orthogonal_map == "householder":
            vectors = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (vectors * vectors).sum(dim=-2))
            Q = torch.lookup("linalg", "householder_product")(vectors, tau)
            signs = X.diagonal(dim1=-2, dim2=-1).detach()  # 1 or -1, chosen once and not trained
            Q = Q * signs.trunc().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                zeros = torch.zeros((*X.shape[:-1], n - k), dtype=X.dtype, device=X.device)
                X = torch.cat([X, zeros], dim=-1)
            A = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                Q = torch.matrix_exp(A)
            else:
                eye = _identity(n, A)
                Q = torch.lookup("linalg", "solve")(eye - A * 0.5, eye + A * 0.5)
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base") and self.base is not None:
            Q = self.base @ Q
        return Q.mT if wide else Q

    @no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        initial = Q
        n, k = Q.size(-2), Q.size(-1)
        wide = n < k
        if wide:
            Q, n, k = Q.mT, k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map in ("cayley", "matrix_exp"):
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential "
                    "or the Cayley parametrizations when use_trivialization=False."
                )
            A, tau = torch.geqrf(Q)
            diagonal = A.diagonal(dim1=-2, dim2=-1).sign()
            A.diagonal(dim1=-2, dim2=-1).copy_(torch.where(tau == 0.0, -diagonal, diagonal))
            return A.mT if wide else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            noise = torch.randn(*Q.size()[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(torch.cat([Q, noise], dim=-1))
        self.base = Q
        # every map takes minus the identity to the identity, and the base does the rest
        minus = torch.zeros_like(initial)
        minus.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return minus


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a matrix (or a batch of them) orthogonal.

    Args:
        orthogonal_map: "matrix_exp" (square matrices), "cayley" or "householder" (others)
        use_trivialization: relative to the present value
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / torch.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight):
        return torch.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Split a parameter into length and direction (Salimans and Kingma, 2016)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def old_names(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(old_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            h, w = matrix.size()
            with no_grad():
                u = matrix.new_empty(h).normal_(0, 1)
                v = matrix.new_empty(w).normal_(0, 1)
                self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
                self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
                self._power_method(matrix, 15)

    @no_grad()
    @statistics()
    def _power_method(self, matrix, n):
        for _ in range(n):
            self._u.copy_(F.normalize(torch.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(torch.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()
        sigma = torch.vdot(u, torch.mv(matrix, v)) if u.is_complex() else torch.dot(u, torch.mv(matrix, v))
        return weight / sigma

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value (Miyato et al., 2018).

    Args:
        n_power_iterations: per access in training. Default: 1
        eps: in the normalisations. Default: 1e-12
        dim: the dimension of the outputs. Default: 0, or 1 for transposed convolutions
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
