"""Hypothesis strategies for trees that the parser can produce."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import chain
from typing import Any

from hypothesis import strategies as st

from tdl import ast, bounds, values
from tdl.bounds import MAX_FLOWS
from tdl.building.path_actions import DEFAULT_CAPACITY_BPS
from tdl.some_packets import cut
from tdl.tokens.words import (
    CHANGEABLE,
    DISTRIBUTIONS,
    EXPECTATIONS,
    GATEWAY,
    INTERFACES,
    LINE_MODES,
    LINE_OPERATORS,
    MODELS,
    MOTION_FORMATS,
    NETWORKS,
    OPERATORS,
    PATH_WORDS,
    RESERVED,
    ROUTER,
    SIGNALS,
    STATEMENTS,
    STATISTICS,
)
from tests.tdl.helpers import NOWHERE

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_MORE = _LETTERS + "0123456789"
name_texts = st.builds(
    lambda first, rest, tail: first + rest + "".join("-" + part for part in tail),
    st.sampled_from(_LETTERS),
    st.text(_MORE, max_size=8),
    st.lists(st.text(_MORE, min_size=1, max_size=4), max_size=2),
).filter(lambda word: word not in RESERVED)
names = name_texts.map(lambda text: ast.Name(text, NOWHERE))
tag_lists = st.lists(names, max_size=3, unique=True).map(tuple)
some_tags = st.lists(names, min_size=1, max_size=3, unique=True).map(tuple)
images = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,20}\Z")
plain = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"))
texts = st.text(plain | st.sampled_from("\n\t\\\"'#;$ "), max_size=20)
delay_files = st.builds(
    ast.DelayFile, (images | texts).filter(lambda text: text.strip("./")), st.just(NOWHERE)
)
times = st.integers(0, bounds.MAX_TIME_NS)
rates = st.integers(1, bounds.MAX_RATE_BPS)
sizes = st.integers(1500, bounds.MAX_QUEUE_BYTES)
shares = st.integers(0, values.PPB)


def _argv(text: str) -> str:
    """A command line that can be split into at least one word."""
    return "run '" + text.replace("'", "") + "'"


options = st.lists(
    st.sampled_from(["supervisor", "share", "reuse"]), unique=True, max_size=3
).flatmap(
    lambda flags: (
        st.none()
        | name_texts.map(lambda word: [*((f, "true") for f in _ordered(flags)), ("network", word)])
        if flags
        else st.none()
    )
)


def _ordered(flags: list[str]) -> list[str]:
    return [flag for flag in ("supervisor", "share", "reuse") if flag in flags]


def _options(pairs: list[tuple[str, str]] | None) -> tuple[tuple[ast.Name, str], ...]:
    return tuple((ast.Name(word, NOWHERE), value) for word, value in pairs or [])


_PART = st.text(_MORE, min_size=1, max_size=5) | st.text(plain, min_size=1, max_size=5).filter(
    lambda part: "/" not in part and ":" not in part and part not in (".", "..")
)
_below = st.lists(_PART, min_size=1, max_size=3).map("/".join)
_absolute = _below.map(lambda path: "/" + path)
_files = st.lists(
    st.builds(
        ast.FileItem,
        (_below | _absolute).filter(lambda path: path.strip("./")),
        st.just("") | _below | _absolute,
        st.just(NOWHERE),
    ),
    max_size=3,
    unique=True,
).map(tuple)
_mounts = st.lists(
    st.builds(ast.MountItem, _below | _absolute, _absolute, st.booleans(), st.just(NOWHERE)),
    max_size=3,
    unique_by=lambda item: item.target,
).map(tuple)
_values = texts.map(lambda text: text.replace("\n", "")).filter(str.strip)
_sysctls = st.dictionaries(st.from_regex(r"\Anet\.ipv4\.[a-z_]{1,8}\Z"), _values, max_size=3)
_WORDS = (texts.filter(bool), st.lists(texts, max_size=2))
_own_services = st.builds(
    ast.ServiceStatement,
    name=names,
    span=st.just(NOWHERE),
    image=st.none() | images,
    exec=st.none() | texts.map(_argv),
    command=st.none() | st.lists(texts, max_size=3).map(tuple),
    entrypoint=st.none() | st.builds(lambda program, rest: (program, *rest), *_WORDS),
    replicas=st.none() | st.integers(1, bounds.MAX_COUNT),
    tags=tag_lists,
    env=st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_.-]{0,5}\Z"), texts, max_size=3).map(
        lambda found: tuple(found.items())
    ),
    ports=st.lists(st.integers(1, 65535), max_size=3, unique=True).map(tuple),
    cpu_millis=st.none() | st.integers(1, bounds.MAX_COUNT),
    mem_bytes=st.none() | st.integers(1, bounds.MAX_SIZE_BYTES),
    user=st.none() | st.from_regex(r"\A[a-z_][a-z0-9_-]{0,8}(:[a-z][a-z0-9]{0,4}|:[0-9]{1,5})?\Z"),
    cwd=st.none() | _absolute,
    files=_files,
    mounts=_mounts,
    fs=st.none() | st.just("private"),
    sysctls=_sysctls.map(lambda found: tuple(found.items())),
    setup=st.none() | texts.map(_argv),
    ready=st.sampled_from([None, "none", "tcp:5432"]) | texts.map(_argv),
    ready_timeout_ns=st.none() | st.integers(1, bounds.MAX_TIME_NS),
    stop=st.none() | st.sampled_from(SIGNALS),
    grace_ns=st.none() | st.integers(1, bounds.MAX_TIME_NS),
    expect=st.none() | st.sampled_from(EXPECTATIONS),
    keep=st.none() | st.booleans(),
    options=st.builds(
        lambda pairs, after, alias, ports: (
            *_options(pairs),
            *_options([("after", ";".join(after))] if after else []),
            *_options([("alias", ";".join(alias))] if alias else []),
            *_options([("publish", ";".join(ports))] if ports else []),
        ),
        options,
        st.lists(st.from_regex(r"\A[a-z][a-z0-9]{0,4}(:start|:exit)?\Z"), unique=True, max_size=3),
        st.lists(st.from_regex(r"\A[a-z0-9][a-z0-9.]{0,4}[a-z0-9]\Z"), unique=True, max_size=3),
        st.lists(st.from_regex(r"\A([1-9]{1,4}:)?[1-9]{1,4}\Z"), unique=True, max_size=3),
    ),
    interfaces=st.none() | st.just(ast.Name(INTERFACES, NOWHERE)),
    router=st.none() | st.just(ast.Name(ROUTER, NOWHERE)),
    gateway=st.none() | st.just(ast.Name(GATEWAY, NOWHERE)),
)
_addresses = st.integers(1 << 24, (126 << 24) - 1).map(IPv4Address)


def _is_of_one(address: str) -> bool:
    """Neither the network itself nor all of it."""
    own = IPv4Interface(address)
    ends = own.network.network_address, own.network.broadcast_address
    return own.network.prefixlen > 30 or own.ip not in ends


_owns = st.builds("{}/{}".format, _addresses, st.integers(0, 32)).filter(_is_of_one)
_externals = st.builds(
    ast.External,
    st.from_regex(r"\A[a-z][a-z0-9.]{0,13}[a-z0-9]\Z"),
    st.builds(
        lambda one, length: str(IPv4Network((one, length), strict=False)),
        _addresses,
        st.integers(9, 32),
    ),
    own=st.just("") | _owns,
).filter(lambda one: not one.own or one.behind != f"{IPv4Interface(one.own).ip}/32")


def _with_aliases(service: ast.ServiceStatement) -> ast.ServiceStatement:
    said = [text.split(";") for word, text in service.options if word.text == "alias"]
    return replace(service, aliases=tuple(ast.Name(one, NOWHERE) for one in chain(*said)))


services = _own_services.map(_with_aliases) | st.builds(
    lambda name, tags, said: ast.ServiceStatement(name, NOWHERE, tags=tags, external=said),
    names,
    tag_lists,
    _externals,
)


queues = st.one_of(
    st.builds(ast.QueueSize, sizes, st.just("bytes")),
    st.builds(ast.QueueSize, st.integers(1, bounds.MAX_QUEUE_PACKETS), st.just("packets")),
    st.builds(ast.QueueSize, st.integers(1, 10**6), st.just("ns")),
)
_TIMES = st.integers(1, 10**8)
managed = st.one_of(
    st.builds(
        "codel;target:{};interval:{};ecn:{}".format,
        _TIMES,
        st.integers(10**9, 10**10),
        st.integers(0, 1),
    ),
    st.builds(
        "fq_codel;target:{};interval:{};quantum:{};flows:{};ecn:{}".format,
        _TIMES,
        st.integers(10**9, 10**10),
        st.integers(256, 5000),
        st.integers(1, 2000),
        st.integers(0, 1),
    ),
    st.builds(
        "red;min:{};max:{};probability:{};avpkt:{};burst:{};ecn:{}".format,
        st.integers(1, 1000),
        st.integers(1001, 2000),
        st.integers(1, 10**9),
        st.integers(1, 1500),
        st.integers(0, 99),
        st.integers(0, 1),
    ),
)


@st.composite
def links(draw: st.DrawFn) -> ast.LinkStatement:
    a, b = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    indexes = (draw(st.none() | st.integers(0, 99)), draw(st.none() | st.integers(0, 99)))
    latency = draw(st.integers(0, bounds.MAX_LATENCY_NS))
    up, down = draw(st.none() | rates), draw(st.none() | rates)
    directed = draw(st.booleans())
    symmetric = draw(st.booleans()) and not directed
    return ast.LinkStatement(
        a,
        b,
        NOWHERE,
        latency_ns=latency,
        jitter_ns=draw(st.integers(0, latency)),
        loss_ppb=draw(shares),
        up_bps=up,
        down_bps=None if directed else up if symmetric else down,
        symmetric=symmetric,
        queue=draw(st.none() | queues),
        aqm=draw(st.just("") | managed) if up or (down and not (directed or symmetric)) else "",
        distribution=draw(st.none() | st.sampled_from(DISTRIBUTIONS) | delay_files),
        tags=draw(tag_lists),
        a_index=indexes[0],
        b_index=indexes[1],
        directed=directed,
        name=draw(st.none() | names),
    )


@st.composite
def flow_tables(draw: st.DrawFn) -> ast.FlowTable:
    more = draw(st.lists(st.integers(2, MAX_FLOWS), max_size=4, unique=True))
    return tuple((flows, draw(rates)) for flows in (1, *sorted(more)))


@st.composite
def paths(draw: st.DrawFn) -> ast.LinkStatement:
    a, b = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    queue = st.none() | sizes
    rtt = draw(st.integers(0, bounds.MAX_LATENCY_NS))
    terms = ast.PathTerms(
        abw_up=draw(flow_tables()),
        abw_down=draw(flow_tables()),
        capacity_bps=draw(rates),
        wmax_bytes=draw(st.none() | sizes),
        rtt_ns=rtt,
        queue_up=draw(queue),
        queue_down=draw(queue),
    )
    jitter = draw(st.integers(0, rtt // 2))
    loss = draw(shares)
    chosen, tags = draw(st.none() | st.sampled_from(DISTRIBUTIONS)), draw(tag_lists)
    link = ast.LinkStatement(
        a, b, NOWHERE, 0, jitter, loss, distribution=chosen, tags=tags, path=terms
    )
    return draw(st.just(link) | _through_bottlenecks(link, terms))


@st.composite
def _through_bottlenecks(
    draw: st.DrawFn, path: ast.LinkStatement, terms: ast.PathTerms
) -> ast.LinkStatement:
    """What is the bottleneck's the path does not say."""
    one, other = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    up, down = draw(st.sampled_from([(one, None), (None, one), (one, one), (one, other)]))
    own = terms._replace(
        queue_up=None if up else terms.queue_up, queue_down=None if down else terms.queue_down
    )
    if up and down:
        own = own._replace(capacity_bps=DEFAULT_CAPACITY_BPS)
    return replace(path, path=own, neck_up=up, neck_down=down)


