"""The kinds of events, a row each: what an event does to its target, and who carries it out.

Source: docs/plan.md (semantics). How to add one: docs/howto/add-an-event-kind.md.
"""

from __future__ import annotations

from dataclasses import dataclass

UP, CUT, DOWN = "up", "cut", "down"  # states of targets; only instances can be cut off
INSTANCE, BRIDGE, LINK, RUN = "instance", "bridge", "link", "run"


@dataclass(frozen=True, slots=True)
class EventKind:
    """target   what an event of the kind happens to
    before   in which states of the target it is possible; () where compiler.plan.state says it
    after    the state it makes of them, '' if it makes none: compiler.plan.state says what it does
    order    whoever starts the instance's program carries it out, and tstorm-hold knows the order
             by this number (docs/hold.md); 0: it happens to the network or to the run alone
    signal   of an instance that goes on: what all of its processes get
    """

    word: str
    target: str
    before: tuple[str, ...] = ()
    after: str = ""
    order: int = 0
    signal: str = ""


EVENT_KINDS = (
    EventKind("join", INSTANCE, (DOWN,), UP, order=1),
    EventKind("leave", INSTANCE, (UP, CUT), DOWN, order=2),
    EventKind("crash", INSTANCE, (UP, CUT), DOWN, order=3),
    EventKind("disconnect", INSTANCE, (UP,), CUT),
    EventKind("reconnect", INSTANCE, (CUT,), UP),
    EventKind("pause", INSTANCE, (UP, CUT), order=4, signal="SIGSTOP"),
    EventKind("resume", INSTANCE, (UP, CUT), order=5, signal="SIGCONT"),
    EventKind("kill", INSTANCE, (UP, CUT), order=7, signal="SIGKILL"),
    EventKind("clock", INSTANCE),
    EventKind("disk", INSTANCE),
    EventKind("link_up", LINK, (DOWN,), UP),
    EventKind("link_down", LINK, (UP,), DOWN),
    EventKind("bridge_up", BRIDGE, (DOWN,), UP),
    EventKind("bridge_down", BRIDGE, (UP,), DOWN),
    EventKind("set", LINK),
    EventKind("background", LINK),
    EventKind("quit", RUN),
)

# Words of kinds, in the order of the rows.
KINDS = tuple(kind.word for kind in EVENT_KINDS)
PROCESS_KINDS = tuple(kind.word for kind in EVENT_KINDS if kind.order)
ENDINGS = tuple(kind.word for kind in EVENT_KINDS if kind.order and kind.after == DOWN)
# After which the program of an instance is no more, whatever becomes of its host.
PROGRAM_ENDINGS = (*ENDINGS, *(kind.word for kind in EVENT_KINDS if kind.signal == "SIGKILL"))
UP_KINDS = tuple(kind.word for kind in EVENT_KINDS if kind.after == UP)
DOWN_KINDS = tuple(kind.word for kind in EVENT_KINDS if kind.after in (CUT, DOWN))

SIGNALS = {kind.word: kind.signal for kind in EVENT_KINDS if kind.signal}

# By word, of instances.
STATE_AFTER = {
    kind.word: kind.after for kind in EVENT_KINDS if kind.target == INSTANCE and kind.after
}
