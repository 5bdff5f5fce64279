"""Builds the dynamic part of the tree: times, selectors and actions."""

from __future__ import annotations

from dataclasses import replace

from tdl import ast, values
from tdl.bounds import MAX_FLOWS
from tdl.building.builder import (
    WrittenProperty,
    cover,
    join_spans,
    name,
    shown,
)
from tdl.building.class_actions import Option
from tdl.building.drawn_actions import Clause
from tdl.building.host_actions import HostActions
from tdl.building.hunt_actions import HuntActions
from tdl.building.member_actions import MemberActions
from tdl.building.mobility_actions import MobilityActions
from tdl.building.path_actions import AUTO
from tdl.building.reaction_actions import ReactionActions
from tdl.building.static import NO_TRACE
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    BOTTLENECK_PROPERTIES,
    CHANGEABLE,
    CLOCK_WORDS,
    HOST_WORDS,
    LINK_ALIASES,
    LINK_PROPERTIES,
    ONLY,
    OTHER_PROPERTIES,
    PATH_WORDS,
    SERVICE_PROPERTIES,
    SET_PROPERTIES,
)

_Period = tuple[Token, Option]
_Statements = tuple[ast.Statement, ...]
_Timed = tuple[Clause, ast.Action, ast.DrawnTiming | None]
_OPEN_ENDED = (ast.Churn, ast.Flap)
_PERIOD_ONLY = (*_OPEN_ENDED, ast.Ramp)
# Kinds of properties that do not go from one value to another by steps.
_NO_NUMBERS = {"name": "distributions", "aqm": "disciplines", "file": "traces", "end": "traces"}
RAMP_EVERY_NS = 100_000_000  # where nothing is said
_IN_INTERVALS = (
    ast.Join,
    ast.Leave,
    ast.Crash,
    ast.Kill,
    ast.Disconnect,
    ast.Pause,
    ast.Set,
    ast.SetClock,
    ast.SetDisk,
    ast.Background,
    ast.Partition,
    *_PERIOD_ONLY,
)


