"""What products of matrices and what convolutions PyTorch computes an op with, forward and backward. Shapes only.

A product is (the name of PyTorch's operator, the shapes it is called with, the shape of its result).
"""

from math import prod

import opt_einsum


def _mm(a, b, name="mm"):
    return name, (a, b), (*a[:-1], b[-1])


def _turned(shape):
    return (*shape[:-2], shape[-1], shape[-2])


def _both(a, b, needs, names=("input", "other"), name="mm"):
    """The products of the gradients of a @ b."""
    out = (*a[:-1], b[-1])
    found = []
    if names[0] in needs:
        found.append(_mm(out, _turned(b), name))
    if names[1] in needs:
        found.append(_mm(_turned(a), out, name))
    return found


def _linear(out, input, weight, bias=None, needs=None):
    if len(weight) == 1 or len(input) == 1 and bias is None:
        return []  # a product with a vector, which is not counted
    rows, right = (prod(input[:-1]), input[-1]), _turned(weight)
    if needs is not None:
        return _both(rows, right, needs, ("input", "weight"))
    name, shapes, result = _mm(rows, right)
    return [(name, shapes, result)] if bias is None else [("addmm", (bias, *shapes), result)]


def _matmul(out, input, other, needs=None, **_):
    if len(input) == 1 or len(other) == 1:
        return []
    if len(input) == 2 or len(other) == 2:  # the batch is rows, or columns, of one product
        name = "mm"
        if len(input) == 2:
            input, other = _turned(other), _turned(input)
            needs = needs and {{"input": "other", "other": "input"}[n] for n in needs}
        a, b = (prod(input[:-1]), input[-1]), other
    else:
        name, batch = "bmm", prod(out[:-2])
        a, b = (batch, *input[-2:]), (batch, *other[-2:])
    return [_mm(a, b, name)] if needs is None else _both(a, b, needs, name=name)


def _added(first, second, needs):
    """addmm, addbmm, baddbmm: what is added is no product. Forward, PyTorch counts the first and the last as themselves."""
    names = ("mat1", "mat2") if len(first) == 2 else ("batch1", "batch2")
    return [] if needs is None else _both(first, second, needs, names, "mm" if len(first) == 2 else "bmm")


def _addmm(out, input, mat1, mat2, needs=None, **_):
    return _added(mat1, mat2, needs)


def _addbmm(out, input, batch1, batch2, needs=None, **_):
    return _added(batch1, batch2, needs)


def _convolution(transposed):
    def products(out, input, weight, bias=None, *rest, needs=None, **_):
        batched = len(input) == len(weight)
        x, y = (input, out) if batched else ((1, *input), (1, *out))
        plain = (None, None, None, transposed, None, None)
        if needs is None:
            return [("convolution", (x, weight, bias, *plain), y)]
        mask = ["input" in needs, "weight" in needs, "bias" in needs]
        return [("convolution_backward", (y, x, weight, None, *plain, mask), None)]

    return products


def _attention(
    out, query, key=None, value=None, *rest, keys=None, needs=None, **_
):  # `key` beside `keys` is of dropout
    batch = prod(query[:-2])
    q, k, v = ((batch, *shape[-2:]) for shape in (query, key if keys is None else keys, value))
    scores, result = (batch, q[1], k[1]), (batch, q[1], v[2])
    if needs is None:
        return [_mm(q, _turned(k), "bmm"), _mm(scores, v, "bmm")]
    by_scores = _as(needs, "query", "input") | _as(needs, "key", "other") | _as(needs, "keys", "other")
    found = _both(q, _turned(k), by_scores, name="bmm")
    if by_scores or "attn_mask" in needs:
        found.append(_mm(result, _turned(v), "bmm"))
    return found + ([_mm(_turned(scores), result, "bmm")] if "value" in needs else [])


def _as(needs, name, other):
    return {other} if name in needs else set()


def _einsum(out, equation, operands, needs=None, **_):
    named, result, _ = opt_einsum.parser.parse_einsum_input((equation, *operands), shapes=True)
    terms = [set(t) for t in named.split(",")]
    sizes = {
        c: max(n for t, s in zip(named.split(","), operands) for d, n in zip(t, s) if d == c)
        for c in set().union(*terms)
    }
    path = [(0, 1)] * (len(terms) - 1)
    if len(terms) > 2:
        path = opt_einsum.contract_path(equation, *operands, shapes=True)[0]
    wanted = [needs is not None and ("operands", k) in needs for k in range(len(terms))]
    found = []
    for pair in path:
        pair = sorted(pair, reverse=True)
        taken, needed = [terms.pop(k) for k in pair], [wanted.pop(k) for k in pair]
        if len(taken) < 2:
            terms += taken
            wanted += needed
            continue
        a, b = taken
        after = set(result).union(*terms)
        summed = (a & b) - after
        terms.append((a | b) & after)
        wanted.append(any(needed))
        if summed:
            left, right = (prod(sizes[c] for c in (x - y) & after) for x, y in ((a, b), (b, a)))
            batch, inner = prod(sizes[c] for c in a & b & after), prod(sizes[c] for c in summed)
            one = _mm((batch, left, inner), (batch, inner, right), "bmm")
            found += [one] * (1 if needs is None else sum(needed))
    return found


