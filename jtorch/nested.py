"""torch.nested: tensors of rows of different length, of which there are none: each name says what to use instead."""

from .unavailable import refusing

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_INSTEAD = (
    "rows padded to few lengths (torch.nn.utils.rnn.pad_sequence) with a mask, torch.nn.utils.rnn.pack_sequence for recurrent layers, "
    "or torch.nn.attention.varlen.varlen_attn for attention"
)


def _refusing(name):
    return refusing(f"nested.{name}", "nested tensors", _INSTEAD)


as_nested_tensor, masked_select, narrow = map(_refusing, ("as_nested_tensor", "masked_select", "narrow"))
nested_tensor, nested_tensor_from_jagged = map(_refusing, ("nested_tensor", "nested_tensor_from_jagged"))
to_padded_tensor = _refusing("to_padded_tensor")
