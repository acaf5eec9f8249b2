"""Derivatives of products, of views and what moves elements, of reductions and layers, for tensors of classes with a
`__torch_dispatch__` (`outer_rules.py`)."""

import math

from ..core.shapes import wrap_dim
from .outer import op
from .outer_rules import rule
from .outer_terms import along, conj, count, div, left, mul, outer, product, right, shaped, spread, swapped, times

# products
rule(
    "mm(self, mat2)",
    self=lambda g, mat2, specs: left(g, mat2, specs["self"]),
    mat2=lambda g, self, specs: right(g, self, specs["mat2"]),
)
rule("addmm(self, mat1, mat2, *, beta=1, alpha=1)", self=lambda g, beta: times(g, beta),
      mat1=lambda g, mat2, specs, alpha: times(left(g, mat2, specs["mat1"]), alpha),
      mat2=lambda g, mat1, specs, alpha: times(right(g, mat1, specs["mat2"]), alpha))  # fmt: skip
rule(
    "bmm(self, mat2)",
    self=lambda g, mat2: op("bmm", g, swapped(mat2)),
    mat2=lambda g, self: op("bmm", swapped(self), g),
)
rule("baddbmm(self, batch1, batch2, *, beta=1, alpha=1)", self=lambda g, beta: times(g, beta),
      batch1=lambda g, batch2, alpha: times(op("bmm", g, swapped(batch2)), alpha),
      batch2=lambda g, batch1, alpha: times(op("bmm", swapped(batch1), g), alpha))  # fmt: skip
rule("mv(self, vec)", self=lambda g, vec: outer(g, vec), vec=lambda g, self: op("mv", op("t", conj(self)), g))
rule("addmv(self, mat, vec, *, beta=1, alpha=1)", self=lambda g, beta: times(g, beta),
      mat=lambda g, vec, alpha: times(outer(g, vec), alpha),
      vec=lambda g, mat, alpha: times(op("mv", op("t", conj(mat)), g), alpha))  # fmt: skip
rule("dot(self, tensor)", self=lambda g, tensor: mul(g, tensor), tensor=lambda g, self: mul(g, self))

# views and what only moves elements
for _name in ("view", "_unsafe_view", "reshape"):
    rule(f"{_name}(self, size)", self=lambda g, specs: shaped(g, specs["self"]))
rule("expand(self, size, *, implicit=False)", self=lambda g: g)
rule("permute(self, dims)", self=lambda g, dims: op("permute", g, _inverse(dims)))
rule("transpose(self, dim0, dim1)", self=lambda g, dim0, dim1: op("transpose.int", g, dim0, dim1))
rule("unsqueeze(self, dim)", self=lambda g, specs, dim: op("squeeze.dim", g, wrap_dim(dim, specs["self"].ndim + 1)))
rule("squeeze.dim(self, dim)", self=lambda g, specs, dim: _unsqueezed(g, specs["self"], [dim]))
rule("squeeze.dims(self, dim)", self=lambda g, specs, dim: _unsqueezed(g, specs["self"], dim))
rule(
    "select(self, dim, index)",
    self=lambda g, specs, dim, index: op("select_backward", g, list(specs["self"].shape), dim, index),
)
rule("slice(self, dim=0, start=None, end=None, step=1)", self=lambda g, specs, dim, start, end, step: op(
    "slice_backward", g, list(specs["self"].shape), dim, start or 0, specs["self"].shape[dim] if end is None else end, step))  # fmt: skip
rule("split(self, split_size, dim=0)", self=lambda gs, out_specs, dim: _joined(gs, out_specs, dim))
rule("split_with_sizes(self, split_sizes, dim=0)", self=lambda gs, out_specs, dim: _joined(gs, out_specs, dim))
rule("unbind(self, dim=0)", self=lambda gs, out_specs, dim: op("stack", _filled(gs, out_specs), dim))
rule("cat(tensors, dim=0)", tensors=lambda g, specs, dim: _pieces(g, specs["tensors"], dim))
rule("stack(tensors, dim=0)", tensors=lambda g, dim: list(op("unbind.int", g, dim)))
rule("flip(self, dims)", self=lambda g, dims: op("flip", g, dims))
rule("roll(self, shifts, dims=())", self=lambda g, shifts, dims: op("roll", g, _opposite(shifts), dims))
rule("tril(self, diagonal=0)", self=lambda g, diagonal: op("tril", g, diagonal))
rule("triu(self, diagonal=0)", self=lambda g, diagonal: op("triu", g, diagonal))
rule("repeat(self, repeats)", self=lambda g, specs, repeats: _folded(g, specs["self"], repeats))
rule("view_as_real(self)", self=lambda g: op("view_as_complex", g.contiguous()))
rule("view_as_complex(self)", self=lambda g: op("view_as_real", g))
rule("index(self, indices)", self=lambda g, specs, indices: op(
    "index_put", op("new_zeros", g, list(specs["self"].shape)), indices, g, True))  # fmt: skip
