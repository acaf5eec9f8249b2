"""PyTorch's private modules, as far as packages reach into them: the names that have a meaning here."""
