"""What a text means to a search: its statements, and the plan that it compiles to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.sources import NOWHERE
from tdl.diagnostics import TdlError
from tdl.preprocess.unroll import NO_PARAMS
from tstorm.exit_codes import CommandError
from tstorm.loading import plan_errors_shown
from tstorm.shrink import script
from tstorm.shrink.script import Script

if TYPE_CHECKING:
    from compiler.plan.reader import Plan
    from compiler.sources import Sources

_CLOSING = ("link_down", "bridge_down")
_REMEMBERED = 4  # plans: those of the text that is worked on, and of the one that is tried


@dataclass(slots=True)
class TextMeaning:
    """Of texts with these files, parameters and seed."""

    sources: Sources = NOWHERE
    params: Mapping[str, str] = field(default_factory=lambda: NO_PARAMS)
    seed: int | None = None
    _plans: dict[str, Plan | None] = field(default_factory=dict)

    def script(self, text: str) -> Script:
        """Raises TdlError."""
        return script.read(text.encode("utf-8"), self.sources, self.params)

    def plan(self, text: str) -> Plan | None:
        """None if there is an error in it: warnings are those of the text that is shrunk."""
        if text not in self._plans:
            while len(self._plans) >= _REMEMBERED:
                del self._plans[next(iter(self._plans))]
            self._plans[text] = self._compiled(text)
        return self._plans[text]

    def events(self, text: str) -> int | None:
        """How many events its statements make, without the end; None if it does not compile."""
        plan = self.plan(text)
        if plan is None:
            return None
        return sum(event.line > 0 and event.kind != "quit" for event in plan.events)

    def closed(self, text: str) -> frozenset[str] | None:
        """Links and bridges that are down from the beginning: what is done first with them is that
        they join. None if it does not compile."""
        plan = self.plan(text)
        if plan is None:
            return None
        closing = (one for one in plan.events if one.kind in _CLOSING and not one.line)
        return frozenset(event.target for event in closing)

    def _compiled(self, text: str) -> Plan | None:
        from compiler.pipeline import compile_source

        try:
            with plan_errors_shown():
                raw = text.encode("utf-8")
                made = compile_source(raw, seed=self.seed, sources=self.sources, params=self.params)
                return made.plan
        except (TdlError, CommandError):  # wrong, or with other files than the recorded ones
            return None
