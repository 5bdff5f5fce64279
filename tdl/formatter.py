"""The canonical text of a tree.

`format_statement` gives one node's text on one line; it is also the identity under which the
compiler draws for a statement. What `tstorm fmt` does with a file is in tdl/text_layout.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tdl import aqm, ast, quantities, some_packets
from tdl.building.mobility_actions import reads_as_file
from tdl.building.path_actions import DEFAULT_CAPACITY_BPS
from tdl.building.static import IMAGE, NO_TRACE
from tdl.tokens.words import (
    CHANGEABLE,
    FAULTS,
    HUNT_LINKS,
    LINE_MODES,
    LINK_WORDS,
    STATISTICS,
    TEST_TEMPLATES,
)

WIDTH = 100
_QUANTITIES = {  # by kind of a link's property
    "time": quantities.latency,
    "share": quantities.share,
    "rate": quantities.rate,
    "size": quantities.size,
    "packets": quantities.packets,
}
_INDENT = "    "
_BARE = re.compile(r"[A-Za-z0-9_./:@%+,~-]+", re.ASCII)  # not =: a name before it is a property
_BARE_ENV = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@+,=%~")


def wrap(words: list[str], width: int = WIDTH) -> list[str]:
    """Words on as few lines as fit, continued with backslashes."""
    lines = []
    current = words[0]
    for word in words[1:]:
        # Room for the word, and for ' \' in case that more follow.
        if len(current) + 1 + len(word) + 2 > width and current.strip():
            lines.append(current + " \\")
            current = _INDENT
            for part in word.parts if isinstance(word, _List) else (word,):
                # A list that is too long for a line of its own goes on after a semicolon.
                if len(current) + len(part) + 2 > width and current != _INDENT:
                    lines.append(current + " \\")
                    current = _INDENT
                current += part
        else:
            current += " " + word
    lines.append(current)
    return lines


class _List(str):
    """A word that may be broken between its `parts`, which are the whole word together."""

    parts: tuple[str, ...]

    def __new__(cls, head: str, items: Iterable[str]) -> _List:
        *before, last = items
        parts = [*(f"{item};" for item in before), last]
        parts[0] = head + parts[0]
        new = super().__new__(cls, "".join(parts))
        new.parts = tuple(parts)
        return new


def format_statement(statement: ast.Statement) -> str:
    """The canonical text of one node, on one line, without comments."""
    return " ".join(_statement(statement))


def words_of(statements: tuple[ast.Statement, ...], *, from_the_firing: bool = False) -> list[str]:
    """A logical line's statements: one, or several events that were chained with `and`."""
    first = statements[0]
    inside = from_the_firing and isinstance(first, ast.Dynamic)
    words = _in_block(first) if inside else _statement(first)  # type: ignore[arg-type]
    for statement in statements[1:]:
        assert isinstance(statement, ast.Dynamic)
        words += ["and", *_clause(statement)]
    return words


def _setting(node: ast.Setting) -> list[str]:
    match node:
        case ast.Bootstrapper():
            return ["bootstrapper", node.image]
        case ast.Seed():
            return ["seed", str(node.value)]
        case ast.Routing():
            return ["routing", node.metric]
        case ast.Network():
            return ["network", node.family]
        case ast.Hops():
            return ["hops", node.word]
        case ast.AutoAddresses():
            return ["addresses", "auto"]
        case ast.Dialect():
            return ["dialect", node.name]
        case ast.StartWhenReady():
            return ["start", "when", "ready"]
        case ast.QuitWhen():
            names = ";".join(name.text for name in node.services)
            several = len(node.services) != 1
            return ["quit", "when", names or "all", "exit" if several else "exits"]


def _statement(node: ast.Statement) -> list[str]:
    if isinstance(node, ast.Setting):
        return _setting(node)
    if isinstance(node, ast.Hunt | ast.HuntBound):
        return _hunt(node)
    match node:
        case ast.Bridges():
            word = (
                "air"
                if node.air
                else "lan"
                if node.lan
                else "bridge"
                if len(node.names) == 1
                else "bridges"
            )
            kind = ["kernel"] if node.of_kernel else []
            return [word, *(name.text for name in node.names), *kind, *_tags(node.tags)]
        case ast.ServiceStatement():
            return _service(node)
        case ast.Bottleneck():
            return _bottleneck(node)
        case ast.LinkStatement():
            return _link(node)
        case ast.Mobility():
            return _mobility(node)
        case ast.NodeStatement():
            return _node(node)
        case ast.Dynamic():
            return [*_times(node), *_clause(node)]
        case ast.Expect() | ast.Figure():
            return _expect(node)
        case ast.When():
            return _when(node)


