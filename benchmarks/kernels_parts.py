"""What single kernels are worth that have a lowering of their own for the CPU: each beside the form that anyone would write in JAX.

Milliseconds by the wall clock, medians of interleaved runs in one process.

    python benchmarks/kernels_parts.py [a word of the names]
"""

import sys
import time

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

from jtorch.autograd import derive_views  # noqa: E402
from jtorch.core import folds, hasty, strided  # noqa: E402
from jtorch.core.channel_order import stored_order  # noqa: E402
from jtorch.ops import (  # noqa: E402
    adaptive_pool,
    angles,
    batchnorm,
    compare,
    conv,
    distances,
    einsum,
    image,
    join,
    linalg,
    linear,
    masks,
    matmul,
    norm,
    order,
    pool,
    quotients,
    reduce,
    scans,
    scatter,
    slices,
    solve,
    sorting,
    special,
    taps,
    transcendental,
    vectors,
)  # fmt: skip

DRAW = np.random.default_rng(0)


def real(*shape):
    return DRAW.standard_normal(shape).astype(np.float32)


def whole(high, *shape):
    return DRAW.integers(0, high, shape)


def convolved(x, w):
    return lax.conv_general_dilated(x, w, (1,) * (x.ndim - 2), "VALID")


filtered = stored_order(lambda x, w: conv._conv(x, w, None, 1, 0, 1, 1))


def system(count, n):
    return real(count, n, n) + 4 * np.eye(n, dtype=np.float32)


def columns(x, k):
    """The windows under each tap, stacked: unfold of k by k side by side."""
    at = [(i, j) for i in range(k) for j in range(k)]
    return jnp.stack([x[:, :, i::k, j::k] for i, j in at], 2).reshape(x.shape[0], x.shape[1] * k * k, -1)


def windows_added(cols, k, size):
    parts = cols.reshape(cols.shape[0], -1, k, k, size // k, size // k)
    out = jnp.zeros((*parts.shape[:2], size, size), cols.dtype)
    for i in range(k):
        for j in range(k):
            out = out.at[:, :, i::k, j::k].add(parts[:, :, i, j])
    return out


def group_norm(x, w, b, groups, eps=1e-5):
    """Of channels-last values."""
    n, c = x.shape[0], x.shape[-1]
    y = x.reshape(n, -1, groups, c // groups)
    mean, var = jnp.mean(y, (1, 3), keepdims=True), jnp.var(y, (1, 3), keepdims=True)
    return ((y - mean) * lax.rsqrt(var + eps)).reshape(x.shape) * w + b


def last(fn):
    """A kernel of channels-first values on such as have them last."""
    return lambda x, *rest: jnp.moveaxis(fn(jnp.moveaxis(x, -1, 1), *rest), 1, -1)


def group_norm_grad(g, x, w, m, r):
    first = lambda a: jnp.moveaxis(a, -1, 1)
    by_input, by_weight, by_bias = norm.group_norm_grad.fn(first(g), first(x), w, m, r, 8, 1e-5)
    return jnp.moveaxis(by_input, 1, -1), by_weight, by_bias


def plain_group_norm_grad(g, x, w, m, r):
    return jax.vjp(lambda x, w, b: group_norm(x, w, b, 8), x, w, w)[1](g)


def pulled(fn):
    return lambda g, x: jax.vjp(fn, x)[1](g)[0]


def mean_pool(x):
    return lax.reduce_window(x, np.float32(0), lax.add, (1, 1, 4, 4), (1, 1, 4, 4), "VALID") / 16


def largest(x):
    return lax.reduce_window(
        x, np.float32(-np.inf), lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1))
    )


