"""The five models again, as anyone competent writes them in JAX: one donated `jax.jit` step with optax."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from .models import CONTEXT, DEPTH, FEATURES, HEADS, HIDDEN, LAYERS, VOCABULARY, WIDTH, WORKLOADS


def dense(p, x):
    y = x @ p["weight"]
    return y + p["bias"] if "bias" in p else y


def mlp(params, stats, x):
    return dense(params["fc2"], jax.nn.relu(dense(params["fc1"], x))), stats


def deep_mlp(params, stats, x):
    for layer in params["hidden"]:
        x = jax.nn.relu(dense(layer, x))
    return dense(params["head"], x), stats


def conv(p, x, stride=1, padding=1):
    pads = ((padding, padding), (padding, padding))
    rounded = None if jax.default_backend() == "cpu" else lax.Precision.HIGH  # TF32, as jtorch and PyTorch have it
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, p["weight"], (stride, stride), pads, dimension_numbers=dims, precision=rounded)


def batch_norm(p, stats, x, momentum=0.1, eps=1e-5):
    mean = x.mean((0, 1, 2))
    var = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)  # one pass, as flax does: 1.1x the step
    n = x.size // x.shape[-1]
    y = (x - mean) * (lax.rsqrt(var + eps) * p["weight"]) + p["bias"]
    stats = {
        "running_mean": (1 - momentum) * stats["running_mean"] + momentum * mean,
        "running_var": (1 - momentum) * stats["running_var"] + momentum * var * (n / (n - 1)),
    }
    return y, stats


def residual(p, stats, x, stride):
    new = {}
    y, new["bn1"] = batch_norm(p["bn1"], stats["bn1"], conv(p["conv1"], x, stride))
    y, new["bn2"] = batch_norm(p["bn2"], stats["bn2"], conv(p["conv2"], jax.nn.relu(y)))
    if "shortcut" in p:
        x, new["bn3"] = batch_norm(p["bn3"], stats["bn3"], conv(p["shortcut"], x, stride, padding=0))
    return jax.nn.relu(x + y), new


def cnn(params, stats, x):
    x, bn = batch_norm(params["bn"], stats["bn"], conv(params["conv"], x))
    x = jax.nn.relu(x)
    blocks = []
    for p, s, stride in zip(params["blocks"], stats["blocks"], (1, 2, 2), strict=True):
        x, new = residual(p, s, x, stride)
        blocks.append(new)
    return dense(params["head"], x.mean((1, 2))), {"bn": bn, "blocks": blocks}


def lstm_layer(p, layer, xs):
    """`xs` is (time, batch, features); the input's share of the gates is one matmul for all times."""
    bias = p[f"bias_ih_l{layer}"] + p[f"bias_hh_l{layer}"]
    gates = xs @ p[f"weight_ih_l{layer}"] + bias
    recurrent = p[f"weight_hh_l{layer}"]

    def cell(carry, gate):
        h, c = carry
        i, f, g, o = jnp.split(gate + h @ recurrent, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((xs.shape[1], HIDDEN), xs.dtype)
    return lax.scan(cell, (zero, zero), gates)[1]


def lstm(params, stats, x):
    xs = x.swapaxes(0, 1)
    for layer in range(2):
        xs = lstm_layer(params["lstm"], layer, xs)
    return dense(params["head"], xs[-1]), stats


def layer_norm(p, x, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = jnp.square(x).mean(-1, keepdims=True) - jnp.square(mean)
    return (x - mean) * lax.rsqrt(var + eps) * p["weight"] + p["bias"]


def attention(p, x):
    B, T, C = x.shape
    heads = jnp.split(dense(p["qkv"], x), 3, axis=-1)
    q, k, v = (h.reshape(B, T, HEADS, C // HEADS).swapaxes(1, 2) for h in heads)  # (B, H, T, D)
    scores = q @ k.swapaxes(-1, -2) / (C // HEADS) ** 0.5
    causal = jnp.tril(jnp.ones((T, T), bool))
    y = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1) @ v
    return dense(p["out"], y.swapaxes(1, 2).reshape(B, T, C))


def gpt(params, stats, x):
    x = params["tokens"]["embedding"][x] + params["positions"]["embedding"][: x.shape[1]]
    for p in params["blocks"]:
        x = x + attention(p, layer_norm(p["norm1"], x))
        up = jax.nn.gelu(dense(p["up"], layer_norm(p["norm2"], x)), approximate=False)
        x = x + dense(p["down"], up)
    logits = dense(params["head"], layer_norm(params["norm"], x))
    return logits.reshape(-1, VOCABULARY), stats


def _dense(rng, n_in, n_out, bias=True):
    bound = n_in**-0.5
    p = {"weight": rng.uniform(-bound, bound, (n_in, n_out))}
    return p | {"bias": rng.uniform(-bound, bound, n_out)} if bias else p


def _he(rng, n_in, n_out):
    bound = (6 / n_in) ** 0.5
    return _dense(rng, n_in, n_out) | {"weight": rng.uniform(-bound, bound, (n_in, n_out))}


def _conv(rng, size, n_in, n_out):
    bound = (n_in * size * size) ** -0.5
    return {"weight": rng.uniform(-bound, bound, (size, size, n_in, n_out))}


def _norm(width):
    return {"weight": np.ones(width), "bias": np.zeros(width)}


def _moments(width):
    return {"running_mean": np.zeros(width), "running_var": np.ones(width)}


def init_mlp(rng):
    return {"fc1": _dense(rng, 784, 256), "fc2": _dense(rng, 256, 10)}, {}


def init_deep_mlp(rng):
    return {"hidden": [_he(rng, 64, 64) for _ in range(DEPTH - 1)], "head": _dense(rng, 64, 10)}, {}


def init_cnn(rng):
    params = {"conv": _conv(rng, 3, 3, 16), "bn": _norm(16), "blocks": [], "head": _dense(rng, 128, 10)}
    stats = {"bn": _moments(16), "blocks": []}
    for n_in, n_out in ((16, 32), (32, 64), (64, 128)):
        block = {"conv1": _conv(rng, 3, n_in, n_out), "conv2": _conv(rng, 3, n_out, n_out)}
        block["shortcut"] = _conv(rng, 1, n_in, n_out)
        params["blocks"].append(block | {bn: _norm(n_out) for bn in ("bn1", "bn2", "bn3")})
        stats["blocks"].append({bn: _moments(n_out) for bn in ("bn1", "bn2", "bn3")})
    return params, stats


def init_lstm(rng):
    bound = HIDDEN**-0.5
    p = {}
    for layer, n_in in enumerate((FEATURES, HIDDEN)):
        p[f"weight_ih_l{layer}"] = rng.uniform(-bound, bound, (n_in, 4 * HIDDEN))
        p[f"weight_hh_l{layer}"] = rng.uniform(-bound, bound, (HIDDEN, 4 * HIDDEN))
        p[f"bias_ih_l{layer}"] = rng.uniform(-bound, bound, 4 * HIDDEN)
        p[f"bias_hh_l{layer}"] = rng.uniform(-bound, bound, 4 * HIDDEN)
    return {"lstm": p, "head": _dense(rng, HIDDEN, 10)}, {}


def init_gpt(rng):
    def block():
        return {
            "norm1": _norm(WIDTH),
            "qkv": _dense(rng, WIDTH, 3 * WIDTH),
            "out": _dense(rng, WIDTH, WIDTH),
            "norm2": _norm(WIDTH),
            "up": _dense(rng, WIDTH, 4 * WIDTH),
            "down": _dense(rng, 4 * WIDTH, WIDTH),
        }

    return {
        "tokens": {"embedding": rng.standard_normal((VOCABULARY, WIDTH))},
        "positions": {"embedding": rng.standard_normal((CONTEXT, WIDTH))},
        "blocks": [block() for _ in range(LAYERS)],
        "norm": _norm(WIDTH),
        "head": _dense(rng, WIDTH, VOCABULARY, bias=False),
    }, {}


FORWARD = {"mlp": mlp, "deep-mlp": deep_mlp, "cnn": cnn, "lstm": lstm, "gpt": gpt}
INIT = {"mlp": init_mlp, "deep-mlp": init_deep_mlp, "cnn": init_cnn, "lstm": init_lstm, "gpt": init_gpt}


def optimizer(name: str) -> optax.GradientTransformation:
    """The optax twin of the workload's torch optimizer."""
    work = WORKLOADS[name]
    if work.optimizer == "SGD":
        return optax.sgd(work.options["lr"], momentum=work.options["momentum"])
    return optax.adamw(work.options["lr"], weight_decay=work.options["weight_decay"])


@dataclass
class Peer:
    """The state of a hand-written training loop and its compiled step."""

    params: Any
    stats: Any
    opt_state: Any
    update: Callable

    def step(self, x, y):
        self.params, self.stats, self.opt_state, loss = self.update(self.params, self.stats, self.opt_state, x, y)
        return loss


def build(name: str, start: tuple[Any, Any] | None = None) -> Peer:
    """The hand-written JAX training of `name`; `start` is (params, stats), as `from_torch` makes them."""
    params, stats = INIT[name](np.random.default_rng(0)) if start is None else start
    params, stats = jax.tree.map(partial(jnp.asarray, dtype=jnp.float32), (params, stats))
    tx = optimizer(name)

    def loss_fn(params, stats, x, y):
        logits, stats = FORWARD[name](params, stats, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), stats

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def update(params, stats, opt_state, x, y):
        (loss, stats), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, stats, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), stats, opt_state, loss

    return Peer(params, stats, tx.init(params), update)


def narrow() -> AbstractContextManager:
    """The scope in which the peers live: 64-bit types off, as they are for who does not import jtorch.

    With them on, the counters of `scan` and of optax's Adam would be 64 bits wide.
    """
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(False)
    return importlib.import_module("jax.experimental").disable_x64()  # until jax 0.7


def batch(x: np.ndarray, y: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """A batch of `models.batches` on JAX's device and in its layout: images NHWC, integers int32."""
    if x.ndim == 4:
        x = x.transpose(0, 2, 3, 1)
    x = x.astype(np.int32) if x.dtype.kind == "i" else x
    return jnp.asarray(np.ascontiguousarray(x)), jnp.asarray(y.astype(np.int32))


def from_torch(state: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """(params, stats) from a PyTorch state_dict of the same model, given as numpy arrays."""
    params, stats = {}, {}
    for name, value in state.items():
        *path, leaf = name.split(".")
        if leaf == "num_batches_tracked":
            continue
        tree = stats if leaf.startswith("running_") else params
        for key in path:
            tree = tree.setdefault(key, {})
        if path[0] in ("tokens", "positions"):
            leaf = "embedding"
        elif value.ndim == 2:
            value = value.T
        elif value.ndim == 4:
            value = value.transpose(2, 3, 1, 0)
        tree[leaf] = value
    return _lists(params), _lists(stats)


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    tree = {key: _lists(value) for key, value in tree.items()}
    return list(tree.values()) if tree and all(key.isdigit() for key in tree) else tree
