"""What still differs from PyTorch, measured: test id -> what it says. The list only shrinks."""

KNOWN: dict[str, str] = {}