def plain_batch_norm(x, w, b, eps=1e-5):
    mean, var = jnp.mean(x, (0, 2, 3), keepdims=True), jnp.var(x, (0, 2, 3), keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * w[:, None, None] + b[:, None, None]


def plain_batch_norm_grad(g, x, w, m, r):
    return jax.vjp(plain_batch_norm, x, w, w)[1](g)


def bag(w, i):
    return jnp.sum(w[i], 1)


def our_bag(w, i):
    starts = jnp.arange(len(i)) * i.shape[1]
    return linear.embedding_bags.fn(w, i.reshape(-1), starts, None, "sum", None, False, False, i.shape[1])


def expanded(i, n):
    return jnp.broadcast_to(i[:, None], (*i.shape, n))


def rows_added(z, x, i):
    return z.at[expanded(i, 32), jnp.arange(32)].add(x)


def our_rows_added(z, x, i):
    return scatter.scatter_add.fn(z, 0, expanded(i, 32), x)


STARTS = np.sort(DRAW.choice(100000, 2000, replace=False))
STARTS[0] = 0


def uneven_bag(w, i):
    return jax.ops.segment_sum(w[i], jnp.searchsorted(STARTS, jnp.arange(len(i)), side="right") - 1, len(STARTS))


def our_uneven_bag(w, i):
    return linear.embedding_bags.fn(w, i, jnp.asarray(STARTS), None, "sum", None, False, False)


def middle(x):
    return lax.slice_in_dim(jnp.sort(x, 1), 499, 500, axis=1)


def our_middle(x):
    return order.ranked(x, 1, jnp.full((len(x), 1), 499))[0]


def doubled(x):
    """Lines twice as long, linear, by gathering."""
    index, weight = taps.linear_taps(x.shape[-1], 2 * x.shape[-1], 2.0, False)
    return sum(x[..., index[:, k]] * jnp.asarray(weight[:, k], x.dtype) for k in (0, 1))


def our_doubled(x):
    return taps.resample(x, {2: taps.linear_taps(x.shape[-1], 2 * x.shape[-1], 2.0, False)})


def windows(x):
    """Windows of 8, each 4 after the one before."""
    return x[:, np.arange(255)[:, None] * 4 + np.arange(8)]


def our_windows_added(g, x):
    recipe, starts = strided.plan(x.shape, (x.shape[1], 1), g.shape, (x.shape[1], 4, 1), 0)
    return folds.spread(recipe, starts, x, g)


def summed_gradients(g, x, w, m, r):
    """Layer norm's, each sum as it is written."""
    normal, gw = (x - m) * r, g * w
    along, across = jnp.mean(gw, 1, keepdims=True), jnp.mean(gw * normal, 1, keepdims=True)
    return r * (gw - along - normal * across), jnp.sum(g * normal, 0), jnp.sum(g, 0)


def gathered_windows(x):
    """The largest of 7x7 windows that cover 32x32 evenly: all elements of each are gathered."""
    places = [range(k * 32 // 7, -(-(k + 1) * 32 // 7)) for k in range(7)]
    places = np.array([[*p, *[p[-1]] * (6 - len(p))] for p in places])
    return x[:, :, places[:, None, :, None], places[None, :, None, :]].max((-1, -2))


def gathered_pairs(x):
    first, second = np.triu_indices(len(x), 1)
    return jnp.sqrt(jnp.sum((x[first] - x[second]) ** 2, -1))


def between(p):
    return lambda x, y: vectors.cdist.fn(x, y, p, "donot_use_mm_for_euclid_dist")


def plain_pull(p):
    return lambda g, x, y, d: jax.vjp(between(p), x, y)[1](g)


def our_pull(p):
    return lambda g, x, y, d: distances.pulled(g, x, y, d, p)


def apart(p, *shape):
    """What `pulled` takes: a cotangent, rows, and their distances."""
    x, y = real(*shape), real(*shape)
    return real(shape[0], shape[0]), x, y, between(p)(jnp.asarray(x), jnp.asarray(y))


POINTS = real(256, 64)


def our_factors(g, x):
    return reduce._other_factors.fn(g, x, jnp.prod(x, 1), 1, False)


def one_by_one(z, i, x):
    return z.at[jnp.broadcast_to(i[:, None], x.shape), jnp.arange(x.shape[1])].max(x)


def runs_multiplied(z, i, x):
    return scatter._prod_of_runs(z, (i,), x, 0)


def slices_reduced(how):
    return lambda z, i, x: slices.index_reduce.fn(z, 0, i, x, how)


# name: (by hand, jtorch's kernel, arguments)
PARTS = {
    "unfold, patches of 16, 224x224": (lambda x: columns(x, 16), lambda x: image.im2col.fn(x, 16, stride=16), (real(8, 3, 224, 224),)),
    "fold, the same": (
        lambda c: windows_added(c, 16, 224), lambda c: image.col2im.fn(c, (224, 224), 16, stride=16), (real(8, 768, 196),)
    ),
    **{
        f"a layer of {rows} rows, {a} to {b}": (lambda x, w, c: x @ w.T + c, linear.linear.fn, (real(rows, a), real(b, a), real(b)))
        for rows, a, b in ((4, 768, 3072), (16, 512, 512), (64, 784, 256))
    },
    "products of 10000 4x4": (jnp.matmul, matmul.bmm.fn, (real(10000, 4, 4), real(10000, 4, 4))),
    "einsum of 2000 4x4": (
        lambda a, b: jnp.einsum("bij,bkj->bik", a, b), lambda a, b: einsum.einsum_of.fn("bij,bkj->bik", [a, b]),
        (real(2000, 4, 4), real(2000, 4, 4)),
    ),
    "inverses of 1000 3x3": (jnp.linalg.inv, lambda a: linalg.inv_and_info.fn(a)[0], (system(1000, 3),)),
    "solutions of 1000 4x4": (jnp.linalg.solve, lambda a, b: solve.solve_and_info.fn(a, b, True)[0], (system(1000, 4), real(1000, 4, 1))),
    "trigamma": (lambda x: lax.zeta(jnp.full_like(x, 2), x), special._trigamma, (1 + np.abs(real(100000).astype(np.float64)),)),
    "gradient of 4 by 1 copies": (
        lambda g, x: jax.vjp(lambda x: jnp.tile(x, (4, 1)), x)[1](g)[0], lambda g, x: join._copies_added(g, x, (4, 1)),
        (real(512, 512), real(128, 512)),
    ),
    "remainders of float64": (lax.rem, angles.rem, (real(512, 512).astype(np.float64), real(512, 512).astype(np.float64))),
    "reciprocal roots": (lax.rsqrt, transcendental.rsqrt.fn, (np.abs(real(512, 512)),)),
    "512 diagonal matrices of 64": (
        lambda x: jnp.zeros((512, 64, 64), x.dtype).at[:, np.arange(64), np.arange(64)].set(x), lambda x: masks.diag_embed.fn(x),
        (real(512, 64),),
    ),
    "booleans in order": (
        lambda x: lax.sort((x, lax.broadcasted_iota(jnp.int64, x.shape, 1)), num_keys=1), lambda x: order.sorted_with_index(x, 1),
        (real(512, 512) > 0,),
    ),
    "sum over 64 rows of 32768": (lambda x: jnp.sum(x, 0), lambda x: reduce.sum.fn(x, 0), (real(64, 32768),)),
    "largest of 3 rows of 100000": (lambda x: jnp.max(x, 0), lambda x: reduce.amax.fn(x, 0), (real(3, 100000),)),
    "cumsum along the first of 1024x512": (lambda x: jnp.cumsum(x, 0), lambda x: scans.cumsum.fn(x, 0), (real(1024, 512),)),
    "cumsum of 65536 integers": (jnp.cumsum, lambda x: scans.cumsum.fn(x, 0), (whole(9, 65536),)),
    "cumprod along the last of 4096x64": (lambda x: jnp.cumprod(x, 1), lambda x: scans.cumprod.fn(x, 1), (real(4096, 64),)),
    "scatter_add of 100000x32 rows": (rows_added, our_rows_added, (real(10000, 32), real(100000, 32), whole(10000, 100000))),
    "largest of slices that meet, 5000x64": (one_by_one, slices_reduced("amax"), (real(1000, 64), whole(1000, 5000), real(5000, 64))),
    "gradients of their products": (
        lambda z, i, x: jax.vjp(lambda z, x: runs_multiplied(z, i, x), z, x)[1](z),
        lambda z, i, x: jax.vjp(lambda z, x: slices_reduced("prod")(z, i, x), z, x)[1](z),
        (real(1000, 64), whole(1000, 5000), real(5000, 64)),
    ),
    "2048 bags of 50 rows": (bag, our_bag, (real(20000, 64), whole(20000, 2048, 50))),
    "group norm, channels last": (
        lambda x, w, b: group_norm(x, w, b, 8), last(lambda x, w, b: norm.group_norm.fn(x, 8, w, b)[0]),
        (real(8, 32, 32, 64), real(64), real(64)),
    ),
    "its gradients": (
        plain_group_norm_grad, group_norm_grad, (real(8, 32, 32, 64), real(8, 32, 32, 64), real(64), real(8, 8), abs(real(8, 8)))
    ),
    "batch norm by itself": (
        plain_batch_norm, stored_order(lambda x, w, b: batchnorm.batch_norm_train.fn(x, w, b, 1e-5)[0]),
        (real(16, 64, 32, 32), real(64), real(64)),
    ),
    "gradients of batch norm": (
        plain_batch_norm_grad, stored_order(lambda g, x, w, m, r: batchnorm.batch_norm_train_grad.fn(g, x, w, m, r, 1e-5)),
        (real(16, 64, 32, 32), real(16, 64, 32, 32), real(64), real(64), abs(real(64))),
    ),
    "gradient of the largest of 3x3": (
        pulled(largest), stored_order(lambda g, x: pool.max_pool_grad.fn(g, x, 2, 3, 2, 1)), (real(8, 64, 28, 28), real(8, 64, 56, 56))
    ),
    "arctan2 of 1000000": (jnp.arctan2, angles.arctan2, (real(10**6), real(10**6))),
    "arccos of 1000000": (jnp.arccos, angles.arccos, (np.tanh(real(10**6)),)),
    "sin of 1000000": (jnp.sin, angles.sin, (real(10**6),)),
    "tan of 1000000": (jnp.tan, angles.tan, (real(10**6),)),
    "sin of 1000000 float64": (jnp.sin, angles.sin, (DRAW.standard_normal(10**6),)),
    "a number divides 1000x1000": (lambda x: x / 3.0, lambda x: quotients.quotient(x, np.float32(3)), (real(1000, 1000),)),
    "a column does, within a chain": (
        lambda x, y: (x * 2 + 1) / y * x, lambda x, y: quotients.quotient(x * 2 + 1, y) * x, (real(1000, 1000), real(1000, 1))
    ),
    "a number does, before sums of rows": (
        lambda x: jnp.sum(x / 3.0, 1), lambda x: jnp.sum(quotients.quotient(x, np.float32(3)), 1), (real(1000, 1000),)
    ),
    "medians of 1000x1000": (middle, our_middle, (real(1000, 1000),)),
    "2000 uneven bags of 100000 rows": (uneven_bag, our_uneven_bag, (real(20000, 64), whole(20000, 100000))),
    "gradient of lines doubled": (pulled(doubled), pulled(our_doubled), (real(16, 32, 1024), real(16, 32, 512))),
    "gradient of windows that overlap": (pulled(windows), our_windows_added, (real(256, 255, 8), real(256, 1024))),
    "fmod of 1000000": (lax.rem, angles.rem, (real(10**6), 1 + abs(real(10**6)))),
    "int64 matrices, 256": (jnp.matmul, matmul.mm.fn, (whole(99, 256, 256), whole(99, 256, 256))),
    "int8 matrices, 256": (
        jnp.matmul, matmul.mm.fn, (whole(99, 256, 256).astype(np.int8), whole(99, 256, 256).astype(np.int8))
    ),
    "isin, 100000 among 1000": (jnp.isin, compare.isin.fn, (whole(10000, 100000), whole(10000, 1000))),
    "argsort of 100000 integers": (jnp.argsort, lambda x: order.order(x, 0), (whole(10000, 100000),)),
    "cut below the 50th of 64x50257": (
        lambda x: jnp.where(x < lax.top_k(x, 50)[0][:, -1:], -jnp.inf, x),
        lambda x: jnp.where(x < sorting.topk.fn(x, 50)[0][:, -1:], -jnp.inf, x), (real(64, 50257),)
    ),
    "largest 10 of 100000 doubles": (
        lambda x: lax.top_k(x, 10), lambda x: sorting.topk.fn(x, 10), (real(100000).astype(np.float64),)
    ),
    "medians of 256x256 doubles": (
        lambda x: jnp.sort(x, 1)[:, 127], lambda x: order.ranked(x, 1, jnp.full((len(x), 1), 127))[0],
        (real(256, 256).astype(np.float64),)
    ),
    "three channels and their weights, summed": (
        lambda x, w: (x * w).sum(1), lambda x, w: reduce.sum.fn(x * w, 1), (real(16, 3, 128, 128), real(3, 1, 1))
    ),
    "sum of rows of 3": (lambda x: x.sum(1), lambda x: reduce.sum.fn(x, 1), (real(20000, 3),)),
    "largest along 8 of 1000x8x64": (lambda x: (x * 2).max(1), lambda x: reduce.amax.fn(x * 2, 1), (real(1000, 8, 64),)),
    "sum of a million integers": (jnp.sum, reduce.sum.fn, (whole(100, 1000, 1000),)),
    "a million that are true, counted": (jnp.sum, reduce.sum.fn, (whole(2, 1000, 1000) > 0,)),
    "largest of a million, nan seen": (jnp.max, reduce.max_all.fn, (real(1000, 1000),)),
    "filter 5x5 of one image 512x512": (convolved, filtered, (real(1, 1, 512, 512), real(1, 1, 5, 5))),
    "filter 5 of 16 signals of 1000, to 8": (convolved, filtered, (real(16, 1, 1000), real(8, 1, 5))),
    "filters 3x3 of 3 to 16 channels": (convolved, filtered, (real(8, 3, 32, 32), real(16, 3, 3, 3))),
    "largest 3 of each of 3072x48 integers": (
        lambda x: lax.top_k(x, 3), lambda x: order.sorted_with_index(x, 1, True, 3), (whole(10**12, 3072, 48),)
    ),
    "layer norm's gradients, 4096x256": (
        summed_gradients, lambda g, x, w, m, r: norm.layer_norm_grad.fn(g, x, w, m, r, 1, 1e-5),
        (real(4096, 256), real(4096, 256), real(256), real(4096, 1), abs(real(4096, 1))),
    ),
    "largest of 8x64x32x32 to 7x7": (
        gathered_windows, lambda x: adaptive_pool.adaptive_max_pool2d.fn(x, 7), (real(8, 64, 32, 32),)
    ),
    "distances of pairs of 256 rows": (gathered_pairs, norm.pdist.fn, (real(256, 64),)),
    "gradient of distances of pairs": (
        lambda g, x, d: pulled(gathered_pairs)(g, x), lambda g, x, d: distances.pulled_pairs(g, x, d, 2.0),
        (real(32640), POINTS, gathered_pairs(jnp.asarray(POINTS))),
    ),
    "gradients of cdist": (plain_pull(2.0), our_pull(2.0), apart(2.0, 256, 16)),
    "gradients of cdist, largest": (plain_pull(np.inf), our_pull(np.inf), apart(np.inf, 256, 16)),
    "product of 1000000": (jnp.prod, reduce.prod.fn, (1 + real(1000, 1000) / 1000,)),
    "gradient of products of 256x1024": (pulled(lambda x: jnp.prod(x, 1)), our_factors, (real(256), real(256, 1024))),
    "counts of 1000x1000 bools": (lambda x: jnp.sum(x, 1), lambda x: reduce.sum.fn(x, 1), (whole(2, 1000, 1000) > 0,)),
    "64 parts put together": (
        lambda *gs: pulled(lambda x: [x[k] for k in range(64)])(list(gs), jnp.zeros((64, 64, 64), np.float32)),
        lambda *gs: derive_views.joined((0, [(1, 64, 64)] * 64), [True] * 64, gs), [real(64, 64) for _ in range(64)],
    ),
    "volumes at points": (
        lambda x, points: image.sampled(image.EACH, x, points, "bilinear", "zeros", False),
        lambda x, points: image.grid_sample.fn(x, points, align_corners=False),
        (real(2, 8, 24, 24, 24), real(2, 24, 24, 24, 3) / 3),
    ),
    "sums of products of int64, 16x64x64": (
        lambda a, b: jnp.einsum("bij,bjk->ik", a, b), lambda a, b: matmul.addbmm.fn(a[0], a, b),
        (whole(9, 16, 64, 64), whole(9, 16, 64, 64)),
    ),
    "gradient of means of 4x4": (
        pulled(mean_pool), pulled(lambda x: pool.avg_pool2d.fn(x, 4)), (real(8, 128, 7, 7), real(8, 128, 28, 28))
    ),
}  # fmt: skip


def main(word=""):
    for name, (by_hand, ours, arrays) in PARTS.items():
        if word not in name:
            continue
        arrays = [jnp.asarray(a) for a in arrays]
        steps = [jax.jit(fn, compiler_options=o) for fn, o in ((by_hand, None), (ours, hasty.library()))]
        times = [[], []]
        for step in steps:
            jax.block_until_ready(step(*arrays))
        end = time.perf_counter() + 2
        while time.perf_counter() < end or len(times[0]) < 5:
            for step, spent in zip(steps, times):
                start = time.perf_counter()
                jax.block_until_ready(step(*arrays))
                spent.append(time.perf_counter() - start)
        hand, own = (1e3 * float(np.median(t)) for t in times)
        print(f"{name:<38} by hand {hand:9.3f} ms   jtorch {own:9.3f} ms   {hand / own:6.2f}x", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
