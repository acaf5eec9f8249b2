"""Where a code object writes, and by which expressions."""

import pytest

from jtorch.compile.stores import walk


def counted(self, d, x):
    self.n += 1
    self.k = self.k - len(x)
    y = self.twice = self.twice + 1
    self.inner.m += y
    return y


def items(self, d, x, **kwargs):
    self.cache[:, 1] = x
    d["a"] = len(x)
    made = {}
    made["b"] = x
    again = dict(kwargs, c=x)
    del again["c"]
    return made


def hidden(self, d, x):
    len(d)[1] = x


def outer(self, d, x):
    global N, M
    N += 1
    M = N


SELF, D = ("local", "self"), ("local", "d")
SITES = {
    counted: [("STORE_ATTR", "n", SELF, True), ("STORE_ATTR", "k", SELF, True), ("STORE_ATTR", "twice", SELF, False),
              ("STORE_ATTR", "m", ("attr", SELF, "inner"), True)],
    items: [
        ("STORE_SUBSCR", None, ("attr", SELF, "cache"), False), ("STORE_SUBSCR", None, D, False),
        ("STORE_SUBSCR", None, ("local", "made"), False), ("DELETE_SUBSCR", None, ("local", "again"), False),
    ],
    hidden: [("STORE_SUBSCR", None, None, False)],
    outer: [("STORE_GLOBAL", "N", None, True), ("STORE_GLOBAL", "M", None, False)],
}  # fmt: skip
READS = {counted: {"len", "twice", "inner"}, items: {"cache", "len", "dict"}, hidden: {"len"}, outer: {"N"}}


@pytest.mark.parametrize("fn", SITES, ids=lambda fn: fn.__name__)
def test_what_is_written_to_and_by_which_name(fn):
    found = walk(fn.__code__)
    assert [(site.op, site.name, site.owner, site.adds) for site in found.sites.values()] == SITES[fn]
    assert found.reads == READS[fn]


def test_dicts_that_are_made_there():
    assert sorted(walk(items.__code__).fresh.values()) == ["again", "made"]
