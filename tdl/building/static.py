"""Builds the static part of the tree: bootstrapper, seed, routing, service, bridge, link."""

from __future__ import annotations

import re
from functools import partial

from tdl import aqm, ast, link_rules, quantities, values
from tdl.bounds import MAX_QUEUE_BYTES, MAX_SEED
from tdl.building.address_actions import AddressActions
from tdl.building.builder import (
    WrittenProperty,
    cover,
    name,
    shown,
)
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    BRIDGE_PROPERTIES,
    CHANGEABLE,
    DIALECTS,
    DISTRIBUTIONS,
    EXTERNAL_PROPERTIES,
    GATEWAY,
    HOPS,
    INTERFACES,
    KERNEL,
    LINK_ALIASES,
    LINK_PROPERTIES,
    LINK_WORDS,
    NETWORKS,
    NODE_PROPERTIES,
    OF_SERVICES,
    ROUTER,
    ROUTINGS,
    SERVICE_ALIASES,
    SERVICE_PROPERTIES,
    TRACE_ENDS,
)
from tdl.values import ValueProblem

FULL_PACKET_BYTES = 1500
UNLIMITED = "unlimited"
NO_TRACE = "none"
_QUEUES = "a size such as 64KB, 100pkt or 50ms"
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTES = "\"'“‘"
_Statements = tuple[ast.Statement, ...]
_OPTION_NOTES = {
    "supervisor": "marks a tool of another system: nothing without a selector concerns it",
    "reuse": "is about addresses after a leave: an instance always keeps its own; no effect here",
    "network": "names a container network of another system; no effect here",
}


