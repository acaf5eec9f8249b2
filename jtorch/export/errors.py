"""What torch.export refuses, in words."""

from .. import errors_extend


def not_module(mod) -> ValueError:
    return ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")


def needs_value(name) -> RuntimeError:
    return RuntimeError(
        f"torch.export.export: Could not guard on data-dependent expression: forward asks for a Python value of a tensor ({name}), "
        "so it is not one program\n  use torch.where, torch.cond, or keep the value as a tensor"
    )


def not_captured(why) -> RuntimeError:
    return RuntimeError(f"torch.export.export: forward cannot be shown as one graph: {why}")


def dynamic(why) -> NotImplementedError:
    return errors_extend.unsupported(
        f"dynamic_shapes for this forward: {why}",
        "sizes that forward does not compute with (-1, flatten), or an export for each size",
    )


def decompositions() -> NotImplementedError:
    return errors_extend.unsupported(
        "run_decompositions: the graph calls torch's functions", "the graph as it is, or jax.export"
    )


def structure(want, got) -> ValueError:
    return ValueError(
        f"Trying to flatten user inputs with exported input tree spec: \n{want}\nbut actually got inputs with tree spec of: \n{got}"
    )


def unsavable(target) -> NotImplementedError:
    return errors_extend.unsupported(
        f"saving a program that calls {target}", "functions of torch alone, or torch.save of the state_dict"
    )


def foreign(path) -> RuntimeError:
    return RuntimeError(
        f"torch.export.load: {path!r} was not written by jtorch's torch.export.save\n"
        "  PyTorch's programs are of ATen operators, which jtorch does not read: export the module again here"
    )
