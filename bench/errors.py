"""What a measurement raises when it cannot be made."""

from __future__ import annotations


class BenchError(Exception):
    """A program is missing, failed or said something that makes no sense; the text says which."""
