"""What is wrong with a rendering, for the user to read."""

from __future__ import annotations


class ManifestError(Exception):
    """Something cannot be rendered or written: what is wrong, what to do (may be empty)."""

    def __init__(self, what: str, hint: str = "") -> None:
        self.what = what
        self.hint = hint
        super().__init__(f"{what}; {hint}" if hint else what)
