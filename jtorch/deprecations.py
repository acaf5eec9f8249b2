"""What PyTorch says once of calls that it has deprecated, or that are likely to be a mistake."""

from . import errors

_NO_WINDOW = "A window was not provided. A rectangular window will be applied."
_RECTANGULAR = (
    "To suppress this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


def _replaced(name, new, old_code, new_code, space=" "):
    return (
        f"torch.{name} is deprecated in favor of torch.linalg.{new}{space}and will be removed in a future PyTorch release.\n"
        f"{old_code}\nshould be replaced with\n{new_code}"
    )


WORDS = {
    "meshgrid": "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
    "cholesky": _replaced("cholesky", "cholesky", "L = torch.cholesky(A)", "L = torch.linalg.cholesky(A)")
    + "\nand\nU = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
    "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.",
    "qr": _replaced(
        "qr",
        "qr",
        "The boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)",
        "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')",
    ),
    "lu": _replaced(
        "lu",
        "lu_factor / torch.linalg.lu_factor_ex",
        "LU, pivots = torch.lu(A, compute_pivots)",
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)",
    )
    + "\nand\nLU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
    "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
    "triangular_solve": _replaced(
        "triangular_solve",
        "solve_triangular",
        "torch.linalg.solve_triangular has its arguments reversed and does not return a copy of one of the inputs.\n"
        "X = torch.triangular_solve(B, A).solution",
        "X = torch.linalg.solve_triangular(A, B).",
        space="",
    ),
    "chain_matmul": "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
    "instead, which accepts a list of two or more tensors rather than multiple parameters.",
    "cross": "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or simply use "
    "torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in a future release.",
    "stft": _NO_WINDOW[:-1] + ",which is known to cause spectral leakage. Other windows such as torch.hann_window or "
    "torch.hamming_window are recommended to reduce spectral leakage." + _RECTANGULAR,
    "istft": _NO_WINDOW + "Please provide the same window used by stft to make the inversion lossless." + _RECTANGULAR,
    "set_default_tensor_type": "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() "
    "and torch.set_default_device() as alternatives.",
    "storage": "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
    "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() "
    "instead of tensor.storage()",
    "arrays": "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
    "numpy.ndarray with numpy.array() before converting to a tensor.",
    "scalar": "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first.",
    "real": "Casting complex values to real discards the imaginary part",
    "sequence": "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], which will "
    "result either in an error or a different result",
    "scatter": "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch release. "
    "Use torch.scatter_reduce instead for more reduction options.",
    "index_reduce": "index_reduce() is in beta and the API may change at any time.",
    "asarray": "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass requires_grad=False "
    "explicitly to get the old behavior and silence this warning.",
    "searchsorted": "torch.searchsorted(): {0} tensor is non-contiguous, this will lower the performance due to extra data copy when "
    "converting non-contiguous tensor to contiguous, please use contiguous {0} tensor if possible. This message will only appear once "
    "per program.",
}


def say(name, *details) -> None:
    """Warn, the first time in a process."""
    errors.warn_once(WORDS[name].format(*details) if details else WORDS[name])