rule("index_put(self, indices, values, accumulate=False)",
      self=lambda g, indices, accumulate: g if accumulate else op("index_put", g, indices, op("new_zeros", g, []), False),
      values=lambda g, indices: op("index.Tensor", g, indices))  # fmt: skip
rule("index_select(self, dim, index)", self=lambda g, specs, dim, index: op(
    "index_add", op("new_zeros", g, list(specs["self"].shape)), dim, index, g))  # fmt: skip
rule("gather(self, dim, index, *, sparse_grad=False)", self=lambda g, specs, dim, index: op(
    "scatter_add", op("new_zeros", g, list(specs["self"].shape)), dim, index, g))  # fmt: skip
rule("scatter_add(self, dim, index, src)", self=lambda g: g, src=lambda g, dim, index: op("gather", g, dim, index))
rule("constant_pad_nd(self, pad, value=0)", self=lambda g, pad: op("constant_pad_nd", g, [-n for n in pad]))
rule("embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
      weight=lambda g, indices, specs, padding_idx, scale_grad_by_freq: op(
          "embedding_dense_backward", g, indices, specs["weight"].shape[0], padding_idx, scale_grad_by_freq))  # fmt: skip


def _inverse(dims):
    dims = [d % len(dims) for d in dims]
    return sorted(range(len(dims)), key=dims.__getitem__)


def _unsqueezed(g, spec, dims):
    for d in sorted(wrap_dim(d, spec.ndim) for d in dims):
        if spec.shape[d] == 1:
            g = op("unsqueeze", g, d)
    return g


def _filled(gs, specs):
    """The gradients of several results, zeros where there is none."""
    one = next(g for g in gs if g is not None)
    return [op("new_zeros", one, list(s.shape)) if g is None else g for g, s in zip(gs, specs)]


def _joined(gs, specs, dim):
    return op("cat", _filled(gs, specs), dim)


def _pieces(g, specs, dim):
    found, start = [], 0
    for spec in specs:
        n = spec.shape[dim] if spec.ndim > 1 or spec.shape[0] else 0
        found.append(op("slice.Tensor", g, dim, start, start + n))
        start += n
    return found


def _opposite(shifts):
    return [-s for s in shifts] if isinstance(shifts, (tuple, list)) else -shifts


def _folded(g, spec, repeats):
    """The sum of the copies that `repeat` made."""
    extra = len(repeats) - spec.ndim
    shape, dims = [], []
    for d, n in enumerate(repeats):
        dims.append(len(shape))
        shape += [n, 1 if d < extra else spec.shape[d - extra]]
    return op("view", op("sum.dim_IntList", op("view", g, shape), dims), list(spec.shape))


# reductions
for _name in ("max", "min"):
    rule(f"{_name}(self)", self=lambda g, self, out: _even(g, self, out), first=f"{_name.capitalize()}Backward1")
rule("sum(self, *, dtype=None)", self=lambda g, specs: op("expand", g, list(specs["self"].shape)))
rule("sum.dim_IntList(self, dim, keepdim=False, *, dtype=None)", first="SumBackward1",
      self=lambda g, specs, dim, keepdim: spread(g, specs["self"], dim, keepdim))  # fmt: skip
rule("mean(self, *, dtype=None)",
      self=lambda g, specs: div(op("expand", g, list(specs["self"].shape)), max(specs["self"].numel, 1)))  # fmt: skip
rule("mean.dim(self, dim, keepdim=False, *, dtype=None)", first="MeanBackward1",
      self=lambda g, specs, dim, keepdim: div(spread(g, specs["self"], dim, keepdim), count(specs["self"], dim)))  # fmt: skip
rule(
    "var(self, dim=None, *, correction=1, keepdim=False)",
    self=lambda g, self, dim, correction, keepdim: _of_var(g, self, dim, correction, keepdim),
)
rule("std(self, dim=None, *, correction=1, keepdim=False)",
      self=lambda g, self, out, dim, correction, keepdim: _of_var(div(g, mul(out, 2)), self, dim, correction, keepdim))  # fmt: skip
rule(
    "amax(self, dim=(), keepdim=False)", self=lambda g, self, out, dim, keepdim: _of_extreme(g, self, out, dim, keepdim)
)
rule(
    "amin(self, dim=(), keepdim=False)", self=lambda g, self, out, dim, keepdim: _of_extreme(g, self, out, dim, keepdim)
)
for _name in ("max", "min", "median"):
    rule(f"{_name}.dim(self, dim, keepdim=False)", flat=(1,),
          self=lambda g, specs, outs, dim, keepdim: _of_chosen(g, specs["self"], outs[1], dim, keepdim))  # fmt: skip
for _name in ("sort", "topk"):
    rule(f"{_name}(self, {'dim=-1, descending=False' if _name == 'sort' else 'k, dim=-1, largest=True, sorted=True'})", flat=(1,),
          self=lambda g, specs, outs, dim: _of_chosen(g, specs["self"], outs[1], dim, True))  # fmt: skip
