"""The tables of actions and of kinds of events: nothing is missing in one that another has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from compiler.declare.actions import RULES
from compiler.expand.timeline import ACTS
from compiler.plan.event_kinds import EVENT_KINDS, KINDS, SIGNALS
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
