"""What the catalogue of diagnostic codes (tdl/codes/catalogue.py) consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """One diagnostic: what it means, what to do, and a file that shows it (`example`)."""

    code: str
    title: str
    explanation: str
    example: str
