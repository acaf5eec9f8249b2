"""Source lines that go first in the generated functions of some operators."""

# What a plan does not know, whose key takes True for 1: numbers, flags in the place of a dimension, and what needs no gradient.
GUARDS = (
    {
        "pow": (
            "if type(exponent) in integer_types and exponent < 0 and type(input) in fast and input._spec.dtype.category < 2:",
            "    raise integer_power()",
        ),
    }
    | dict.fromkeys(
        ("masked_fill", "index_fill"),
        (
            "if type(value) in number_types and type(value) is not complex and type(input) in fast and (",
            "    input._spec.dtype.category < 2 or not -65504 <= value <= 65504",
            "):",
            "    check_number(value, input._spec.dtype)",
        ),
    )
    | {
        "scatter": tuple(
            line
            for name in ("src", "value")
            for line in (
                f"if type({name}) in number_types and type(input) in fast and (",
                f"    input._spec.dtype.category < 2 or type({name}) is complex or not -65504 <= {name} <= 65504",
                "):",
                f"    check_number({name}, input._spec.dtype)",
            )
        ),
    }
    | dict.fromkeys(
        ("floor_divide", "fmod", "remainder"),
        (
            "if type(other) is int and not other and type(input) in fast and input._spec.dtype.category < 2:",
            "    raise division_by_zero()",
        ),
    )
    | dict.fromkeys(  # what is only compared with numbers
        ("hinge_embedding_loss", "cosine_embedding_loss"),
        ("if type(target) in fast and target.requires_grad:", "    target = target.detach()"),
    )
    | dict.fromkeys(
        ("var", "std", "var_mean", "std_mean"),
        ("if dim is True or dim is False:", "    dim, unbiased = None, dim"),
    )
)
