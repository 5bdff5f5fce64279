"""What ends the reading of a file in which nothing more can be read."""

from __future__ import annotations

from tdl.ast import Span


class BadFileError(Exception):
    """`problem`: code, place, message and hint, as Sink.error takes them."""

    def __init__(self, code: str, span: Span, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.problem = (code, span, message, hint)
