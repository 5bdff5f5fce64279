"""The two notations of Kollaps: XML as ModelNet has it, and the YAML of its paper.

Both have services, bridges, links and what happens when, each a list of things with attributes. The
YAML is read as it is printed there, too, without dashes: a thing begins where a word comes again,
and one of `dynamic` ends with its time. Source: the Kollaps paper, listings 1 and 2; the public
implementation's examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats import xml_tree, yaml_tree
from tdl.formats.attributes import Attribute, Attributes
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import source_lines

SECTIONS = {"services": "service", "bridges": "bridge", "links": "link", "dynamic": "schedule"}
MAX_BYTES = 1 << 20
_LINE = re.compile(r"(?P<dash>[ \t]*-)?[ \t]*(?P<word>[A-Za-z_]+)[ \t]*:(?P<value>.*)")
_YAML_WORDS = {"orig": "origin", "up": "upload", "down": "download", "loss": "drop"}


@dataclass(frozen=True, slots=True)
class Thing:
    """A service, a bridge, a link or something that happens."""

    span: Span
    attributes: Attributes

    def get(self, name: str) -> Attribute | None:
        return self.attributes.get(name)


@dataclass(slots=True)
class KollapsFile:
    services: list[Thing] = field(default_factory=list)
    bridges: list[Thing] = field(default_factory=list)
    links: list[Thing] = field(default_factory=list)
    dynamic: list[Thing] = field(default_factory=list)
    config: Attributes = field(default_factory=dict)

    def of(self, section: str) -> list[Thing]:
        found: list[Thing] = getattr(self, section)
        return found


def read_xml(data: bytes, file: str, sink: Sink) -> KollapsFile | None:
    """None after a report."""
    root = xml_tree.read(data, file, sink)
    if root is None:
        return None
    if root.name != "experiment":
        hint = "a Kollaps file begins with <experiment>"
        sink.error("TS0501", root.span, f"this is <{root.name[:40]}>, and no Kollaps file", hint)
        return None
    found, seen = KollapsFile(), set()
    for section in root.children:
        if section.name == "config":
            for one in section.children:
                found.config.update(one.attributes)
            found.config.update(section.attributes)
        elif section.name not in SECTIONS:
            hint = did_you_mean(section.name, SECTIONS) or f"it has {', '.join(SECTIONS)}"
            sink.error("TS0501", section.span, f"no part is called <{section.name[:40]}>", hint)
        elif section.name in seen:
            sink.error("TS0501", section.span, f"<{section.name}> stands here twice")
        else:
            seen.add(section.name)
            found.of(section.name).extend(_things(section, SECTIONS[section.name], sink))
    return found


def _things(section: xml_tree.XmlElement, word: str, sink: Sink) -> Iterator[Thing]:
    for one in section.children:
        if one.name == word:
            yield Thing(one.span, one.attributes)
        else:
            message = f"<{one.name[:40]}> is no part of <{section.name}>"
            sink.error("TS0501", one.span, message, f"write <{word} …/>")


def read_yaml(data: bytes, file: str, sink: Sink) -> KollapsFile | None:
    """None after a report."""
    if len(data) > MAX_BYTES:
        message = f"the file has more than {MAX_BYTES >> 20} MiB"
        sink.error("TS0506", Span(1, 1, 1, 2, file), message)
        return None
    text = data.decode("utf-8", "replace")
    if re.search(r"^[ \t]*-|[{\[]", text, re.MULTILINE):
        return _from_tree(data, file, sink)
    return _as_printed(text, file, sink)


def _from_tree(data: bytes, file: str, sink: Sink) -> KollapsFile | None:
    root = yaml_tree.read(data, file, sink)
    if root is None:
        return None
    inner = root.get("experiment")
    found = KollapsFile()
    for top in (root, inner):
        for name, span, value in top.values() if top else ():
            if name == "experiment":
                continue
            if name not in SECTIONS:
                hint = did_you_mean(name, SECTIONS) or f"it has {', '.join(SECTIONS)}"
                sink.error("TS0501", span, f"no part is called '{name[:40]}'", hint)
            elif not value.is_null and value.items is None:
                sink.error("TS0501", value.span, f"{name} is a list", "begin each with a dash")
            else:
                found.of(name).extend(_thing(one, sink) for one in value.items or ())
    return found


def _thing(value: yaml_tree.Value, sink: Sink) -> Thing:
    attributes: Attributes = {}
    if value.entries is None:
        sink.error("TS0501", value.span, f"this is {value.kind}, and not a map", "write name: …")
    for name, span, one in value.values():
        if one.text is None and not one.is_null:
            sink.error("TS0501", one.span, f"{name[:40]} is a word or a number, not {one.kind}")
        attributes[_YAML_WORDS.get(name, name)] = Attribute(one.text or "", _whole(span, one.span))
    return Thing(value.span, attributes)


def _whole(key: Span, value: Span) -> Span:
    same = key.line == value.line
    return Span(key.line, key.col, key.line, value.end_col if same else key.end_col, key.file)


def _as_printed(text: str, file: str, sink: Sink) -> KollapsFile | None:
    found, section = KollapsFile(), ""
    thing: Thing | None = None
    for number, line in enumerate(source_lines(text), 1):
        bare = re.sub(r"(^|\s)#.*", "", line).rstrip()
        if not bare.strip():
            continue
        span = Span(number, len(bare) - len(bare.lstrip()) + 1, number, len(bare) + 1, file)
        match = _LINE.fullmatch(bare)
        if match is None:
            sink.error("TS0508", span, "this is not 'word: value'")
            return None
        word, value = match["word"], match["value"].strip()
        if word in SECTIONS or word == "experiment":
            section, thing = word, None
            continue
        if section not in SECTIONS:
            hint = did_you_mean(word, SECTIONS) or f"it has {', '.join(SECTIONS)}"
            sink.error("TS0501", span, f"no part is called '{word}'", hint)
            return None
        word = _YAML_WORDS.get(word, word)
        ended = section == "dynamic" and thing is not None and "time" in thing.attributes
        if thing is None or word in thing.attributes or ended:
            thing = Thing(span, {})
            found.of(section).append(thing)
        thing.attributes[word] = Attribute(_unquoted(value), span)
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    return value