bottlenecks = st.builds(ast.Bottleneck, names, st.just(NOWHERE), rates, st.none() | sizes)


bridges = st.builds(
    ast.Bridges,
    st.lists(names, min_size=1, max_size=3, unique=True).map(tuple),
    st.just(NOWHERE),
    tag_lists,
)
lans = st.builds(
    ast.Bridges, names.map(lambda name: (name,)), st.just(NOWHERE), tag_lists, lan=st.just(True)
)
airs = st.builds(
    ast.Bridges,
    names.map(lambda name: (name,)),
    st.just(NOWHERE),
    tag_lists,
    lan=st.just(True),
    air=st.just(True),
)
settings = (
    st.builds(ast.Bootstrapper, images, st.just(NOWHERE))
    | st.builds(ast.Seed, st.integers(0, bounds.MAX_SEED), st.just(NOWHERE))
    | st.builds(ast.Routing, st.sampled_from(["delay", "hops", "direct"]), st.just(NOWHERE))
    | st.builds(ast.Network, st.sampled_from(NETWORKS), st.just(NOWHERE))
    | st.builds(ast.StartWhenReady, st.just(NOWHERE))
    | st.builds(ast.AutoAddresses, st.just(NOWHERE))
    | st.builds(ast.Dialect, st.just("kollaps"), st.just(NOWHERE))
    | st.builds(
        ast.QuitWhen,
        tag_lists.filter(lambda found: [name.text for name in found] != ["all"]),
        st.just(NOWHERE),
    )
)

