"""Files: checkpoints in PyTorch's formats, safetensors, and parameters as jax pytrees."""
