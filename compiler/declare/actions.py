"""What each action of the timeline may name, and the events that it makes: a row each. What is done
to machines as a whole is done to their parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tdl import ast
from tdl.diagnostics import Sink
from tdl.formatter import format_selector

_INSTANCES = ("service",)
_ELEMENTS = ("service", "bridge", "link")  # beside these there are bottlenecks


@dataclass(frozen=True, slots=True)
class ActionRule:
    """targets  what a selector may name; () where the action is about the whole network
    events   kinds of events that it makes (compiler.plan.event_kinds)
    takes    instances that it names were there before
    removes  how many instances of a service are there afterwards depends on draws
    """

    targets: tuple[str, ...]
    events: tuple[str, ...]
    takes: bool = False
    removes: bool = False


# Of actions that make the same kind of event, the likeliest comes first.
RULES: dict[type, ActionRule] = {
    ast.Join: ActionRule(_ELEMENTS, ("join", "crash", "bridge_up", "link_up")),
    ast.Crash: ActionRule(_INSTANCES, ("crash",), takes=True, removes=True),
    ast.Kill: ActionRule(_INSTANCES, ("kill",), takes=True),
    ast.Restart: ActionRule(_INSTANCES, ("crash", "join"), takes=True),
    ast.Churn: ActionRule(_INSTANCES, ("crash", "join"), takes=True, removes=True),
    ast.Reconnect: ActionRule(_INSTANCES, ("reconnect",)),
    ast.Disconnect: ActionRule(_INSTANCES, ("disconnect", "reconnect"), takes=True),
    ast.Resume: ActionRule(_INSTANCES, ("resume",)),
    ast.Pause: ActionRule(_INSTANCES, ("pause", "resume"), takes=True),
    ast.Partition: ActionRule((), ("link_down", "set")),
    ast.Heal: ActionRule((), ("link_up", "set")),
    ast.Leave: ActionRule(
        _ELEMENTS,
        ("leave", "bridge_down", "bridge_up", "link_down", "link_up"),
        takes=True,
        removes=True,
    ),
    ast.Flap: ActionRule(("link",), ("link_down", "link_up")),
    ast.Set: ActionRule(("link", "bottleneck"), ("set",)),
    ast.SetClock: ActionRule(_INSTANCES, ("clock",)),
    ast.SetDisk: ActionRule(_INSTANCES, ("disk",)),
    ast.Ramp: ActionRule(("link", "bottleneck"), ("set",)),
    ast.Background: ActionRule(("link",), ("background",)),
    ast.Move: ActionRule((), ("link_down", "link_up")),
    ast.Quit: ActionRule((), ("quit",)),
}


def rule(action: ast.Action) -> ActionRule:
    return RULES[type(action)]


# What is done to machines as a whole: one event for each part, at the same moment.
#
# With its programs the bridges of a machine come and go. What is drawn of several machines is
# machines, too (compiler.expand.targets). What cuts it off takes the links down that leave it,
# and leaves its inner network alone.

_WITH_BRIDGES = (ast.Join, ast.Leave, ast.Crash, ast.Restart, ast.Churn)


def of_machines(statement: ast.Dynamic, sink: Sink) -> ast.Dynamic:
    """The same for what its selector names, where that is machines; reports TS0628."""
    selector, action = statement.selector, statement.action
    if not isinstance(selector, ast.Members) or not selector.whole:
        return statement
    if isinstance(action, ast.Disconnect | ast.Reconnect):
        return _cut_off(statement, selector, action, sink)
    return statement


def _cut_off(
    statement: ast.Dynamic,
    selector: ast.Members,
    action: ast.Disconnect | ast.Reconnect,
    sink: Sink,
) -> ast.Dynamic:
    """As a leave and a join of its links; with a count, of those of so many machines."""
    end_ns = statement.end_ns
    if not selector.leaving:
        message = f"no link leaves {format_selector(selector)!r}, so nothing cuts it off"
        hint = "link a part of it to the outside, or name a part"
        sink.error("TS0628", statement.span, message, hint)
        return statement
    if isinstance(action, ast.Disconnect) and action.for_ns is not None:
        end_ns = statement.start_ns + action.for_ns
    verb = ast.Leave if isinstance(action, ast.Disconnect) else ast.Join
    links = replace(selector, found=selector.leaving, whole=action.count is not None)
    cut = verb(action.count, action.span)
    return replace(statement, selector=links, action=cut, end_ns=end_ns)


def targets_of(statement: ast.Dynamic) -> tuple[str, ...]:
    """Kinds of elements that the statement may name."""
    selector, kinds = statement.selector, rule(statement.action).targets
    whole = isinstance(selector, ast.Members) and selector.whole
    if whole and isinstance(statement.action, _WITH_BRIDGES):
        return tuple(dict.fromkeys((*kinds, "bridge")))
    return kinds