class Actions(MemberActions, HostActions, ReactionActions, MobilityActions, HuntActions):
    """Actions of the rules for events, and by inheritance all the actions of the grammar."""

    # --- statements ---

    def at(self, word: Token, time: Token, clauses: list[Clause]) -> _Statements:
        start = self.number(time, values.time)
        made = []
        for clause in clauses:
            action, drawn = self.timed(clause, start, interval=False)
            if isinstance(action, _PERIOD_ONLY) and drawn is None:
                verb = clause.verb.text
                hint = f"write from {time.text} to … {verb}"
                if verb == "churn":
                    hint += "; for one moment use crash"
                self.error("TS0206", clause.verb.span, f"{verb} goes on for a while", hint)
            self.check_moment(clause)
            made.append((clause, action, drawn))
        return self._events(word, start, None, made)

    def interval(
        self, word: Token, first: Token, _to: Token, last: Token, clauses: list[Clause]
    ) -> _Statements:
        errors = self.errors
        start, end = self.number(first, values.time), self.number(last, values.time)
        if self.errors == errors and end <= start:
            same = "when" if end == start else "before"
            message = f"the interval ends {same} it begins: {last.text} is not after {first.text}"
            self.error("TS0301", cover(first, last), message)
        made = []
        for clause in clauses:
            action, drawn = self.timed(clause, end, interval=True)
            if not clause.tail:
                self._check_interval(clause, first)
            if isinstance(action, ast.Flap) and self.errors == errors:
                self._check_period(action, drawn.shortest_ns if drawn else end - start)
            made.append((clause, action, drawn))
        return self._events(word, start, end, made)

    def open_end(self, word: Token, first: Token, clauses: list[Clause]) -> _Statements:
        start = self.number(first, values.time)
        for clause in clauses:
            if not isinstance(clause.action, _OPEN_ENDED):
                verb = clause.verb.text
                needs, hint = "an end", "add 'to' and the end"
                if verb != "ramp":
                    needs, hint = f"{needs} or an instant", f"write 'at {first.text}', or {hint}"
                self.error("TS0308", clause.verb.span, f"{verb} needs {needs}", hint)
            self._no_tail(clause)
        return self._events(word, start, None, _all(clauses), open_ended=True)

    def _no_tail(self, clause: Clause) -> None:
        """Of what goes on until the end."""
        if clause.tail:
            message = f"{clause.verb.text} without an end has no '{clause.tail[0].text}'"
            hint = "write 'at T …', or 'from … to …', which draws its moment"
            self.error("TS0221", clause.tail[0].span, message, hint)

    def timeless(self, clauses: list[Clause]) -> _Statements:
        for clause in clauses:
            if not isinstance(clause.action, _OPEN_ENDED):
                verb = clause.verb.text
                begin = "from 10s to 20s" if verb == "ramp" else "at 10s"
                hint = f"begin with a time, such as '{begin} {verb}'"
                self.error("TS0308", clause.verb.span, f"{verb} needs a time", hint)
            self._no_tail(clause)
        return self._events(self.tokens[0], 0, None, _all(clauses), open_ended=True)

    def _events(
        self,
        word: Token,
        start: int,
        end: int | None,
        clauses: list[_Timed],
        *,
        open_ended: bool = False,
    ) -> _Statements:
        events: list[ast.Statement] = []
        for clause, action, drawn in clauses:
            span = clause.span
            if not events:
                span = span.over(word.line, word.col, span.end_line, span.end_col)
            targets = clause.selectors or (ast.Everything(clause.verb.span),)
            events.extend(
                ast.Dynamic(start, end, target, action, span, open_ended, drawn)
                for target in targets
            )
        return tuple(events)

    def _check_interval(self, clause: Clause, first: Token) -> None:
        if isinstance(clause.action, _IN_INTERVALS):
            return
        verb = clause.verb.text
        hint = f"write 'at {first.text} … {verb}'"
        if verb == "reconnect":
            hint += "; 'from … to … disconnect' reconnects the same instances at the end"
        elif verb == "resume":
            hint += "; 'from … to … pause' resumes the same instances at the end"
        elif verb == "restart":
            hint += "; churn with 'replace 100%' restarts some at random moments"
        if verb != "quit":
            hint += f", or 'from … to … {verb} sometime'"
        self.error("TS0207", clause.verb.span, f"{verb} happens at one moment", hint)

    def _check_period(self, flap: ast.Flap, length: int) -> None:
        if flap.period_ns >= length:
            message = "the period is as long as the interval: the link goes down once"
            self.sink.warning("TS0908", flap.span, message)

    # --- selectors ---

    def pair(self, a: Token, dash: Token, b: Token) -> ast.LinkSelector:
        directed = dash.type == "ARROW"
        one, other = self.element(a), self.element(b)
        if a.text == b.text and (one.index is not None or directed):
            self.error("TS0107", cover(a, b), f"no link goes from '{a.text}' to itself")
        return ast.LinkSelector(one, other, directed, cover(a, b))

    direction = pair

    def named_pair(self, label: Token, a: Token, dash: Token, b: Token) -> ast.LinkSelector:
        called = label.text.removesuffix(":")
        given = ast.Name(called, label.part(0, len(called)))
        return replace(self.pair(a, dash, b), name=given, span=cover(label, b))

    named_direction = named_pair

    def entities(self, found: list[ast.Selector]) -> tuple[ast.Selector, ...]:
        return tuple(found)

    def tagged(self, key: Token, names: list[Token]) -> tuple[ast.Selector, ...]:
        return (ast.Tagged(self.names(names, "tag"), cover(key, names[-1])),)

    # --- other actions ---

    def period(self, *words: Token | Option) -> _Period:
        """`500ms`, or `freq 500ms`, and what stands behind."""
        *_, value, option = words
        assert isinstance(value, Token)
        assert not isinstance(option, Token)
        return value, option

    def flap_all(self, verb: Token, period: _Period, tail: list[Token]) -> Clause:
        return self.flap((), verb, period, tail)

    def flap_verb(
        self, verb: Token, selectors: tuple[ast.Selector, ...], period: _Period, tail: list[Token]
    ) -> Clause:
        return self.flap(selectors, verb, period, tail)

    def flap(
        self, selectors: tuple[ast.Selector, ...], verb: Token, found: _Period, tail: list[Token]
    ) -> Clause:
        period, option = found
        self.option(verb, option)
        errors = self.errors
        length = self.number(period, values.time)
        if length == 0 and self.errors == errors:
            self.error("TS0210", period.span, "a flap needs a period greater than zero")
        return self.clause(selectors, ast.Flap(length, cover(verb, period)), verb, tail)

    def background_all(
        self, verb: Token, rate: Token, reaction: Option, tail: list[Token]
    ) -> Clause:
        return self.background((), verb, rate, reaction, tail)

    def background_verb(
        self,
        verb: Token,
        selectors: tuple[ast.Selector, ...],
        rate: Token,
        reaction: Option,
        tail: list[Token],
    ) -> Clause:
        return self.background(selectors, verb, rate, reaction, tail)

    def background(
        self,
        selectors: tuple[ast.Selector, ...],
        verb: Token,
        rate: Token,
        reaction: Option,
        tail: list[Token],
    ) -> Clause:
        number = self.number(rate, values.rate)
        span, flows = cover(verb, rate), 0
        if isinstance(reaction, WrittenProperty):
            span = join_spans([span, reaction.span])
            flows = self._reaction(reaction)
        return self.clause(selectors, ast.Background(number, span, flows), verb, tail)

    def _reaction(self, prop: WrittenProperty) -> int:
        """How many flows make the background."""
        if (prop.name, prop.op) != ("flows", "="):
            hint = "background 8Mb flows=3: three flows, which give way"
            if prop.name == ONLY:
                hint = "leave it out: a background takes of what the whole link carries"
            self.error("TS0012", prop.name_span, f"background does not know '{prop.name}'", hint)
            return 0
        flows = self.measure(prop, values.whole, "a number of flows", 1)
        if not 1 <= flows <= MAX_FLOWS:
            message = f"from 1 to {MAX_FLOWS:,} flows make a background"
            self.error(
                "TS0243", prop.span, message, "leave flows= out for one that never gives way"
            )
        return flows

    def solo(self, verb: Token, tail: list[Token]) -> Clause:
        action = ast.Quit(verb.span) if verb.text == "quit" else ast.Heal(verb.span)
        return self.clause((), action, verb, tail)

    def solo_verb(
        self, verb: Token, selectors: tuple[ast.Selector, ...], tail: list[Token]
    ) -> Clause:
        return self.solo_of(selectors, verb, tail)

    def solo_of(
        self, selectors: tuple[ast.Selector, ...], verb: Token, tail: list[Token]
    ) -> Clause:
        self._no_selector(selectors, verb)
        return self.solo(verb, tail)

    def _no_selector(self, selectors: tuple[ast.Selector, ...], verb: Token) -> None:
        message = f"{verb.text} concerns the whole experiment"
        hint = "to stop a service use leave or crash" if verb.text == "quit" else None
        span = join_spans(selector.span for selector in selectors)
        self.error("TS0205", span, message, hint or "leave the selector out")

    def member_tag(self, key: Token, tag: Token) -> ast.Tagged:
        return ast.Tagged((name(tag),), cover(key, tag))

    def partition_of(
        self,
        selectors: tuple[ast.Selector, ...],
        verb: Token,
        groups: list[list[ast.Element | ast.Tagged]],
        option: Option,
        tail: list[Token],
    ) -> Clause:
        self._no_selector(selectors, verb)
        return self.partition(verb, groups, option, tail)

    def partition(
        self,
        verb: Token,
        groups: list[list[ast.Element | ast.Tagged]],
        option: Option,
        tail: list[Token],
    ) -> Clause:
        span = join_spans([verb.span, groups[-1][-1].span])
        if len(groups) < 2:
            hint = "separate the groups with ';': partition a b;c"
            self.error("TS0211", span, "a partition needs at least two groups", hint)
        return self._parting(verb, groups, span, option, tail)

    def partition_drawn(
        self,
        verb: Token,
        number: Token,
        _of: Token,
        group: list[ast.Element | ast.Tagged],
        option: Option,
        tail: list[Token],
    ) -> Clause:
        """So many of one group, from the others of it."""
        count = self.count(number, ())
        span = join_spans([verb.span, group[-1].span])
        return self._parting(verb, [group], span, option, tail, count=count)

    def partition_one_way(
        self,
        verb: Token,
        source: list[ast.Element | ast.Tagged],
        _arrow: Token,
        target: list[ast.Element | ast.Tagged],
        option: Option,
        tail: list[Token],
    ) -> Clause:
        span = join_spans([verb.span, target[-1].span])
        return self._parting(verb, [source, target], span, option, tail, one_way=True)

    def _parting(
        self,
        verb: Token,
        groups: list[list[ast.Element | ast.Tagged]],
        span: ast.Span,
        option: Option,
        tail: list[Token],
        *,
        one_way: bool = False,
        count: ast.Count | None = None,
    ) -> Clause:
        self._check_members(groups)
        only = self.option(verb, option)
        span = span if only is None else join_spans([span, only.span])
        parted = tuple(tuple(group) for group in groups)
        action = ast.Partition(parted, span, one_way, only, count)
        return self.clause((), action, verb, tail)

    def _check_members(self, groups: list[list[ast.Element | ast.Tagged]]) -> None:
        """The same words on two sides; what they resolve to is the compiler's to compare."""
        side: dict[str, int] = {}
        for index, group in enumerate(groups):
            for member in group:
                words = _member_text(member)
                if side.setdefault(words, index) != index:
                    self.error("TS0212", member.span, f"'{words}' is in two groups")

    # --- set ---

    def set_all(self, verb: Token, assignments: list[WrittenProperty], tail: list[Token]) -> Clause:
        return self.set_of((), verb, assignments, tail)

    def set_verb(
        self,
        verb: Token,
        selectors: tuple[ast.Selector, ...],
        assignments: list[WrittenProperty],
        tail: list[Token],
    ) -> Clause:
        return self.set_of(selectors, verb, assignments, tail)

    def set_of(
        self,
        selectors: tuple[ast.Selector, ...],
        verb: Token,
        assignments: list[WrittenProperty],
        tail: list[Token],
    ) -> Clause:
        step = tail[:2] if tail and tail[0].text == "every" and verb.text == "ramp" else []
        tail = tail[len(step) :]
        span = join_spans([verb.span, assignments[-1].span, *(word.span for word in step)])
        if any(prop.name in CLOCK_WORDS for prop in assignments):
            clock = self.set_clock(verb, assignments, span)
            return self.clause(selectors, clock, verb, tail)
        if any(prop.name == "disk" for prop in assignments):
            disk = self.set_disk(verb, assignments, span)
            return self.clause(selectors, disk, verb, tail)
        found: dict[str, ast.Assignment] = {}
        some = [prop for prop in assignments if prop.name == ONLY and prop.op]
        for prop in assignments:
            if prop.op and prop not in some:
                self._assign(prop, found)
        for prop in assignments:
            if not prop.op:
                self._set_flag(prop, found)
        self._take_trace_end(found)
        self._check_together(found)
        chosen = self.packets(some, verb, tuple(found)) if some else None
        action = self._changing(verb, tuple(found.values()), step, span)
        return self.clause(selectors, replace(action, only=chosen), verb, tail)

    def _changing(
        self, verb: Token, changes: tuple[ast.Assignment, ...], step: list[Token], span: ast.Span
    ) -> ast.Set | ast.Ramp:
        """`set`, or `ramp` with its steps."""
        if verb.text != "ramp":
            return ast.Set(changes, span)
        every_ns = self.number(step[1], values.time, RAMP_EVERY_NS) if step else RAMP_EVERY_NS
        if not every_ns:
            self.error("TS0210", step[1].span, "the steps must be further apart than zero")
        for one in changes:
            kind = CHANGEABLE[one.prop.text].kind
            if kind in _NO_NUMBERS:
                message = f"between two {_NO_NUMBERS[kind]} there are no values"
                hint = f"write 'at T … set {one.prop.text}=…'"
                self.error("TS0214", one.span, message, hint)
            elif one.prop.text in PATH_WORDS and one.prop.text not in BOTTLENECK_PROPERTIES:
                message = f"{one.prop.text} of a path changes at once"
                self.error("TS0214", one.span, message, f"write 'at T … set {one.prop.text}=…'")
        return ast.Ramp(changes, every_ns or RAMP_EVERY_NS, span)

    def _assign(self, prop: WrittenProperty, found: dict[str, ast.Assignment]) -> None:
        word = LINK_ALIASES.get(prop.name, prop.name)
        if word not in CHANGEABLE:
            meant = OTHER_PROPERTIES.get(prop.name, prop.name)
            hint = did_you_mean(meant, (*SET_PROPERTIES, *LINK_ALIASES, *HOST_WORDS))
            if word in LINK_PROPERTIES or word in SERVICE_PROPERTIES:
                message = f"{prop.name} cannot be changed"
                hint = "set changes " + ", ".join(SET_PROPERTIES)
                self.error("TS0213", prop.name_span, message, hint)
                return
            message = f"a link has no property '{prop.name}'"
            hint = hint or "set changes " + ", ".join(SET_PROPERTIES)
            if prop.name == "every":
                hint = "write it without '=', behind the values: ramp latency=50ms every 500ms"
            self.error("TS0012", prop.name_span, message, hint)
            return
        if word in found:
            self.error("TS0013", prop.name_span, f"{prop.name} is set twice", "keep one of them")
            return
        found[word] = self._assignment(prop, ast.Name(word, prop.name_span))

    def _set_flag(self, prop: WrittenProperty, found: dict[str, ast.Assignment]) -> None:
        """`up=… symmetric` sets the rate of both directions."""
        if prop.name != "symmetric":
            self.error("TS0012", prop.span, f"set does not know '{prop.name}'")
        elif "down" in found or "rate" in found or "up" not in found:
            message = "symmetric copies up= to down="
            self.error("TS0110", prop.span, message, "write set rate=… for both directions")
        else:
            up = found["up"]
            both = ast.Assignment(ast.Name("rate", up.prop.span), up.op, up.value, up.span)
            items = [
                ("rate", both) if key == "up" else (key, value) for key, value in found.items()
            ]
            found.clear()
            found.update(items)

    def _take_trace_end(self, found: dict[str, ast.Assignment]) -> None:
        """It is a part of the traces that are set."""
        end = found.pop("trace-end", None)
        if end is None:
            return
        traces = [word for word, one in found.items() if one.trace is not None]
        if not traces:
            hint = "add trace=FILE, or leave it out"
            self.error("TS0175", end.span, "trace-end is about a trace, and none is set", hint)
        for word in traces:
            trace = found[word].trace
            assert trace is not None
            held = replace(trace, holds=end.word == "hold")
            found[word] = replace(found[word], trace=held)

    def _check_together(self, found: dict[str, ast.Assignment]) -> None:
        self.check_path_words({word: one.prop.span for word, one in found.items()})
        for both in ("rate", "trace"):
            for direction in ("up", "down"):
                one = direction if both == "rate" else f"trace-{direction}"
                if both in found and one in found:
                    message = f"{both} sets up and down; {one} is one too many"
                    self.error("TS0013", found[one].prop.span, message)
        latency, jitter = found.get("latency"), found.get("jitter")
        if latency is None or jitter is None or latency.value is None or jitter.value is None:
            return
        absolute = latency.op is ast.Op.ASSIGN and jitter.op is ast.Op.ASSIGN
        if absolute and jitter.value > latency.value:
            hint = "delay cannot be negative: raise the latency or lower the jitter"
            self.error("TS0105", jitter.span, "jitter is greater than the latency", hint)

    def _assignment(self, prop: WrittenProperty, word: ast.Name) -> ast.Assignment:
        op = {"=": ast.Op.ASSIGN, "+=": ast.Op.ADD, "-=": ast.Op.SUB}[prop.op]
        kind = CHANGEABLE[word.text].kind
        if kind == "name":
            return self._assign_distribution(prop, word, op)
        if kind in ("file", "end"):
            return self._assign_trace(prop, word, op)
        if kind == "aqm":
            return self._assign_aqm(prop, word, op)
        if kind == "table" or prop.values[0].text == AUTO:
            return self._assign_whole(prop, word, op)
        token = prop.values[0]
        share = token.type == "VALUE" and token.text.endswith("%") and kind != "share"
        if share and op is not ast.Op.ASSIGN:
            self._relative_share(prop, token)
            return ast.Assignment(word, op, 0, prop.span)
        if share:
            value = self.measure(prop, values.percent, "a percentage", default=1)
            if value == 0 and kind in ("rate", "queue"):
                self.error("TS0104", prop.span, f"0% of {word.text} leaves nothing")
            return ast.Assignment(word, ast.Op.SCALE, value, prop.span)
        if kind == "queue":
            queue = self.queue_size(prop) or ast.QueueSize(1, "bytes")
            unit = None if queue.unit == "bytes" else queue.unit
            return ast.Assignment(word, op, queue.value, prop.span, unit)
        return ast.Assignment(word, op, self._set_value(prop, word.text, op), prop.span)

    def _assign_distribution(
        self, prop: WrittenProperty, word: ast.Name, op: ast.Op
    ) -> ast.Assignment:
        self._only_assigned(prop, op, "a name")
        chosen = self.distribution(prop)
        delays = chosen if isinstance(chosen, ast.DelayFile) else None
        name = chosen.source if isinstance(chosen, ast.DelayFile) else chosen
        return ast.Assignment(word, ast.Op.ASSIGN, None, prop.span, name, delays=delays)

    def _assign_whole(self, prop: WrittenProperty, word: ast.Name, op: ast.Op) -> ast.Assignment:
        """A table, or the word `auto` of a queue."""
        if op is not ast.Op.ASSIGN:
            message = f"{prop.op} takes a number, not {shown(prop.values[0])}"
            self.error("TS0214", prop.span, message, f"write {prop.key_name}=…")
        elif CHANGEABLE[word.text].kind == "table":
            rows = self.flow_table(prop)
            return ast.Assignment(word, op, None, prop.span, rows=rows)
        elif not word.text.startswith("queue"):
            self.error("TS0015", prop.span, f"{word.text} takes a value, not '{AUTO}'")
        return ast.Assignment(word, ast.Op.ASSIGN, None, prop.span, AUTO)

    def _assign_trace(self, prop: WrittenProperty, word: ast.Name, op: ast.Op) -> ast.Assignment:
        self._only_assigned(prop, op, "no number")
        if word.text == "trace-end":
            end = "hold" if self.trace_end(prop) else "loop"
            return ast.Assignment(word, ast.Op.ASSIGN, None, prop.span, end)
        trace = self.trace_file(prop, holds=False)
        name = NO_TRACE if trace is None else trace.source
        return ast.Assignment(word, ast.Op.ASSIGN, None, prop.span, name, trace=trace)

    def _assign_aqm(self, prop: WrittenProperty, word: ast.Name, op: ast.Op) -> ast.Assignment:
        self._only_assigned(prop, op, "a name")
        return ast.Assignment(word, ast.Op.ASSIGN, None, prop.span, self.aqm_text(prop))

    def _only_assigned(self, prop: WrittenProperty, op: ast.Op, what: str) -> None:
        if op is not ast.Op.ASSIGN:
            message = f"{prop.name} is {what}; {prop.op} has no meaning"
            self.error("TS0214", prop.key.span, message)

    def _relative_share(self, prop: WrittenProperty, token: Token) -> None:
        hint = f"write {prop.key_name}=… with the percentage that is left, such as 110% or 90%"
        self.error("TS0214", prop.span, f"{prop.op} takes a value, not {shown(token)}", hint)

    def _set_value(self, prop: WrittenProperty, word: str, op: ast.Op) -> int | None:
        """The value of an absolute, += or -= assignment in the property's own unit."""
        if op is ast.Op.ASSIGN:
            match CHANGEABLE[word].kind:
                case "rate":
                    return self.path_rate(prop) if word in PATH_WORDS else self.rate(prop)
                case "size" if word in PATH_WORDS:
                    return self._size(prop) if word == "wmax" else self.path_bytes(prop)
            return self._amount(prop, word)
        token = prop.values[0]
        if token.type == "NAME" and token.text == "unlimited":
            self.error("TS0214", prop.span, f"{prop.op} needs a number, not 'unlimited'")
            return 0
        return self.measured(prop, word)


def _all(clauses: list[Clause]) -> list[_Timed]:
    return [(clause, clause.action, None) for clause in clauses]


def _member_text(member: ast.Element | ast.Tagged) -> str:
    if isinstance(member, ast.Tagged):
        return "tags=" + member.tags[0].text
    return member.name.text if member.index is None else f"{member.name.text}.{member.index}"
