"""Which of the known words somebody probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable

MAX_COMPARED = 100_000  # words that all errors of a file are compared with: about a second


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate closest to `word`, or None when nothing is close.

    Close is: the same but for case; few typing mistakes (one in three letters); else one is an
    abbreviation of the other (`be` for `backend`). Ties go to the smaller distance, then the name.
    """
    known = sorted(set(candidates))
    if not word or len(word) > 100:
        return None
    lower = word.lower()
    best: tuple[int, str] | None = None
    for candidate in known:
        if candidate.lower() == lower:
            return candidate
        allowed = max(1, min(len(word), len(candidate)) // 3)
        if len(word) < 2 or abs(len(word) - len(candidate)) > allowed:
            continue
        distance = _distance(lower, candidate.lower(), allowed)
        if distance is not None and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
    if best is not None and len(min(word, best[1], key=len)) > best[0] + 1:
        return best[1]
    return _abbreviated(lower, known) or (best[1] if best else None)


class Guesses:
    """`nearest` for the errors of one file, with an end to the work that it is.

    A file of thousands of names in which everything is wrong has one reason, which some guesses
    show as well as thousands do; these would take minutes.
    """

    def __init__(self) -> None:
        self._left = MAX_COMPARED

    def nearest(self, word: str, candidates: Collection[str]) -> str | None:
        if self._left < len(candidates):
            return None
        self._left -= len(candidates)
        return nearest(word, candidates)


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """The hint that goes with `nearest`."""
    found = nearest(word, candidates)
    return f"did you mean '{found}'?" if found else None


def misspelt(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `word` is, but for a slip in a long word. Stricter than `nearest`."""
    for candidate in candidates:
        limit = len(candidate) // 5
        if word == candidate or (limit and _distance(word.lower(), candidate, limit) is not None):
            return candidate
    return None


def _abbreviated(word: str, known: list[str]) -> str | None:
    """The shortest candidate that `word` abbreviates, or that abbreviates `word`."""
    if len(word) < 2:
        return None
    fits = [c for c in known if _is_abbreviation(word, c.lower())]
    if not fits:
        fits = [c for c in known if len(c) > 2 and word.startswith(c.lower())]
    return min(fits, key=lambda c: (not c.lower().startswith(word), len(c), c), default=None)


def _is_abbreviation(short: str, full: str) -> bool:
    """Same first letter, and all the letters of `short` in `full` in the same order."""
    if not full or short[0] != full[0] or len(short) >= len(full):
        return False
    letters = iter(full)
    return all(letter in letters for letter in short)


def _distance(a: str, b: str, limit: int) -> int | None:
    """Edits (insert, delete, replace, swap neighbours) from a to b, or None beyond `limit`."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        above, before_above = row, before
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before_above[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return None
        before = above
    return row[-1] if row[-1] <= limit else None
