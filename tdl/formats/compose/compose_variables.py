"""Puts the values of variables into the scalars of a tree, as Compose does.

    $A ${A}        the value, nothing where it has none (a warning)
    ${A:-x} ${A-x} x where it is empty or unset, where it is unset
    ${A:+x} ${A+x} x where it is neither, where it is set
    ${A:?x} ${A?x} an error with x where it is empty or unset, where it is unset
    $$             a dollar sign

Source: the Compose specification, "Interpolation". Words after the operator may have variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tdl.ast import Span
from tdl.bounds import MAX_VALUE
from tdl.diagnostics import Sink
from tdl.formats.yaml_tree import Value

MAX_DEPTH = 16  # of variables in the words of variables
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_OPERATOR = re.compile(r":?[-?+]")
_HOW = "write ${NAME}, ${NAME:-default}, or $$ for a dollar sign"


class _BadVariableError(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Variables:
    """`ask` has the values. `used` are those that had one, by name."""

    def __init__(self, ask: Callable[[str], str | None], sink: Sink) -> None:
        self._ask = ask
        self._sink = sink
        self._unset: set[str] = set()
        self.used: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        value = self._ask(name)
        if value is not None:
            self.used[name] = value
        return value

    def and_last(self, ask: Callable[[str], str | None]) -> Variables:
        """The same, which asks there what nobody else has."""

        def value(name: str) -> str | None:
            found = self.get(name)
            return ask(name) if found is None else found

        more = Variables(value, self._sink)
        more._unset = self._unset
        return more

    def put_into(self, tree: Value) -> Value:
        """The tree with values in all scalars. Of those that aliases repeat, once."""
        return self._put(tree, {})

    def _put(self, value: Value, done: dict[int, Value]) -> Value:
        if id(value) in done:
            return done[id(value)]
        found = value
        if value.entries is not None:
            entries = {k: (span, self._put(one, done)) for k, (span, one) in value.entries.items()}
            found = replace(value, entries=entries)
        elif value.items is not None:
            found = replace(value, items=tuple(self._put(one, done) for one in value.items))
        elif value.text is not None and "$" in value.text:
            found = replace(value, text=self.text(value.text, value.span), plain=False)
        done[id(value)] = found
        return found

    def text(self, text: str, span: Span) -> str:
        """The text with its values; what cannot be read is reported, and stays out."""
        try:
            found = self._expanded(text, span, 0)
        except _BadVariableError as bad:
            self._sink.error("TS0503", span, bad.message, bad.hint)
            return ""
        if len(found) > MAX_VALUE:
            message = f"with its values this has {len(found):,} characters"
            self._sink.error("TS0506", span, message, f"at most {MAX_VALUE:,}")
            return ""
        return found

    def _expanded(self, text: str, span: Span, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise _BadVariableError("too many variables in one another", f"at most {MAX_DEPTH}")
        out: list[str] = []
        pos = 0
        while (at := text.find("$", pos)) >= 0:
            out.append(text[pos:at])
            following = text[at + 1 : at + 2]
            if following == "$":
                out.append("$")
                pos = at + 2
            elif following == "{":
                end = _closing(text, at + 2)
                out.append(self._braced(text[at + 2 : end], span, depth))
                pos = end + 1
            elif found := _NAME.match(text, at + 1):
                out.append(self._plain(found[0], span))
                pos = found.end()
            else:
                raise _BadVariableError(f"'{text[at : at + 10]}' is no variable", _HOW)
        return "".join((*out, text[pos:]))

    def _plain(self, name: str, span: Span) -> str:
        value = self.get(name)
        if value is None and name not in self._unset:
            self._unset.add(name)
            hint = f"set it: {name}=… in .env, --param {name}=…, or ${{{name}:-default}}"
            self._sink.warning("TS0970", span, f"{name} is not set: it stands for nothing", hint)
        return value or ""

    def _braced(self, inner: str, span: Span, depth: int) -> str:
        found = _NAME.match(inner)
        name = found[0] if found else ""
        rest = inner[len(name) :]
        operator = _OPERATOR.match(rest)
        if not name or (rest and not operator):
            raise _BadVariableError(f"'${{{inner[:20]}}}' is no variable", _HOW)
        if operator is None:
            return self._plain(name, span)
        word, value = rest[operator.end() :], self.get(name)
        missing = not value if operator[0][0] == ":" else value is None
        match operator[0][-1]:
            case "-":
                return self._expanded(word, span, depth + 1) if missing else value or ""
            case "+":
                return "" if missing else self._expanded(word, span, depth + 1)
        if not missing:
            return value or ""
        why = self._expanded(word, span, depth + 1)
        message = f"{name} has to be set{': ' if why else ''}{why[:200]}"
        raise _BadVariableError(message, f"{name}=… in .env, or --param {name}=…")


def _closing(text: str, start: int) -> int:
    """Where the brace ends that is open at `start`."""
    depth = 1
    for at in range(start, len(text)):
        if text[at] == "{" and text[at - 1] == "$":
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
    raise _BadVariableError("this '${' is never closed", _HOW)