def _external(name: str, said: ast.External) -> list[str]:
    address, _, length = said.behind.partition("/")
    where = f"address={address}" if length == "32" else f"prefix={said.behind}"
    words = ["external", name, f"if={_bare(said.card)}", where]
    further = (("own", said.own), ("gateway", said.gateway))
    return words + [f"{word}={value}" for word, value in further if value]


def _service(node: ast.ServiceStatement) -> list[str]:
    if node.external is not None:
        return _external(node.name.text, node.external) + _tags(node.tags)
    words = ["service", node.name.text]
    if node.image is not None:
        words.append("img=" + node.image)
    if node.exec is not None:
        words.append("exec=" + quoted(node.exec))
    if node.command is not None:
        words.append("command=" + _array(node.command))
    if node.entrypoint is not None:
        words.append("entrypoint=" + _array(node.entrypoint))
    if node.replicas is not None:
        words.append(f"replicas={node.replicas}")
    words += _tags(node.tags)
    if node.env:
        words.append(_List("env=", (f"{key}:{_env_value(value)}" for key, value in node.env)))
    if node.ports:
        words.append("port=" + ";".join(str(port) for port in node.ports))
    if node.cpu_millis is not None:
        words.append("cpu=" + quantities.cpu(node.cpu_millis))
    if node.mem_bytes is not None:
        words.append("mem=" + quantities.size(node.mem_bytes))
    words += _running(node)
    words += [
        flag.text for flag in (node.interfaces, node.router, node.gateway) if flag is not None
    ]
    return words + _options(node.options)


def _running(node: ast.ServiceStatement) -> list[str]:
    """How the instances of a service run, in the order of the reference."""
    words = [
        f"{word}={_bare(value)}"
        for word, value in (("user", node.user), ("cwd", node.cwd))
        if value is not None
    ]
    if node.files:
        words.append(_List("files=", (_item(file.source, file.target) for file in node.files)))
    if node.mounts:
        words.append(_List("mount=", map(_mount, node.mounts)))
    if node.fs is not None:
        words.append("fs=" + node.fs)
    if node.sysctls:
        words.append(_List("sysctl=", (_item(key, value) for key, value in node.sysctls)))
    if node.setup is not None:
        words.append("setup=" + quoted(node.setup))
    if node.ready is not None:
        words.append("ready=" + (_bare(node.ready)))
    if node.ready_timeout_ns is not None:
        words.append("ready-timeout=" + quantities.time(node.ready_timeout_ns))
    if node.stop is not None:
        words.append("stop=" + node.stop)
    if node.grace_ns is not None:
        words.append("grace=" + quantities.time(node.grace_ns))
    if node.expect is not None:
        words.append("expect=" + node.expect)
    if node.keep is not None:
        words.append("keep=" + ("yes" if node.keep else "no"))
    return words


def _bare(text: str) -> str:
    """Without quotes where that is the same."""
    return text if _BARE.fullmatch(text) else quoted(text)


def _item(before: str, after: str) -> str:
    """`before:after`, of a list. Quotes may stand around all of it or after the colon only."""
    if not after:
        return _bare(before)
    if _BARE.fullmatch(before) and not _BARE.fullmatch(after):
        return f"{before}:{quoted(after)}"
    return _bare(f"{before}:{after}")


def _mount(item: ast.MountItem) -> str:
    return _item(item.source, item.target + (":ro" if item.read_only else ""))


def _link(node: ast.LinkStatement) -> list[str]:
    way = "->" if node.directed else "--"
    verb = "link" if node.path is None else "path"
    words = [verb, f"{_end(node.a, node.a_index)}{way}{_end(node.b, node.b_index)}"]
    if node.name is not None:
        words.append(f"name={node.name.text}")
    if node.path is not None:
        words += _path(node.path) + _necks(node)
    for word, (kind, field, _) in LINK_WORDS.items():
        if field and getattr(node, field):
            words.append(f"{word}={_QUANTITIES[kind](getattr(node, field))}")
    words += _link_rates(node) + _link_traces(node)
    if node.queue is not None:
        words.append("queue=" + quantities.queue(*node.queue))
    if node.aqm:
        words.append("aqm=" + aqm.written(node.aqm))
    if node.distribution is not None:
        words.append("dist=" + _distribution(node.distribution))
    return words + _addresses(node) + _tags(node.tags) + _options(node.options)


