"""A Kollaps experiment as statements.

What differs from what a reader of the words would think: bare times are seconds, bare latencies
milliseconds; an action without a number concerns one instance; a link that has only one rate has it
in both directions; a change of a link without `download` is one of the direction from origin to
dest; packets go by the fewest links unless `shortest_path` is latency. Source: the public
implementation (XMLGraphParser, xmlgraphparser.rs).
"""

from __future__ import annotations

import ast as python
import re
from collections.abc import Iterator, Sequence

from tdl.ast import Span
from tdl.diagnostics import Sink
from tdl.formats.attributes import Attribute
from tdl.formats.element_names import NAME_HINT, is_name
from tdl.formats.topologies.kollaps_files import KollapsFile, Thing, read_xml, read_yaml
from tdl.formats.written import array, image
from tdl.preprocess.includes import Reader
from tdl.preprocess.translated import Line, Piece, Translation
from tdl.suggest import did_you_mean

MAX_COMMAND = 4096
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+", re.ASCII)
_TIME = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:ns|us|ms|s|m|h)", re.ASCII)
_SHARE = re.compile(r"[0-9]+(?:\.[0-9]+)?%?", re.ASCII)
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGT]?)(?:bps|bit|b)", re.ASCII)
_LINK_WORDS = ("latency", "jitter", "drop", "upload", "download")
# How Kollaps finds its own parts.
_ELSEWHERE = ("activepaths", "ip", "machinename", "kollaps_folder", "topology_file",
              "controllername", "controller_ip", "script")  # fmt: skip
_OF_SERVICES = ("name", "image", "command", "share", "supervisor", "port", "reuse", "replicas",
                *_ELSEWHERE)  # fmt: skip
_OF_LINKS = ("origin", "dest", "network", *_LINK_WORDS)
_OF_EVENTS = ("name", "origin", "dest", "time", "action", "amount", "network", *_LINK_WORDS)
_COUNTED = ("join", "leave", "crash", "disconnect", "reconnect")
_UPDOWN = ("join", "leave")
_CONFIG = ("shortest_path", "pool_period", "max_age")


