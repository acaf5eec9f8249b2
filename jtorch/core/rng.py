"""Random state: the host Generator (PyTorch's mt19937), and the keys that kernels draw from on the device.

The numbers a Generator gives on the host are in `core/draw.py`; only this file makes or uses a device key.
"""

import math
import secrets

import jax.numpy as jnp
import numpy as np
from jax import lax

from . import device as devices

DEFAULT_SEED = 67280421310721  # of a new Generator; the default one starts from the system's randomness
_MASK64 = (1 << 64) - 1
_WORDS = 624  # of mt19937's state

# PyTorch's CPU state, byte for byte. It leaves `normal_x` and `normal_rho` at zero and does not read them:
# the first carries our count of device keys, so that restoring a state (checkpointing) repeats its dropout.
_STATE = np.dtype(
    [
        ("seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", _WORDS),
        ("normal_x", "<u8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("has_normal", "<i4"),
        ("pad", "<i4"),
        ("float_normal", "<f4"),
        ("has_float_normal", "u1"),
        ("end", "V3"),
    ]
)


class Generator:
    """A stream of random numbers: the same ones as PyTorch's CPU generator gives for the same seed.

    Args:
        device: the device named by `device`; the stream itself always lives on the host
    """

    def __init__(self, device="cpu"):
        self._device = devices.resolve(device)
        self._bits = np.random.MT19937(0)
        self._seeder = np.random.RandomState(self._bits)  # its integer seeding is the one PyTorch uses
        self._ints = np.random.Generator(self._bits)
        self._other = None  # what `coming32` goes on with
        self.ahead = None  # normal numbers made ahead (`box_muller.py`)
        self._start(DEFAULT_SEED)

    def _start(self, seed: int):
        self._seed = seed & _MASK64
        self._seeder.seed(seed & 0xFFFFFFFF)
        self._fresh = True  # PyTorch tells "not drawn from yet" from "all 624 words used"; numpy does not
        self.next_normal = None  # the second half of the last scalar Box-Muller pair
        self._float_normal = None
        self._key_count = 0
        self._keys = None

    @property
    def device(self):
        return self._device

    def manual_seed(self, seed: int) -> "Generator":
        """Restart from `seed`, an integer of 64 bits; negative ones count from the top."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        seed = seed.__index__()
        if not -(1 << 63) <= seed <= _MASK64:
            raise ValueError("Overflow when unpacking long long")
        self._start(seed)
        return self

    def seed(self) -> int:
        """Restart from the system's randomness, and return the seed used."""
        seed = secrets.randbits(53)  # a double holds it
        self._start(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that this stream started from."""
        return self._seed

    def set_offset(self, offset):
        """Refused: the CPU generator's place in its stream is no number."""
        raise RuntimeError("CPU Generator does not use offset")

    def get_offset(self) -> int:
        """Refused, as `set_offset`."""
        raise RuntimeError("CPU Generator does not use offset")

    def state_bytes(self) -> np.ndarray:
        """The whole state, as the bytes of PyTorch's CPU generator (uint8, 5056). `get_state` is this as a tensor (`random_tensors`)."""
        state = np.zeros((), _STATE)
        inner = self._bits.state["state"]
        position = int(inner["pos"])
        state["seed"] = self._seed
        state["left"] = 1 if self._fresh else _WORDS + 1 - position
        state["seeded"] = 1
        state["next"] = 0 if self._fresh else position
        state["words"] = inner["key"]
        state["normal_x"] = self._key_count
        if self.next_normal is not None:
            state["has_normal"] = 1
            state["normal_y"] = self.next_normal
        if self._float_normal is not None:
            state["has_float_normal"] = 1
            state["float_normal"] = self._float_normal
        return np.frombuffer(state.tobytes(), np.uint8).copy()

    def set_state(self, new_state) -> "Generator":
        """Continue from a state of `get_state` or `state_bytes`, ours or PyTorch's."""
        if not hasattr(new_state, "__array__"):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        data = np.asarray(new_state)
        if data.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if data.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} "
                f"but found the input RNG state size to be {data.size}"
            )
        state = np.frombuffer(data.tobytes(), _STATE)[0]
        left, position = int(state["left"]), int(state["next"])
        fresh = left == 1 and position == 0
        if state["seeded"] != 1 or not 0 < left <= _WORDS or (left + position != _WORDS + 1 and not fresh):
            raise RuntimeError("Invalid mt19937 state")
        words = state["words"].astype(np.uint32)
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": words, "pos": _WORDS if fresh else position},
        }
        self._seed = int(state["seed"])
        self._fresh = fresh
        self.next_normal = float(state["normal_y"]) if state["has_normal"] else None
        self._float_normal = float(state["float_normal"]) if state["has_float_normal"] else None
        self._key_count = int(state["normal_x"])
        self._keys = None
        return self

    def clone_state(self) -> "Generator":
        """A new Generator that goes on as this one would."""
        return type(self)(self._device).set_state(self.state_bytes())

    clone = graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: "Generator") -> "Generator":
        """Go on as the Generator `state` would."""
        return self.set_state(state.state_bytes())

    def __reduce__(self):
        return type(self), (self.device,), (self._seed, None, self.get_state())

    def __setstate__(self, state):
        self.set_state(state[2])

    def __deepcopy__(self, memo):
        return self.clone_state()

    def words32(self, n: int) -> np.ndarray:
        """The next `n` words of 32 bits."""
        if n:
            self._fresh = False
        return self._ints.integers(0, 1 << 32, n, dtype=np.uint32)

    def coming32(self, n: int) -> np.ndarray:
        """The `n` words that `words32` would give next, which stay to be drawn."""
        if self._other is None:
            self._other = np.random.MT19937(0)
        self._other.state = self._bits.state
        return np.random.Generator(self._other).integers(0, 1 << 32, n, dtype=np.uint32)

    def words64(self, n: int) -> np.ndarray:
        """The next `n` words of 64 bits, each from two of 32, the high half first."""
        if n:
            self._fresh = False
        return self._ints.integers(0, 1 << 64, n, dtype=np.uint64)

    def mark(self):
        """Where the stream is, for `rewind`."""
        return self._bits.state, self._fresh, self.next_normal, self._float_normal, self._key_count

    def rewind(self, mark) -> None:
        """Go back to a mark: what was drawn since is drawn again."""
        count = self._key_count
        self._bits.state, self._fresh, self.next_normal, self._float_normal, self._key_count = mark
        if count != self._key_count:
            self._keys = None

    def next_key(self) -> np.ndarray:
        """The next device key (uint32, 2): a function of the seed and of how many keys were drawn since."""
        i = self._key_count
        self._key_count = i + 1
        j = i & (_KEY_BLOCK - 1)
        if j == 0 or self._keys is None:
            self._keys = _key_block(self._seed, i - j)
        return self._keys[j]