def _addresses(node: ast.LinkStatement) -> list[str]:
    a, b = (_of_end(end) for end in (node.address_a, node.address_b))
    words = [f"address={a}--{b}" if b else f"address={a}"] if a or b else []
    return words if node.gateway is None else [*words, f"gateway={node.gateway}"]


def _of_end(end: ast.EndAddresses | None) -> str:
    found = end.found if end else ()
    return ",".join(f"{one.text}/{one.prefix}{'+' if one.counts else ''}" for one in found)


def _path(terms: ast.PathTerms) -> list[str]:
    words = _both_ways("abw", _table(terms.abw_up), _table(terms.abw_down))
    words.append("rtt=" + quantities.latency(terms.rtt_ns))
    if terms.capacity_bps != DEFAULT_CAPACITY_BPS:
        words.append("capacity=" + quantities.rate(terms.capacity_bps))
    if terms.wmax_bytes is not None:
        words.append("wmax=" + quantities.size(terms.wmax_bytes))
    queues = (terms.queue_up, terms.queue_down)
    return words if queues == (None, None) else [*words, *_both_ways("queue", *map(_queue, queues))]


def _bottleneck(node: ast.Bottleneck) -> list[str]:
    words = ["bottleneck", node.name.text]
    if node.capacity_bps != DEFAULT_CAPACITY_BPS:
        words.append("capacity=" + quantities.rate(node.capacity_bps))
    if node.queue_bytes is not None:
        words.append("queue=" + quantities.size(node.queue_bytes))
    return words


def _mobility(node: ast.Mobility) -> list[str]:
    words = ["mobility", _bare(node.source)]
    words += [f"{word}={said}" for word, said in (("format", node.format), ("unit", node.unit))
              if said is not None]  # fmt: skip
    if node.nodes:
        words.append(_List("nodes=", (_item(one.service.text, one.prefix) for one in node.nodes)))
    amounts = (
        ("range", node.range_mm, quantities.distance),
        ("body", node.body_mm, quantities.distance),
        ("every", node.every_ns, quantities.time),
        ("latency", node.latency_ns, quantities.latency),
        ("latency-step", node.latency_step_ns, quantities.latency),
        ("rate", node.rate_bps, quantities.rate),
        ("loss", node.loss_ppb, quantities.share),
        ("transceivers", node.transceivers, str),
    )
    words += [f"{word}={text(value)}" for word, value, text in amounts if value is not None]
    for word, file in (("rate", node.rate_file), ("loss", node.loss_file)):
        if file is not None:
            words.append(f"{word}={_bare(file) if reads_as_file(file) else quoted(file)}")
    return words if node.allocate is None else [*words, f"allocate={node.allocate}"]


def _node(node: ast.NodeStatement) -> list[str]:
    """The first line of one without a body, as of a `when`."""
    words = ["node", node.name.text]
    if node.replicas != 1:
        words.append(f"replicas={node.replicas}")
    if node.cpu_millis is not None:
        words.append("cpu=" + quantities.cpu(node.cpu_millis))
    if node.mem_bytes is not None:
        words.append("mem=" + quantities.size(node.mem_bytes))
    words += _tags(node.tags)
    return _with_block(words, map(format_statement, node.body)) if node.body else [*words, "{"]


def _necks(node: ast.LinkStatement) -> list[str]:
    up, down = node.neck_up, node.neck_down
    if up and down and up.text == down.text:
        return ["bottleneck=" + up.text]
    both = (("bottleneck-up=", up), ("bottleneck-down=", down))
    return [word + name.text for word, name in both if name]


def _both_ways(word: str, up: str, down: str) -> list[str]:
    said = [(word, up)] if up == down else [(f"{word}-up", up), (f"{word}-down", down)]
    tables = (
        (word.replace("abw", "abw-flows") if ":" in text else word, text) for word, text in said
    )
    return [f"{word}={text}" for word, text in tables]


def _table(rows: ast.FlowTable) -> str:
    return quantities.rate(rows[0][1]) if len(rows) == 1 else _rows(rows)


def _rows(rows: ast.FlowTable) -> str:
    return ";".join(f"{flows}:{quantities.rate(bps)}" for flows, bps in rows)


def _queue(size: int | None) -> str:
    return "auto" if size is None else quantities.size(size)


def _end(name: ast.Name, index: int | None) -> str:
    return name.text if index is None else f"{name.text}.{index}"