rule("logsumexp(self, dim, keepdim=False)",
      self=lambda g, self, out, dim, keepdim: mul(_up(g, self, dim, keepdim), op("exp", op("sub.Tensor", self, _up(out, self, dim, keepdim)))))  # fmt: skip
rule("cumsum(self, dim, *, dtype=None)", self=lambda g, dim: op("flip", op("cumsum", op("flip", g, [dim]), dim), [dim]))
rule("linalg_vector_norm(self, ord=2, dim=None, keepdim=False, *, dtype=None)", first="LinalgVectorNormBackward0",
      self=lambda g, self, out, ord, dim, keepdim: _of_norm(g, self, out, ord, dim, keepdim))  # fmt: skip


def _even(g, self, out):
    """A gradient in equal parts to all that equal the extreme."""
    mask = op("eq.Tensor", self, out)
    return op("mul.Tensor", mask, op("div.Tensor", g, op("sum", mask)))


def _up(x, self, dim, keepdim):
    """A result of a reduction, with the dimensions that it was over of length 1."""
    if not keepdim and x._spec.ndim < self._spec.ndim:
        for d in along(dim, self._spec.ndim):
            x = op("unsqueeze", x, d)
    return x


def _of_var(g, self, dim, correction, keepdim):
    n = count(self._spec, dim) - (1 if correction is None else correction)
    mean = op("mean.dim", self, along(dim, self._spec.ndim), True)
    return product(_up(g, self, dim, keepdim), product(op("sub.Tensor", self, mean), 2 / n))


def _of_extreme(g, self, out, dim, keepdim):
    dims = along(dim or None, self._spec.ndim)
    mask = op("eq.Tensor", self, _up(out, self, dims, keepdim))
    return op(
        "div.Tensor", op("mul.Tensor", _up(g, self, dims, keepdim), mask), op("sum.dim_IntList", mask, dims, True)
    )


def _of_chosen(g, spec, indices, dim, keepdim):
    """What was picked along a dimension gets the gradient."""
    if g is None:
        return None
    if not keepdim:
        g, indices = op("unsqueeze", g, dim), op("unsqueeze", indices, dim)
    return op("scatter.src", op("new_zeros", g, list(spec.shape)), dim, indices, g)


def _of_norm(g, self, out, order, dim, keepdim):
    g, out = _up(g, self, dim, keepdim), _up(out, self, dim, keepdim)
    if order == 2:
        return op("masked_fill.Scalar", mul(self, op("div.Tensor", g, out)), op("eq.Scalar", out, 0), 0)
    if order == 1:
        return mul(op("sgn", self), g)
    if order in (math.inf, -math.inf):
        mask = op("eq.Tensor", op("abs", self), out)
        share = op("div.Tensor", g, op("sum.dim_IntList", mask, along(dim, self._spec.ndim), True))
        return op("mul.Tensor", op("mul.Tensor", op("sgn", self), mask), share)
    scaled = op("mul.Tensor", op("sgn", self), op("pow.Tensor_Scalar", op("abs", self), order - 1))
    return op(
        "masked_fill.Scalar",
        mul(scaled, op("div.Tensor", g, op("pow.Tensor_Scalar", out, order - 1))),
        op("eq.Scalar", out, 0),
        0,
    )


# layers and losses
rule("_softmax(self, dim, half_to_float)", first="SoftmaxBackward0",
      self=lambda g, out, specs, dim: op("_softmax_backward_data", g, out, dim, specs["self"].dtype))  # fmt: skip
rule("_log_softmax(self, dim, half_to_float)", first="LogSoftmaxBackward0",
      self=lambda g, out, specs, dim: op("_log_softmax_backward_data", g, out, dim, specs["self"].dtype))  # fmt: skip
rule("nll_loss_forward(self, target, weight, reduction, ignore_index)", flat=(1,), first="NllLossBackward0",
      self=lambda g, self, target, weight, reduction, ignore_index, outs: op(
          "nll_loss_backward", g, self, target, weight, reduction, ignore_index, outs[1]))  # fmt: skip
rule("native_layer_norm(input, normalized_shape, weight, bias, eps)", flat=(1, 2),
      together=lambda g, input, normalized_shape, weight, bias, outs: dict(zip(("input", "weight", "bias"), op(
          "native_layer_norm_backward", g, input, normalized_shape, outs[1], outs[2], weight, bias, [True, weight is not None, bias is not None]))))  # fmt: skip
rule("convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)",
      together=lambda g, input, weight, specs, stride, padding, dilation, transposed, output_padding, groups: dict(zip(
          ("input", "weight", "bias"), op("convolution_backward", g, input, weight,
                                          None if specs.get("bias") is None else list(specs["bias"].shape), stride, padding, dilation,
                                          transposed, output_padding, groups, [True, True, specs.get("bias") is not None]))))  # fmt: skip
