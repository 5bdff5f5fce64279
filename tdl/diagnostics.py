"""Errors and warnings as data: collected by every pass, sorted by place, shown once.

A diagnostic has a code (`TS0012`, registered in tdl/codes/catalogue.py), a span, a message, and a
hint where one exists. Library code never prints; the command renders (text, JSON, SARIF).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from tdl.ast import Span
from tdl.bounds import MAX_ERRORS, MAX_FINDINGS


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    severity: Severity
    code: str
    span: Span
    message: str
    hint: str | None = None


class TdlError(Exception):
    """Raised once, at the end of a pass that found errors. Carries every diagnostic so far."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = sort(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics[:3]))


def sort(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By place, then code, then message: a total order. Of the rounds of a loop only the first."""
    found = _first_rounds(dict.fromkeys(diagnostics))
    return tuple(sorted(found, key=lambda d: (d.span.file, d.span, d.code, d.message)))


def _first_rounds(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """What is wrong with a line in many rounds of a loop becomes one, which says so."""
    counts: dict[Diagnostic, int] = {}
    firsts: dict[tuple[object, ...], Diagnostic] = {}
    for one in diagnostics:
        if not one.span.note:
            yield one
            continue
        first = firsts.setdefault((one.severity, one.code, replace(one.span, note="")), one)
        counts[first] = counts.get(first, 0) + 1
    for first, count in counts.items():
        more = f", and {count - 1:,} more" if count > 1 else ""
        yield replace(first, span=replace(first.span, note=first.span.note + more))


class Sink:
    """Where a pass puts what it finds."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._errors = 0

    def error(self, code: str, span: Span, message: str, hint: str | None = None) -> None:
        self._errors += 1
        self.found.append(Diagnostic(Severity.ERROR, code, span, message, hint))

    def warning(self, code: str, span: Span, message: str, hint: str | None = None) -> None:
        self.found.append(Diagnostic(Severity.WARNING, code, span, message, hint))

    @property
    def full(self) -> bool:
        """So much is wrong that reading on would say nothing new."""
        return self._errors >= MAX_ERRORS or len(self.found) >= MAX_FINDINGS

    @property
    def failed(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.found)