elements = st.builds(ast.Element, names, st.just(NOWHERE), st.none() | st.integers(0, 99))
tagged = st.builds(ast.Tagged, some_tags, st.just(NOWHERE))
link_selectors = st.builds(
    ast.LinkSelector, elements, elements, st.booleans(), st.just(NOWHERE), st.none() | names
).filter(lambda link: link.a != link.b)
selectors = st.just(ast.Everything(NOWHERE)) | elements | tagged | link_selectors

numbers = st.builds(
    ast.Count, st.just(ast.Unit.NUMBER), st.integers(0, bounds.MAX_COUNT), st.just(NOWHERE)
)
percentages = st.builds(ast.Count, st.just(ast.Unit.PERCENT), shares, st.just(NOWHERE))
counts = numbers | percentages


def _assignment(word: str, values_: st.SearchStrategy[int | None]) -> st.SearchStrategy[object]:
    return st.builds(
        ast.Assignment,
        st.just(ast.Name(word, NOWHERE)),
        st.just(ast.Op.ASSIGN),
        values_,
        st.just(NOWHERE),
    )


def _relative(word: str, most: int) -> st.SearchStrategy[ast.Assignment]:
    return st.builds(
        ast.Assignment,
        st.just(ast.Name(word, NOWHERE)),
        st.sampled_from([ast.Op.ADD, ast.Op.SUB]),
        st.integers(0, most),
        st.just(NOWHERE),
    ) | st.builds(
        ast.Assignment,
        st.just(ast.Name(word, NOWHERE)),
        st.just(ast.Op.SCALE),
        st.integers(1, 10**12),
        st.just(NOWHERE),
    )


