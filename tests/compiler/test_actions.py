"""The tables of actions and of kinds of events: nothing is missing in one that another has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from compiler.declare.actions import RULES
from compiler.expand.timeline import ACTS
from compiler.pipeline import compile_source
from compiler.plan.event_kinds import EVENT_KINDS, KINDS, SIGNALS
from compiler.plan.rules import capabilities
from tdl import ast

HOLD = Path(__file__).parents[2] / "tcal_c/hold/hold.h"


def test_every_action_has_its_rule_and_its_act() -> None:
    assert set(RULES) == set(ACTS) == set(get_args(ast.Action))


def test_actions_make_all_kinds_of_events_and_no_others() -> None:
    assert {kind for rule in RULES.values() for kind in rule.events} == set(KINDS)


def test_orders_are_those_of_tstorm_hold() -> None:
    known = dict(re.findall(r"ORDER_(\w+) = (\d+)", HOLD.read_text()))
    for kind in EVENT_KINDS:
        assert kind.order == int(known[kind.word.upper()]) if kind.order else kind.word not in known
    assert set(SIGNALS) == {"pause", "resume", "kill"}, "tstorm-hold and tstorm-ns know them"


def test_only_programs_that_are_known_are_killed_on_kubernetes() -> None:
    """tstorm-hold goes on where it has killed its program; a container ends with its own."""
    text = "service a img=x entrypoint=['/a']\nservice b img=y\nbridge s\nlink a--s\nlink b--s\n"
    for who, way, said in (
        ("a", capabilities.KUBERNETES, ""),
        ("b", capabilities.KUBERNETES, "kill (of service b, which has no entrypoint=)"),
        ("a", capabilities.COMPOSE, "kill (of service a)"),
        ("b", capabilities.LOCAL, ""),
    ):
        refused = capabilities.refusal(compile_source(f"{text}at 1s {who} kill\n").plan, way)
        assert said in refused and bool(said) == bool(refused)
