"""Builds `figure NAME = …`: a number that programs give. Source: docs/tdl.md, "Figures"."""

from __future__ import annotations

import re

from tdl import ast
from tdl.building.builder import cover
from tdl.building.expect_actions import MAX_PATH, ExpectActions, is_file
from tdl.tokens.lexer import Token


class FigureActions(ExpectActions):
    """Actions of the rules for figures."""

    def figure_log(
        self, _word: Token, name: Token, _log: Token, group: list[ast.Subject], text: Token
    ) -> tuple[ast.Statement, ...]:
        errors = self.errors
        pattern = self._pattern(text)
        groups = re.compile(pattern).groups if self.errors == errors else 1
        if groups != 1:
            message = f"this pattern has {groups or 'no'} group{'s' if groups > 1 else ''}"
            hint = "put the number in brackets: ([0-9]+); other brackets are (?:…)"
            self.error("TS0411", text.span, message, hint)
        return self._figure(name, group, pattern=pattern)

    def figure_json(
        self, _word: Token, name: Token, _json: Token, group: list[ast.Subject], *texts: Token
    ) -> tuple[ast.Statement, ...]:
        path, key = map(self.text, texts)
        if not is_file(path):
            message = f"{texts[0].text} is no file of an instance"
            hint = "name it from the instance's directory on: results/run.json"
            self.error("TS0410", texts[0].span, message, hint)
        if not key or len(key) > MAX_PATH:
            hint = "names and positions with dots between them: latency.p99, runs.0.lost"
            self.error("TS0410", texts[1].span, "this is no place in a JSON file", hint)
        return self._figure(name, group, path=path, key=key)

    def _figure(
        self, word: Token, group: list[ast.Subject], **more: str
    ) -> tuple[ast.Statement, ...]:
        text = word.text.rstrip("= \t\u00a0")
        if text[-1] in "+-":
            span = cover(word, word)
            self.error(
                "TS0410", span, f"'{word.text}' adds to nothing", f"write {text[:-1].rstrip()} = …"
            )
            text = text[:-1]
        named = ast.Name(text.rstrip(), word.part(0, len(text)))
        return (ast.Figure(named, self.whole_span, tuple(group), **more),)
