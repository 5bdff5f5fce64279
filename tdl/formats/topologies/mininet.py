"""A Mininet topology as statements: hosts are services, switches bridges, links links.

The file is a program: what it describes is read as JSON (tstorm/topologies/mininet_stand_in.py says
which), a plan keeps both. Hosts are declared where the text does not declare them: it gives them
their programs. Source: the API documentation of Mininet 2.3, mininet.topo and mininet.link.TCIntf.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from tdl.ast import Span
from tdl.decoding import decode
from tdl.diagnostics import Sink
from tdl.formats.attributes import each_once
from tdl.formats.element_names import NAME_HINT, is_name
from tdl.preprocess.includes import Reader, described
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import source_lines

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,30})?(?:e[-+]?[0-9]{1,2})?", re.ASCII)
_TIME = re.compile(rf"({_NUMBER.pattern}) ?(?:(ns|us|ms|s)(?:ecs?)?)?", re.ASCII)  # as tc(8)
_TIME_PLACES = {"ns": 0, "us": 3, "ms": 6, "s": 9}
_COUNT = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_MOST_BW = 1000  # Mbit/s, above which Mininet takes no notice of a limit
_PLAIN_LINKS = ("Link", "TCLink", "TCULink", "OVSLink")
_PLAIN_NODES = ("Host", "CPULimitedHost", "Node", "Switch", "OVSSwitch", "OVSKernelSwitch",
                "OVSBridge", "LinuxBridge", "UserSwitch", "IVSSwitch")  # fmt: skip
_READ = ("bw", "delay", "jitter", "loss", "max_queue_size")
_OTHER_QUEUES = ("enable_red", "enable_ecn")
_OFF = ("", "False", "0", "None")
_WHY = {
    "ip": "addresses are the experiment's own: `tstorm inspect` has them",
    "mac": "addresses are the experiment's own",
    "cpu": "it is a share of all processors of the machine: say cpu=, a number of them",
    "defaultRoute": "routes are the plan's",
    "dpid": "switches are bridges, whose routes are the plan's",
    "cls": "its code is not run",
}
_LINE = "what it says of itself is no topology"


def translate(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    """None after a report."""
    file, choice = described(paths[0])
    lines = source_lines(decode(read(file), Sink(), file))
    if len(paths) > 1:
        message = "several files describe no topology together"
        sink.error("TS0501", Span(1, 1, 1, 2, file), message, f'write include "{paths[0]}"')
        return None
    found = _Told(file, lines, sink).of(read(f"{file}:{choice}"))
    return None if found is None else _Topology(file, lines, sink).translation(*found)


def _span(file: str, lines: Sequence[str], number: int) -> Span:
    """What stands on a line of the file."""
    number = min(max(number, 1), max(1, len(lines)))
    line = lines[number - 1] if lines else ""
    begin = len(line) - len(line.lstrip()) + 1
    return Span(number, begin, number, max(begin + 1, len(line.rstrip()) + 1), file)


class _Told:
    """What a program says: foreign data, of which every part may be something else."""

    def __init__(self, file: str, lines: Sequence[str], sink: Sink) -> None:
        self._file, self._lines, self._sink = file, lines, sink

    def of(self, data: bytes) -> tuple[list[Any], list[Any]] | None:
        try:
            said = json.loads(data, object_pairs_hook=each_once)
        except (ValueError, RecursionError):
            said = None
        match said:
            case {"error": str(message), "line": int(line), "hint": str(hint)}:
                place = _span(self._file, self._lines, line)
                self._sink.error("TS0035", place, _shown(message), _shown(hint) or None)
                return None
            case {"nodes": list(nodes), "links": list(links)}:
                if all(_is_row(one, kind=True) for one in nodes) and all(map(_is_row, links)):
                    return nodes, links
        self._sink.error("TS0035", _span(self._file, self._lines, 1), _LINE)
        return None


def _is_row(row: Any, *, kind: bool = False) -> bool:
    match row:
        case [str(), str(second), int(line), dict(options)]:
            texts = all(isinstance(one, str) for one in options.values())
            return (
                texts
                and not isinstance(line, bool)
                and (second in ("host", "switch") if kind else True)
            )
    return False


def _shown(text: str) -> str:
    """Of a program's words, what a terminal may get."""
    return "".join(one if one.isprintable() else " " for one in text)[:200]


