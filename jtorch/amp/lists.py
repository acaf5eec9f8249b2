"""Which ops autocast runs in the lower precision, which in float32, and which in the widest dtype of their operands."""

import math

_LOWER = frozenset(
    """addbmm addmm affine_grid_generator attention attention_dropout baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d
    conv_transpose2d conv_transpose3d einsum_of gru_cell linear lstm_cell lstm_layer lstm_projected_layer matmul mm multi_dot power_of prelu rnn_layer rnn_relu_cell rnn_tanh_cell
    vecdot""".split()
)

_LOSSES = """binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_alignments hinge_embedding_loss huber_loss kl_div
l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss
soft_margin_loss triplet_margin_loss"""
LOWER = {"cpu": _LOWER | {"tensordot"}, "cuda": _LOWER | {"addmv", "addr", "gru_layer", "mv"}}

_DECOMPOSITIONS = """cholesky_and_info cond eig_and_info eigh eigvals_and_info eigvalsh geqrf linalg_qr least_squares matrix_rank qr solve_and_info
svd_and_info svd_with_v svd_without_vectors svdvals_and_info tensorinv_and_info triangular_solve"""
_FOURIER = " ".join(f"fft_{kind}fft{n}" for kind in ("", "i", "r", "ir", "h", "ih") for n in ("", "2", "n"))

FLOAT32 = {
    "cpu": frozenset(
        f"""{_LOSSES} {_DECOMPOSITIONS} {_FOURIER} stft_of adaptive_max_pool3d adaptive_avg_pool3d avg_pool3d binary_cross_entropy cdist cholesky_inverse_of cholesky_of cholesky_solve
        fractional_max_pool2d_at fractional_max_pool3d_at grid_sample householder_product inv_and_info lu_solve max_pool3d max_unpool1d
        max_unpool2d max_unpool3d nanquantile ormqr pad pinv polar prod quantile response_norm
        trace""".split()
    ),
    "cuda": frozenset(
        f"""{_LOSSES} acos asin cdist cosh cosine_similarity cumprod cumsum erfinv exp expm1 group_norm layer_norm log log10
        log1p log2 log_softmax logsumexp native_layer_norm norm pdist pow prod reciprocal renorm response_norm rsqrt sinh softmax
        softplus sum tan vector_norm""".split()
    ),
}

WIDEST = {
    "cpu": frozenset(("cat", "stack", "index_copy")),
    "cuda": frozenset(
        """addcdiv addcmul atan2 bilinear cat dot grid_sample index_put scatter_add stack tensordot vdot""".split()
    ),
}


def _contracts(equation, operands):
    """Whether an einsum sums over what two of its operands share: what only multiplies is no matrix product."""
    terms, _, result = equation.replace(" ", "").partition("->")
    terms = [set(t.replace(".", "")) for t in terms.split(",")]
    shared = {c for t in terms for c in t if sum(c in other for other in terms) > 1}
    return not shared <= set(result)


def _leaves_some(a, b, dims=2):
    """Whether a tensordot has more than one product left: PyTorch takes `dot` otherwise."""
    if isinstance(dims, int):
        dims = range(-dims, 0), range(dims)
    return any(x.numel() != math.prod(x.shape[int(d)] for d in ds) for x, ds in zip((a, b), dims))


def _by_values(input, pad, mode="constant", value=None):
    """Whether a `pad` is one of those that PyTorch has no kernel in lower precision for."""
    return mode == "replicate" or mode == "reflect" and len(pad) < 6


# Ops that are what their list says with some arguments only.
ONLY_IF = {
    "einsum_of": _contracts,
    "max_pool3d": lambda input, size, stride=None, padding=0, dilation=1, ceil=False, indices=False: not indices,
    "pad": _by_values,
    "power_of": lambda input, n: n > 1,
    "response_norm": lambda input, *more: input.ndim != 3,
    "tensordot": _leaves_some,
}