def _link_rates(node: ast.LinkStatement) -> list[str]:
    if node.symmetric:
        return [f"up={_rate(node.up_bps)}", "symmetric"]
    rates = {"up": node.up_bps, "down": node.down_bps}
    traces = {"up": node.trace_up, "down": node.trace_down}
    said = [name for name, bps in rates.items() if bps is not None]
    if node.directed:  # the other direction has a statement of its own
        return [f"{name}={_rate(rates[name])}" for name in said]
    if not said and (node.trace_up is None) == (node.trace_down is None):
        return []
    return [f"{name}={_rate(bps)}" for name, bps in rates.items() if bps or not traces[name]]


def _link_traces(node: ast.LinkStatement) -> list[str]:
    up, down = node.trace_up, node.trace_down
    found = {"trace-up": up, "trace-down": down}
    if node.directed or (up and down and up.source == down.source):
        found = {"trace": up}
    traces = {word: trace for word, trace in found.items() if trace is not None}
    words = [f"{word}={_trace(trace)}" for word, trace in traces.items()]
    return words + _held(traces.values())


def _trace(trace: ast.TraceFile) -> str:
    return quoted(trace.source) if trace.source == NO_TRACE else _bare(trace.source)


def _distribution(chosen: str | ast.DelayFile) -> str:
    """Of a file in quotes where it could be a name."""
    if isinstance(chosen, str):
        return chosen
    return _bare(chosen.source) if set(chosen.source) & set("./") else quoted(chosen.source)


def _held(traces: Iterable[ast.TraceFile | None]) -> list[str]:
    holds = any(trace is not None and trace.holds for trace in traces)
    return ["trace-end=hold"] if holds else []


def _rate(bps: int | None) -> str:
    return "unlimited" if bps is None else quantities.rate(bps)


def _tags(tags: tuple[ast.Name, ...]) -> list[str]:
    return [_List("tags=", (tag.text for tag in tags))] if tags else []


def _options(options: tuple[tuple[ast.Name, str], ...]) -> list[str]:
    words: list[str] = []
    for name, value in options:
        if name.text in ("after", "alias", "publish"):
            words.append(_List(f"{name.text}=", value.split(";")))
        else:
            words.append(name.text if name.text != "network" else f"network={_word(value)}")
    return words


def _word(value: str) -> str:
    return value if IMAGE.fullmatch(value) else quoted(value)


def quoted(text: str) -> str:
    """A string in double quotes."""
    return '"' + _escape(text).replace('"', '\\"') + '"'


