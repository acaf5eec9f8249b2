"""The older form of spectral normalisation: hooks instead of a parametrization."""

from jtorch import functions as torch
from jtorch.autograd.mode import no_grad
from jtorch.core.record import statistics
from jtorch.nn import functional as F
from jtorch.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from jtorch.nn.parameter import Parameter

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def as_matrix(weight, dim):
    """The weight with dimension `dim` first and the rest flattened."""
    if dim != 0:
        weight = weight.permute(dim, *[d for d in range(weight.dim()) if d != dim])
    return weight.reshape(weight.size(0), -1)


class SpectralNorm:
    """The hook that divides a weight by its largest singular value before each forward."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        """The weight as a matrix."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module, do_power_iteration):
        """The weight over the estimate of its largest singular value; the estimate improves in training."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad(), statistics():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
                # a backward may follow after the next forward has changed the buffers
                u, v = u.clone(), v.clone()
        sigma = torch.dot(u, torch.mv(matrix, v))
        return weight / sigma

    def _solve_v_and_rescale(self, matrix, u, sigma):
        """The v of least length for which u is the direction of W v, of the length that gives u W v = sigma."""
        gram = matrix.t().mm(matrix)
        v = gram.pinverse().mv(matrix.t().mv(u))
        return v * (sigma / torch.dot(u, torch.mv(matrix, v)))

    def remove(self, module):
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        delattr(module, self.name + "_u")
        delattr(module, self.name + "_v")
        delattr(module, self.name + "_orig")
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Replace a parameter by its original and the two vectors, and add the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with no_grad():
            matrix = as_matrix(weight, dim)
            h, w = matrix.size()
            u = F.normalize(weight.new_empty(h).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(w).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # a plain attribute, so that forward can replace it
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(_VersionNote(name))
        module._register_load_state_dict_pre_hook(_OldStates(fn))
        return fn


class _VersionNote:
    """Writes into a state_dict's metadata which kind of normalisation made it."""

    def __init__(self, name):
        self.name = name

    def __call__(self, module, state_dict, prefix, local_metadata):
        notes = local_metadata.setdefault("spectral_norm", {})
        key = f"{self.name}.version"
        if key in notes:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        notes[key] = SpectralNorm._version


class _OldStates:
    """Completes a state dict from before there was a version: it has the divided weight, and no v, which follows from it."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state, prefix, metadata, strict, missing_keys, unexpected_keys, error_msgs):
        fn, key = self.fn, prefix + self.fn.name
        version = metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        complete = all(key + end in state for end in ("_orig", "_u", "_v"))
        if version is None and complete and key not in state:  # made by hand, of what is new
            return
        lacking = [key + end for end in ("_orig", "", "_u") if key + end not in state]
        if lacking:
            if strict:
                missing_keys.extend(lacking)
            return
        with no_grad():
            original, u = state[key + "_orig"], state[key + "_u"]
            sigma = (original / state.pop(key)).mean()
            state[key + "_v"] = fn._solve_v_and_rescale(fn.reshape_weight_to_matrix(original), u, sigma)


def _take_away(hooks, kind, name):
    """Remove the first hook of a kind that belongs to a parameter."""
    for key, hook in hooks.items():
        hook = getattr(hook, "hook", hook)
        if isinstance(hook, kind) and name == (hook.name if kind is _VersionNote else hook.fn.name):
            del hooks[key]
            return


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value (Miyato et al., 2018), by a forward hook.

    Args:
        n_power_iterations: per forward in training. Default: 1
        eps: in the normalisations. Default: 1e-12
        dim: the dimension of the outputs. Default: 0, or 1 for transposed convolutions
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo spectral_norm."""
    for k, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[k]
            _take_away(module._state_dict_hooks, _VersionNote, name)
            _take_away(module._load_state_dict_pre_hooks, _OldStates, name)
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
