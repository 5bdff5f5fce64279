"""A list of flows in TDL: `from 2s to 8s c->d background 5Mb flows=2`.

Each `background` of the list is a flow of its own: from end to end of the network rather than on
one link, at most its rate, as so many connections as `flows=` says. Of the language a list has
besides what makes one line of many (`let`, `param`, `for`, lists of names). Anything else is
refused at its line. Input: the file and a plan. Output: the flows in the order of the statements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from runtime.agent.share.solver import UNLIMITED
from tdl import ast
from tdl.bounds import MAX_RATE_BPS
from tdl.parser import parse_partial
from tdl.preprocess.includes import NoTextError
from tstorm.exit_codes import CommandError
from tstorm.predicting.listed_flow import (
    MAX_FLOWS,
    MAX_WEIGHT,
    FlowEnds,
    FlowError,
    FlowProblem,
    ListedFlow,
    refusal,
)

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from tdl.preprocess.includes import Reader
    from tdl.preprocess.translated import Variable

SUFFIX = ".tdl"
_LIKE = "such as 'from 2s to 8s a->b background 5Mb flows=2'"
_ONCE_MORE = "flows=2 is a flow that counts as two connections"
_EACH_WAY = "write a->b, or a--b for a flow each way"


class _OneFile:
    """The texts that a list may include: none, so that the number of a line says where it is."""

    def text(self, path: str) -> NoReturn:
        raise NoTextError(f"a list of flows is one file, '{path}' is another", "put its lines here")

    def translated(
        self,
        paths: Sequence[str],
        variable: Variable,  # noqa: ARG002
        read: Reader,  # noqa: ARG002
        sink: object,  # noqa: ARG002
    ) -> NoReturn:
        self.text(paths[0])


def read(file: str, plan: Plan) -> list[ListedFlow]:
    """CommandError; what the language has to say of the text is shown as of an experiment."""
    from tstorm import loading

    raw = loading.read_source(file)
    partial = parse_partial(raw, _OneFile())
    loading.show(partial.diagnostics, file, raw)
    if partial.failed:
        raise CommandError
    found, problems = _flows(partial.file.statements, FlowEnds(plan))
    if not found and not problems:
        problems.append(FlowProblem(1, "there is no flow in the list", _LIKE))
    if problems:
        raise refusal(file, problems)
    return found


def _flows(
    statements: Sequence[ast.Statement], ends: FlowEnds
) -> tuple[list[ListedFlow], list[FlowProblem]]:
    found: list[ListedFlow] = []
    problems: list[FlowProblem] = []
    known: dict[ListedFlow, int] = {}  # the line of each, by what it says
    for statement in statements:
        line, note = statement.span.line, statement.span.note
        try:
            for one in _of(statement, ends):
                said = one._replace(line=0)
                if said in known:
                    raise FlowError(f"this is the flow of line {known[said]} once more", _ONCE_MORE)
                known[said] = line
                found.append(one)
        except FlowError as error:
            message, hint = error.args
            said_where = f"{message} (with {note})" if note else message
            problems.append(FlowProblem(line, said_where, hint))
        if len(found) > MAX_FLOWS:
            why = f"a list has at most {MAX_FLOWS:,} flows"
            problems.append(FlowProblem(line, why, "flows=N stands for N like this one"))
            break
    return found, problems


def _of(statement: ast.Statement, ends: FlowEnds) -> Iterator[ListedFlow]:
    """The flow of a statement, or one each way. FlowError."""
    if not isinstance(statement, ast.Dynamic) or not isinstance(statement.action, ast.Background):
        raise FlowError("this is no flow", f"a list has let, param, for and flows, {_LIKE}")
    start_ns, end_ns = ends.times(*_times(statement, ends.end_ns))
    demand_bps, weight = _demand(statement.action)
    for names in _ways(statement.selector):
        src, dst = ends.pair(names, ("from", "to"))
        yield ListedFlow(statement.span.line, src, dst, start_ns, end_ns, demand_bps, weight, None)


def _ways(selector: ast.Selector) -> list[tuple[str, str]]:
    """From where to where."""
    if not isinstance(selector, ast.LinkSelector):
        raise FlowError("a flow leads from one end to another", _EACH_WAY)
    if selector.name is not None:
        why = "a flow takes the path that the plan has, which is more than one link"
        raise FlowError(f"'{selector.name.text}:' names a link", f"{why}: leave it out")
    a, b = _name(selector.a), _name(selector.b)
    return [(a, b)] if selector.directed else [(a, b), (b, a)]


def _name(end: ast.Element) -> str:
    return end.name.text if end.index is None else f"{end.name.text}.{end.index}"


def _times(statement: ast.Dynamic, end_ns: int) -> tuple[int, int]:
    """From when until when, where nothing says it until the experiment ends."""
    start_ns, drawn = statement.start_ns, statement.drawn
    if drawn is not None:
        if drawn.moment or drawn.shortest_ns != drawn.longest_ns:
            hint = "a list says when each flow is there: `at T … for 5s`, or `from T1 to T2 …`"
            raise FlowError("the flow's times are drawn", hint)
        return start_ns, start_ns + drawn.shortest_ns
    return start_ns, end_ns if statement.end_ns is None else statement.end_ns


def _demand(action: ast.Background) -> tuple[int, int]:
    """What the flow wants, and as how many connections it counts."""
    if not action.rate_bps:
        hint = "leave the line out; a flow ends at the end of its `for` or `from … to …`"
        raise FlowError("a flow of 0 b/s sends nothing", hint)
    if action.flows > MAX_WEIGHT:
        hint = f"as so many connections: from 1 to {MAX_WEIGHT:,}"
        raise FlowError(f"flows={action.flows:,} is too many", hint)
    greedy = action.rate_bps == MAX_RATE_BPS
    return UNLIMITED if greedy else action.rate_bps, max(action.flows, 1)
