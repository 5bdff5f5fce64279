"""Says what is wrong where the grammar stops: code, place, what was expected, what to write.

The tables know which terminals could have followed; the mistakes that people make often are
recognised first and get a message of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tdl import unexpected
from tdl.ast import Span
from tdl.building.builder import cover, quotes_in_quotes, shown
from tdl.diagnostics import Diagnostic, Severity
from tdl.lalr_tables import END
from tdl.suggest import nearest
from tdl.tokens.lexer import Token
from tdl.tokens.words import (
    ACTIONS,
    FLAGS,
    LINK_ALIASES,
    LINK_PROPERTIES,
    OF_SERVICES,
    OTHER_ACTIONS,
    OTHER_STATEMENTS,
    RESERVED,
    SERVICE_ALIASES,
    SERVICE_PROPERTIES,
    SET_PROPERTIES,
    STATEMENTS,
)
from tdl.values import time_unit

_KNOWN_ACTIONS = tuple(ACTIONS)
_VERBS = frozenset(ACTIONS.values())
_NAMES = frozenset({"NAME", "INSTANCE", "TAGS"})
_ALL_PROPERTIES = tuple(
    dict.fromkeys((*LINK_PROPERTIES, *SERVICE_PROPERTIES, *LINK_ALIASES, *SERVICE_ALIASES))
)
_UNITS = ("ns", "us", "ms", "s", "m", "h", "d", "b", "Kb", "Mb", "Gb", "KB", "MB", "KiB", "MiB")
# Properties that a statement may have, by its first terminal.
_EXAMPLES = {
    "SERVICE": "img=nginx",
    "BRIDGE": "tags=core",
    "BRIDGES": "tags=core",
    "LAN": "tags=core",
    "AIR": "tags=core",
    "EXTERNAL": "if=eth1",
}
# What messages call the terminals of the grammar. An empty text: nothing to mention.
_WORDS_FOR = {
    "NAME": "a name",
    "INSTANCE": "",
    "VALUE": "a number",
    "WORD": "text",
    "STRING": "a string",
    "ENVITEM": "NAME:value",
    "TAGS": "tags=…",
    "DASH": "'--'",
    "ARROW": "'->'",
    "LABEL": "",
    "SEMI": "';'",
    "COMMA": "','",
    "OPEN": "'['",
    "CLOSE": "']'",
    "TO": "'to'",
    "AND": "'and'",
    "AT": "'at'",
    "FROM": "'from'",
    "REPLACE": "'replace'",
    "FREQ": "'freq'",
    "FLAG": "",
    END: "the end of the line",
}
FIGURE_FORMS = 'write figure lost = log client "lost ([0-9]+)", or = json client "FILE" "KEY"'


class _Place:
    """Where parsing stopped: the tokens around it and what could have followed."""

    def __init__(self, tokens: Sequence[Token], index: int, expected: frozenset[str]) -> None:
        self.tokens = tokens
        self.expected = expected
        self.before = tokens[index - 1] if index else None
        self.token = tokens[index] if index < len(tokens) else None
        self.after = tokens[index + 1] if index + 1 < len(tokens) else None
        self.first = tokens[0]

    @property
    def span(self) -> Span:
        """The guilty token, or the empty place after the last one."""
        if self.token is not None:
            return self.token.span
        end = self.tokens[-1].span
        return end.over(end.end_line, end.end_col, end.end_line, end.end_col + 1)

    def error(
        self, code: str, message: str, hint: str | None = None, span: Span | None = None
    ) -> Diagnostic:
        return Diagnostic(Severity.ERROR, code, span or self.span, message, hint)


def explain(tokens: Sequence[Token], index: int, expected: frozenset[str]) -> Diagnostic:
    """The diagnostic for the statement `tokens`, which stopped making sense at `index`."""
    if tokens[0].type == "EXPECT" and index:
        return unexpected.explain(tokens, index, expected)
    place = _Place(tokens, index, expected)
    if tokens[0].type == "FIGURE" and index:
        return place.error("TS0410", f"unexpected {_shown(place.token)}", FIGURE_FORMS)
    if tokens[0].type == "WHEN" and index:
        what = "this ends too early" if place.token is None else f"unexpected {_shown(place.token)}"
        return place.error("TS0330", what, unexpected.in_when(tokens, index, expected))
    if tokens[0].type == "NODE" and index and place.token is None:
        hint = "write `node NAME {`, lines with its parts, and `}`; a single program is a service"
        return place.error("TS0010", "a node needs a block", hint)
    for rule in (
        _quotes_in_quotes,
        _stray_bracket,
        _first_word,
        _hyphen_at_end,
        _single_hyphen,
        _missing_value,
        _missing_equals,
        _missing_equals_before,
        _detached_unit,
        _detached_time,
        _late_time,
        _not_a_name,
        _comma,
        _unquoted_command,
        _late_end,
        _several_bridges,
        _property_out_of_place,
        _unknown_action,
        _misspelt_flag,
        _too_early,
    ):
        found = rule(place)
        if found is not None:
            return found
    return place.error("TS0009", f"unexpected {_shown(place.token)}", _expectation(place))


def _quotes_in_quotes(place: _Place) -> Diagnostic | None:
    """`exec="sh -c "echo hi""`: the string ended at the second quote."""
    index = quotes_in_quotes(place.tokens)
    if index is None or place.token is None or place.tokens.index(place.token) < index:
        return None
    token, before = place.tokens[index], place.tokens[index - 1]
    quote = before.text[0]
    inside = "single" if quote == '"' else "double"
    example = "exec=\"sh -c 'echo hi'\"" if quote == '"' else "exec='sh -c \"echo hi\"'"
    hint = f"{inside} quotes inside: {example}"
    return place.error("TS0009", "the string ends before this", hint, token.span)


def _first_word(place: _Place) -> Diagnostic | None:
    number = place.first.type == "VALUE" and place.before is place.first
    if place.token is not place.first and not number:  # a number may begin `2 of server crash`
        if place.before is not place.first or place.first.type not in _NAMES:
            return None
        return _not_a_statement(place)
    hint = None
    second = place.token if number else place.after
    if place.first.type == "VALUE" and second is not None and second.text in STATEMENTS:
        hint = "line numbers are not part of the text: leave it out"
    message = f"a statement cannot begin with {_shown(place.first)}"
    return place.error("TS0008", message, hint, place.first.span)


def _not_a_statement(place: _Place) -> Diagnostic:
    word = place.first.text
    verb = next((t for t in place.tokens[1:3] if t.type in _VERBS), None)
    better = OTHER_STATEMENTS.get(word) or nearest(word, (*STATEMENTS, "churn", "flap"))
    if verb is not None and better is None:
        hint = f"begin with a time, such as 'at 10s {word} {verb.text}'"
        return place.error("TS0008", "an event needs a time", hint, place.first.span)
    hint = f"did you mean '{better}'?" if better else "statements: " + ", ".join(STATEMENTS)
    return place.error("TS0008", f"unknown statement '{word}'", hint, place.first.span)


def _hyphen_at_end(place: _Place) -> Diagnostic | None:
    """`a- b` or `-a`: a hyphen that touches a name on one side."""
    token, before, after = place.token, place.before, place.after
    if token is None or token.type != "HYPHEN":
        return None
    left = before is not None and before.span.end_col == token.col and before.type == "NAME"
    right = after is not None and token.span.end_col == after.col and after.type == "NAME"
    if left and not right and before is not None and (after is None or after.type != "NAME"):
        span = cover(before, token)
        return place.error("TS0006", f"'{before.text}-' ends with a hyphen", None, span)
    if right and not left and after is not None and "NAME" in place.expected:
        span = cover(token, after)
        return place.error("TS0006", f"'-{after.text}' begins with a hyphen", None, span)
    return None


def _single_hyphen(place: _Place) -> Diagnostic | None:
    token, before = place.token, place.before
    if token is not None and token.type == "HYPHEN":
        hint = "the link between a and b is a--b"
        if before is not None and before.type in _NAMES and place.after is not None:
            hint = f"write {before.text}--{place.after.text}"
        return place.error("TS0011", "a link is written with two hyphens", hint)
    if before is None or before.type != "NAME" or "DASH" not in place.expected:
        return None
    if place.first.type != "LINK" or "-" not in before.text:
        return None
    left, _, right = before.text.partition("-")
    hint = f"write {left}--{right}"
    return place.error("TS0011", f"'{before.text}' is one name, not a link", hint, before.span)


def _missing_value(place: _Place) -> Diagnostic | None:
    before = place.before
    if before is None or before.type not in ("KEY", "TAGS"):
        return None
    name = before.text.rstrip("+-= \t\u00a0")
    if before.type == "TAGS":
        if place.token is not None and place.token.type in ("VALUE", "STRING"):
            return None
        if place.token is not None and place.token.type in RESERVED.values():
            return None
    if name == "env" and place.token is not None:
        span = place.span
        message = f"{_shown(place.token)} is not a variable"
        return place.error("TS0117", message, "env is NAME:value, several separated by ';'", span)
    if place.token is None or place.token.type in ("KEY", "TAGS", "FLAG", "SEMI"):
        return place.error("TS0016", f"{name} has no value", None, before.span)
    if place.token.text in RESERVED:
        hint = f"'{place.token.text}' is a word of the language and no value"
        return place.error("TS0016", f"{name} has no value", hint, before.span)
    return None


def _missing_equals(place: _Place) -> Diagnostic | None:
    """`latency 5`, met at the name of the property."""
    token, after = place.token, place.after
    if token is None or after is None or "KEY" not in place.expected:
        return None
    if token.type not in ("NAME", "FLAG"):
        return None
    word = token.text
    if after.type != "VALUE" and word not in _ALL_PROPERTIES:
        return None
    better = word if word in _ALL_PROPERTIES else nearest(word, _ALL_PROPERTIES)
    if better is None:
        return None
    value = after.text if after.type in ("VALUE", "STRING", "NAME") else "…"
    return place.error("TS0014", f"'{word}' needs a '='", f"write {better}={value}")


def _missing_equals_before(place: _Place) -> Diagnostic | None:
    """`set latency 5` and `tags=x latency 5`: the property was taken for a selector or a tag."""
    token, before = place.token, place.before
    if before is None or before.type != "NAME":
        return None
    in_set = token is None or token.type in ("KEY", "VALUE")
    in_set = in_set and before.text in SET_PROPERTIES and "KEY" in place.expected
    in_tags = token is not None and token.type == "VALUE" and before.text in _ALL_PROPERTIES
    in_tags = in_tags and any(t.type == "TAGS" for t in place.tokens)
    if not in_set and not in_tags:
        return None
    value = token.text if token is not None and token.type == "VALUE" else "…"
    hint = f"write {before.text}={value}"
    return place.error("TS0014", f"'{before.text}' needs a '='", hint, before.span)


def _detached_time(place: _Place) -> Diagnostic | None:
    """`at 30 min server crash`: the unit was taken for a selector."""
    if place.first.type not in ("AT", "FROM"):
        return None
    for number, word in pairwise(place.tokens):
        if number.type == "VALUE" and number.text.isdecimal() and word.type == "NAME":
            unit = time_unit(word.text)
            if unit is not None and number.line == word.line:
                span = cover(number, word)
                message = "a space between the number and its unit"
                return place.error("TS0009", message, f"write {number.text}{unit}", span)
    return None


def _detached_unit(place: _Place) -> Diagnostic | None:
    token, before = place.token, place.before
    if token is None or before is None or before.type != "VALUE" or token.text not in _UNITS:
        return None
    span = cover(before, token)
    hint = f"write {before.text}{token.text}"
    return place.error("TS0009", "a space between the number and its unit", hint, span)


def _late_time(place: _Place) -> Diagnostic | None:
    """`crash server at 5s`, `at 5s a leave and at 6s b leave`."""
    token, first = place.token, place.first
    if token is None or token is first or token.type not in ("AT", "FROM"):
        return None
    start = place.tokens.index(token)
    if first.type not in ("AT", "FROM"):
        if not any(other.type in _VERBS for other in place.tokens[:start]):
            return None
        hint = f"write {_written(place.tokens[start:])} {_written(place.tokens[:start])}"
        return place.error("TS0009", "the time stands at the front of the statement", hint)
    if place.tokens[start - 1].type not in ("AND", *_VERBS) and "AND" not in place.expected:
        return None
    code = "TS0017" if place.tokens[start - 1].type == "AND" else "TS0009"
    hint = "begin a new line for another time"
    return place.error(code, "the time stands once, at the front of the statement", hint)


def _not_a_name(place: _Place) -> Diagnostic | None:
    """Only a name fits here, and something else stands here."""
    token = place.token
    if token is None or "NAME" not in place.expected:
        return None
    if place.expected & _VERBS and place.before is not None and place.before.type != "SEMI":
        return None
    if token.type == "VALUE" and "VALUE" not in place.expected:
        hint = "names begin with a letter or '_'"
        return place.error("TS0006", f"'{token.text}' is not a name", hint)
    if token.type == "STRING" and "STRING" not in place.expected:
        return place.error("TS0006", f"{token.text} is not a name", "names have no quotes")
    if token.type == "INSTANCE":
        hint = "the dot is for instances, in events"
        return place.error("TS0006", f"'{token.text}' is not a name", hint)
    if token.text in RESERVED and not place.expected & {"KEY", "TO", END}:
        return place.error("TS0007", f"'{token.text}' is a reserved word", "choose another name")
    return None


def _stray_bracket(place: _Place) -> Diagnostic | None:
    if place.token is None or place.token.type != "CLOSE" or "COMMA" in place.expected:
        return None
    if any(t.type == "OPEN" for t in place.tokens):
        return None
    return place.error("TS0004", "this ']' closes nothing")


def _comma(place: _Place) -> Diagnostic | None:
    token, before, after = place.token, place.before, place.after
    if token is None or token.type != "COMMA" or before is None:
        return None
    hint = "lists are separated by ';' or spaces, properties by spaces"
    if before.type == "VALUE" and after is not None and after.type == "VALUE":
        hint = f"write {before.text}.{after.text}: decimals have a point"
    return place.error("TS0009", "unexpected ','", hint)


def _unquoted_command(place: _Place) -> Diagnostic | None:
    """`exec=sleep 10`: more than one word without quotes."""
    if place.first.type != "SERVICE" or place.token is None or place.before is None:
        return None
    if place.before.type != "WORD" or place.token.type in ("KEY", "TAGS", "COMMA", "CLOSE"):
        return None
    index = next(i for i, token in enumerate(place.tokens) if token is place.before)
    if place.tokens[index - 1].text.rstrip("= \t\u00a0") != "exec":
        return None
    message = f"unexpected {_shown(place.token)}"
    return place.error("TS0009", message, 'quote a command line of several words: exec="…"')


def _late_end(place: _Place) -> Diagnostic | None:
    """`from 5s server to 6s leave`."""
    token = place.token
    if token is None or token.type != "TO" or place.first.type != "FROM":
        return None
    end = place.after.text if place.after is not None else "…"
    hint = f"write from {place.tokens[1].text} to {end} first"
    return place.error("TS0009", "'to' stands right after the beginning of the interval", hint)


def _written(tokens: Sequence[Token]) -> str:
    """The words as they are written, with single spaces."""
    out = tokens[0].text
    for before, token in pairwise(tokens):
        touches = (before.line, before.end_col) == (token.line, token.col)
        out += token.text if touches else f" {token.text}"
    return out


def _several_bridges(place: _Place) -> Diagnostic | None:
    if place.first.type != "BRIDGE" or place.token is None or place.token.type != "NAME":
        return None
    names = " ".join(t.text for t in place.tokens[1:] if t.type == "NAME")
    return place.error("TS0009", f"unexpected '{place.token.text}'", f"write bridges {names}")


def _property_out_of_place(place: _Place) -> Diagnostic | None:
    token = place.token
    if token is None or token.type not in ("KEY", "TAGS", "FLAG"):
        return None
    if place.first.type not in ("AT", "FROM") and place.first.type not in _VERBS:
        return None
    if token.type == "TAGS" and any(t.text == "set" for t in place.tokens):
        hint = "set changes " + ", ".join(SET_PROPERTIES)
        return place.error("TS0213", "tags cannot be changed", hint)
    if token.type == "TAGS" and place.before is not None and place.before.type == "SEMI":
        hint = "names and tags are selected by statements of their own, joined by 'and'"
        return place.error("TS0009", "unexpected 'tags='", hint)
    name = token.text.rstrip("+-= \t\u00a0")
    if name in ("tag", "tasg", "tgas"):
        return place.error("TS0009", f"unexpected '{name}='", "select by tag with tags=…")
    if not any(t.type in ("SET", "RAMP") for t in place.tokens):
        return place.error("TS0009", f"unexpected {_shown(token)}", "to change a link write 'set'")
    return None


def _unknown_action(place: _Place) -> Diagnostic | None:
    """`server restart`: a word where only an action fits."""
    token, before = place.token, place.before
    if not place.expected & _VERBS or before is None or before.type in ("AND", "SEMI"):
        return None
    word = token if token is not None and token.type == "NAME" else None
    if word is None and token is None and before.type == "NAME":
        better = OTHER_ACTIONS.get(before.text) or nearest(before.text, _KNOWN_ACTIONS)
        if better is not None and before.text != better and len(before.text) > 2:
            hint = f"did you mean '{better}'?"
            message = f"what happens to '{before.text}'? The action is missing"
            return place.error("TS0010", message, hint, before.span)
    if word is None:
        return None
    better = OTHER_ACTIONS.get(word.text) or nearest(word.text, _KNOWN_ACTIONS)
    hint = f"did you mean '{better}'?" if better else "actions: " + ", ".join(_KNOWN_ACTIONS)
    return place.error("TS0018", f"unknown action '{word.text}'", hint)


def _misspelt_flag(place: _Place) -> Diagnostic | None:
    token = place.token
    if token is None or token.type != "NAME" or "FLAG" not in place.expected:
        return None
    better = nearest(token.text, (*FLAGS, *_ALL_PROPERTIES))
    if better is None:
        return None
    if token.text in OF_SERVICES and token.text not in _ALL_PROPERTIES:
        hint = f"'{token.text}' is for a service"
        return place.error("TS0012", f"there is no option '{token.text}' here", hint)
    if better == token.text:
        return place.error("TS0014", f"'{better}' needs a '='", f"write {better}=…")
    wanted = better if better in FLAGS else f"{better}=…"
    return place.error("TS0012", f"unknown option '{token.text}'", f"did you mean '{wanted}'?")


def _too_early(place: _Place) -> Diagnostic | None:
    if place.token is not None:
        return None
    verb = next((t for t in reversed(place.tokens) if t.type in _VERBS), None)
    if verb is not None and "VALUE" in place.expected:
        needs = {
            "churn": "a number, such as 3 or 40%",
            "flap": "a period, such as 500ms",
            "background": "a rate, such as 10Mb",
        }.get(verb.text)
        if needs:
            return place.error("TS0220", f"{verb.text} needs {needs}", None, verb.span)
    if verb is not None and verb.text in ("set", "partition") and place.before is verb:
        needs = "what to change, such as latency=5ms" if verb.text == "set" else "groups: a b;c"
        return place.error("TS0220", f"{verb.text} needs {needs}", None, verb.span)
    return place.error("TS0010", "the statement ends too early", _expectation(place))


def _expectation(place: _Place) -> str | None:
    """What could have stood here, in words."""
    time_after = place.before is place.first or (place.before and place.before.type == "TO")
    if place.first.type in ("AT", "FROM") and time_after:
        return "expected a time such as 30s or 4h20m"
    expected = place.expected
    if place.token is not None and place.token.type in ("NAME", "INSTANCE") and "AND" in expected:
        return "a selector stands before its action; further events follow after 'and'"
    words = [_WORDS_FOR[kind] for kind in _WORDS_FOR if kind in expected and _WORDS_FOR[kind]]
    if "KEY" in expected:
        words.insert(0, "a property such as " + _EXAMPLES.get(place.first.type, "latency=5ms"))
    if expected & _VERBS:
        words.append("an action such as join, leave or set")
    if "FLAG" in expected and "KEY" in expected and place.first.type == "LINK":
        words.append("'symmetric'")
    if not words:
        return None
    return "expected " + (", ".join(words[:-1]) + " or " + words[-1] if words[1:] else words[0])


def _shown(token: Token | None) -> str:
    return "the end of the line" if token is None else shown(token)
