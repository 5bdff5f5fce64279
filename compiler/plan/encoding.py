"""Plan types to and from the JSON of topology.json, timeline.jsonl and snapshots.jsonl.

Field names and ranges are those of docs/plan.md. Decoders raise PlanError at the first value that
is out of its range; what spans several records (unique names, order) is checked in consistency.py.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from compiler.plan import event_kinds, types
from compiler.plan.format import MAX_INT, MAX_NODES, PPB, ROUTINGS, Place, canonical
from compiler.plan.parts import planned_reactions
from compiler.plan.parts.services import service_from_json, service_to_json
from compiler.plan.properties import (
    BY_FIELD,
    COMPOSED,
    MAX_DRIFT_PPB,
    MAX_FLOWS,
    PROPERTIES,
    RARE,
    LinkState,
    Property,
    flow_rates,
    has_rare,
    shown,
)

TOPOLOGY_FIELDS = ("bootstrapper", "delays", "frames_at", "hops", "hops_at", "links", "machines",
                   "mobility",
                   "network", "nodes", "quit_when", "reactions", "routing", "services",
                   "start_when_ready", "traces")  # fmt: skip
TRACED = tuple(row.field for row in COMPOSED)  # what a trace may have
_NOTHING_RARE = LinkState._field_defaults
_NOTHING_AT_END = tuple(_NOTHING_RARE.values())
_FLOW_RATES = re.compile(r"[1-9][0-9]{0,4}:[1-9][0-9]{0,18}:[1-9][0-9]{0,18}")
_NOWHERE = ["", 0]
_NO_FRAMES = [0, 0, "", ""]
_STATED = ("range_mm", "body_mm")  # of a mobility, left out where nothing is stated
NODE_WORDS = (event_kinds.UP, event_kinds.CUT, event_kinds.DOWN)


# --- topology --------------------------------------------------------------------------------


def topology_to_json(topology: types.Topology) -> dict[str, object]:
    return {
        "bootstrapper": topology.bootstrapper,
        "hops": topology.hops,
        "hops_at": list(topology.hops_at),
        "links": [_link_to_json(link) for link in topology.links],
        "network": topology.network,
        "nodes": [_node_to_json(node) for node in topology.nodes],
        "quit_when": list(topology.quit_when),
        "routing": topology.routing,
        "services": [service_to_json(service) for service in topology.services],
        "start_when_ready": int(topology.start_when_ready),
        **({"frames_at": list(topology.frames_at)} if topology.frames_at[1] else {}),
        **({"traces": list(map(_trace_to_json, topology.traces))} if topology.traces else {}),
        **({"delays": list(map(_delays_to_json, topology.delays))} if topology.delays else {}),
        **(
            {"mobility": list(map(_mobility_to_json, topology.mobility))}
            if topology.mobility
            else {}
        ),
        **(
            {"machines": list(map(_machine_to_json, topology.machines))}
            if topology.machines
            else {}
        ),
        **(
            {"reactions": planned_reactions.to_json(topology.reactions)}
            if topology.reactions
            else {}
        ),
    }


def _trace_to_json(trace: types.PlannedTrace) -> dict[str, object]:
    return {
        "begin_ns": trace.begin_ns,
        "hold": int(trace.holds),
        "means": dict(trace.means),
        "name": trace.name,
        "sha256": trace.digest,
    }


def _delays_to_json(delays: types.PlannedDelays) -> dict[str, object]:
    return {"name": delays.name, "sha256": delays.digest}


def _mobility_to_json(found: types.PlannedMobility) -> dict[str, object]:
    stated = {name: getattr(found, name) for name in _STATED if getattr(found, name) is not None}
    led = {"transceivers": found.transceivers} if found.transceivers else {}
    return {"name": found.name, "nodes": list(found.nodes), "sha256": found.digest, **led, **stated}


def _machine_to_json(found: types.PlannedMachine) -> dict[str, object]:
    return {
        "bridges": list(found.bridges),
        "cpu_millis": found.cpu_millis,
        "file": found.file,
        **({"lans": list(map(_lan_to_json, found.lans))} if found.lans else {}),
        "line": found.line,
        "mem_bytes": found.mem_bytes,
        "members": list(found.members),
        "name": found.name,
    }


def _lan_to_json(found: types.PlannedLan) -> dict[str, object]:
    ends = [list(end) for end in found.ends]
    return {"ends": ends, "file": found.file, "line": found.line, "name": found.name}


def _node_to_json(node: types.Node) -> dict[str, object]:
    return {
        "ipv4": node.ipv4,
        "ipv6": node.ipv6,
        "name": node.name,
        "service": node.service,
        "tags": list(node.tags),
        **({"owner": node.owner} if node.owner >= 0 else {}),
        **({"frames": [*node.prefixes, *node.gateways]} if node.frames else {}),
        **({"air": 1} if node.air else {}),
    }


def _link_to_json(link: types.Link) -> dict[str, object]:
    return {
        **shown(link.state),
        "dst": link.dst,
        "name": link.name,
        "seed": link.seed,
        "src": link.src,
        "tags": list(link.tags),
    }


def topology_from_json(value: Any, place: Place) -> types.Topology:
    (
        boot,
        delays,
        frames_at,
        hops,
        at,
        links,
        machines,
        moves,
        network,
        nodes,
        ends,
        whens,
        routing,
        services,
        waits,
        traces,
    ) = place.fields(with_files(value, place), *TOPOLOGY_FIELDS)
    most = len(place.items(services)) - 1
    return types.Topology(
        services=tuple(service_from_json(item, place, i) for i, item in enumerate(services)),
        nodes=tuple(node_from_json(item, place, i) for i, item in enumerate(place.items(nodes))),
        links=tuple(link_from_json(item, place, i) for i, item in enumerate(place.items(links))),
        bootstrapper=place.text(boot, "bootstrapper"),
        routing=place.word(routing, "routing", ROUTINGS),
        network=place.word(network, "network", types.NETWORKS),
        hops=place.word(hops, "hops", types.HOPS),
        hops_at=_source_place(at, place, "hops_at"),
        frames_at=_source_place(frames_at, place, "frames_at"),
        start_when_ready=place.integer(waits, "start_when_ready", 0, 1) == 1,
        quit_when=tuple(place.integer(end, "quit_when", 0, most) for end in place.items(ends)),
        traces=tuple(
            _trace_from_json(item, place, i) for i, item in enumerate(place.items(traces), 1)
        ),
        delays=tuple(_delays_from_json(item, place) for item in place.items(delays)),
        mobility=tuple(_mobility_from_json(item, place, len(nodes)) for item in place.items(moves)),
        machines=tuple(
            _machine_from_json(item, place, len(nodes)) for item in place.items(machines)
        ),
        reactions=planned_reactions.from_json(whens, place),
    )


def with_files(value: Any, place: Place) -> Any:
    """What topology.json has, where they stand only if there are some."""
    if type(value) is not dict:
        return value
    for name in ("traces", "delays", "mobility", "machines", "reactions"):
        if value.get(name) == []:
            place.fail(f"{name} are left out where there are none")
    if value.get("frames_at") == _NOWHERE:
        place.fail("frames_at is left out where nothing carries frames")
    left_out: dict[str, object] = {"frames_at": _NOWHERE, "machines": [], "reactions": []}
    return {**left_out, "traces": [], "delays": [], "mobility": [], **value}


def _delays_from_json(value: Any, outer: Place) -> types.PlannedDelays:
    place = Place(outer.file, outer.line, "delays")
    name, digest = place.fields(value, "name", "sha256")
    return types.PlannedDelays(place.text(name, "name"), place.text(digest, "sha256"))


def _mobility_from_json(value: Any, outer: Place, count: int) -> types.PlannedMobility:
    place = Place(outer.file, outer.line, "mobility")
    more = [key for key in ("transceivers", *_STATED) if type(value) is dict and key in value]
    name, nodes, digest, *others = place.fields(value, "name", "nodes", "sha256", *more)
    stated = dict(zip(more, others, strict=True))
    radios = stated.pop("transceivers", None)
    each = 0 if radios is None else place.integer(radios, "transceivers", 1, MAX_NODES)
    return types.PlannedMobility(
        place.text(name, "name"),
        place.text(digest, "sha256"),
        tuple(place.integer(node, "nodes", 0, count - 1) for node in place.items(nodes)),
        each,
        **{key: place.integer(mm, key, 0, MAX_INT) for key, mm in stated.items()},
    )


def _machine_from_json(value: Any, outer: Place, count: int) -> types.PlannedMachine:
    place = Place(outer.file, outer.line, "machine")
    names = ("bridges", "cpu_millis", "file", "line", "mem_bytes", "members", "name")
    more = ["lans"] if type(value) is dict and "lans" in value else []
    bridges, cpu, file, line, mem, members, name, *lans = place.fields(value, *names, *more)
    found = [_lan_from_json(one, outer, count) for all_ in lans for one in place.items(all_)]
    if more and not found:
        place.fail("lans are left out where there are none")
    return types.PlannedMachine(
        place.text(name, "name"),
        tuple(place.integer(one, "members", 0, count - 1) for one in place.items(members)),
        tuple(place.integer(one, "bridges", 0, count - 1) for one in place.items(bridges)),
        place.integer(cpu, "cpu_millis"),
        place.integer(mem, "mem_bytes"),
        place.text(file, "file"),
        place.integer(line, "line", 1),
        tuple(found),
    )


def _lan_from_json(value: Any, outer: Place, count: int) -> types.PlannedLan:
    place = Place(outer.file, outer.line, "lan of a machine")
    ends, file, line, name = place.fields(value, "ends", "file", "line", "name")
    return types.PlannedLan(
        place.text(name, "name"),
        tuple(_lan_end(one, place, count) for one in place.items(ends)),
        place.text(file, "file"),
        place.integer(line, "line", 1),
    )


def _lan_end(value: Any, place: Place, count: int) -> types.PlannedLanEnd:
    items = place.items(value)
    if len(items) != 3:
        place.fail("an end is a node and its two addresses")
    four, six = (place.text(one, "address") for one in items[1:])
    return types.PlannedLanEnd(place.integer(items[0], "node", 0, count - 1), four, six)


def _trace_from_json(value: Any, outer: Place, number: int) -> types.PlannedTrace:
    place = Place(outer.file, outer.line, f"trace {number}")
    begin, hold, means, name, digest = place.fields(
        value, "begin_ns", "hold", "means", "name", "sha256"
    )
    if type(means) is not dict or not means or not means.keys() <= set(TRACED):
        place.fail(f"means must have some of {', '.join(TRACED)}")
    return types.PlannedTrace(
        name=place.text(name, "name"),
        digest=place.text(digest, "sha256"),
        begin_ns=place.integer(begin, "begin_ns"),
        holds=place.integer(hold, "hold", 0, 1) == 1,
        means=tuple(
            (field, place.integer(means[field], field, 0, BY_FIELD[field].stored))
            for field in TRACED
            if field in means
        ),
    )


def _source_place(value: Any, place: Place, name: str) -> tuple[str, int]:
    file, line = place.items(value, 2)
    return place.text(file, name), place.integer(line, name)


def node_from_json(value: Any, outer: Place, index: int) -> types.Node:
    place = Place(outer.file, outer.line, f"node {index}")
    names = ("ipv4", "ipv6", "name", "service", "tags")
    said = value if type(value) is dict else {}
    words = [word for word in ("owner", "frames", "air") if word in said]
    ipv4, ipv6, name, service, tags, *_ = place.fields(value, *names, *words)
    *prefixes, gateway4, gateway6 = place.items(said.get("frames", _NO_FRAMES), 4)
    return types.Node(
        name=place.text(name, "name"),
        service=place.integer(service, "service", -1, MAX_NODES),
        ipv4=place.text(ipv4, "ipv4"),
        ipv6=place.text(ipv6, "ipv6"),
        tags=place.texts(tags, "tags"),
        owner=place.integer(said["owner"], "owner", 0, MAX_NODES - 1) if "owner" in said else -1,
        frames="frames" in said,
        air="air" in said and place.integer(said["air"], "air", 1, 1) == 1,
        prefixes=(
            place.integer(prefixes[0], "prefix", 0, 32),
            place.integer(prefixes[1], "prefix", 0, 128),
        ),
        gateways=(place.text(gateway4, "gateway"), place.text(gateway6, "gateway")),
    )


def link_from_json(value: Any, outer: Place, index: int) -> types.Link:
    place = Place(outer.file, outer.line, f"link {index}")
    if type(value) is dict:
        value = {**_NOTHING_RARE, **value}
    dst, name, seed, src, tags, *state = place.fields(
        value, "dst", "name", "seed", "src", "tags", *BY_FIELD
    )
    return types.Link(
        name=place.text(name, "name"),
        src=place.integer(src, "src", 0, MAX_NODES - 1),
        dst=place.integer(dst, "dst", 0, MAX_NODES - 1),
        seed=place.integer(seed, "seed"),
        tags=place.texts(tags, "tags"),
        state=_state([1, *state], place),
    )


# --- link states -----------------------------------------------------------------------------


def state_to_json(state: LinkState) -> list[int | str]:
    """Without the rare properties at the end, if all of them are 0."""
    values = state[1:] if has_rare(state) else state[1:-RARE]
    return [int(state.up), *values]


def state_from_json(values: list[Any], place: Place) -> LinkState:
    """`values` is what state_to_json makes."""
    if len(values) != len(LinkState._fields):
        place.items(values, len(LinkState._fields) - RARE)
    elif not any(values[-RARE:]):
        place.fail(f"a link's last {RARE} properties are left out where they are 0")
    return _state(values, place)


def _state(values: list[Any], place: Place) -> LinkState:
    """Rare ones at the end that are not there are nothing."""
    up = place.integer(values[0], "up", 0, 1) == 1
    found = [_value(row, value, place) for row, value in zip(PROPERTIES, values[1:], strict=False)]
    missing = len(PROPERTIES) - len(found)
    return LinkState._make((up, *found, *_NOTHING_AT_END[RARE - missing :]))


def _value(row: Property, value: Any, place: Place) -> int | str:
    if row.words:
        other = bool(row.form) and type(value) is str and re.fullmatch(row.form, value)
        return value if other else place.word(value, row.field, row.words)
    if row.table:
        return _table(place.text(value, row.field), row, place)
    if row.form:
        text = place.text(value, row.field)
        return text if re.fullmatch(row.form, text) else place.fail(f"{row.field} {text!r:.60}")
    return place.integer(value, row.field, 0, row.stored)


def _table(text: str, row: Property, place: Place) -> str:
    """Checked: as it is written (FlowRate), ascending."""
    if text and not all(map(_FLOW_RATES.fullmatch, text.split(";"))):
        place.fail(f"{row.field} is no table of flows: {text!r:.60}")
    flows = [found.flows for found in flow_rates(text)]
    if flows != sorted({*flows} - {1}):
        place.fail(f"{row.field} does not ascend from 2 flows: {text!r:.60}")
    return text


# --- timeline --------------------------------------------------------------------------------


def event_line(event: types.Event) -> bytes:
    """The event's line of timeline.jsonl: format.canonical() of its record, written directly.

    There may be a million of them, and few have arguments.
    """
    args = canonical(dict(event.args))[:-1].decode() if event.args else "{}"
    text = (
        f'{{"args":{args},"at_ns":{event.at_ns},"file":{_quoted(event.file)},'
        f'"kind":{_quoted(event.kind)},"line":{event.line},"seq":{event.seq},'
        f'"target":{_quoted(event.target)}}}\n'
    )
    return text.encode("ascii")


def event_from_json(value: Any, place: Place) -> types.Event:
    args, at, file, kind, line, seq, target = place.fields(
        value, "args", "at_ns", "file", "kind", "line", "seq", "target"
    )
    word = place.word(kind, "kind", event_kinds.KINDS)
    return types.Event(
        seq=place.integer(seq, "seq"),
        at_ns=place.integer(at, "at_ns"),
        kind=word,
        target=place.text(target, "target"),
        args=_args(args, word, place),
        line=place.integer(line, "line"),
        file=place.text(file, "file"),
    )


def _disk_args(value: Any, place: Place) -> dict[str, int | str]:
    fault = value.get("fault") if type(value) is dict else None
    if fault == "slow":
        delay, word = place.fields(value, "delay_ns", "fault")
        return {"delay_ns": place.integer(delay, "delay_ns", 1), "fault": word}
    if fault == "error":
        seed, share, word = place.fields(value, "disk_seed", "error_ppb", "fault")
        return {
            "disk_seed": place.integer(seed, "disk_seed"),
            "error_ppb": place.integer(share, "error_ppb", 1, PPB),
            "fault": word,
        }
    [word] = place.fields(value, "fault")
    return {"fault": place.word(word, "fault", ("ok", "full"))}


def _args(value: Any, kind: str, place: Place) -> dict[str, int | str]:
    if kind == "background":
        if type(value) is dict and "flows" in value:
            flows, rate = place.fields(value, "flows", "rate_bps")
            args = {"flows": place.integer(flows, "flows", 1, MAX_FLOWS)}
            return {**args, "rate_bps": place.integer(rate, "rate_bps")}
        [rate] = place.fields(value, "rate_bps")
        return {"rate_bps": place.integer(rate, "rate_bps")}
    if kind == "clock":
        offset, drift = place.fields(value, "offset_ns", "drift_ppb")
        return {
            "drift_ppb": place.integer(drift, "drift_ppb", -MAX_DRIFT_PPB, MAX_DRIFT_PPB),
            "offset_ns": place.integer(offset, "offset_ns", -MAX_INT, MAX_INT),
        }
    if kind == "disk":
        return _disk_args(value, place)
    if kind == "crash" and value:
        [seed] = place.fields(value, "power_seed")
        return {"power_seed": place.integer(seed, "power_seed")}
    if kind != "set":
        place.fields(value)
        return {}
    if type(value) is not dict or not value:
        place.fail("set needs at least one property in args")
    found: dict[str, int | str] = {}
    for name, item in value.items():
        if name not in BY_FIELD:
            place.fail(f"set cannot change {name!r:.60}")
        found[name] = _value(BY_FIELD[name], item, place)
    return found


# --- snapshots -------------------------------------------------------------------------------


def epoch_to_json(epoch: types.Epoch) -> dict[str, object]:
    return {
        "at_ns": epoch.at_ns,
        "first_seq": epoch.first_seq,
        "index": epoch.index,
        "last_seq": epoch.last_seq,
        "links": [[link, *state_to_json(state)] for link, state in epoch.links],
        "nodes": [list(change) for change in epoch.nodes],
    }


def epoch_head_from_json(value: Any, place: Place) -> tuple[types.Epoch, Any, Any]:
    """The epoch without its changes, and what its `nodes` and `links` say, unchecked."""
    at, first, index, last, links, nodes = place.fields(
        value, "at_ns", "first_seq", "index", "last_seq", "links", "nodes"
    )
    head = types.Epoch(
        index=place.integer(index, "index"),
        at_ns=place.integer(at, "at_ns"),
        first_seq=place.integer(first, "first_seq"),
        last_seq=place.integer(last, "last_seq"),
        nodes=(),
        links=(),
    )
    return head, nodes, links


def epoch_from_json(value: Any, place: Place, topology: types.Topology) -> types.Epoch:
    head, nodes, links = epoch_head_from_json(value, place)
    return types.Epoch(
        head.index,
        head.at_ns,
        head.first_seq,
        head.last_seq,
        _node_changes(nodes, place, len(topology.nodes)),
        _link_changes(links, place, len(topology.links)),
    )


def _node_changes(value: Any, place: Place, count: int) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    last = -1
    for item in place.items(value):
        node, word = place.items(item, 2)
        last = place.integer(node, "node (each once, ascending)", last + 1, count - 1)
        found.append((last, place.word(word, "state", NODE_WORDS)))
    return tuple(found)


def _link_changes(value: Any, place: Place, count: int) -> tuple[tuple[int, LinkState], ...]:
    found: list[tuple[int, LinkState]] = []
    last = -1
    for item in place.items(value):
        link, *state = place.items(item) or place.fail("a list is empty")
        last = place.integer(link, "link (each once, ascending)", last + 1, count - 1)
        found.append((last, state_from_json(state, place)))
    return tuple(found)