def _queue_assignment(prop: ast.Name, queue: ast.QueueSize) -> ast.Assignment:
    unit = None if queue.unit == "bytes" else queue.unit
    return ast.Assignment(prop, ast.Op.ASSIGN, queue.value, NOWHERE, unit)


def _by_property(word: str) -> st.SearchStrategy[ast.Assignment]:
    where = st.just(NOWHERE)
    prop = st.just(ast.Name(word, NOWHERE))
    if word == "dist":
        assign = st.just(ast.Op.ASSIGN)
        known = st.sampled_from(DISTRIBUTIONS)
        measured = delay_files.map(
            lambda file: ast.Assignment(
                ast.Name(word, NOWHERE), ast.Op.ASSIGN, None, NOWHERE, file.source, delays=file
            )
        )
        return measured | st.builds(ast.Assignment, prop, assign, st.none(), where, word=known)
    if word == "aqm":
        return st.builds(
            ast.Assignment,
            prop,
            st.just(ast.Op.ASSIGN),
            st.none(),
            where,
            word=managed | st.just(""),
        )
    if word == "queue":
        relative = _relative(word, bounds.MAX_QUEUE_BYTES)
        return st.builds(_queue_assignment, prop, queues) | relative
    if word in ("loss", "reject"):
        return st.builds(
            ast.Assignment,
            prop,
            st.sampled_from([ast.Op.ASSIGN, ast.Op.ADD, ast.Op.SUB]),
            shares,
            where,
        )
    if CHANGEABLE[word].kind == "table":
        assign = st.just(ast.Op.ASSIGN)
        return st.builds(ast.Assignment, prop, assign, st.none(), where, rows=flow_tables())
    ranges: dict[str, tuple[st.SearchStrategy[int | None], int]] = {
        **dict.fromkeys(("abw", "abw-up", "abw-down", "capacity"), (rates, bounds.MAX_RATE_BPS)),
        **dict.fromkeys(("queue-up", "queue-down", "wmax"), (sizes, bounds.MAX_QUEUE_BYTES)),
        "rtt": (st.integers(0, bounds.MAX_LATENCY_NS), bounds.MAX_LATENCY_NS),
        "latency": (st.integers(10**6, bounds.MAX_LATENCY_NS), bounds.MAX_LATENCY_NS),
        "jitter": (st.integers(0, 10**6), bounds.MAX_LATENCY_NS),
    }
    absolute, most = ranges.get(word, (st.none() | rates, bounds.MAX_RATE_BPS))
    return st.builds(ast.Assignment, prop, st.just(ast.Op.ASSIGN), absolute, where) | _relative(
        word, most
    )


