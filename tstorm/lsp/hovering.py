"""What an experiment has at a place of its text, in Markdown: links, composed paths, events.

Input: an experiment that compiles, and the place. A link (`a--s`) shows what both directions have
at the time of the statement; a name that has instances shows paths as `tstorm paths` does, in an
`expect` that of the pair; an action shows the events that its statement becomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.pipeline import Compilation
from compiler.plan.paths.path import PathProperties, Paths
from compiler.plan.properties import COMPOSED, PROPERTIES, Totals
from compiler.plan.types import Event, element_of
from tdl.diagnostics import Sink
from tdl.tokens.lexer import LogicalLine, Token, logical_lines
from tdl.tokens.words import ACTIONS
from tdl.values import ValueProblem, time
from tstorm import units

MOST_ROWS = 10
_NAMES = ("NAME", "INSTANCE")
_ROWS = [row for row in PROPERTIES if not row.words and not row.table and not row.form]


def hover(found: Compilation, text: str, line: int, col: int) -> str | None:
    """None where there is nothing to say. `line` and `col` count from 1."""
    tokens, index = _at(text, line, col)
    if index < 0:
        return None
    token, at_ns = tokens[index], _time(tokens)
    link = _link(tokens, index)
    if link is not None:
        return _links(found, *link, at_ns)
    if token.text in ACTIONS and tokens[0].type != "SERVICE":
        return _events(found, tokens[0].line)
    if token.type not in _NAMES:
        return None
    pair = [one.text for one in tokens[2:] if one.type in _NAMES]
    if tokens[0].type == "EXPECT" and token.text in pair:
        starts, ends = (_instances(found, name) for name in (pair * 2)[:2])
        return _paths(found, starts[:1], ends[:1] if len(pair) > 1 else [], at_ns, both=True)
    mine = _instances(found, token.text)
    others = [node.name for node in found.topology.nodes if node.service >= 0]
    ends = [_instances(found, one.name)[0] for one in found.topology.services if one.replicas]
    name = element_of(others[mine[0]]) if mine else ""
    rest = [one for one in ends if element_of(others[one]) != name]
    rest += mine[1:2] if token.type == "NAME" else []
    return _paths(found, mine[:1], rest, at_ns, both=False)


def _at(text: str, line: int, col: int) -> tuple[list[Token], int]:
    """The statement there, and which of its tokens; -1 for none."""
    for one in logical_lines(text, Sink()):
        if not _covers(one, line):
            continue
        for index, token in enumerate(one.tokens):
            if token.line == line and token.col <= col <= token.end_col:
                return one.tokens, index
    return [], -1


def _covers(one: LogicalLine, line: int) -> bool:
    return bool(one.tokens) and one.tokens[0].line <= line <= one.tokens[-1].line


def _time(tokens: Sequence[Token]) -> int | None:
    """When the statement is, if it says."""
    if len(tokens) < 2 or tokens[0].type not in ("AT", "FROM") or tokens[1].type != "VALUE":
        return None
    try:
        return time(tokens[1].text)
    except ValueProblem:
        return None


def _link(tokens: Sequence[Token], index: int) -> tuple[str, str] | None:
    """The ends of a link that the token is of."""
    for middle in (index - 1, index, index + 1):
        if 0 < middle < len(tokens) - 1 and tokens[middle].type in ("DASH", "ARROW"):
            ends = tokens[middle - 1], tokens[middle + 1]
            if all(one.type in _NAMES for one in ends):
                return ends[0].text, ends[1].text
    return None


def _instances(found: Compilation, name: str) -> list[int]:
    nodes = found.topology.nodes
    known = [index for index, node in enumerate(nodes) if node.service >= 0]
    return [one for one in known if name in (nodes[one].name, element_of(nodes[one].name))]


def _links(found: Compilation, a: str, b: str, at_ns: int | None) -> str | None:
    topology, states = found.topology, found.plan.folded_at(at_ns or 0).links
    rows: list[list[str]] = []
    columns: dict[str, str] = {}
    for link, state in zip(topology.links, states, strict=True):
        ends = [topology.nodes[end].name for end in (link.src, link.dst)]
        if not any(_fit(ends, way) for way in ((a, b), (b, a))):
            continue
        own = {"link": link.name if state.up else f"{link.name} (down)"}
        for row in _ROWS:
            value = getattr(state, row.field)
            if value or not row.rare:
                own[row.name] = units.shown(row.field, value)
        columns |= own
        rows.append([own.get(name, "-") for name in columns])
    if not rows:
        return None
    full = [[*row, *["-"] * (len(columns) - len(row))] for row in rows[:MOST_ROWS]]
    table = f"{_table([*columns], full)}{_more(len(rows))}"
    return f"link {a}--{b} at {units.duration(at_ns or 0)}\n\n{table}"


def _fit(ends: Sequence[str], way: Sequence[str]) -> bool:
    return all(wanted in (end, element_of(end)) for end, wanted in zip(ends, way, strict=True))


def _paths(
    found: Compilation,
    starts: Sequence[int],
    ends: Sequence[int],
    at_ns: int | None,
    *,
    both: bool,
) -> str | None:
    if not starts or not ends or any(node.frames for node in found.topology.nodes):
        return None  # nothing, or what programs of routers decide
    at_ns = at_ns or 0
    state = found.plan.sparse_at(at_ns)
    paths = Paths(state)
    pairs = [(start, end) for start in starts for end in ends]
    pairs += [(end, start) for start, end in pairs] if both else []
    rows = [_path(found, paths.path(*pair)) for pair in pairs[:MOST_ROWS]]
    head = ["from", "to", *(row.word for row in COMPOSED), "rtt", "links"]
    return f"paths at {units.duration(at_ns)}\n\n{_table(head, rows)}{_more(len(pairs))}"


def _path(found: Compilation, path: PathProperties) -> list[str]:
    nodes, links = found.topology.nodes, found.topology.links
    figures = ["unreachable", *["-"] * (len(COMPOSED) - 1)]
    if path.totals is not None:
        figures = [units.shown(*pair) for pair in zip(Totals._fields, path.totals, strict=True)]
    rtt = "-" if path.rtt_ns is None else units.duration(path.rtt_ns)
    way = " ".join(links[link].name for link in path.links) or "-"
    return [nodes[path.src].name, nodes[path.dst].name, *figures, rtt, way]


def _events(found: Compilation, line: int) -> str | None:
    events = [one for one in found.events if one.place == ("", line)]
    if not events:
        return None
    return "\n".join(f"- {_event(one)}" for one in events[:MOST_ROWS]) + _more(len(events))


def _more(count: int) -> str:
    """How many of what is shown are not."""
    return f"\n\n… and {count - MOST_ROWS:,} more" if count > MOST_ROWS else ""


def _event(event: Event) -> str:
    args = (f"{units.word(name)}={units.shown(name, value)}" for name, value in event.args.items())
    return " ".join([units.duration(event.at_ns), event.target, event.kind, *args])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(_lines([head, ["---"] * len(head), *rows]))


def _lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