class _Topology:
    def __init__(self, file: str, lines: Sequence[str], sink: Sink) -> None:
        self._file, self._lines, self._sink = file, lines, sink
        self._told: set[tuple[str, str]] = set()

    def translation(self, nodes: list[Any], links: list[Any]) -> Translation:
        if not nodes:
            self._sink.error("TS0501", self._span(1), "the topology has no node")
        hosts: dict[str, Line] = {}
        bridges: list[Line] = []
        kinds: dict[str, str] = {}
        for name, kind, line, options in nodes:
            kinds[name] = kind
            span = self._span(line)
            if not is_name(name):
                message = f"nothing can be called '{_shown(name)[:80]}'"
                self._sink.error("TS0501", span, message, NAME_HINT)
            elif kind == "host":
                hosts[name] = (Piece(f"service {name}", span),)
            else:
                bridges.append((Piece(f"bridge {name}", span),))
            self._node_options(name, options, span)
        known = [one for one in links if self._has_ends(one, kinds)]
        found = tuple(self._links(known))
        pairs = {(a, b) for one, other, _, _ in known for a, b in ((one, other), (other, one))}
        neighbours = Counter(name for name, _ in pairs)
        for name, line in hosts.items():
            if neighbours[name] > 1:
                why = "only switches do, as bridges: write it as a switch where it is a router"
                message = f"{name} does not forward between its links"
                self._sink.warning("TS0973", line[0].span, message, why)
        return Translation((*bridges, *found), services=hosts)

    def _span(self, number: int) -> Span:
        return _span(self._file, self._lines, number)

    def _lost(self, word: str, span: Span, what: str) -> None:
        """Told once a word: a topology says the same of many nodes."""
        if (what, word) in self._told:
            return
        self._told.add((what, word))
        why = _WHY.get(word, "docs/import.md says what is")
        shown = _shown(word)[:40]
        self._sink.warning("TS0971", span, f"{shown} of a {what} is not carried over", why)

    def _node_options(self, name: str, options: Mapping[str, str], span: Span) -> None:
        for word, value in options.items():
            if word == "cls" and value not in _PLAIN_NODES:
                message = f"{_shown(value)[:40]}, of which {name} is, is not run"
                why = "a node is a host or a bridge here, and routes are the plan's"
                self._sink.warning("TS0973", span, message, why)
            elif word != "cls":
                self._lost(word, span, "node")

    # --- links ---

    def _has_ends(self, row: list[Any], kinds: Mapping[str, str]) -> bool:
        a, b, line, _ = row
        missing = next((end for end in (a, b) if end not in kinds), None)
        if missing is not None:
            hint = did_you_mean(missing, list(kinds)) or "addHost or addSwitch adds one"
            message = f"there is no node '{_shown(missing)[:40]}'"
            self._sink.error("TS0501", self._span(line), message, hint)
        elif a == b:
            hint = "an experiment's links are between two of its own nodes"
            message = f"a link from {_shown(a)[:40]} to itself cannot be carried over"
            self._sink.error("TS0502", self._span(line), message, hint)
        return missing is None and a != b

    def _links(self, rows: Sequence[list[Any]]) -> Iterator[Line]:
        total = Counter((min(a, b), max(a, b)) for a, b, _, _ in rows)
        seen: Counter[tuple[str, str]] = Counter()
        for a, b, line, options in rows:
            span, key = self._span(line), (min(a, b), max(a, b))
            pieces = [Piece(f"link {a}--{b}", span)]
            if total[key] > 1:
                seen[key] += 1
                pieces.append(Piece(f"name={key[0]}_{key[1]}_{seen[key]}", span))
            pieces += (Piece(text, span) for text in self._properties(options, span))
            yield tuple(pieces)

    def _properties(self, options: Mapping[str, str], span: Span) -> Iterator[str]:
        for word, value in options.items():
            if word in _OTHER_QUEUES and value not in _OFF:
                hint = "leave it out, and say aqm=red of the link in TDL"
                message = f"{word} of a link cannot be carried over"
                self._sink.error("TS0502", span, message, hint)
            elif word == "cls" and value not in _PLAIN_LINKS:
                message = f"links of the class {_shown(value)[:40]} are plain links here"
                self._sink.warning("TS0973", span, message, _WHY["cls"])
            elif word not in (*_READ, *_OTHER_QUEUES, "cls"):
                self._lost(word, span, "link")
        yield from self._times(options, span)
        if (loss := options.get("loss")) is not None:
            yield from self._number("loss", loss, "a number, in percent", 7, "loss={}%", span)
        yield from self._rate(options, span)

    def _times(self, options: Mapping[str, str], span: Span) -> Iterator[str]:
        for word, prop in (("delay", "latency"), ("jitter", "jitter")):
            value = options.get(word)
            if value is None:
                continue
            match = _TIME.fullmatch(value.strip())
            if match is None:
                self._bad(word, value, "a time, such as '5ms'", span)
                continue
            unit = match[2] or "us"
            if not match[2] and float(match[1]):
                why = f"tc(8), which Mininet asks, takes it so: write '{match[1]}ms' if it is that"
                message = f"{word} without a unit is {match[1]} microseconds"
                self._sink.warning("TS0973", span, message, why)
            form, places = f"{prop}={{}}{unit}", _TIME_PLACES[unit]
            yield from self._number(word, match[1], f"a time, in {unit}", places, form, span)
        if "jitter" in options:
            yield "dist=uniform"

    def _rate(self, options: Mapping[str, str], span: Span) -> Iterator[str]:
        rate, size = options.get("bw"), options.get("max_queue_size")
        if rate is not None:
            if _NUMBER.fullmatch(rate) and float(rate) > _MOST_BW:
                why = f"Mininet leaves bw above {_MOST_BW} aside"
                self._sink.warning("TS0973", span, f"bw={rate} limits this link", why)
            yield from self._number("bw", rate, "a number, in Mbit/s", 6, "up={}Mb symmetric", span)
        if size is not None and rate is None:
            self._lost("max_queue_size", span, "link without bw")
        elif size is not None and _COUNT.fullmatch(size):
            yield f"queue={size}pkt"
        elif size is not None:
            self._bad("max_queue_size", size, "a number of packets", span)

    def _number(
        self, word: str, value: str, what: str, places: int, form: str, span: Span
    ) -> Iterator[str]:
        """A program computes numbers (10 / 3): as many places as a plan has, and none becomes 0."""
        if not _NUMBER.fullmatch(value):
            self._bad(word, value, what, span)
            return
        exact = Decimal(value)
        rounded = Decimal(f"{exact:.{places}f}")
        if exact and not rounded:
            least = f"{Decimal(1).scaleb(-places):f}"
            self._bad(word, value, f"{what}, 0 or at least {least}", span)
        else:
            text = f"{rounded:f}"
            yield form.format(text.rstrip("0").rstrip(".") if "." in text else text)

    def _bad(self, word: str, value: str, what: str, span: Span) -> None:
        message = f"{word} is {what}, and not '{_shown(value)[:40]}'"
        self._sink.error("TS0501", span, message)
