"""What the import swap refuses, in words."""


def already_imported(where) -> RuntimeError:
    return RuntimeError(
        "the real torch has been imported already, so jtorch cannot take its name in this process\n"
        f"  it came from {where}; what imported it holds its tensors, which jtorch's functions do not take\n"
        "  call jtorch.install_as_torch() before anything imports torch, or start the program with "
        "`python -m jtorch run SCRIPT`"
    )


def no_script(path) -> SystemExit:
    return SystemExit(f"python -m jtorch run: cannot open {path!r}: no such file")


def no_module(name) -> SystemExit:
    return SystemExit(f"python -m jtorch run: No module named {name}")
