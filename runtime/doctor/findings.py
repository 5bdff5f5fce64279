"""One thing that was found out."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    status: str  # OK | WARN (works, but not as well) | FAIL (runs are impossible)
    detail: str
    remedy: str = ""
