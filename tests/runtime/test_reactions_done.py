"""What is said of the `when` of a run at its end (runtime/results/reactions_done.py)."""

from __future__ import annotations

from typing import Any

from runtime.results import reactions_done

S = 1_000_000_000


def _said(line: int, **more: Any) -> dict[str, Any]:
    return {"kind": "when", "line": line, "late_ns": 0, **more}


def _counted(line: int, seen: int, **more: Any) -> dict[str, Any]:
    return {"line": line, "seen": seen, "cut": 0, "most": 2, "every": True, **more}


def _told(records: list[dict[str, Any]], *counted: dict[str, Any]) -> list[str]:
    return list(reactions_done.told(reactions_done.sum_up(records, counted)))


def test_what_was_refused_was_not_reacted_to_but_counts() -> None:
    refused = [_said(5, refused="no"), _said(5, refused="no")]
    (line, last) = _told(refused, _counted(5, 4))
    assert line == (
        "warning: line 5: this happened 4 times, of which the first 2 count (at most 2): 0 were"
        " reacted to, and 2 could not be done"
    )
    assert last.startswith("warning: 2 reactions could not be done")
    (line,) = _told([_said(5), _said(5)], _counted(5, 4))
    assert line.endswith("this happened 4 times, and was reacted to the first 2 only (at most 2)")


def test_what_came_late_is_told_first() -> None:
    records = [_said(5, late_ns=S // 20), _said(5, late_ns=4 * S), _said(6, late_ns=S)]
    found = _told(records, _counted(6, 1), _counted(5, 4))
    assert [line.split(":")[1:3] for line in found] == [
        [" line 6", " 1 reactions came late, by up to 1 s"],
        [" line 5", " 1 reactions came late, by up to 4 s"],
        [" line 5", " this happened 4 times, and was reacted to the first 2 only (at most 2)"],
    ]


def test_lines_that_were_not_looked_at_to_their_end_are_told() -> None:
    (line,) = _told([], _counted(5, 0, cut=3))
    assert "line 5: 3 lines had more than 64 KiB" in line