def _tensordot(out, a, b, dims=2, needs=None, **_):
    inner = prod(a[d] for d in dims[0]) if isinstance(dims, (tuple, list)) else prod(a[len(a) - dims :])
    left, right = (prod(a) // max(inner, 1), inner), (inner, prod(b) // max(inner, 1))
    return [_mm(left, right)] if needs is None else _both(left, right, needs, ("a", "b"))


def _multi_dot(out, tensors, needs=None, **_):
    shapes = list(tensors)
    if len(shapes[0]) == 1 or len(shapes[-1]) == 1:
        return []
    letters = [opt_einsum.get_symbol(k) for k in range(len(shapes) + 1)]
    terms = [a + b for a, b in zip(letters, letters[1:])]
    equation = f"{','.join(terms)}->{letters[0]}{letters[-1]}"
    needs = needs and {("operands", k) for _, k in needs}
    return [
        ("mm", tuple(s[1:] for s in shapes), shape[1:]) for _, shapes, shape in _einsum(out, equation, shapes, needs)
    ]


def _cell(out, input, hx, w_ih, w_hh, b_ih=None, b_hh=None, needs=None):
    hidden = hx[0] if isinstance(hx[0], tuple) else hx
    needs = needs and needs | {"hx" for n in needs if n[0] == "hx"}
    return _step(input, w_ih, b_ih, "input", "w_ih", needs) + _step(hidden, w_hh, b_hh, "hx", "w_hh", needs)


def _step(x, weight, bias, x_name, w_name, needs):
    if needs is not None:
        needs = _as(needs, x_name, "input") | _as(needs, w_name, "weight")
    return _linear(None, x, weight, bias, needs=needs)


def _layer(out, input, h0, w_ih, w_hh, b_ih=None, b_hh=None, *rest, needs=None, **_):
    found = _step(input, w_ih, b_ih, "input", "w_ih", needs)
    for t in range(input[0]):
        # The first step's hidden state is given, all others are results.
        there = needs and (needs | {"h"} if t or "h0" in needs else needs)
        found += _step(h0, w_hh, b_hh, "h", "w_hh", there)
    return found


def _lstm_layer(out, input, h0, c0, *weights, needs=None, **named):
    return _layer(out, input, h0, *weights, needs=needs, **named)


def _mm_or_bmm(out, input, mat2, needs=None, **_):
    return _both(input, mat2, needs, ("input", "mat2"), "mm" if len(input) == 2 else "bmm")


def _matrix_power(out, input, n, needs=None, **_):
    count = max(abs(n).bit_length() + abs(n).bit_count() - 2, 0)  # by squares
    square = (prod(input[:-2]), *input[-2:]) if len(input) > 2 else input
    return [_mm(square, square, "bmm" if len(input) > 2 else "mm")] * (count if needs is None else 2 * count)


FORWARD = {
    "power_of": _matrix_power,
    "linear": _linear,
    "matmul": _matmul,
    "mm": _mm_or_bmm,
    "bmm": _mm_or_bmm,
    "addmm": _addmm,
    "addbmm": _addbmm,
    "baddbmm": _addbmm,
    **{f"conv{n}d": _convolution(False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(True) for n in (1, 2, 3)},
    "attention": _attention,
    "attention_dropout": _attention,
    "einsum_of": _einsum,
    "tensordot": _tensordot,
    "multi_dot": _multi_dot,
    **{f"{kind}_cell": _cell for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu")},
    "lstm_layer": _lstm_layer,
    "gru_layer": _layer,
    "rnn_layer": _layer,
}


def of_node(node) -> list:
    """The products of the gradients that a node of the tape computes."""
    plan = node.bwd.forward
    made_of = FORWARD.get(plan.op.name) if plan.op is not None else None
    if made_of is None:
        return []
    wanted = {i for i, edge in enumerate(node.edges) if edge is not None}
    named, needs = {}, set()
    for param, (kind, what, *_) in zip(plan.op.params, plan.extra.slots):
        if kind == "o":
            named[param.name] = tuple(plan.operands[what].shape)
            if what in wanted:
                needs.add(param.name)
        elif kind == "l":
            named[param.name] = tuple(tuple(plan.operands[entry[1]].shape) for entry in what if entry[0] == "o")
            needs |= {(param.name, k) for k, entry in enumerate(what) if entry[0] == "o" and entry[1] in wanted}
        else:
            named[param.name] = what if kind == "s" else None
    return made_of(tuple(plan.specs[0].shape), needs=needs, **named)
