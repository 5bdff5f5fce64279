"""A Kathará lab.conf as statements: devices are services, collision domains are bridges.

Addresses and routes are the plan's, so what startup files do is not looked at. Source: Kathará's
manual page kathara-lab.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.element_names import ElementNames, is_name
from tdl.formats.written import image
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.tokens.lexer import source_lines

DEFAULT_IMAGE = "kathara/base"
_LINE = re.compile(
    r"\s*(?P<device>[A-Za-z0-9_-]+)\[(?P<word>[A-Za-z0-9_]+)\]\s*=\s*"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"']*)(?P=quote)(?:\s+#.*)?|(?P<bare>[^\"']*?))\s*"
)
_DOMAIN = re.compile(r"\w+(?:/[0-9A-Fa-f:]+)?", re.ASCII)  # with its card's address
_ABOUT = re.compile(r"\s*LAB_[A-Z]+\s*=.*")
_MEMORY = re.compile(r"([0-9]+)([kmg])b?", re.IGNORECASE | re.ASCII)
_UNITS = {"k": "KiB", "m": "MiB", "g": "GiB"}


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    lab = _Lab(paths[0], sink)
    text = read(paths[0]).decode("utf-8", "replace")
    for number, line in enumerate(source_lines(text), 1):
        lab.line(line, Span(number, 1, number, max(2, len(line) + 1), paths[0]))
    return Translation(tuple(lab.lines()))


class _Lab:
    def __init__(self, file: str, sink: Sink) -> None:
        self._file, self._sink = file, sink
        self._devices: dict[str, tuple[Span, list[Piece]]] = {}
        self._domains: dict[str, Span] = {}
        self._links: dict[tuple[str, str], Span] = {}
        self._told: set[str] = set()

    def line(self, line: str, span: Span) -> None:
        if not line.strip() or line.lstrip().startswith("#") or _ABOUT.fullmatch(line):
            return
        match = _LINE.fullmatch(line)
        if match is None:
            self._sink.error("TS0508", span, "this is not DEVICE[WORD]=VALUE", 'pc1[0]="A"')
            return
        device, word = match["device"], match["word"]
        value = match["quoted"] if match["quote"] else match["bare"]
        if not is_name(device):
            self._sink.error("TS0501", span, f"nothing can be called '{device[:80]}'")
            return
        pieces = self._devices.setdefault(device, (span, []))[1]
        if word.isdigit() and not _DOMAIN.fullmatch(value):
            hint = "letters, digits and _; a comment stands behind a value in quotes"
            message = f"'{value[:80]}' is no collision domain"
            self._sink.error("TS0508", span, message, hint)
        elif word.isdigit():
            domain = value.partition("/")[0]
            self._domains.setdefault(domain, span)
            if (device, domain) in self._links:
                message = f"a second interface of {device} in {domain[:40]} is not carried over"
                self._sink.warning("TS0971", span, message, "an instance has one link to a bridge")
            self._links.setdefault((device, domain), span)
        elif word == "image":
            pieces.append(Piece(f"img={image(value)}", span))
        elif word == "mem" and (memory := _MEMORY.fullmatch(value)):
            pieces.append(Piece(f"mem={memory[1]}{_UNITS[memory[2].lower()]}", span))
        elif word == "cpus" and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value):
            pieces.append(Piece(f"cpu={value}", span))
        elif word not in self._told:
            self._told.add(word)
            self._sink.warning(
                "TS0971", span, f"{word} is not carried over", "docs/import.md says what is"
            )

    def lines(self) -> Iterator[Line]:
        if not self._devices:
            self._sink.error("TS0501", Span(1, 1, 1, 2, self._file), "the lab has no device")
        names = ElementNames([*self._devices, *self._domains])
        for device in self._devices:
            names.take(f"device {device}", device)
        for device, (span, pieces) in self._devices.items():
            stated = any(one.text.startswith("img=") for one in pieces)
            own = pieces if stated else [Piece(f"img={DEFAULT_IMAGE}", span), *pieces]
            yield (Piece(f"service {device}", span), *own)
            if sum(one == device for one, _ in self._links) > 1:
                why = "only bridges do: write it as a bridge where it is a router"
                message = f"{device} does not forward between its networks"
                self._sink.warning("TS0973", span, message, why)
        for domain, span in self._domains.items():
            yield (Piece(f"bridge {names.take(domain, domain)}", span),)
        for (device, domain), span in self._links.items():
            yield (Piece(f"link {device}--{names[domain]}", span),)