_OF_LINKS = ("latency", "queue", "aqm")
_chosen = st.sampled_from(
    [
        ("up", "down", *_OF_LINKS),
        ("rate", *_OF_LINKS),
        _OF_LINKS,
        ("abw", "rtt", "queue-up", "queue-down"),
        ("abw-up", "abw-down", "capacity", "wmax", *_OF_LINKS),
        ("abw-flows-up", "abw-down"),
        ("abw-flows", "rtt"),
    ]
).flatmap(
    lambda some_words: st.lists(
        st.sampled_from(["jitter", "loss", "dist", *some_words]),
        min_size=1,
        unique=True,
    )
)
_of_all = _chosen.flatmap(lambda words: st.tuples(*(_by_property(word) for word in words))).map(
    lambda assignments: ast.Set(assignments, NOWHERE)
)


@st.composite
def some_packets(draw: st.DrawFn) -> ast.Only:
    """As they are written: protocols by name and port, ends by name."""
    ports = draw(st.sets(st.integers(0, 65_535), max_size=3))
    names = draw(st.lists(st.sampled_from(["sctp", "tcp", "udp"]), min_size=len(ports)))
    terms = {(name, port) for name, port in zip(names, ports, strict=False)}
    terms |= {("icmp", 0)} if draw(st.booleans()) else set()
    words = tuple(f"{name}:{port}" if port else name for name, port in sorted(terms))
    sources, dests = draw(_ends), draw(_ends)
    if not (words or sources or dests):
        words = ("udp:53",)
    return ast.Only(NOWHERE, words, sources, dests)


def _written(element: ast.Element) -> str:
    index = element.index
    return element.name.text if index is None else f"{element.name.text}.{index}"


_ends = st.lists(elements, max_size=3, unique_by=_written).map(
    lambda found: tuple(sorted(found, key=_written))
)
_of_some = st.builds(
    lambda assignments, only: ast.Set(assignments, NOWHERE, only),
    st.lists(
        st.sampled_from(["latency", "jitter", "loss", "reject"]), min_size=1, unique=True
    ).flatmap(lambda words: st.tuples(*(_by_property(word) for word in words))),
    some_packets(),
)
changes = _of_all | _of_some | st.just(ast.Set((), NOWHERE, ast.Only(NOWHERE)))
_cuts = st.builds(
    lambda verb, only: cut(verb, NOWHERE, only), st.just("leave"), some_packets()
) | st.builds(lambda only: cut("reject", NOWHERE, only), st.none() | some_packets())


@st.composite
def partitions(draw: st.DrawFn) -> ast.Partition:
    members = draw(
        st.lists(
            elements | names.map(lambda tag: ast.Tagged((tag,), NOWHERE)),
            min_size=2,
            max_size=6,
            unique=True,
        )
    )
    cut = draw(st.integers(1, len(members) - 1))
    groups = (tuple(members[:cut]), tuple(members[cut:]))
    only = draw(st.none() | some_packets())
    if draw(st.booleans()):
        return ast.Partition((tuple(members),), NOWHERE, False, only, draw(counts))
    return ast.Partition(groups, NOWHERE, draw(st.booleans()), only)


