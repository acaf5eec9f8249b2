"""core/layout.py against torch: the algebra of layouts, overlap and the strides of view."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jtorch.core.layout import Layout, has_overlap, view_strides

torch = pytest.importorskip("torch")


def of(x):
    return Layout(tuple(x.shape), x.stride(), x.storage_offset())


def draw_tensor(draw, steps=4):
    """A tensor reached by a random chain of views of a fresh one."""
    x = torch.empty(draw(st.lists(st.sampled_from([1, 2, 3, 4, 4, 6]), max_size=4)))
    if draw(st.booleans()) and x.ndim == 4:
        x = x.to(memory_format=torch.channels_last)
    for _ in range(draw(st.integers(0, steps))):
        x = draw_view(draw, x)[1]
    return x


def draw_view(draw, x):
    """One random view as (what the layout says, what torch says)."""
    layout = of(x)
    kind = draw(st.sampled_from(["permute", "slice", "select", "expand", "unsqueeze", "squeeze", "unfold", "diagonal"]))
    if kind == "permute":
        order = draw(st.permutations(range(x.ndim)))
        return layout.permute(order), x.permute(order)
    if kind == "unsqueeze":
        dim = draw(st.integers(-x.ndim - 1, x.ndim))
        return layout.unsqueeze(dim), x.unsqueeze(dim)
    if kind == "squeeze":
        return layout.squeeze(), x.squeeze()
    if kind == "expand":
        lead = draw(st.lists(st.integers(0, 2), max_size=1))
        shape = (*lead, *(draw(st.sampled_from([3, -1])) if n == 1 else -1 for n in x.shape))
        return layout.expand(shape), x.expand(shape)
    if not x.ndim:
        return layout, x
    dim = draw(st.integers(0, x.ndim - 1))
    size = x.shape[dim]
    if kind == "slice":
        start, stop = (
            draw(st.integers(-size - 1, size + 1)),
            draw(st.none() | st.integers(-size - 1, size + 1)),
        )
        step = draw(st.sampled_from([1, 1, 2, 3]))
        index = (slice(None),) * dim + (slice(start, stop, step),)
        return layout.slice(dim, start, stop, step), x[index]
    if kind == "select" and size:
        index = draw(st.integers(-size, size - 1))
        return layout.select(dim, index), x.select(dim, index)
    if kind == "unfold":
        width, step = draw(st.integers(0, size)), draw(st.integers(1, 3))
        return layout.unfold(dim, width, step), x.unfold(dim, width, step)
    if kind == "diagonal" and x.ndim > 1:
        other = (dim + 1) % x.ndim
        offset = draw(st.integers(-size, size))
        return layout.diagonal(offset, dim, other), x.diagonal(offset, dim, other)
    return layout, x


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_algebra(data):
    ours, theirs = draw_view(data.draw, draw_tensor(data.draw))
    assert ours == of(theirs)


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_view(data):
    x = draw_tensor(data.draw)
    numel = x.numel()
    shape = [0] if numel == 0 else []
    for _ in range(4):
        n = data.draw(st.sampled_from([d for d in (1, 2, 3, 4, 6, 8, 12) if numel % d == 0]))
        shape.append(n)
        numel //= n
    shape.insert(data.draw(st.integers(0, 4)), numel)
    try:
        want = x.view(shape)
    except RuntimeError as e:
        assert "view size is not compatible" in str(e)
        assert view_strides(tuple(x.shape), x.stride(), tuple(shape)) is None
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            of(x).view(shape)
    else:
        assert of(x).view(shape) == of(want)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=4))
def test_overlap(dims):
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    spots = np.zeros(1, int)
    for n, s in dims:
        spots = (spots[:, None] + s * np.arange(n)).reshape(-1)
    assert has_overlap(shape, strides) == (len(np.unique(spots)) < len(spots))
    layout = Layout(shape, strides, 5)
    assert layout.storage_size() == (spots.max() + 6 if len(spots) else 0)


def test_value():
    a, b = Layout((2, 3), (3, 1), 0), Layout.contiguous((2, 3))
    assert a == b and hash(a) == hash(b) and a != Layout((2, 3), (3, 1), 1)
    assert a.ndim == 2 and a.numel == 6 and a.dim(-1) == 1
    assert a.is_contiguous() and a.is_dense() and not a.permute((1, 0)).is_contiguous()
    assert Layout((2, 3, 4, 5), (60, 1, 15, 3), 0).is_channels_last()
    with pytest.raises(AttributeError):
        a.offset = 3
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        a.dim(2)