_KEY_BLOCK = 256  # keys made at once, so that one costs a list index


def _mix(x):
    """The finaliser of splitmix64, a permutation of 64 bits, on a uint64 array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _key_block(seed: int, start: int) -> list[np.ndarray]:
    """Keys `start`, `start + 1`, ...: splitmix64 from a mixed seed, so no two of one seed are equal."""
    count = np.arange(start, start + _KEY_BLOCK, dtype=np.uint64)
    origin = _mix(np.array([seed], np.uint64) ^ np.uint64(0x6A09E667F3BCC909))
    return list(_mix(origin + count * np.uint64(0x9E3779B97F4A7C15)).view(np.uint32).reshape(-1, 2))


default_generator = Generator()
default_generator.seed()


def next_key(generator: Generator | None = None) -> np.ndarray:
    """The next device key (uint32, 2) of a generator, the default one if None."""
    return (default_generator if generator is None else generator).next_key()


# ---- drawing from a key, inside a kernel ----

# Threefry-2x32, counter = the element's index, key = ours. Elementwise 32-bit arithmetic, so XLA fuses a
# dropout mask into the product that uses it on every backend, and no mask is ever stored. 13 rounds is the
# fewest that pass BigCrush (Salmon et al., SC 2011). Per million mask elements on two CPU cores: 0.7 ms;
# jax.random.bits with threefry 2.5 (20 rounds, half of the output unused), rbg 9.5, Philox-2x32-10 1.7.
# Drawing 8 or 16 bits an element gains nothing: XLA recomputes the word for each of its lanes.
_ROUNDS = 13
_KEY_ROUNDS = 20
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


def _threefry(key, x0, x1, rounds):
    """The two output words of Threefry-2x32 for the counter (x0, x1)."""
    u32 = np.uint32
    schedule = (key[0], key[1], key[0] ^ key[1] ^ u32(0x1BD11BDA))
    x0, x1 = x0 + schedule[0], x1 + schedule[1]
    for i in range(rounds):
        r = _ROTATIONS[i % 8]
        x0 = x0 + x1
        x1 = ((x1 << u32(r)) | (x1 >> u32(32 - r))) ^ x0
        if i % 4 == 3:
            j = i // 4 + 1
            x0 = x0 + schedule[j % 3]
            x1 = x1 + schedule[(j + 1) % 3] + u32(j)
    return x0, x1


def _words(key, shape):
    """Two independent uint32 arrays of `shape`."""
    shape = tuple(shape)
    key = jnp.asarray(key, jnp.uint32)
    size = math.prod(shape)
    if size < 1 << 32:
        low = lax.iota(jnp.uint32, size).reshape(shape)
        high = jnp.zeros((), jnp.uint32)
    else:  # the first dimension counts in the second word
        low = lax.iota(jnp.uint32, size // shape[0]).reshape(shape[1:])[None]
        high = lax.broadcasted_iota(jnp.uint32, shape, 0)
    return _threefry(key, low, high, _ROUNDS)


def bits(key, shape, dtype=np.uint32):
    """Uniform words of `shape`, of an unsigned integer dtype."""
    first, second = _words(key, shape)
    dtype = np.dtype(dtype)
    if dtype.itemsize == 8:
        return (first.astype(jnp.uint64) << np.uint64(32)) | second.astype(jnp.uint64)
    return (first >> np.uint32(32 - 8 * dtype.itemsize)).astype(dtype)


def uniform(key, shape, dtype=np.float32):
    """Uniform in [0, 1), every multiple of the dtype's resolution as likely."""
    dtype = np.dtype(dtype)
    first, second = _words(key, shape)
    if dtype == np.float64:
        high = (first >> np.uint32(5)).astype(dtype)
        low = (second >> np.uint32(6)).astype(dtype)
        return (high * 2.0**26 + low) * dtype.type(2.0**-53)
    digits = jnp.finfo(dtype).nmant + 1
    return (first >> np.uint32(32 - digits)).astype(dtype) * dtype.type(2.0**-digits)


