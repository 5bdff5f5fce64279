"""Builds `expect …`: whose, what, the bound, and when. Source: docs/tdl.md, "Expectations".

What is expected of whom is checked by the compiler, which knows the names; here are values, the
forms of a window, patterns and command lines.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

from tdl import ast, values
from tdl.bounds import MAX_TIME_NS
from tdl.building.builder import cover, join_spans
from tdl.building.static import StaticActions
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    FAULTS,
    LINE_OPERATORS,
    MODELS,
    OPERATORS,
    STATISTICS,
    TEST_TEMPLATES,
)

MAX_STATUS = 255  # of a program's end
MAX_PATTERN = 1000  # characters
MAX_PATH = 1000  # characters of a file's name, and of a key
_Statements = tuple[ast.Statement, ...]
_Group = list[ast.Subject]
_OTHER_OPERATORS = {"=<": "<=", "=>": ">=", "≤": "<=", "≥": ">=", "==": "=", "!": "!="}
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?", re.ASCII)


def is_file(path: str) -> bool:
    """Whether it names a file below a directory."""
    bad = path.startswith("/") or ".." in PurePosixPath(path).parts or "\0" in path
    return 0 < len(path) <= MAX_PATH and not bad


class ExpectedBound(NamedTuple):
    op: Token
    value: Token
    of_plan: Token | None

    @property
    def span(self) -> ast.Span:
        return cover(self.op, self.of_plan or self.value)


class ExpectActions(StaticActions):
    """Actions of the rules for expectations."""

    # --- kinds ---

    def expect_measure(
        self,
        _word: Token,
        what: Token,
        ends: list[_Group],
        bound: ExpectedBound,
        window: ast.Window | None,
    ) -> _Statements:
        statistic = self._statistic(what, ends)
        subjects = self._pair(what, ends[1:] if statistic and len(ends) == 3 else ends)
        errors = self.errors
        self._operator(bound.op)
        value = self._value(what.text, bound)
        if self.errors == errors:
            self._possible(what.text, bound, value)
        return self._expect(
            what.text,
            subjects,
            self._interval(what, window),
            statistic=statistic,
            op=bound.op.text,
            value=value,
            of_plan=bound.of_plan is not None,
        )

    def expect_unreachable(
        self, _word: Token, what: Token, ends: list[_Group], window: ast.Window | None
    ) -> _Statements:
        return self._expect(what.text, self._pair(what, ends), self._interval(what, window))

    def expect_log(
        self, _word: Token, what: Token, group: _Group, text: Token, window: ast.Window | None
    ) -> _Statements:
        pattern = self._pattern(text)
        subjects = (tuple(group),)
        return self._expect("log", subjects, self._interval(what, window), text=pattern)

    def expect_no_log(
        self,
        _word: Token,
        _no: Token,
        what: Token,
        group: _Group,
        text: Token,
        window: ast.Window | None,
    ) -> _Statements:
        pattern = self._pattern(text)
        subjects = (tuple(group),)
        return self._expect("no_log", subjects, self._interval(what, window), text=pattern)

    def expect_exit(self, _word: Token, what: Token, group: _Group, status: Token) -> _Statements:
        value = self.number(status, lambda text: values.whole(text, MAX_STATUS))
        return self._expect(what.text, (tuple(group),), None, value=value)

    def expect_run(
        self,
        _word: Token,
        what: Token,
        command: Token,
        _ok: Token,
        place: list[ast.Element],
        window: ast.Window | None,
    ) -> _Statements:
        line = self.split(command)
        if window is not None and not window.eventually and window.from_ns != window.to_ns:
            hint = "write at T, or within D after T to try it again and again"
            self.error("TS0404", window.span, "a command runs at a moment", hint)
        subjects: tuple[tuple[ast.Subject, ...], ...] = (tuple(place),) if place else ()
        return self._expect(what.text, subjects, window, text=line)

    def expect_valid(self, _word: Token, what: Token) -> _Statements:
        return self._expect(what.text, (), None)

    def expect_linearizable(
        self,
        _word: Token,
        what: Token,
        group: _Group,
        path: Token,
        _model: Token,
        is_: Token,
        model: Token,
    ) -> _Statements:
        if is_.text != "=":
            self.error("TS0402", is_.span, f"unexpected '{is_.text}'", f"write model={model.text}")
        if model.text not in MODELS:
            hint = did_you_mean(model.text, MODELS) or "one of " + ", ".join(MODELS)
            self.error("TS0413", model.span, f"'{model.text}' is no model", hint)
        text = self._file(path)
        return self._expect(what.text, (tuple(group),), None, text=text, model=model.text)

    def expect_serializable(
        self, _word: Token, what: Token, group: _Group, path: Token
    ) -> _Statements:
        return self._expect(what.text, (tuple(group),), None, text=self._file(path))

    def expect_lines(
        self,
        _word: Token,
        mode: Token,
        _log: Token,
        group: _Group,
        text: Token,
        key: Token | None,
        condition: list[Token],
        window: ast.Window | None,
    ) -> _Statements:
        errors = self.errors
        pattern = self._pattern(text)
        groups = re.compile(pattern).groups if self.errors == errors else 1
        more = {} if key is None else {"key": self._json_key(key)}
        match condition:
            case [op, number] if op.type == "OP":
                self._line_operator(op)
                self._line_number(number)
                if key is None and groups != 1:
                    message = f"this pattern has {groups or 'no'} group{'s' if groups > 1 else ''}"
                    hint = "put the number in brackets: ([0-9]+); other brackets are (?:…)"
                    self.error("TS0414", text.span, message, hint)
                more |= {"op": op.text, "number": number.text.removeprefix("+")}
            case [_, wanted]:
                more["has"] = self._pattern(wanted)
            case _ if key is None and mode.text == "always":
                hint = 'write what it has to have: < 500, or has "ok"; or expect no log for never'
                self.error("TS0414", text.span, "each line with this has it", hint)
        return self._expect(
            mode.text, (tuple(group),), self._interval(mode, window), text=pattern, **more
        )

    def expect_assertions(self, _word: Token, what: Token, group: _Group) -> _Statements:
        return self._expect(what.text, (tuple(group),), None)

    def expect_drivers(
        self,
        _word: Token,
        what: Token,
        group: _Group,
        folder: Token | None,
        window: ast.Window | None,
    ) -> _Statements:
        text = TEST_TEMPLATES if folder is None else self.text(folder)
        if folder is not None and (not text or "\0" in text or len(text) > MAX_PATH):
            hint = f"name the folder of a test template, or leave it out: {TEST_TEMPLATES}"
            self.error("TS0415", folder.span, f"{folder.text} is no folder", hint)
        if window is not None and (window.eventually or window.from_ns == window.to_ns):
            hint = "write from T1 to T2: when drivers are started; checks run behind T2"
            self.error("TS0404", window.span, "drivers run for a time", hint)
        return self._expect(what.text, (tuple(group),), window, text=text)

    def no_token(self) -> None:
        return None

    def last_token(self, _word: Token, token: Token) -> Token:
        return token

    def line_condition(self, word: Token, wanted: Token) -> list[Token]:
        return [word, wanted]

    def _json_key(self, token: Token) -> str:
        key = self.text(token)
        if not key or len(key) > MAX_PATH:
            hint = "names and positions with dots between them: latency.p99, runs.0.lost"
            self.error("TS0414", token.span, "this is no place in a JSON object", hint)
        return key

    def _line_operator(self, op: Token) -> None:
        if op.text not in LINE_OPERATORS:
            meant = _OTHER_OPERATORS.get(op.text)
            hint = f"write {meant}" if meant else "one of " + " ".join(LINE_OPERATORS)
            self.error("TS0414", op.span, f"'{op.text}' compares no numbers", hint)

    def _line_number(self, token: Token) -> None:
        if not _NUMBER.fullmatch(token.text):
            hint = "write it as the line has it, without a unit: < 500, >= 0.5"
            self.error("TS0414", token.span, f"'{token.text}' is no number", hint)

    def _file(self, token: Token) -> str:
        """A file in the directory of an instance."""
        path = self.text(token)
        if not is_file(path):
            hint = "name it from the instance's directory on: results/history.jsonl"
            self.error("TS0413", token.span, f"{token.text} is no file of an instance", hint)
        return path

    def _expect(
        self,
        kind: str,
        subjects: tuple[tuple[ast.Subject, ...], ...],
        window: ast.Window | None,
        **more: str | int | bool,
    ) -> _Statements:
        return (ast.Expect(kind, self.whole_span, subjects, window, **more),)  # type: ignore[arg-type]

    # --- whose ---

    def every(self, token: Token) -> ast.Subject:
        """`*`, or `db.*`, which is the same as `db`."""
        word = token.text.removesuffix("*").removesuffix(".")
        if not word:
            return ast.Everyone(token.span)
        return ast.Element(ast.Name(word, token.part(0, len(word))), token.span)

    def place(self, _on: Token, token: Token) -> list[ast.Element]:
        return [self.element(token)]

    def _statistic(self, what: Token, ends: list[_Group]) -> str:
        """The first of three names; the median where there are two. '' where there is none."""
        if what.text != "rtt":
            return ""
        match ends:
            case [[ast.Element(index=None) as first], _, _]:
                if first.name.text not in STATISTICS:
                    word = first.name.text
                    hint = did_you_mean(word, STATISTICS) or "one of " + ", ".join(STATISTICS)
                    message = f"'{word}' is no statistic of round trips"
                    self.error("TS0401", first.span, message, hint)
                return first.name.text
        return STATISTICS[0]

    def _pair(self, what: Token, ends: list[_Group]) -> tuple[tuple[ast.Subject, ...], ...]:
        if len(ends) != 2:
            span = join_spans(subject.span for group in ends for subject in group)
            message = f"{what.text} is between two ends"
            hint = f"write expect {what.text} FROM TO; a list of names is separated by ';'"
            self.error("TS0402", span, message, hint)
        return tuple(map(tuple, ends))

    # --- how much ---

    def bound(
        self, op: Token, value: Token, _of: Token | None = None, plan: Token | None = None
    ) -> ExpectedBound:
        return ExpectedBound(op, value, plan)

    def _operator(self, op: Token) -> None:
        if op.text not in OPERATORS:
            meant = _OTHER_OPERATORS.get(op.text)
            hint = (
                f"write {meant}"
                if meant in OPERATORS
                else "a measure is less or greater: < <= > >="
            )
            self.error("TS0403", op.span, f"'{op.text}' compares no measure", hint)

    def _possible(self, kind: str, bound: ExpectedBound, value: int) -> None:
        """TS0403 where nothing that is measured can be so little or so much."""
        op = bound.op.text
        if value == 0 and op == "<":
            self.error("TS0403", bound.span, f"{kind} is never less than nothing", "write <= 0")
        elif kind == "loss" and value >= values.PPB and op == ">":
            self.error("TS0403", bound.span, "more than everything is never lost", "write >= 100%")

    def _value(self, kind: str, bound: ExpectedBound) -> int:
        token = bound.value
        if kind == "loss":
            if bound.of_plan is not None:
                hint = "write the loss, such as 1%"
                self.error("TS0403", bound.span, "loss has no share of the plan", hint)
            return self.number(token, lambda text: values.probability(text, "loss"))
        if bound.of_plan is not None:
            share = self.number(token, values.percent, 1)
            if share == 0:
                self.error("TS0403", bound.span, "0% of the plan is nothing to compare with")
            return share
        if token.text.endswith("%"):
            hint = f"write {token.text} of plan"
            self.error("TS0403", token.span, f"{token.text} of what?", hint)
            return 0
        convert: Callable[[str], int] = values.time if kind == "rtt" else values.rate
        return self.number(token, convert)

    # --- when ---

    def no_window(self) -> None:
        return None

    def window_from(self, word: Token, first: Token) -> ast.Window:
        return ast.Window(self.number(first, values.time), None, cover(word, first))

    def window_between(self, word: Token, first: Token, _to: Token, last: Token) -> ast.Window:
        errors = self.errors
        start, end = self.number(first, values.time), self.number(last, values.time)
        if end <= start:
            if self.errors == errors:
                message = f"{last.text} is not after {first.text}"
                self.error("TS0404", cover(first, last), message)
            end = start + 1
        return ast.Window(start, end, cover(word, last))

    def window_to(self, word: Token, last: Token) -> ast.Window:
        end = self.number(last, values.time, 1)
        if end == 0:
            self.error("TS0404", cover(word, last), "nothing has happened before 0s")
        return ast.Window(None, end, cover(word, last))

    def window_at(
        self, word: Token, moment: Token, _within: Token | None = None, length: Token | None = None
    ) -> ast.Window:
        if length is not None:
            return self._within(cover(word, length), length, moment)
        at_ns = self.number(moment, values.time)
        return ast.Window(at_ns, at_ns, cover(word, moment))

    def window_within(
        self, word: Token, length: Token, after: Token | None = None, moment: Token | None = None
    ) -> ast.Window:
        if after is not None and after.text != "after":
            hint = f"write within {length.text} after …"
            self.error("TS0402", after.span, f"unexpected '{after.text}'", hint)
        return self._within(cover(word, moment or length), length, moment)

    def window_after_faults(
        self, word: Token, length: Token, after: Token, moment: Token
    ) -> ast.Window:
        window = self.window_within(word, length, after)
        if moment.text != FAULTS:
            hint = f"write within {length.text} after {FAULTS}, or a time such as 20s"
            self.error("TS0402", moment.span, f"unexpected '{moment.text}'", hint)
        return replace(window, span=cover(word, moment), after_faults=True)

    def _within(self, span: ast.Span, length: Token, moment: Token | None) -> ast.Window:
        start = 0 if moment is None else self.number(moment, values.time)
        errors = self.errors
        duration = self.number(length, values.time, 1)
        if duration == 0 and self.errors == errors:
            self.error("TS0404", length.span, "nothing happens within no time")
            duration = 1
        if start + duration > MAX_TIME_NS:
            self.error("TS0025", span, "this ends too late", "at most 292 years after the start")
        return ast.Window(start, start + duration, span, eventually=True)

    def _interval(self, what: Token, window: ast.Window | None) -> ast.Window | None:
        """Of everything but a command: a moment is too short."""
        if window is not None and window.from_ns == window.to_ns:
            message = f"{what.text} takes longer than a moment"
            hint = "write how long it may take: at T within 2s"
            if self.tokens[1].type == "NO":
                hint = "write from T1 to T2"
            self.error("TS0404", window.span, message, hint)
        return window

    # --- texts ---

    def _pattern(self, token: Token) -> str:
        pattern = self.text(token)
        if not pattern or len(pattern) > MAX_PATTERN:
            message = "this pattern is empty" if not pattern else "this pattern is too long"
            hint = "every line has it in it" if not pattern else f"at most {MAX_PATTERN} characters"
            self.error("TS0405", token.span, message, hint)
            return pattern
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what will mean something else in another Python
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as problem:
            reason = "it is too deep" if isinstance(problem, RecursionError) else str(problem)
            reason = problem.msg if isinstance(problem, re.error) else reason
            hint = "to mean a sign such as ( or * itself write \\\\( or \\\\*"
            self.error("TS0405", token.span, f"this pattern cannot be read: {reason}", hint)
        return pattern
