"""The package torch._library: it has modules of the names of functions, so torch.library itself cannot stand for it."""