class StaticActions(AddressActions):
    """Actions of the rules for declarations."""

    def bootstrapper(self, _word: Token, text: Token) -> _Statements:
        return (ast.Bootstrapper(self._image(text), self.whole_span),)

    def seed(self, _word: Token, value: Token) -> _Statements:
        number = self.number(value, lambda text: values.whole(text, MAX_SEED))
        return (ast.Seed(number, self.whole_span),)

    def routing(self, _word: Token, metric: Token) -> _Statements:
        if metric.text not in ROUTINGS:
            known = "routing is 'delay', 'hops', 'direct' or 'ecmp'"
            hint = did_you_mean(metric.text, ROUTINGS) or known
            self.error("TS0116", metric.span, f"unknown routing '{metric.text}'", hint)
        return (ast.Routing(metric.text, self.whole_span),)

    def dialect(self, word: Token, said: Token) -> _Statements:
        if said.text not in DIALECTS:
            hint = did_you_mean(said.text, DIALECTS) or f"known is {', '.join(DIALECTS)}"
            self.error("TS0034", said.span, f"unknown dialect '{said.text}'", hint)
        if self.one_way is not None:
            message = f"the link on {ast.said(self.one_way.place)} is read before it"
            self.error("TS0034", word.span, message, "write it at the beginning")
        self.reads_as = said.text
        return (ast.Dialect(said.text, self.whole_span),)

    def network(self, _word: Token, family: Token) -> _Statements:
        if family.text not in NETWORKS:
            hint = did_you_mean(family.text, NETWORKS) or "network is dual, ipv4 or ipv6"
            self.error("TS0131", family.span, f"unknown network '{family.text}'", hint)
        return (ast.Network(family.text, self.whole_span),)

    def hops(self, _word: Token, said: Token) -> _Statements:
        if said.text not in HOPS:
            hint = did_you_mean(said.text, HOPS) or "hops answer, or are silent"
            self.error("TS0177", said.span, f"hops cannot be '{said.text}'", hint)
        return (ast.Hops(said.text, self.whole_span),)

    def start_when(self, _word: Token, _when: Token, ready: Token) -> _Statements:
        if ready.text != "ready":
            message = f"nothing starts when '{ready.text}'"
            self.error("TS0132", ready.span, message, "write start when ready")
        return (ast.StartWhenReady(self.whole_span),)

    def quit_when(
        self, _verb: Token, _when: Token, services: list[ast.Selector], exits: Token
    ) -> _Statements:
        if exits.text not in ("exit", "exits"):
            message = f"nothing quits when something '{exits.text}'"
            self.error("TS0132", exits.span, message, "write quit when NAME exits")
        found: list[ast.Name] = []
        for service in services:
            if isinstance(service, ast.Element) and service.index is None:
                found.append(service.name)
            else:
                message = "quit when … exits waits for services"
                self.error("TS0132", service.span, message, "name a service, or write all")
        every = [name.text for name in found] == ["all"]
        return (ast.QuitWhen(() if every else tuple(found), self.whole_span),)

    def bridge(self, _word: Token, token: Token, properties: list[WrittenProperty]) -> _Statements:
        return self.bridges(_word, [token], properties)

    def bridges(
        self, _word: Token, tokens: list[Token], properties: list[WrittenProperty]
    ) -> _Statements:
        found = self.collect(properties, "bridge", BRIDGE_PROPERTIES, {})
        names: list[ast.Name] = []
        seen: set[str] = set()
        for token in tokens:
            if token.text in seen:
                self.error("TS0101", token.span, f"'{token.text}' is declared twice")
            seen.add(token.text)
            names.append(name(token))
        return (ast.Bridges(tuple(names), self.whole_span, self._tags(found)),)

    def node(
        self, _word: Token, token: Token, properties: list[WrittenProperty], _brace: Token
    ) -> _Statements:
        """The first line: how many machines of this kind there are, and their bounds."""
        aliases = {short: word for short, word in SERVICE_ALIASES.items() if word == "mem"}
        found = self.collect(properties, "node", NODE_PROPERTIES, aliases)
        replicas, cpu, mem = found.get("replicas"), found.get("cpu"), found.get("mem")
        return (
            ast.NodeStatement(
                name(token),
                self.whole_span,
                1 if replicas is None else self._replicas(replicas),
                None if cpu is None else self._cpu(cpu),
                None if mem is None else self._size(mem),
                self._tags(found),
            ),
        )

    def lan(self, _word: Token, token: Token, properties: list[WrittenProperty]) -> _Statements:
        found = self.collect(properties, "lan", BRIDGE_PROPERTIES, {}, (KERNEL,))
        of_kernel = found.get(KERNEL) is not None
        tags = self._tags(found)
        return (ast.Bridges((name(token),), self.whole_span, tags, lan=True, of_kernel=of_kernel),)

    def air(self, _word: Token, token: Token, properties: list[WrittenProperty]) -> _Statements:
        found = self.collect(properties, "air", BRIDGE_PROPERTIES, {})
        return (
            ast.Bridges((name(token),), self.whole_span, self._tags(found), lan=True, air=True),
        )

    def service(self, _word: Token, token: Token, properties: list[WrittenProperty]) -> _Statements:
        options = ("supervisor", "share", "reuse")
        flags = (*options, *OF_SERVICES)
        found = self.collect(properties, "service", SERVICE_PROPERTIES, SERVICE_ALIASES, flags)
        get = found.get
        image, line, command, replicas = get("img"), get("exec"), get("command"), get("replicas")
        cpu, mem, env, program = get("cpu"), get("mem"), get("env"), get("entrypoint")
        return (
            ast.ServiceStatement(
                name=name(token),
                span=self.whole_span,
                image=None if image is None else self._image_property(image),
                exec=None if line is None else self.command_line(line),
                command=None if command is None else self._words(command, "'serve', '80'"),
                entrypoint=None if program is None else self._entrypoint(program),
                replicas=None if replicas is None else self._replicas(replicas),
                tags=self._tags(found),
                env=() if env is None else self._env(env),
                ports=self._ports(found.get("port")),
                cpu_millis=None if cpu is None else self._cpu(cpu),
                mem_bytes=None if mem is None else self._size(mem),
                options=(*self._options(found, (*options, "network")), *self.other_words(found)),
                aliases=self.aliases(found.get("alias")),
                interfaces=_flag_of(found, INTERFACES),
                router=_flag_of(found, ROUTER),
                gateway=_flag_of(found, GATEWAY),
                **self.running(found),
            ),
        )

    def external(
        self, _word: Token, token: Token, properties: list[WrittenProperty]
    ) -> _Statements:
        found = self.collect(properties, "external", EXTERNAL_PROPERTIES, {})
        said = self.outside(name(token), found)
        tags = self._tags(found)
        return (ast.ServiceStatement(name(token), self.whole_span, tags=tags, external=said),)

    def link(
        self, _word: Token, a: Token, dash: Token, b: Token, properties: list[WrittenProperty]
    ) -> _Statements:
        directed = dash.type == "ARROW"
        ends = self.link_ends(a, b, directed=directed)
        errors = self.errors
        found = self.collect(properties, "link", LINK_PROPERTIES, LINK_ALIASES, ("symmetric",))
        if directed:
            self._only_one_way(found, a, b)
        up_bps, down_bps, symmetric = self._rates(found)
        trace_up, trace_down = self._traces(found)
        queue = self.queue_size(found.get("queue"))
        self._check_queue(found.get("queue"), queue, max(up_bps or 0, down_bps or 0))
        limits = (up_bps or trace_up, down_bps or trace_down)
        one_way = (limits[0] is None) != (limits[1] is None) and not symmetric and not directed
        by_dialect = one_way and up_bps is not None and "down" not in found
        if by_dialect and self.reads_as:
            down_bps, symmetric = up_bps, True
        elif self.errors == errors and one_way:
            self._check_other_way(found)
            self.one_way = self.one_way or (self.whole_span if by_dialect else None)
        traced = trace_up is not None or trace_down is not None
        address_a, address_b = self.end_addresses(found.get("address"))
        managed = self._managed(found.get("aqm"), limited=bool(up_bps or down_bps or traced))
        if traced and (managed or (queue is not None and queue.unit == "packets")):
            prop = found["aqm" if managed else "queue"]
            message = "the queue of a link that follows a trace counts bytes, and drops none early"
            self.error("TS0169", prop.span, message, "leave it out, or give the link a rate")
        return (
            ast.LinkStatement(
                a=ends[0].name,
                b=ends[1].name,
                span=self.whole_span,
                up_bps=up_bps,
                down_bps=None if directed else down_bps,
                symmetric=symmetric and not directed,
                queue=queue,
                aqm=managed,
                distribution=self.distribution(found.get("dist")),
                tags=self._tags(found),
                options=self._options(found, ("network",)),
                a_index=ends[0].index,
                b_index=ends[1].index,
                directed=directed,
                back=None,
                path=None,
                name=self.link_name(found.get("name")),
                neck_up=None,
                neck_down=None,
                trace_up=trace_up,
                trace_down=None if directed else trace_down,
                several=False,
                address_a=address_a,
                address_b=address_b,
                gateway=self.gateway(found.get("gateway")),
                **self._amounts(found),
            ),
        )

    link_arrow = link

    def link_name(self, prop: WrittenProperty | None) -> ast.Name | None:
        token = None if prop is None else self.single(prop, ("NAME",), "a name such as fast")
        return None if token is None else name(token)

    def link_ends(self, a: Token, b: Token, *, directed: bool) -> tuple[ast.Element, ast.Element]:
        ends = self.element(a), self.element(b)
        if ends[0].name.text == ends[1].name.text and not _may_be_one(*ends, directed=directed):
            hint = f"{ends[0].name.text}--{ends[1].name.text} links all its instances"
            if a.text == b.text and a.note:
                hint = "write for i < j in 0..3 {, which takes each pair once"
            self.error("TS0107", cover(a, b), f"this link goes from '{b.text}' to itself", hint)
        return ends

    def _only_one_way(self, found: dict[str, WrittenProperty], a: Token, b: Token) -> None:
        for word in ("down", "symmetric", "trace-down"):
            if word in found:
                message = f"{word} is about the direction that {a.text}->{b.text} leaves out"
                instead = "trace" if word == "trace-down" else "up"
                hint = f"write it as {instead}= of link {b.text}->{a.text}"
                self.error("TS0119", found.pop(word).name_span, message, hint)

    # --- ends and elements ---

    def element(self, token: Token) -> ast.Element:
        word, _, index = token.text.rpartition(".")
        if not index.isdecimal():  # a name, or that of parts of machines
            called = name(token)
            return ast.Element(called, called.span)
        span = token.part(0, len(word))
        number = token.within("VALUE", len(word) + 1)
        if len(index) > 1 and index[0] == "0":
            hint = f"write {word}.{index.lstrip('0') or '0'}"
            self.error("TS0203", token.span, f"'{token.text}' is not an instance", hint)
        return ast.Element(ast.Name(word, span), token.span, self.number(number, values.whole))

    # --- values ---

    def _tags(self, found: dict[str, WrittenProperty]) -> tuple[ast.Name, ...]:
        prop = found.get("tags")
        return () if prop is None else self.names(prop.values, "tag")

    def _options(
        self, found: dict[str, WrittenProperty], words: tuple[str, ...]
    ) -> tuple[tuple[ast.Name, str], ...]:
        options = []
        for word in words:
            prop = found.get(word)
            if prop is None:
                continue
            value = "true"
            if prop.op:
                token = self.single(prop, ("WORD", "STRING"), "a name")
                value = "" if token is None else self.text(token)
            if word in _OPTION_NOTES:
                self.sink.warning("TS0902", prop.span, f"'{word}' {_OPTION_NOTES[word]}")
            options.append((ast.Name(word, prop.name_span), value))
        return tuple(options)

    def _image_property(self, prop: WrittenProperty) -> str:
        token = self.single(prop, ("WORD", "STRING"), "an image such as nginx:1.27")
        return "" if token is None else self._image(token)

    def _image(self, token: Token) -> str:
        image = self.text(token)
        if not IMAGE.fullmatch(image):
            hint = "such as nginx:1.27 or registry.example/app:2"
            self.error("TS0118", token.span, f"{shown(token)} is not an image", hint)
        return image

    def _words(self, prop: WrittenProperty, such_as: str) -> tuple[str, ...]:
        """A list of words: command=['A', 'B']."""
        if not prop.array:
            span = cover(prop.values[0], prop.values[-1])
            hint = f"such as {prop.name}=[{such_as}]"
            self.error("TS0015", span, f"{prop.name} takes a list", hint)
            return ()
        return tuple(self.text(token) for token in prop.values[:-1])

    def _entrypoint(self, prop: WrittenProperty) -> tuple[str, ...]:
        errors = self.errors
        words = self._words(prop, "'redis-server'")
        if self.errors == errors and not (words and words[0]):
            hint = "its first word is the program; to run the image's own leave entrypoint= out"
            self.error("TS0122", prop.span, "this entrypoint names no program", hint)
        return words

    def _replicas(self, prop: WrittenProperty) -> int:
        count = self.measure(prop, values.whole, "a whole number", default=1)
        return self._positive(count, prop)

    def _cpu(self, prop: WrittenProperty) -> int:
        return self._positive(self.measure(prop, values.cpu, "a number such as 0.5", 1), prop)

    def _size(self, prop: WrittenProperty) -> int:
        return self._positive(self.measure(prop, values.size, "a size such as 64KB", 1), prop)

    def _positive(self, value: int, prop: WrittenProperty) -> int:
        if value < 1:
            self.error("TS0113", prop.span, f"{prop.key_name} must be greater than zero")
        return value

    def _ports(self, prop: WrittenProperty | None) -> tuple[int, ...]:
        ports: dict[int, None] = {}
        for token in [] if prop is None else prop.values:
            if token.type != "VALUE" or (prop is not None and prop.array):
                message = f"port takes numbers, not {shown(token)}"
                self.error("TS0015", token.span, message, "such as port=80 or port=80;443")
                continue
            port = self.number(token, values.whole, default=1)
            if not 1 <= port <= 65535:
                self.error("TS0114", token.span, f"there is no port {token.text}")
            if port in ports:
                self.sink.warning("TS0907", token.span, f"port {port} stands here twice")
            else:
                ports[port] = None
        return tuple(ports)

    def _env(self, prop: WrittenProperty) -> tuple[tuple[str, str], ...]:
        pairs: dict[str, str] = {}
        for token in prop.values:
            key, colon, value = token.text.partition(":")
            if prop.array or token.type != "ENVITEM" or not colon:
                hint = "env is NAME:value, several separated by ';'"
                if token.type == "STRING" and _ENV_NAME.match(token.text, 1):
                    hint = 'quote the value only: env=NAME:"some value"'
                self.error("TS0117", token.span, f"{shown(token)} is not a variable", hint)
                continue
            if key in pairs:
                self.error("TS0121", token.span, f"{key} is set twice")
            if value[:1] in tuple(_QUOTES):
                value = self.text(token.within("STRING", len(key) + 1))
            pairs[key] = value
        return tuple(pairs.items())

    def _amounts(
        self, found: dict[str, WrittenProperty], latency_ns: int | None = None
    ) -> dict[str, int]:
        """What both directions of a link have, by field of the statement. `latency_ns` where that
        is found in another way."""
        amounts: dict[str, int] = {}
        wrong: set[str] = set()
        for word, prop in found.items():
            field = LINK_WORDS[word].field if word in LINK_WORDS else ""
            if field:
                errors = self.errors
                amounts[field] = self._amount(prop, word)
                wrong |= {word} if self.errors > errors else set()
        if not wrong:
            self._check_rules(found, amounts)
        jitter = found.get("jitter")
        if jitter is None or wrong & {"latency", "jitter"}:
            return amounts
        if "latency" not in found and self.names_delays(found.get("dist")):
            return amounts  # which may have one: compiler/declare/named/named_files.py
        if amounts["jitter_ns"] > amounts.get("latency_ns", latency_ns or 0):
            hint = "delay cannot be negative: raise the latency or lower the jitter"
            message = f"jitter {jitter.values[0].text} is greater than the latency"
            if "latency" not in found:
                here = quantities.latency(latency_ns) if latency_ns else "0"
                message += f", which is {here} here"
            self.error("TS0105", jitter.span, message, hint)
        return amounts

    def _check_rules(self, found: dict[str, WrittenProperty], amounts: dict[str, int]) -> None:
        rule = link_rules.broken(amounts) or link_rules.idle(amounts)
        if rule is not None:
            self.error("TS0138", found[rule.word].span, f"{rule.word} {rule.why}", rule.hint)

    def _amount(self, prop: WrittenProperty, word: str) -> int:
        """A time or a share that a link is to have."""
        value = self.measured(prop, word)
        kind, _, verb = CHANGEABLE[word]
        if kind == "share" and value == values.PPB and prop.values[0].text != "100%":
            hint = "write 1% for one percent, 100% if you mean it"
            self.sink.warning("TS0905", prop.span, f"this {verb} every packet", hint)
        return value

    def measured(self, prop: WrittenProperty, word: str) -> int:
        """The number that a property has, in its own unit."""
        match CHANGEABLE[word].kind:
            case "time":
                return self.measure(prop, values.latency, "a time such as 5ms")
            case "rate":
                return self.measure(prop, values.rate, "a rate such as 100Mb")
            case "size":
                return self.measure(prop, values.size, "a size such as 64KB")
            case "packets":
                return self.measure(prop, values.packets, "a number of packets such as 8")
        share = partial(values.probability, what=word)
        return self.measure(prop, share, "a share such as 0.01 or 1%")

    def queue_size(self, prop: WrittenProperty | None) -> ast.QueueSize | None:
        token = None if prop is None else self.single(prop, ("VALUE",), _QUEUES)
        if prop is None or token is None:
            return None
        try:
            size, unit = values.queue(token.text)
        except ValueProblem as problem:
            self.error(problem.code, token.span, problem.message, problem.hint)
            return None
        self._positive(size, prop)
        if unit == "bytes" and 1 < size < FULL_PACKET_BYTES and prop.op == "=":
            message = f"a queue of {size} bytes does not hold a packet of {FULL_PACKET_BYTES} bytes"
            self.sink.warning("TS0906", prop.span, message)
        return ast.QueueSize(size, unit)

    def _check_queue(
        self, prop: WrittenProperty | None, queue: ast.QueueSize | None, rate_bps: int
    ) -> None:
        """One that is given as a time, at the link's higher rate."""
        if prop is None or queue is None or queue.unit != "ns":
            return
        if rate_bps * queue.value > MAX_QUEUE_BYTES * 8 * 10**9:
            message = f"{prop.values[0].text} of this rate are more than a queue of 1GiB holds"
            self.error("TS0025", prop.span, message, "write it in bytes, or shorter")

    def aqm_text(self, prop: WrittenProperty) -> str:
        try:
            return aqm.canonical([self.text(token) for token in prop.values])
        except ValueProblem as problem:
            span = cover(prop.values[0], prop.values[-1])
            self.error(problem.code, span, problem.message, problem.hint)
            return ""

    def _managed(self, prop: WrittenProperty | None, *, limited: bool) -> str:
        """What a link's queues drop before they are full."""
        if prop is None:
            return ""
        if not limited:
            message = "this link has no rate, so no packet ever waits for its queue to be managed"
            self.error("TS0167", prop.span, message, "add rate=… or up=…")
        return self.aqm_text(prop)

    def distribution(self, prop: WrittenProperty | None) -> str | ast.DelayFile | None:
        """A known one by its name; a text in quotes, or with a `.` or a `/`, is a file."""
        token = None if prop is None else self.single(prop, ("WORD", "STRING"), "a distribution")
        if prop is None or token is None:
            return None
        if self.names_delays(prop):
            return ast.DelayFile(self.file_name(prop, token, "rtt.txt"), token.span)
        if token.text not in DISTRIBUTIONS:
            hint = did_you_mean(token.text, DISTRIBUTIONS) or (
                f"one of {', '.join(DISTRIBUTIONS)}, or a file of delays, ./{token.text}"
            )
            self.error("TS0115", token.span, f"unknown distribution '{token.text}'", hint)
        return token.text

    def _traces(
        self, found: dict[str, WrittenProperty]
    ) -> tuple[ast.TraceFile | None, ast.TraceFile | None]:
        """What the directions up and down follow."""
        end = found.get("trace-end")
        holds = end is not None and self.trace_end(end)
        files = {
            word: self.trace_file(found[word], holds=holds)
            for word in ("trace", "trace-up", "trace-down")
            if word in found
        }
        if end is not None and not files:
            hint = "add trace=FILE, or leave it out"
            self.error("TS0175", end.span, "trace-end is about a trace, and there is none", hint)
        if "trace" not in files:
            return files.get("trace-up"), files.get("trace-down")
        for other in ("trace-up", "trace-down"):
            if other in found:
                message = f"trace stands for up and down; {other} is one too many"
                self.error("TS0013", found[other].name_span, message)
        return files["trace"], files["trace"]

    def trace_file(self, prop: WrittenProperty, *, holds: bool) -> ast.TraceFile | None:
        """None stands for none."""
        token = self.single(prop, ("WORD", "STRING"), "a file")
        if token is None or (token.type == "WORD" and token.text == NO_TRACE):
            return None
        return ast.TraceFile(self.file_name(prop, token, "lte.trace"), holds, token.span)

    def names_delays(self, prop: WrittenProperty | None) -> bool:
        """Whether a `dist` is a file of delays."""
        tokens = prop.values if prop is not None else []
        return any(one.type == "STRING" or bool(set(one.text) & set("./")) for one in tokens[:1])

    def file_name(self, prop: WrittenProperty, token: Token, such_as: str) -> str:
        source = self.named_file(token)
        if not source.strip("./") or "\0" in source:
            message = f"{shown(token)} names no file"
            self.error("TS0125", token.span, message, f"such as {prop.key_name}={such_as}")
        return source

    def trace_end(self, prop: WrittenProperty) -> bool:
        """Whether its last values stay."""
        token = self.single(prop, ("NAME",), "loop or hold")
        if token is not None and token.text not in TRACE_ENDS:
            hint = did_you_mean(token.text, TRACE_ENDS) or "a trace ends with loop or hold"
            self.error("TS0175", token.span, f"no trace ends with '{token.text}'", hint)
        return token is not None and token.text == "hold"

    def _check_other_way(self, found: dict[str, WrittenProperty]) -> None:
        """A limit for one way: whether anything is said about the other."""
        up = next((word for word in ("up", "trace-up") if word in found), "")
        down = next((word for word in ("down", "trace-down") if word in found), "")
        if up and down:
            return
        said, hint = down, "`rate=` limits both, `up=unlimited` says that it is meant"
        if up:
            said, hint = up, "`symmetric` limits both, `down=unlimited` says that it is meant"
        message = f"{said}= limits one way, and nothing limits the other"
        self.sink.warning("TS0926", found[said].span, message, hint)

    def _rates(self, found: dict[str, WrittenProperty]) -> tuple[int | None, int | None, bool]:
        """Rates up and down, and whether the link is symmetric."""
        up, down, both = found.get("up"), found.get("down"), found.get("rate")
        flag = found.get("symmetric")
        if both is not None:
            for other in (up, down):
                if other is not None:
                    message = (
                        f"{both.key_name} stands for up and down; {other.name} is one too many"
                    )
                    self.error("TS0013", other.name_span, message)
            rate = self.rate(both)
            return rate, rate, True
        up_bps = None if up is None else self.rate(up)
        down_bps = None if down is None else self.rate(down)
        if flag is None:
            return up_bps, down_bps, False
        if down is not None:
            message = "symmetric and down= exclude each other"
            self.error("TS0110", flag.span, message, "symmetric copies up= to down=")
        elif up is None:
            message = "symmetric copies up=, which is missing"
            self.error("TS0110", flag.span, message, "add up=… or leave symmetric out")
        return up_bps, up_bps, True

    def rate(self, prop: WrittenProperty) -> int | None:
        """The rate in bits per second, None for unlimited."""
        token = self.single(prop, ("VALUE", "NAME"), "a rate such as 100Mb")
        if token is None:
            return None
        if token.type == "NAME":
            if token.text != UNLIMITED:
                message = f"{prop.key_name} takes a rate such as 100Mb, not '{token.text}'"
                self.error("TS0015", token.span, message, did_you_mean(token.text, [UNLIMITED]))
            return None
        rate = self.number(token, values.rate, default=1)
        if rate == 0:
            hint = (
                "'at T a--b leave' cuts the link and drops what waits there; for packets to wait, "
                f"write {prop.key_name}=1Kb and a queue= that holds them"
            )
            self.error("TS0104", prop.span, "a rate of zero carries nothing", hint)
        return rate


def _may_be_one(a: ast.Element, b: ast.Element, *, directed: bool) -> bool:
    """The ends of a link, of one name: two of its instances, or all of them with each other."""
    if a.index is None or b.index is None:
        return a.index == b.index and not directed
    return a.index != b.index


def _flag_of(found: dict[str, WrittenProperty], word: str) -> ast.Name | None:
    """The word, where it stands."""
    flag = found.get(word)
    return None if flag is None else ast.Name(word, flag.name_span)
