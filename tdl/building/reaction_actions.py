"""Builds what follows programs: the first line of a `when` (what is looked for, of whom, and how
often it counts), and `figure NAME = …`, a number that programs give.

Source: docs/tdl.md, "Reactions" and "Figures".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from tdl import ast, values
from tdl.bounds import MAX_FIRINGS
from tdl.building.builder import cover
from tdl.building.expect_actions import MAX_PATH, MAX_STATUS, ExpectActions, is_file
from tdl.diagnostics import Sink
from tdl.tokens.lexer import Token

_Group = list[ast.Subject]
_Statements = tuple[ast.Statement, ...]
_Words = list[Token]


class Often(NamedTuple):
    """`once` or `every`, `after TIME`, `at most N`; each empty where it does not stand."""

    times: Token | None
    delay: _Words
    most: Token | None


class ReactionActions(ExpectActions):
    """Actions of the rules for reactions and figures."""

    def when_log(
        self, _word: Token, what: Token, group: _Group, text: Token, often: Often, _brace: Token
    ) -> _Statements:
        return self._when(what, group, often, pattern=self._pattern(text))

    def when_exit(
        self, _word: Token, what: Token, group: _Group, often: Often, _brace: Token
    ) -> _Statements:
        return self._when(what, group, often)

    def when_exit_with(
        self,
        _word: Token,
        what: Token,
        group: _Group,
        _with: Token,
        status: Token,
        often: Often,
        _brace: Token,
    ) -> _Statements:
        value = self.number(status, lambda text: values.whole(text, MAX_STATUS))
        return self._when(what, group, often, status=value)

    when_ready = when_exit

    def when_file(
        self, _word: Token, what: Token, group: _Group, text: Token, often: Often, _brace: Token
    ) -> _Statements:
        return self._when(what, group, often, pattern=self._own_file(text))

    def _own_file(self, token: Token) -> str:
        """A path from the directory of an instance on."""
        said = self.text(token)
        path = PurePosixPath(said)
        is_none = str(path) in ("", ".") or "\0" in said or len(said) > MAX_PATH
        if is_none or path.is_absolute() or ".." in path.parts:
            message = f"{token.text} is no file in the directory of an instance"
            hint = "name it from there on: data/leader"
            self.error("TS0333", token.span, message, hint)
        return str(path)

    def _when(
        self,
        what: Token,
        group: _Group,
        often: Often,
        *,
        pattern: str = "",
        status: int | None = None,
    ) -> _Statements:
        every = often.times is not None and often.times.type == "EACH"
        delay = 0
        if often.delay:
            word, length = often.delay
            delay = self.number(length, values.time)
            if word.text != "after":
                hint = f"write after {length.text}"
                self.error("TS0330", word.span, f"a when has no '{word.text}'", hint)
        most = None
        if often.most is not None:
            most = self.number(often.most, values.amount, 1)
            if not every:
                hint = "write every, or leave it out: without every it happens once"
                self.error("TS0330", often.most.span, "once is at most once", hint)
            elif not 1 <= most <= MAX_FIRINGS:
                nearest = 1 if most < 1 else MAX_FIRINGS
                hint = f"write at most {nearest}, or leave it out: the default is 100"
                message = f"a when happens from 1 to {MAX_FIRINGS:,} times"
                self.error("TS0330", often.most.span, message, hint)
        found = ast.When(
            what.text,
            self.whole_span,
            tuple(group),
            pattern=pattern,
            status=status,
            every=every,
            after_ns=delay,
            most=most,
        )
        return (found,)

    # --- how often ---

    def often(self, times: Token | list[Token], delay: _Words, most: Token | list[Token]) -> Often:
        return Often(
            times if isinstance(times, Token) else None,
            delay,
            most if isinstance(most, Token) else None,
        )

    def at_most(self, _at: Token, _most: Token, number: Token) -> Token:
        return number

    def figure_log(
        self, _word: Token, name: Token, _log: Token, group: _Group, text: Token
    ) -> _Statements:
        errors = self.errors
        pattern = self._pattern(text)
        groups = re.compile(pattern).groups if self.errors == errors else 1
        if groups != 1:
            message = f"this pattern has {groups or 'no'} group{'s' if groups > 1 else ''}"
            hint = "put the number in brackets: ([0-9]+); other brackets are (?:…)"
            self.error("TS0411", text.span, message, hint)
        return self._figure(name, group, pattern=pattern)

    def figure_json(
        self, _word: Token, name: Token, _json: Token, group: _Group, *texts: Token
    ) -> _Statements:
        path, key = map(self.text, texts)
        if not is_file(path):
            message = f"{texts[0].text} is no file of an instance"
            hint = "name it from the instance's directory on: results/run.json"
            self.error("TS0410", texts[0].span, message, hint)
        if not key or len(key) > MAX_PATH:
            hint = "names and positions with dots between them: latency.p99, runs.0.lost"
            self.error("TS0410", texts[1].span, "this is no place in a JSON file", hint)
        return self._figure(name, group, path=path, key=key)

    def _figure(self, word: Token, group: _Group, **more: str) -> _Statements:
        text = word.text.rstrip("= \t\u00a0")
        if text[-1] in "+-":
            span = cover(word, word)
            self.error(
                "TS0410", span, f"'{word.text}' adds to nothing", f"write {text[:-1].rstrip()} = …"
            )
            text = text[:-1]
        named = ast.Name(text.rstrip(), word.part(0, len(text)))
        return (ast.Figure(named, self.whole_span, tuple(group), **more),)


# Times in the block of a `when`: `now`, `+5s`, or none for at once. They count from the firing.


def from_the_firing(tokens: Sequence[Token], sink: Sink) -> list[Token]:
    """Nothing after a report (TS0331)."""
    first = tokens[0]
    if first.type not in ("AT", "FROM"):
        at = first._replace(type="AT", text="at", width=0)
        return [at, at._replace(type="VALUE", text="0s"), *tokens]
    found = list(tokens)
    places = (1, 3) if first.type == "FROM" and [one.type for one in found[2:3]] == ["TO"] else (1,)
    for place in places:
        if place >= len(found):
            break
        time = found[place]
        if time.text == "now":
            found[place] = time._replace(type="VALUE", text="0s", width=len(time.text))
        elif time.type == "VALUE" and time.text.startswith("+"):
            found[place] = time.within("VALUE", 1)
        elif time.type == "VALUE":
            message = f"{time.text} is a time of the experiment, and nobody knows when this happens"
            hint = f"write +{time.text.lstrip('-')}: so long after it was seen"
            sink.error("TS0331", time.span, message, hint)
            return []
    return found