_offsets = st.integers(1, bounds.MAX_TIME_NS)
_drifts = st.integers(-bounds.MAX_DRIFT_PPB, bounds.MAX_DRIFT_PPB)
clocks = (
    st.builds(
        ast.SetClock,
        st.integers(-bounds.MAX_TIME_NS, bounds.MAX_TIME_NS),
        st.just(ast.Op.ASSIGN),
        st.none() | _drifts,
        st.just(NOWHERE),
    )
    | st.builds(
        ast.SetClock,
        _offsets,
        st.sampled_from([ast.Op.ADD, ast.Op.SUB]),
        st.none() | _drifts,
        st.just(NOWHERE),
    )
    | st.builds(ast.SetClock, st.none(), st.just(ast.Op.ASSIGN), _drifts, st.just(NOWHERE))
)

disks = (
    st.builds(ast.SetDisk, st.sampled_from(["ok", "full"]), st.just(0), st.just(NOWHERE))
    | st.builds(ast.SetDisk, st.just("slow"), _offsets, st.just(NOWHERE))
    | st.builds(ast.SetDisk, st.just("error"), st.integers(1, 10**9), st.just(NOWHERE))
)


@st.composite
def events(draw: st.DrawFn) -> ast.Dynamic:
    selector: ast.Selector = draw(selectors)
    single = isinstance(selector, ast.Element) and selector.index is not None
    count = None if single else draw(st.none() | counts)
    start = draw(st.integers(0, bounds.MAX_TIME_NS - 2))
    end: int | None = draw(st.integers(start + 1, bounds.MAX_TIME_NS))
    form = draw(st.sampled_from(["counted", "period", "instant", "alone"]))
    action: ast.Action
    open_ended = False
    if form == "counted":
        kinds: list[Callable[[ast.Count | None, ast.Span], ast.Action]] = [
            ast.Join,
            ast.Leave,
            ast.Crash,
            ast.Disconnect,
            ast.Pause,
        ]
        action = draw(st.sampled_from(kinds))(count, NOWHERE)
        of_something = count is not None or not isinstance(selector, ast.Everything)
        if isinstance(action, ast.Crash) and of_something:  # else `power` is a name
            action = ast.Crash(count, NOWHERE, draw(st.booleans()))
        end = draw(st.sampled_from([None, end]))
        length = draw(st.integers(1, bounds.MAX_TIME_NS - start))
        if end is None and isinstance(action, ast.Disconnect | ast.Pause) and draw(st.booleans()):
            action = type(action)(count, NOWHERE, length)
    elif form == "period":
        churn = st.builds(ast.Churn, counts, shares, st.just(NOWHERE))
        flap = st.builds(ast.Flap, st.integers(1, bounds.MAX_TIME_NS), st.just(NOWHERE))
        ramp = st.builds(
            lambda change, every_ns: ast.Ramp(change.assignments, every_ns, NOWHERE, change.only),
            (_of_all | _of_some).filter(
                lambda change: all(
                    one.word is None and one.prop.text not in PATH_WORDS
                    for one in change.assignments
                )
            ),
            st.integers(1, bounds.MAX_TIME_NS),
        )
        action = draw(flap | ramp if single else churn | flap | ramp)
        open_ended = not isinstance(action, ast.Ramp) and draw(st.booleans())
        end = None if open_ended else end
    elif form == "instant":
        after = draw(st.integers(0, bounds.MAX_TIME_NS - start))
        single_moment: list[ast.Action] = [
            ast.Reconnect(count, NOWHERE),
            ast.Resume(count, NOWHERE),
            ast.Restart(count, NOWHERE, after),
        ]
        action = draw(changes | clocks | disks | _cuts | st.sampled_from(single_moment))
        if not isinstance(action, ast.Set | ast.SetClock | ast.SetDisk) or draw(st.booleans()):
            end = None
    else:
        ends: list[ast.Action] = [ast.Heal(NOWHERE), ast.Quit(NOWHERE)]
        action = draw(partitions() | st.sampled_from(ends))
        selector, end = ast.Everything(NOWHERE), None
    plain = ast.Dynamic(start, end, selector, action, NOWHERE, open_ended)
    return draw(st.just(plain) | drawn_events(plain)) if form != "counted" else plain


