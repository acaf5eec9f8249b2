"""Rows of public functions: copies."""

from . import row

ROWS = [
    row("expand_copy"),
    row("diagonal_copy"),
    row("alias_copy"),
    row("as_strided_copy"),
    row("narrow_copy"),
    row("view_copy"),
    row("permute_copy"),
    row("split_with_sizes_copy"),
    row("unbind_copy"),
    row("unfold_copy"),
    row("squeeze_copy"),
    row("unsqueeze_copy"),
    row("transpose_copy"),
    row("t_copy"),
]
