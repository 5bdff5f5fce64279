"""How a run ended, as its driver says it last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Where the driver could not say it, whoever listened to it does, without facts.

    outcome          as in the manifest
    message          why, of a run that failed; else ''
    facts            what was counted and found out in the whole run, by name
    refused          by the machine or the cluster, which is no failure of the experiment
    programs_failed  programs have ended the run
    planned          how many events were to be done; None: all of the plan
    """

    outcome: str
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    refused: bool = False
    programs_failed: bool = False
    planned: int | None = None

    def with_facts(self, **more: object) -> RunEnd:
        return replace(self, facts={**self.facts, **more})