@st.composite
def drawn_events(draw: st.DrawFn, plain: ast.Dynamic) -> ast.Dynamic:
    """The same with a moment, a length or targets that are drawn, where it can have them."""
    action, selector, start = plain.action, plain.selector, plain.start_ns
    if isinstance(action, ast.Quit) or plain.open_ended:
        return plain
    end = draw(st.none() | st.integers(start + 1, bounds.MAX_TIME_NS))
    lasts = not isinstance(action, ast.Heal | ast.Reconnect | ast.Resume)
    room = bounds.MAX_TIME_NS - (start if end is None else end)
    lengths = (0, 0)
    if lasts and room and not (end is not None and draw(st.booleans())):
        first, last = sorted((draw(st.integers(1, room)), draw(st.integers(1, room))))
        lengths = (first, last)
    needs = isinstance(action, ast.Flap | ast.Ramp | ast.Churn)
    if lengths == (0, 0) and (needs or end is None):
        return plain
    if isinstance(action, ast.Restart):
        if end is None and lengths[0] == lengths[1]:
            return plain
        action = ast.Restart(action.count, NOWHERE)
    links = isinstance(action, ast.Flap | ast.Ramp | ast.Set | ast.SetClock | ast.SetDisk)
    of = isinstance(selector, ast.Tagged | ast.LinkSelector)
    if links and of and draw(st.booleans()):
        assert not isinstance(selector, ast.Everything | ast.Some)
        selector = ast.Some(draw(counts), selector, NOWHERE)
    return ast.Dynamic(
        start, end, selector, action, NOWHERE, drawn=ast.DrawnTiming(end is not None, *lengths)
    )


backgrounds = st.builds(
    ast.Dynamic,
    times,
    st.none(),
    selectors,
    st.builds(
        ast.Background,
        st.integers(0, bounds.MAX_RATE_BPS),
        st.just(NOWHERE),
        st.just(0) | st.integers(1, MAX_FLOWS),
    ),
    st.just(NOWHERE),
)
_subjects = elements | st.just(ast.Everyone(NOWHERE))
_groups = st.lists(_subjects, min_size=1, max_size=3).map(tuple)
_pairs = st.tuples(_groups, _groups)
_patterns = texts.filter(bool).map(re.escape)


@st.composite
def windows(draw: st.DrawFn) -> ast.Window | None:
    start = draw(st.integers(0, bounds.MAX_TIME_NS - 1))
    end = draw(st.integers(start + 1, bounds.MAX_TIME_NS))
    form = draw(st.sampled_from(["", "from", "to", "between", "within"]))
    if not form:
        return None
    first = None if form == "to" else start
    last = None if form == "from" else end
    return ast.Window(first, last, NOWHERE, form == "within")


def _measure(kind: str, values_: st.SearchStrategy[int]) -> st.SearchStrategy[ast.Expect]:
    statistic = st.sampled_from(STATISTICS) if kind == "rtt" else st.just("")
    part = {"subjects": _pairs, "window": windows(), "statistic": statistic}
    part |= {"op": st.sampled_from(OPERATORS)}
    plain = st.builds(ast.Expect, st.just(kind), st.just(NOWHERE), value=values_, **part)
    never = {(0, "<"), *([(10**9, ">")] if kind == "loss" else [])}
    plain = plain.filter(lambda one: (one.value, one.op) not in never)
    if kind == "loss":
        return plain
    some = {"value": st.integers(1, 10**12), "of_plan": st.just(True)}
    return plain | st.builds(ast.Expect, st.just(kind), st.just(NOWHERE), **some, **part)


def _expect(kind: str, **part: st.SearchStrategy[Any]) -> st.SearchStrategy[ast.Expect]:
    return st.builds(ast.Expect, st.just(kind), st.just(NOWHERE), **part)


