"""A list of flows, as CSV or TDL: who sends to whom, from when until when, how much.

Columns of CSV, in any order: `from` and `to`; where they are wanted `start`, `end`, `rate`,
`weight` and `flow` (what its packets have in common, for equal paths). flow_statements.py has the
form in TDL. Input: the file and a plan. Output: the flows with the numbers of the plan, in the
order of the file; or everything that is wrong, each with its line. docs/explain.md (What flows get)
describes the file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runtime.agent.share.solver import UNLIMITED
from tdl import values
from tdl.suggest import did_you_mean
from tstorm.exit_codes import CommandError
from tstorm.options.option_types import FLOW
from tstorm.predicting import flow_statements
from tstorm.predicting.listed_flow import (
    MAX_FLOWS,
    MAX_WEIGHT,
    FlowEnds,
    FlowError,
    FlowProblem,
    ListedFlow,
    refusal,
)

if TYPE_CHECKING:
    from compiler.plan.paths.flows import FlowTuple
    from compiler.plan.reader import Plan

MAX_BYTES = 16 << 20
_NEEDED = ("from", "to")
_COLUMNS = (*_NEEDED, "start", "end", "rate", "weight", "flow")
_ONCE_MORE = "weight=2 is a flow that counts as two connections"
_HEADER = "the first line names the columns: from,to,start,end,rate,weight"
_PLAIN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)


def read(file: str, plan: Plan) -> list[ListedFlow]:
    """Of CSV, or of TDL, which the name says. CommandError, PlanError."""
    if file.endswith(flow_statements.SUFFIX):
        return flow_statements.read(file, plan)
    found, problems = _rows(_text(file), _RowReader(plan))
    if not found and not problems:
        problems.append(FlowProblem(1, "there is no flow in the list", _HEADER))
    if problems:
        raise refusal(file, problems)
    return found


def _text(file: str) -> str:
    try:
        with Path(file).open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise CommandError(f"error: reading {file}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise CommandError(f"error: {file} has more than {MAX_BYTES >> 20} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = FlowProblem(line, "this is not UTF-8", "save the file as CSV in UTF-8")
        raise refusal(file, [problem]) from None


def _rows(text: str, rows: _RowReader) -> tuple[list[ListedFlow], list[FlowProblem]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: list[ListedFlow] = []
    problems: list[FlowProblem] = []
    known: dict[ListedFlow, int] = {}
    columns: list[str] | None = None
    try:
        for row in reader:
            line, words = reader.line_num, [word.strip() for word in row]
            if not any(words):
                continue
            try:
                if columns is None:
                    columns = _header(words)
                    continue
                one = rows.flow(line, _by_column(words, columns))
                same = known.setdefault(one._replace(line=0), line)
                if same != line:
                    raise FlowError(f"this is the flow of line {same} once more", _ONCE_MORE)
            except FlowError as error:
                problems.append(FlowProblem(line, *error.args))
                if columns is None or len(problems) > MAX_FLOWS:
                    break
                continue
            found.append(one)
            if len(found) > MAX_FLOWS:
                why = f"a list has at most {MAX_FLOWS:,} flows"
                problems.append(FlowProblem(line, why, "weight=N stands for N like this one"))
                break
    except csv.Error as error:
        problems.append(FlowProblem(max(reader.line_num, 1), f"this is not CSV: {error}", ""))
    return found, problems


def _header(words: Sequence[str]) -> list[str]:
    columns = [word.lower() for word in words]
    for number, column in enumerate(columns):
        if len(columns) == 1 and re.search(r"[;\t]", column):
            raise FlowError("columns are separated by commas here", _HEADER)
        if column not in _COLUMNS:
            guess = did_you_mean(column, _COLUMNS)
            raise FlowError(f"there is no column '{column:.60}'", guess or _HEADER)
        if column in columns[:number]:
            raise FlowError(f"column '{column}' is there twice", _HEADER)
    for column in _NEEDED:
        if column not in columns:
            raise FlowError(f"column '{column}' is missing", _HEADER)
    return columns


def _by_column(words: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    if len(words) != len(columns):
        hint = f"the columns are {','.join(columns)}; what is not stated stays empty"
        raise FlowError(f"the line has {len(words)} columns instead of {len(columns)}", hint)
    return {column: word for column, word in zip(columns, words, strict=True) if word}


class _RowReader:
    """Of one plan. Methods raise FlowError."""

    def __init__(self, plan: Plan) -> None:
        self._ends = FlowEnds(plan)

    def flow(self, line: int, words: dict[str, str]) -> ListedFlow:
        for column in _NEEDED:
            if column not in words:
                hint = "name an instance, or a service that has one"
                raise FlowError(f"'{column}' is empty", hint)
        src, dst = self._ends.pair([words[column] for column in _NEEDED], _NEEDED)
        start_ns = self._time(words.get("start", "0s"), "start")
        end_ns = self._time(words["end"], "end") if "end" in words else self._ends.end_ns
        start_ns, end_ns = self._ends.times(start_ns, end_ns)
        packets = self._packets(words["flow"], src, dst) if "flow" in words else None
        demand, many = self._rate(words.get("rate")), self._weight(words.get("weight", "1"))
        return ListedFlow(line, src, dst, start_ns, end_ns, demand, many, packets)

    @staticmethod
    def _time(text: str, column: str) -> int:
        try:
            return values.time(f"{text}s" if _PLAIN.fullmatch(text) else text)
        except values.ValueProblem as problem:
            raise FlowError(
                f"{column}: {problem.message}", problem.hint or "such as 2.5s"
            ) from None

    @staticmethod
    def _rate(text: str | None) -> int:
        if text is None:
            return UNLIMITED
        try:
            found = values.rate(text)
        except values.ValueProblem as problem:
            hint = problem.hint or "such as 5Mb; empty for a flow that takes what it can get"
            raise FlowError(f"rate: {problem.message}", hint) from None
        if not found:
            hint = "leave it empty for a flow that takes what it can get"
            raise FlowError("rate: a flow of 0 b/s sends nothing", hint)
        return found

    @staticmethod
    def _weight(text: str) -> int:
        found = int(text) if re.fullmatch(r"[0-9]{1,6}", text, re.ASCII) else 0
        if not 1 <= found <= MAX_WEIGHT:
            hint = f"as so many connections: a whole number from 1 to {MAX_WEIGHT}"
            raise FlowError(f"weight: '{text:.60}' is no weight", hint)
        return found

    def _packets(self, text: str, src: int, dst: int) -> FlowTuple:
        try:
            found = FLOW.convert(text, None, None)
        except click.BadParameter as error:
            raise FlowError(
                f"flow: '{text:.60}' is none", error.message.partition(",")[0]
            ) from None
        nodes, network = self._ends.topology.nodes, self._ends.topology.network
        if found.number(nodes[src], nodes[dst], network) is None:
            raise FlowError(f"flow: with network {network} instances have no such addresses", "")
        return found