def _single_quoted(text: str) -> str:
    return "'" + _escape(text).replace("'", "\\'") + "'"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def _array(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(_single_quoted(word) for word in words) + "]"


def _env_value(value: str) -> str:
    return value if _BARE_ENV.issuperset(value) else quoted(value)


def _hunt(node: ast.Hunt | ast.HuntBound) -> list[str]:
    """The first line of one without bounds, or one of its bounds."""
    if isinstance(node, ast.Hunt):
        return (
            _with_block(["hunt"], map(format_statement, node.body)) if node.body else ["hunt", "{"]
        )
    match node.kind:
        case "most":
            return ["at", "most", str(node.count)]
        case "lasting":
            return ["lasting", f"{quantities.time(node.low)}..{quantities.time(node.high)}"]
        case "quiet":
            return ["quiet", quantities.time(node.low), "at", "the", node.at]
        case "clock":
            amount = [f"±{quantities.time(node.high)}"]
        case "drift":
            amount = [f"±{quantities.drift(node.high)}"]
        case "latency":
            amount = [f"{quantities.time(node.low)}..{quantities.time(node.high)}"]
        case kind if kind in HUNT_LINKS:
            amount = [f"{quantities.share(node.low)}..{quantities.share(node.high)}"]
        case _:
            amount = [] if node.subjects else ["any"]
    names = [_subject(one) for one in node.subjects]
    count = [] if node.count is None else [str(node.count)]
    word, *power = node.kind.split()
    return [word, *amount, *names, *count, *power]


# --- dynamic part ---


def _times(node: ast.Dynamic) -> list[str]:
    start = quantities.time(node.start_ns)
    if node.end_ns is not None:
        return ["from", start, "to", quantities.time(node.end_ns)]
    return ["from" if node.open_ended else "at", start]


def _clause(node: ast.Dynamic) -> list[str]:
    selector = format_selector(node.selector)
    return ([selector] if selector else []) + _action(node.action) + _tail(node)


def _tail(node: ast.Dynamic) -> list[str]:
    drawn = node.drawn
    if drawn is None:
        return []
    if not drawn.longest_ns:
        return ["sometime"]
    shown = quantities.time(drawn.shortest_ns)
    if drawn.shortest_ns != drawn.longest_ns:
        shown += f"..{quantities.time(drawn.longest_ns)}"
    return ["after" if isinstance(node.action, ast.Restart) else "for", shown]


def format_selector(selector: ast.Selector) -> str:
    """`server.3`, `a--b`, `a->b`, `fast:a--b`, `tags=x;y`, or nothing for everything."""
    match selector:
        case ast.Everything():
            return ""
        case ast.Element():
            return _end(selector.name, selector.index)
        case ast.LinkSelector():
            arrow = "->" if selector.directed else "--"
            called = "" if selector.name is None else f"{selector.name.text}:"
            return called + format_selector(selector.a) + arrow + format_selector(selector.b)
        case ast.Tagged():
            return "tags=" + ";".join(tag.text for tag in selector.tags)
        case ast.Members():
            return format_selector(selector.written)
        case ast.Some():
            return f"{_count(selector.count)} of {format_selector(selector.of)}"


def _action(action: ast.Action) -> list[str]:
    match action:
        case ast.Disconnect() | ast.Pause():
            tail = [] if action.for_ns is None else ["for", quantities.time(action.for_ns)]
            return [*_counted(action), *tail]
        case ast.Restart():
            tail = ["after", quantities.time(action.after_ns)] if action.after_ns else []
            return [*_counted(action), *tail]
        case ast.Churn():
            replace = (
                ["replace", quantities.share(action.replace_ppb)] if action.replace_ppb else []
            )
            return ["churn", _count(action.count), *replace]
        case ast.Flap():
            return ["flap", quantities.time(action.period_ns)]
        case ast.Set() | ast.SetClock() | ast.SetDisk() | ast.Ramp():
            return _changes(action)
        case ast.Partition():
            groups = (" ".join(format_selector(m) for m in group) for group in action.groups)
            between = "->" if action.one_way else ";"
            only = [] if action.only is None else [f"only={some_packets.written(action.only)}"]
            number = [] if action.count is None else [_count(action.count), "of"]
            return ["partition", *number, *between.join(groups).split(" "), *only]
        case ast.Move():
            return []
        case ast.Heal():
            return ["heal"]
        case ast.Background():
            flows = [f"flows={action.flows}"] if action.flows else []
            return ["background", quantities.rate(action.rate_bps), *flows]
        case ast.Quit():
            return ["quit"]
        case _:
            return _counted(action)


def _changes(action: ast.Set | ast.SetClock | ast.SetDisk | ast.Ramp) -> list[str]:
    if isinstance(action, ast.SetClock):
        return _clock(action)
    if isinstance(action, ast.SetDisk):
        return ["set", f"disk={quantities.disk(action.fault, action.amount)}"]
    only = [] if action.only is None else [f"only={some_packets.written(action.only)}"]
    items = [_assignment(item) for item in action.assignments]
    if isinstance(action, ast.Ramp):
        return ["ramp", *items, *only, "every", quantities.time(action.every_ns)]
    if action.verb != "set":
        return [action.verb, *only]
    return ["set", *items, *_held(item.trace for item in action.assignments), *only]


def _clock(action: ast.SetClock) -> list[str]:
    words, offset_ns = ["set"], action.offset_ns
    if offset_ns is not None:
        is_step = action.op is not ast.Op.ASSIGN
        shown = quantities.time(offset_ns) if is_step else quantities.signed_time(offset_ns)
        words.append(f"clock{action.op.value}{shown}")
    drift_ppb = action.drift_ppb
    return words if drift_ppb is None else [*words, f"drift={quantities.drift(drift_ppb)}"]


def _counted(action: ast.Counted) -> list[str]:
    words = [type(action).__name__.lower()]
    words += [] if action.count is None else [_count(action.count)]
    if isinstance(action, ast.Leave) and action.sometime:
        words.append("sometime")
    if isinstance(action, ast.Crash) and action.power:
        words.append("power")
    return words


def _count(count: ast.Count) -> str:
    return quantities.share(count.value) if count.unit is ast.Unit.PERCENT else str(count.value)


def _assignment(item: ast.Assignment) -> str:
    name = item.prop.text
    if item.op is ast.Op.SCALE:
        return f"{name}={quantities.share(item.value or 0)}"
    return f"{name}{item.op.value}" + _assigned(name, item)


def _assigned(name: str, item: ast.Assignment) -> str:
    if item.trace is not None:
        return _trace(item.trace)
    if item.delays is not None:
        return _distribution(item.delays)
    if name == "aqm":
        return aqm.written(item.word or "")
    if name == "queue":
        return quantities.queue(item.value or 0, item.word or "bytes")
    if item.word is not None:
        return item.word
    if item.rows:
        return _rows(item.rows)
    if item.value is None:
        return "unlimited"
    return _QUANTITIES[CHANGEABLE[name].kind](item.value)


# --- expectations ---


def _expect(node: ast.Expect | ast.Figure) -> list[str]:
    if isinstance(node, ast.Figure):
        return _figure(node)
    words = ["expect", *node.kind.split("_")]  # `no log`
    words += ["log"] if node.kind in LINE_MODES else []
    if node.statistic not in ("", STATISTICS[0]):
        words.append(node.statistic)
    if node.kind == "run":
        words += [quoted(node.text), "ok", *(["on"] if node.subjects else [])]
    words += [";".join(map(_subject, group)) for group in node.subjects]
    if node.kind in LINE_MODES:
        return words + _of_lines(node)
    if node.kind.endswith(("log", "izable")) or (
        node.kind == "drivers" and node.text != TEST_TEMPLATES
    ):
        words.append(quoted(node.text))
    words += [f"model={node.model}"] if node.model else []
    if node.kind == "exit":
        words.append(str(node.value))
    if node.op:
        words += [node.op, _bound(node), *(["of", "plan"] if node.of_plan else [])]
    return words + _window(node.window)


def _of_lines(node: ast.Expect) -> list[str]:
    words = [quoted(node.text), *(["json", quoted(node.key)] if node.key else [])]
    words += [node.op, node.number] if node.op else []
    words += ["has", quoted(node.has)] if node.has else []
    return words + _window(node.window)


def _figure(node: ast.Figure) -> list[str]:
    texts = [node.pattern] if node.pattern else [node.path, node.key]
    group = ";".join(map(_subject, node.subjects))
    source = "log" if node.pattern else "json"
    return ["figure", node.name.text, "=", source, group, *map(quoted, texts)]


# --- reactions ---


def _when(node: ast.When) -> list[str]:
    """The first line of one without a body; with its body it is as many lines as that takes."""
    words = ["when", node.kind, ";".join(map(_subject, node.subjects))]
    if node.pattern:
        words.append(quoted(node.pattern))
    if node.status is not None:
        words += ["with", str(node.status)]
    words += ["every"] if node.every else []
    if node.after_ns:
        words += ["after", quantities.time(node.after_ns)]
    if node.most is not None:
        words += ["at", "most", str(node.most)]
    return _with_block(words, map(in_block, node.body)) if node.body else [*words, "{"]


def _with_block(words: list[str], lines: Iterable[str]) -> list[str]:
    return ["\n".join([" ".join([*words, "{"]), *(f"{_INDENT}{line}" for line in lines), "}"])]


def in_block(node: ast.Dynamic) -> str:
    """A line of a `when`, whose times count from the firing."""
    return " ".join(_in_block(node))


def _in_block(node: ast.Dynamic) -> list[str]:
    if node.end_ns is not None:
        return ["from", _later(node.start_ns), "to", _later(node.end_ns), *_clause(node)]
    if node.open_ended:
        return ["from", _later(node.start_ns), *_clause(node)]
    return [*(["at", _later(node.start_ns)] if node.start_ns else []), *_clause(node)]


def _later(after_ns: int) -> str:
    return f"+{quantities.time(after_ns)}" if after_ns else "now"


def _subject(subject: ast.Subject) -> str:
    return "*" if isinstance(subject, ast.Everyone) else format_selector(subject)


def _bound(node: ast.Expect) -> str:
    if node.of_plan or node.kind == "loss":
        return quantities.share(node.value)
    return quantities.time(node.value) if node.kind == "rtt" else quantities.rate(node.value)


def _window(window: ast.Window | None) -> list[str]:
    if window is None:
        return []
    start, end = window.from_ns, window.to_ns
    if window.eventually:
        assert start is not None
        assert end is not None
        after = ["after", quantities.time(start)] if start else []
        after = ["after", FAULTS] if window.after_faults else after
        return ["within", quantities.time(end - start), *after]
    if start is not None and start == end:
        return ["at", quantities.time(start)]
    words = [] if start is None else ["from", quantities.time(start)]
    return words if end is None else [*words, "to", quantities.time(end)]
