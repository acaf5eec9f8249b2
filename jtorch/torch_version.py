"""The version of a package as text that compares by its numbers: TorchVersion("2.13.0") >= (2, 4)."""

import re

__all__ = ["TorchVersion"]

_PARTS = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)[-_.]?(?P<pre>(?:a|alpha|b|beta|c|rc|pre|preview)[-_.]?\d*)?(?P<rest>.*)", re.I
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = (3, 0)
_DEV = (-1, 0)


def _key(version):
    """((2, 13), stage): numbers without trailing zeros, then alpha < beta < rc < final; None where there are no numbers."""
    match = _PARTS.match(version.strip())
    if match is None:
        return None
    release = [int(n) for n in match["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = _FINAL
    if match["pre"]:
        name, number = re.fullmatch(r"([a-zA-Z]+)[-_.]?(\d*)", match["pre"]).groups()
        stage = (_STAGES[name.lower()], int(number or 0))
    elif re.match(r"[-_.]?dev", match["rest"], re.I):
        stage = _DEV
    return tuple(release), stage


def _other(value):
    """The key of what a version is compared with: text, a tuple such as (2, 4) or ("2", "4rc1"), or a version object."""
    if isinstance(value, (tuple, list)):
        value = ".".join(map(str, value))
    return _key(str(value))


class TorchVersion(str):
    """A version: a str for every purpose but comparison, which goes by the numbers.

    Compares with text, tuples and objects whose text is a version; with text that is no version, as text.
    """

    __slots__ = ()

    def _pair(self, other):
        mine, its = _key(self), _other(other)
        return (str(self), str(other)) if mine is None or its is None else (mine, its)

    def __lt__(self, other):
        a, b = self._pair(other)
        return a < b

    def __le__(self, other):
        a, b = self._pair(other)
        return a <= b

    def __gt__(self, other):
        a, b = self._pair(other)
        return a > b

    def __ge__(self, other):
        a, b = self._pair(other)
        return a >= b

    def __eq__(self, other):
        a, b = self._pair(other)
        return a == b

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__
