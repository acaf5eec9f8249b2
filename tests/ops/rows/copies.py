"""Rows of public functions: copies."""

from . import T, row

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
    row("detach_copy", samples=[[T(2, 3)]]),
    row("select_copy", samples=[[T(2, 3), 0, 1]]),
    row("slice_copy", samples=[[T(4, 3), 0, 1, 3]]),
    row("split_copy", samples=[[T(4, 3), 2]]),
    row("view_as_real_copy", samples=[[T(2, 3, kind="complex")]]),
    row("view_as_complex_copy", samples=[[T(3, 2)]]),
]
