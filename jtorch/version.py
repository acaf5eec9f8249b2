"""torch.version: the release of PyTorch whose behaviour jtorch follows."""

torch = "2.13.0"  # the specification
cuda = None
hip = None
rocm = None
xpu = None
git_version = "Unknown"
debug = False
__version__ = torch