def bernoulli(key, p, shape):
    """True with probability `p`: a number (exact to 2**-32), or an array that broadcasts to `shape`."""
    first, second = _words(key, shape)
    if isinstance(p, int | float):
        threshold = round(p * 2**32)
        if threshold >= 2**32:
            return jnp.ones(tuple(shape), jnp.bool_)
        return first < np.uint32(threshold)
    p = jnp.asarray(p)
    if p.dtype == jnp.float64:
        high = (first >> np.uint32(5)).astype(p.dtype)
        return (high * 2.0**26 + (second >> np.uint32(6)).astype(p.dtype)) * 2.0**-53 < p
    return (first >> np.uint32(8)).astype(jnp.float32) * np.float32(2.0**-24) < p.astype(jnp.float32)


def normal(key, shape, dtype=np.float32):
    """Standard normal, by the inverse of the error function (within 5.5 of zero for float32)."""
    dtype = np.dtype(dtype)
    wide = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    first, second = _words(key, shape)
    if wide == np.float64:
        odd = (first.astype(wide) * 2.0**20 + (second >> np.uint32(12)).astype(wide)) * 2.0 + 1.0
        centred = odd * 2.0**-52 - 1.0
    else:
        # an odd number of 24 bits: symmetric around zero, and never at the ends where the result is infinite
        odd = ((first >> np.uint32(9)) * np.uint32(2) + np.uint32(1)).astype(wide)
        centred = odd * wide.type(2.0**-23) - wide.type(1)
    return (lax.erf_inv(centred) * wide.type(math.sqrt(2))).astype(dtype)


def fold_in(key, data):
    """A new key from a key and an integer: what a loop inside a kernel draws its own keys with."""
    key = jnp.asarray(key, jnp.uint32)
    return jnp.stack(_threefry(key, jnp.asarray(data, jnp.uint32), np.uint32(0), _KEY_ROUNDS))


def split(key, n: int = 2):
    """`n` new keys from a key (uint32, (n, 2))."""
    key = jnp.asarray(key, jnp.uint32)
    zeros = jnp.zeros(n, jnp.uint32)
    return jnp.stack(_threefry(key, lax.iota(jnp.uint32, n), zeros, _KEY_ROUNDS), axis=1)
