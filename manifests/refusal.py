"""What is wrong with a rendering, for the user to read."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.plan.reader import Plan
from compiler.plan.rules import capabilities
from compiler.plan.rules.datapath_fit import Misfit


class ManifestError(Exception):
    """Something cannot be rendered or written: what is wrong, what to do (may be empty), and what
    asks for it, where that is known."""

    def __init__(self, what: str, hint: str = "", misfit: Misfit | None = None) -> None:
        self.what = what
        self.hint = hint
        self.misfit = misfit
        super().__init__(f"{what}; {hint}" if hint else what)


def demand_carried(plan: Plan, way: str) -> None:
    """Raises ManifestError for what this way of running a plan does not carry out."""
    refused = capabilities.refusal(plan, way)
    if refused:
        raise ManifestError(refused, "leave it out", capabilities.to_blame(plan, way))


def raise_all(errors: Iterable[ManifestError]) -> None:
    """One error as it is, several as one."""
    found = list(errors)
    if len(found) == 1:
        raise found[0]
    if found:
        lines = "".join(f"\n  {error}" for error in found)
        raise ManifestError(f"{len(found)} things cannot be rendered:{lines}")
