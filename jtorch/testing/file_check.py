"""torch.testing.FileCheck: what a text must contain, in which order, and what it must not."""

import re
from typing import NamedTuple

from .. import errors_extend

_LINE = re.compile(
    r"^\s*(?:#|//)?\s*CHECK(?P<kind>-[A-Z-]+?)?(?:-(?P<exactly>EXACTLY-)?(?P<count>\d+))?:\s?(?P<text>.*?)\s*$", re.M
)
_KINDS = {
    "-NEXT": "next", "-SAME": "same", "-NOT": "not", "-DAG": "dag", "-COUNT": "count", "-REGEX": "regex",
    "-SOURCE-HIGHLIGHTED": "source_highlighted",
}  # fmt: skip


class _Check(NamedTuple):
    kind: str
    text: str
    count: int = 1
    exactly: bool = False

    def __str__(self):
        tail = f"-{'EXACTLY-' if self.exactly else ''}{self.count}" if self.kind == "count" else ""
        kind = "" if self.kind == "check" else "-" + self.kind.upper().replace("_", "-")
        return f"CHECK{kind}{tail}: {self.text}"


class FileCheck:
    """Checks of a text, one after the other: `FileCheck().check("add").check_not("mul").run(text)`.

    Each check looks behind the match of the one before. RuntimeError: the text is not as said.
    """

    def __init__(self):
        self._checks = []
        self._ran = False

    def _add(self, kind, text, count=1, exactly=False):
        self._checks.append(_Check(kind, text, count, exactly))
        return self

    def check(self, test_string):
        """The text occurs."""
        return self._add("check", test_string)

    def check_not(self, test_string):
        """The text does not occur before the next match, or the end."""
        return self._add("not", test_string)

    def check_same(self, test_string):
        """The text occurs in the same line as the match before."""
        return self._add("same", test_string)

    def check_next(self, test_string):
        """The text occurs in the line after the match before."""
        return self._add("next", test_string)

    def check_count(self, test_string, count, exactly=False):
        """The text occurs `count` times; with `exactly`, no more than that."""
        return self._add("count", test_string, count, exactly)

    def check_dag(self, test_string):
        """The text occurs; checks of this kind that follow each other may match in any order."""
        return self._add("dag", test_string)

    def check_regex(self, pattern):
        """The pattern matches."""
        return self._add("regex", pattern)

    def check_source_highlighted(self, test_string):
        """The text occurs, and the line below marks it with `~`."""
        return self._add("source_highlighted", test_string)

    def run(self, *texts) -> None:
        """Check a text; of two, the first holds the checks, as comments `# CHECK: text`."""
        text = str(texts[-1])
        checks = self._checks if len(texts) == 1 else list(_parsed(str(texts[0])))
        if not checks:
            raise errors_extend.text_check(
                "No checks have been added to this instance ofFilecheck! Check for bad input."
            )
        self._ran = True
        at, k = 0, 0
        while k < len(checks):
            absent = []
            while k < len(checks) and checks[k].kind == "not":
                absent.append(checks[k])
                k += 1
            start = end = len(text)
            if k < len(checks):
                group = [checks[k]]
                while group[0].kind == "dag" and k + len(group) < len(checks) and checks[k + len(group)].kind == "dag":
                    group.append(checks[k + len(group)])
                k += len(group)
                spans = [_match(c, text, at) for c in group]
                start, end = min(s for s, _ in spans), max(e for _, e in spans)
            for c in absent:
                _refuse(c.text, text, at, start, c)
            at = end

    def __str__(self):
        head = "" if self._ran else "You have not run this instance of FileCheck!\n"
        return head + "FileCheck checks:\n" + "".join(f"\t{c}\n" for c in self._checks)

    __repr__ = __str__


def _parsed(text):
    for m in _LINE.finditer(text):
        kind = _KINDS.get(m["kind"] or "", "check" if not m["kind"] else None)
        if kind is None:
            raise errors_extend.text_check(f"Could not parse check: {m[0].strip()}")
        yield _Check(kind, m["text"], int(m["count"] or 1), bool(m["exactly"]))


def _match(check, text, at):
    """(start, end) of what a check finds from a place on."""
    if check.kind == "regex":
        found = re.compile(check.text, re.M).search(text, at)
        return found.span() if found else _missing(check, text)
    first = start = end = _find(check, text, at)
    for _ in range(check.count):
        start = _find(check, text, end)
        end = start + len(check.text)
    between = text[at:first]
    if check.kind == "same" and "\n" in between:
        _refuse("\n", text, at, first, check)
    if check.kind == "next":
        if "\n" not in between:
            raise errors_extend.text_check(
                f'Expected to find "\\n" but did not find it\nSearched string:\n{text}\nFrom {check}\n'
            )
        _refuse("\n", text, at + between.index("\n") + 1, first, check)
    if check.exactly:
        _refuse(check.text, text, end, len(text), _Check("not", check.text))
    return first, end


def _find(check, text, at):
    if check.kind != "source_highlighted":
        start = text.find(check.text, at)
        return start if start >= 0 else _missing(check, text)
    start = text.find(check.text, at)
    while start >= 0:
        line = text.rfind("\n", 0, start) + 1
        below = text[text.find("\n", start) + 1 :].partition("\n")[0] if "\n" in text[start:] else ""
        marked = below[start - line : start - line + len(check.text)]
        if marked == "~" * len(check.text):
            return start
        start = text.find(check.text, start + 1)
    return _missing(check, text)


def _missing(check, text):
    if check.kind == "source_highlighted" and check.text in text:
        raise errors_extend.text_check(f'Expected to find "{check.text}"highlighted but it is not.\n{text}\n')
    what = "regex " if check.kind == "regex" else ""
    raise errors_extend.text_check(
        f'Expected to find {what}"{check.text}" but did not find it\nSearched string:\n{text}\nFrom {check}\n'
    )


def _refuse(words, text, start, end, check):
    """RuntimeError if the words stand between two places; the message points at them."""
    at = text.find(words, start, end)
    if at >= 0:
        line = text.rfind("\n", 0, at) + 1
        rest = text[line:].partition("\n")[0]
        shown = words.replace("\n", "\\n")
        raise errors_extend.text_check(
            f'Expected to not find "{shown}" but found it\n{rest}\n{" " * (at - line)}{"~" * len(shown)} <--- HERE\nFrom {check}\n'
        )