_paths = st.text(plain, min_size=1, max_size=9).filter(
    lambda path: path[0] != "/" and ".." not in path
)
_moments = times.map(lambda at: ast.Window(at, at, NOWHERE))
_alone = _groups.map(lambda group: (group,))
_keys = st.text(plain, min_size=1, max_size=9)
_after_faults = st.builds(
    ast.Window, st.just(0), times.filter(bool), st.just(NOWHERE), st.just(True), st.just(True)
)
_tries = windows().filter(lambda window: window is None or window.eventually)
expects = (
    _measure("rtt", times)
    | _measure("throughput", rates)
    | _measure("loss", shares)
    | _expect("unreachable", subjects=_pairs, window=windows())
    | _expect("log", subjects=_alone, window=windows(), text=_patterns)
    | _expect("no_log", subjects=_alone, window=windows(), text=_patterns)
    | _expect("exit", subjects=_alone, value=st.integers(0, 255))
    | _expect(
        "run",
        subjects=st.just(()) | elements.map(lambda one: ((one,),)),
        window=_moments | _tries,
        text=texts.map(_argv),
    )
    | _expect("valid")
    | _expect("serializable", subjects=_alone, text=_paths)
    | _expect("linearizable", subjects=_alone, text=_paths, model=st.sampled_from(MODELS))
    | _expect("assertions", subjects=_alone)
    | _expect(
        "drivers",
        subjects=_alone,
        window=windows().filter(lambda one: one is None or not one.eventually),
        text=_paths,
    )
    | st.sampled_from(LINE_MODES).flatmap(
        lambda mode: (
            _expect(
                mode,
                subjects=_alone,
                window=windows() | _after_faults,
                text=_patterns,
                has=_patterns,
            )
            | _expect(
                mode,
                subjects=_alone,
                window=windows() | _after_faults,
                text=_patterns,
                key=_keys,
                op=st.sampled_from(LINE_OPERATORS),
                number=st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", fullmatch=True),
            )
        )
    )
)
_figure = {"name": names, "span": st.just(NOWHERE), "subjects": _groups}
figures = st.builds(
    ast.Figure, **_figure, pattern=_patterns.map(lambda text: f"(?:{text})([0-9]+)")
).filter(lambda one: re.compile(one.pattern).groups == 1) | st.builds(
    ast.Figure, **_figure, path=_paths, key=_keys
)


@st.composite
def whens(draw: st.DrawFn) -> ast.When:
    kind = draw(st.sampled_from(["log", "exit", "ready"]))
    every = draw(st.booleans())
    return ast.When(
        kind,
        NOWHERE,
        draw(_groups),
        pattern=draw(_patterns) if kind == "log" else "",
        status=draw(st.none() | st.integers(0, 255)) if kind == "exit" else None,
        every=every,
        after_ns=draw(st.just(0) | times),
        most=draw(st.none() | st.integers(1, bounds.MAX_FIRINGS)) if every else None,
        body=tuple(draw(st.lists(events() | backgrounds, min_size=1, max_size=3))),
    )


_lengths = st.none() | st.integers(1, bounds.MAX_DISTANCE_MM)
_file_names = images.filter(lambda text: text.strip("./"))
_mobile = st.lists(
    st.builds(ast.MobileNodes, names, images | st.just("")), max_size=3,
    unique_by=lambda one: one.service.text,
).map(tuple)  # fmt: skip


@st.composite
def mobilities(draw: st.DrawFn) -> ast.Mobility:
    latency = draw(st.none() | st.integers(0, bounds.MAX_LATENCY_NS))
    form = draw(st.none() | st.sampled_from(MOTION_FORMATS))
    radios = draw(st.none() | st.integers(1, 512))
    rate = draw(st.none() | rates | _file_names)
    loss = draw(st.none() | shares | _file_names)
    return ast.Mobility(
        draw(_file_names),
        NOWHERE,
        NOWHERE,
        form,
        None if form == "gpx" else draw(st.none() | st.sampled_from(["m", "km"])),
        draw(_mobile),
        draw(_lengths),
        draw(_lengths),
        draw(st.none() | st.integers(1, bounds.MAX_TIME_NS)),
        latency,
        draw(st.none() | st.integers(1, bounds.MAX_LATENCY_NS)) if latency is None else None,
        rate if isinstance(rate, int) else None,
        rate if isinstance(rate, str) else None,
        loss if isinstance(loss, int) else None,
        loss if isinstance(loss, str) else None,
        radios,
        None if radios is None else "nearest",
    )


statements = (
    settings
    | services
    | bridges
    | lans
    | airs
    | links()
    | paths()
    | bottlenecks
    | mobilities()
    | events()
    | backgrounds
    | expects
    | figures
)
assert STATEMENTS  # the words above cover all of them; see test_roundtrip
