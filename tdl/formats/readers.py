"""Which file another tool has written, and who reads it. A new format is a row of READERS."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tdl.diagnostics import Sink
from tdl.formats.compose import compose_translation
from tdl.formats.topologies import (
    containerlab,
    graphs,
    kathara,
    kollaps,
    link_simulation,
    matrices,
    mininet,
    shadow,
)
from tdl.preprocess.includes import MATRICES, NoTextError, Reader, file_of
from tdl.preprocess.translated import Translation, Variable

Translate = Callable[[Sequence[str], Variable, Reader, Reader, Sink, str], Translation | None]
Plain = Callable[[Sequence[str], Reader, Sink], Translation | None]
_YAML = (".yml", ".yaml")


@dataclass(frozen=True, slots=True)
class Format:
    """`endings` of the names of its files. Of several with one ending it is the first of which the
    text has `words`, a pattern. `translate` is as compose_translation.translate."""

    title: str
    endings: tuple[str, ...]
    translate: Translate
    words: str = ""


def _plain(translate: Plain) -> Translate:
    """Of a reader that asks for nothing but its files."""
    return lambda paths, _variable, read, _unrecorded, sink, _folder: translate(paths, read, sink)


READERS = (
    Format("Kollaps YAML", _YAML, _plain(kollaps.translate_yaml), r"^experiment *:"),
    Format("containerlab", _YAML, _plain(containerlab.translate), r"^topology *:"),
    Format("Shadow", _YAML, _plain(shadow.translate), r"^hosts *:"),
    Format("Compose", _YAML, compose_translation.translate),
    Format("Kollaps XML", (".xml",), _plain(kollaps.translate_xml)),
    Format("GraphML", (".graphml",), _plain(graphs.translate_graphml)),
    Format("GML", (".gml",), _plain(graphs.translate_gml)),
    Format("Kathará", ("lab.conf",), _plain(kathara.translate)),
    Format("link simulation", (".json",), _plain(link_simulation.translate), link_simulation.WORDS),
    Format("Mininet", (".py",), _plain(mininet.translate)),
    Format("matrix", MATRICES, _plain(matrices.translate)),
)


def format_of(path: str, data: bytes = b"") -> Format | None:
    """Of a file that begins with these bytes."""
    text = data[: 1 << 16].decode("utf-8", "replace")
    name = posixpath.basename(path)
    for one in READERS:
        if name.endswith(one.endings) and re.search(one.words, text, re.MULTILINE):
            return one
    return None


def translate(
    paths: Sequence[str],
    variable: Variable,
    read: Reader,
    unrecorded: Reader,
    sink: Sink,
    folder: str = "",
) -> Translation | None:
    """What these files say, all of one format; None after a report. `variable` has values that win
    over those of the files, `read` is for what a plan is to keep, `unrecorded` for what it is not
    to; `folder` is the name of the folder that paths begin in. NoTextError for the files
    themselves."""
    file = file_of(paths[0])
    found = format_of(file, read(file))
    if found is None:
        raise NoTextError(f"'{paths[0]}' is of no format that is known")
    return found.translate(paths, variable, read, unrecorded, sink, folder)
