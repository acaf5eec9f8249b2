"""core/shapes.py against torch: broadcasting, -1, dims and the strides of results."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jtorch.core import shapes

torch = pytest.importorskip("torch")

sizes = st.lists(st.sampled_from([0, 1, 1, 2, 2, 3, 4]), min_size=0, max_size=5).map(tuple)


def same_error(ours, theirs):
    """Both give the same value, or both raise the same type and first line."""
    try:
        want = theirs()
    except (RuntimeError, IndexError, ValueError) as e:
        with pytest.raises(type(e)) as got:
            ours()
        assert str(got.value).splitlines()[0] == str(e).splitlines()[0]
    else:
        assert ours() == want


@given(st.lists(sizes, min_size=1, max_size=3))
def test_broadcast(operands):
    def theirs():
        out = torch.empty(operands[0])
        for s in operands[1:]:
            out = out + torch.empty(s)
        return tuple(out.shape)

    same_error(lambda: shapes.broadcast(*operands), theirs)


@given(sizes)
def test_contiguous_strides(shape):
    assert shapes.contiguous_strides(shape) == torch.empty(shape).stride()


@given(st.lists(st.integers(0, 3), min_size=4, max_size=5).map(tuple))
def test_channels_last_strides(shape):
    fmt = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x = torch.empty(shape, memory_format=fmt)
    assert shapes.channels_last_strides(shape) == x.stride()


@given(
    st.lists(st.sampled_from([-2, -1, -1, 0, 1, 2, 3, 6]), max_size=4).map(tuple),
    st.sampled_from([0, 1, 6, 7, 12]),
)
def test_infer_size(shape, numel):
    same_error(lambda: shapes.infer_size(shape, numel), lambda: tuple(torch.empty(numel).reshape(shape).shape))


@given(st.integers(-5, 5), st.integers(0, 4))
def test_wrap_dim(dim, ndim):
    def theirs():
        torch.empty((1,) * ndim).transpose(dim, dim)
        return dim % max(ndim, 1)

    same_error(lambda: shapes.wrap_dim(dim, ndim), theirs)


@given(sizes.filter(bool), st.data(), st.booleans())
def test_reduced_shape(shape, data, keepdim):
    dims = tuple(data.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3)))
    x = torch.empty(shape)
    same_error(
        lambda: shapes.reduced_shape(shape, shapes.wrap_dims(dims, len(shape)), keepdim),
        lambda: tuple(x.sum(dims, keepdim=keepdim).shape),
    )


def laid_out(draw, shape):
    """A tensor that broadcasts to `shape`: permuted, sliced, expanded, or short of leading dimensions."""
    own = tuple(1 if draw(st.integers(0, 5)) == 0 else n for n in shape)
    own = own[draw(st.sampled_from([0, 0, 0, 1, len(own)])) :]
    order = draw(st.permutations(range(len(own))))
    steps = [draw(st.sampled_from([1, 1, 1, 2])) for _ in own]
    x = torch.empty([own[d] * steps[d] for d in order])
    x = x.permute(sorted(range(len(own)), key=lambda d: order[d]))
    for d, step in enumerate(steps):
        x = x[(slice(None),) * d + (slice(None, None, step),)]
    if draw(st.integers(0, 3)) == 0:
        x = x.expand(shape)
    elif len(own) == len(shape) and draw(st.integers(0, 3)) == 0:
        # strides of dimensions of size 1 are arbitrary, and count
        strides = [draw(st.sampled_from([s, 0, 1, 2, 100])) if n == 1 else s for n, s in zip(own, x.stride())]
        x = x.as_strided(own, strides)
    assert all(a == b or a == 1 for a, b in zip(x.shape, shape[len(shape) - x.ndim :]))
    return x


@settings(max_examples=500, deadline=None)
@given(st.data(), sizes, st.integers(1, 3))
def test_elementwise_strides(data, shape, count):
    operands = [laid_out(data.draw, shape) for _ in range(count)]
    if count == 1:
        got = torch.neg(*operands)
    elif count == 2:
        got = torch.mul(*operands)
    else:
        got = torch.addcmul(*operands)
    want = shapes.elementwise_strides(tuple(got.shape), [(tuple(x.shape), x.stride()) for x in operands])
    assert want == got.stride()


@settings(max_examples=300, deadline=None)
@given(st.data(), sizes)
def test_empty_like_strides(data, shape):
    x = laid_out(data.draw, shape)
    assert shapes.empty_like_strides(tuple(x.shape), x.stride()) == torch.empty_like(x).stride()
    assert shapes.is_contiguous(tuple(x.shape), x.stride()) == x.is_contiguous()
