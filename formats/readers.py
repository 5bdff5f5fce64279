"""Which file another tool has written, and who reads it. A new format is a row of READERS."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from formats.compose import compose_translation
from tdl.diagnostics import Sink
from tdl.preprocess.includes import NoTextError, Reader
from tdl.preprocess.translated import Translation, Variable

Translate = Callable[[Sequence[str], Variable, Reader, Reader, Sink], Translation | None]


@dataclass(frozen=True, slots=True)
class Format:
    """`endings` of the names of its files; `translate` is as compose_translation.translate."""

    title: str
    endings: tuple[str, ...]
    translate: Translate


READERS = (Format("Compose", (".yml", ".yaml"), compose_translation.translate),)


def format_of(path: str) -> Format | None:
    ending = posixpath.splitext(path)[1]
    return next((one for one in READERS if ending in one.endings), None)


def translate(
    paths: Sequence[str], variable: Variable, read: Reader, unrecorded: Reader, sink: Sink
) -> Translation | None:
    """What these files say, all of one format; None after a report. `variable` has values that win
    over those of the files, `read` is for what a plan is to keep, `unrecorded` for what it is not
    to. NoTextError for the files themselves."""
    found = format_of(paths[0])
    if found is None:
        raise NoTextError(f"'{paths[0]}' is of no format that is known")
    return found.translate(paths, variable, read, unrecorded, sink)
