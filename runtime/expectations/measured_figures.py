"""Figures of the experiment's own (`figure NAME = …`): the numbers that programs gave.

Input: a plan, and the logs and files of its run, which anybody may have written. Output: for each
figure and instance the number as it was written, or why there is none. Of a log that is the last
line with the pattern; nothing is taken from a log of which a later line, or a part of one, was not
looked at, or from a line that its program has not ended.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from compiler.plan.parts.figures import PlannedFigure
from compiler.plan.reader import Plan
from runtime import say
from runtime.errors import RunError
from runtime.expectations import kept_files
from runtime.expectations.finding import printable
from runtime.expectations.kept_files import AWAY
from runtime.expectations.line_matching import TooLongError, matched
from runtime.expectations.matcher import at_key
from runtime.json_schema import MAX_DIGITS, is_numeral
from runtime.results.loglines import LINE_BYTES, LogRecord
from runtime.rundir.held_directory import HeldDirectory

if TYPE_CHECKING:
    from runtime.expectations.run_evidence import RunEvidence

MAX_FILE_BYTES = 16 << 20
_SHOWN = 4  # figures that are named
Number = tuple[str | None, str]  # as it was written; None, and why there is none
Files = list[Number]


def of_files(directory: HeldDirectory, plan: Plan, *, here: bool) -> Files:
    """Of those that come from JSON files, in the order of the statements and instances; to be read
    before the data of instances is removed. In a cluster that goes with their pods."""
    return [
        _of_file(directory, one, _name(plan, node)) if here else (None, AWAY)
        for one in plan.figures
        if one.path
        for node in one.nodes
    ]


def not_in_cluster(plan: Plan) -> str:
    """What a cluster does not measure, and what helps; '' if there is no such figure."""
    names = [one.name for one in plan.figures if one.path]
    if not names:
        return ""
    some = say.some(names, _SHOWN)
    return f"not measured: {some}: {AWAY}; print such a number, and take it from the log"


def measured(plan: Plan, records: RunEvidence, files: Files) -> list[dict[str, Any]]:
    """As summary.json has them, in the order of the statements."""
    found, numbers = [], iter(files)
    for one in plan.figures:
        for node in one.nodes:
            name = _name(plan, node)
            value, why = next(numbers) if one.path else _of_log(records, one, name)
            said = {"name": one.name, "text": one.text, "line": one.line, "file": one.file}
            found.append({**said, "instance": name, "value": value, "message": why})
    return found


def _name(plan: Plan, node: int) -> str:
    return plan.topology.nodes[node].name


def _number(text: object, where: str) -> Number:
    """Text, as JSON's numbers are read here."""
    found = text.strip() if isinstance(text, str) else ""
    if is_numeral(found):
        return found, ""
    return None, f"{printable(str(text), MAX_DIGITS)!r} {where} is no number"


# -- logs -----------------------------------------------------------------------------------------


class _Whole:
    """Lines, and whether one of them was cut, so that it is not looked at as a whole."""

    def __init__(self, lines: Iterable[LogRecord]) -> None:
        self._lines = lines
        self.cut = False

    def __iter__(self) -> Iterator[LogRecord]:
        for line in self._lines:
            self.cut = self.cut or line.cut > 0
            yield line


def _of_log(records: RunEvidence, one: PlannedFigure, name: str) -> Number:
    try:
        missing = records.why_log_incomplete(name)
        if missing:
            return None, missing
        lines = _Whole(records.log(name))
        found = deque(matched(one.pattern, lines), maxlen=1)
    except TooLongError:
        return None, f"to look for {one.pattern!r} in the log of {name} took too long"
    except RunError as error:
        return None, error.message
    if lines.cut:
        whole = f"a line of the log of {name} has more than {LINE_BYTES:,} bytes"
        return None, f"{whole}: those that follow were not looked at"
    if not found:
        return None, f"no line of {name} has {one.pattern!r} in it"
    (last,) = found
    if last.doubt:
        return None, f"{name} had not ended the last such line: it was cut"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what will mean something else in another Python
        match = re.search(one.pattern, last.line.text)  # was found in it before, in time
    return _number(match[1] if match else None, f"in the log of {name}")


# -- JSON files -----------------------------------------------------------------------------------


def _of_file(directory: HeldDirectory, one: PlannedFigure, name: str) -> Number:
    where = f"in {name}'s {one.path}"
    try:
        data = kept_files.file_of(directory, name, one.path, MAX_FILE_BYTES)
        value = json.loads(data, parse_int=str, parse_float=str, parse_constant=str)
    except RunError as error:
        return None, error.message
    except (ValueError, RecursionError):
        return None, f"{one.path} of {name} is no JSON"
    value = at_key(value, one.key)
    if value is None:
        return None, f"there is no {one.key} {where}"
    return _number(value, f"at {one.key} {where}")