def translate_xml(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    return _translate(read_xml(read(paths[0]), paths[0], sink), sink)


def translate_yaml(paths: Sequence[str], read: Reader, sink: Sink) -> Translation | None:
    return _translate(read_yaml(read(paths[0]), paths[0], sink), sink)


def _translate(experiment: KollapsFile | None, sink: Sink) -> Translation | None:
    if experiment is None:
        return None
    return Translation(tuple(_Kollaps(experiment, sink).lines()))


class _Kollaps:
    def __init__(self, experiment: KollapsFile, sink: Sink) -> None:
        self._experiment = experiment
        self._sink = sink
        self._services: dict[str, Thing] = {}
        self._bridges: dict[str, Thing] = {}
        self._told: set[str] = set()
        self._declared = {id(thing) for thing in experiment.links}
        self._links = list(self._all_links())
        self._first_joins = {id(thing) for thing in self._links} - self._declared
        joining = (one for one in experiment.dynamic if _text(one, "action") == "join")
        self._joining = {_text(one, "name") for one in joining}

    def lines(self) -> Iterator[Line]:
        yield from self._routing()
        linked = {
            one.text
            for link in self._links
            for one in (link.get("origin"), link.get("dest"))
            if one
        }
        for thing in self._experiment.services:
            name = self._name(thing, _OF_SERVICES, "a service")
            if name is not None and self._is_part(thing, name.text, linked):
                self._services[name.text] = thing
                yield tuple(self._service(thing, name))
        for thing in self._experiment.bridges:
            name = self._name(thing, ("name",), "a bridge")
            if name is not None:
                self._bridges[name.text] = thing
                yield (Piece(f"bridge {name.text}", name.span),)
        yield from self._declared_links()
        for thing in self._experiment.dynamic:
            yield from self._event(thing)

    # --- the whole ---

    def _routing(self) -> Iterator[Line]:
        said = self._experiment.config.get("shortest_path")
        for word, one in self._experiment.config.items():
            if word not in _CONFIG:
                hint = did_you_mean(word, _CONFIG)
                self._sink.error("TS0501", one.span, f"config has no word '{word[:40]}'", hint)
            elif one is not said:
                self._lost(one.span, word, "the datapath has no such period")
        if said is not None and said.text not in ("hop", "latency"):
            self._sink.error(
                "TS0501", said.span, f"'{said.text[:40]}' is no way to route", "hop, latency"
            )
        elif said is None or said.text == "hop":
            span = said.span if said is not None else self._first()
            yield (Piece("routing hops", span),)

    def _first(self) -> Span:
        one = self._experiment
        return next(
            (t.span for s in (one.services, one.bridges, one.links) for t in s), Span(1, 1, 1, 2)
        )

    def _lost(self, span: Span, what: str, why: str) -> None:
        """Once for each word."""
        if what not in self._told:
            self._told.add(what)
            self._sink.warning("TS0971", span, f"{what} is not carried over", why)

    def _words(self, thing: Thing, known: Sequence[str], what: str) -> None:
        for word, one in thing.attributes.items():
            if word not in known:
                hint = did_you_mean(word, known) or f"it has {', '.join(known)}"
                self._sink.error("TS0501", one.span, f"{what} has no word '{word[:40]}'", hint)

    def _name(self, thing: Thing, known: Sequence[str], what: str) -> Attribute | None:
        """What declares it; None after a report."""
        self._words(thing, known, what)
        name = thing.get("name")
        if name is None:
            self._sink.error("TS0501", thing.span, f"{what} has a name", 'write name="…"')
            return None
        if not is_name(name.text):
            self._no_name(name)
            return None
        if name.text in self._services or name.text in self._bridges:
            self._sink.error("TS0501", name.span, f"'{name.text}' is declared twice")
            return None
        return name

    def _no_name(self, name: Attribute) -> None:
        message = f"nothing of an experiment can be called '{name.text[:80]}'"
        self._sink.error("TS0501", name.span, message, NAME_HINT)

    # --- services ---

    def _is_part(self, thing: Thing, name: str, linked: set[str]) -> bool:
        """Whether it is a program under test: the dashboard of Kollaps is none."""
        supervisor = thing.get("supervisor")
        if supervisor is None or name in linked:
            return True
        self._lost(
            supervisor.span, f"supervisor '{name}'", "a run has a page of its own, and `tstorm top`"
        )
        return False

    def _service(self, thing: Thing, name: Attribute) -> Iterator[Piece]:
        yield Piece(f"service {name.text}", name.span)
        if (said := thing.get("image")) and said.text:
            yield Piece(f"img={image(said.text)}", said.span)
        if said := thing.get("command"):
            yield from self._command(said)
        if (said := thing.get("replicas")) and name.text in self._joining:
            self._lost(said.span, f"replicas of {name.text}", "its joins say how many there are")
        elif said is not None:
            yield from self._number(said, "replicas={}", re.compile("[0-9]+"))
        if (said := thing.get("supervisor")) and said.text == "true":
            yield Piece("supervisor", said.span)
        if said := thing.get("port"):
            yield from self._number(said, "port={}", re.compile("[0-9]+"))
        if (said := thing.get("share")) and said.text == "true":
            yield Piece("share", said.span)
        if (said := thing.get("reuse")) and said.text != "true":
            why = "an instance that joins again has the name and the address that it had"
            self._lost(said.span, "reuse", why)
        for word in _ELSEWHERE:
            if said := thing.get(word):
                self._lost(said.span, word, "it is about the parts of Kollaps")

    def _command(self, said: Attribute) -> Iterator[Piece]:
        try:
            found = python.literal_eval(said.text) if len(said.text) <= MAX_COMMAND else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self._sink.error("TS0501", said.span, "this is no list of words", "write ['a', 'b']")
        elif found:
            yield Piece(f"command={array(found)}", said.span)

    def _number(self, said: Attribute, form: str, pattern: re.Pattern[str]) -> Iterator[Piece]:
        if pattern.fullmatch(said.text.strip()):
            yield Piece(form.format(said.text.strip()), said.span)
        else:
            self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is not what stands here")

    # --- links ---

    def _all_links(self) -> Iterator[Thing]:
        """Those that are declared, and those that only join later."""
        seen: set[frozenset[str]] = set()
        for thing in self._experiment.links:
            seen.add(_ends(thing))
            yield thing
        for thing in self._experiment.dynamic:
            if (
                _text(thing, "action") == "join"
                and _text(thing, "origin")
                and _ends(thing) not in seen
            ):
                seen.add(_ends(thing))
                yield thing

    def _declared_links(self) -> Iterator[Line]:
        by_ends: dict[tuple[str, str], Thing] = {}
        for thing in self._links:
            if id(thing) in self._declared:
                self._words(thing, _OF_LINKS, "a link")
            ends = (_text(thing, "origin"), _text(thing, "dest"))
            if not self._known_ends(thing):
                continue
            if ends in by_ends:
                self._sink.error("TS0501", thing.span, f"{ends[0]}--{ends[1]} is declared twice")
                continue
            by_ends[ends] = thing
        for (origin, dest), thing in by_ends.items():
            one_way = (dest, origin) in by_ends
            if (network := thing.get("network")) is not None:
                self._lost(network.span, "network", "the links are the network")
            yield (
                Piece(f"link {origin}{'->' if one_way else '--'}{dest}", _span(thing, "origin")),
                *self._properties(thing, one_way=one_way),
            )

    def _known_ends(self, thing: Thing) -> bool:
        missing = [word for word in ("origin", "dest") if thing.get(word) is None]
        for word in missing:
            self._sink.error("TS0501", thing.span, f"a link has {word}")
        for word in ("origin", "dest"):
            one = thing.get(word)
            if one is not None and not self._is_declared(one.text):
                hint = did_you_mean(one.text, [*self._services, *self._bridges])
                self._sink.error("TS0501", one.span, f"'{one.text[:80]}' is not declared", hint)
                missing.append(word)
        return not missing

    def _is_declared(self, name: str) -> bool:
        return name in self._services or name in self._bridges

    def _properties(self, thing: Thing, *, one_way: bool) -> Iterator[Piece]:
        yield from self._measures(thing)
        up, down = thing.get("upload"), thing.get("download")
        if one_way:
            one = up or down
            if one is not None:
                yield from self._rate(one, "up")
            return
        for one, word in ((up or down, "up"), (down or up, "down")):
            if one is not None:
                yield from self._rate(one, word)

    def _measures(self, thing: Thing) -> Iterator[Piece]:
        for word, form in (("latency", "latency={}"), ("jitter", "jitter={}"), ("drop", "loss={}")):
            if said := thing.get(word):
                text = said.text.strip()
                fits = _SHARE if word == "drop" else _NUMBER
                if not fits.fullmatch(text) and not (word != "drop" and _TIME.fullmatch(text)):
                    self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is no {word}")
                else:
                    yield Piece(
                        form.format(f"0{text}" if text.startswith(".") else text), said.span
                    )

    def _rate(self, said: Attribute, word: str) -> Iterator[Piece]:
        match = _RATE.fullmatch(said.text.strip())
        if match is None:
            hint = "write a number with Kbps, Mbps or Gbps"
            self._sink.error("TS0501", said.span, f"'{said.text[:40]}' is no rate", hint)
        else:
            yield Piece(f"{word}={match[1]}{match[2]}b", said.span)

    # --- what happens ---

    def _event(self, thing: Thing) -> Iterator[Line]:
        self._words(thing, _OF_EVENTS, "an event")
        at = thing.get("time")
        if at is None or not (_NUMBER.fullmatch(at.text) or _TIME.fullmatch(at.text)):
            span = thing.span if at is None else at.span
            self._sink.error("TS0501", span, "an event has a time", "in seconds, from 0 on")
            return
        when = Piece(f"at {at.text if _TIME.fullmatch(at.text) else f'{at.text}s'}", at.span)
        if thing.get("origin") or thing.get("dest"):
            if self._known_ends(thing):
                yield from self._of_link(thing, when)
        elif (name := thing.get("name")) is not None:
            yield from self._of_element(thing, name, when)
        else:
            self._sink.error("TS0501", thing.span, "an event has a name, or origin and dest")

    def _of_element(self, thing: Thing, name: Attribute, when: Piece) -> Iterator[Line]:
        is_bridge = name.text in self._bridges
        if not is_bridge and name.text not in self._services:
            dropped = any(_text(one, "name") == name.text for one in self._experiment.services)
            if not dropped:
                hint = did_you_mean(name.text, [*self._services, *self._bridges])
                self._sink.error("TS0501", name.span, f"'{name.text[:80]}' is not declared", hint)
            return
        action = self._action(thing, _UPDOWN if is_bridge else _COUNTED)
        if action is None:
            return
        for word in _LINK_WORDS:
            if said := thing.get(word):
                self._lost(said.span, word, f"{action.text} changes no link")
        target, amount = Piece(name.text, name.span), thing.get("amount")
        if is_bridge:
            yield when, target, action
        elif amount is None:
            yield when, target, action, Piece("1", action.span)
        else:
            yield when, target, action, *self._number(amount, "{}", re.compile("[1-9][0-9]*"))

    def _action(self, thing: Thing, known: Sequence[str]) -> Piece | None:
        said = thing.get("action")
        if said is None or said.text not in known:
            span = thing.span if said is None else said.span
            hint = did_you_mean(said.text, known) if said else None
            message = (
                "an event has an action"
                if said is None
                else f"'{said.text[:40]}' is no action of it"
            )
            self._sink.error("TS0501", span, message, hint or ", ".join(known))
            return None
        return Piece(said.text, said.span)

    def _of_link(self, thing: Thing, when: Piece) -> Iterator[Line]:
        origin, dest = _text(thing, "origin"), _text(thing, "dest")
        place = _span(thing, "origin")
        both = Piece(f"{origin}--{dest}", place)
        is_new = id(thing) in self._first_joins
        if thing.get("action") is not None:
            action = self._action(thing, _UPDOWN)
            if action is not None and action.text == "join" and not is_new:
                yield from self._changed(thing, when, both)
            elif action is not None and action.text == "leave":
                for word in _LINK_WORDS:
                    if said := thing.get(word):
                        self._lost(said.span, word, "a link that leaves is down")
            if action is not None:
                yield when, both, action
        elif thing.get("download") is None:
            yield from self._changed(thing, when, Piece(f"{origin}->{dest}", place))
        else:
            yield from self._changed(thing, when, both)

    def _changed(self, thing: Thing, when: Piece, link: Piece) -> Iterator[Line]:
        one_way = "->" in link.text
        changes = [*self._measures(thing)]
        for word, name in (("upload", "rate" if one_way else "up"), ("download", "down")):
            if said := thing.get(word):
                changes += self._rate(said, name)
        if changes:
            yield when, link, Piece("set", link.span), *changes
        elif thing.get("action") is None:
            self._sink.error(
                "TS0501", thing.span, "nothing changes", f"{', '.join(_LINK_WORDS)}, or action"
            )


def _text(thing: Thing, word: str) -> str:
    said = thing.get(word)
    return said.text if said else ""


def _span(thing: Thing, word: str) -> Span:
    said = thing.get(word)
    return said.span if said else thing.span


def _ends(thing: Thing) -> frozenset[str]:
    return frozenset((_text(thing, "origin"), _text(thing, "dest")))
