"""What each action of the timeline may name, and the events that it makes: a row each."""

from __future__ import annotations

from dataclasses import dataclass

from tdl import ast

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
