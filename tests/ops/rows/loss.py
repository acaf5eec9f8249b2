"""Rows of jtorch/ops/loss.py."""

from . import row

ROWS = [
    row("nn.functional.nll_loss"),
    row("nn.functional.cross_entropy"),
    row("nn.functional.mse_loss"),
    row("nn.functional.l1_loss"),
    row("nn.functional.smooth_l1_loss"),
    row("nn.functional.huber_loss"),
    row("nn.functional.binary_cross_entropy"),
    row("nn.functional.binary_cross_entropy_with_logits"),
    row("nn.functional.kl_div"),
    row("nn.functional.poisson_nll_loss"),
    row("nn.functional.gaussian_nll_loss"),
    row("nn.functional.hinge_embedding_loss"),
    row("nn.functional.margin_ranking_loss"),
    row("nn.functional.cosine_embedding_loss"),
    row("nn.functional.triplet_margin_loss"),
    row("nn.functional.multi_margin_loss"),
    row("nn.functional.multilabel_margin_loss"),
    row("nn.functional.multilabel_soft_margin_loss"),
    row("nn.functional.soft_margin_loss"),
    row("nn.functional.triplet_margin_with_distance_loss"),
]
