"""What tokens look like: one regular expression for each mode of the lexer (tdl/tokens/lexer.py).

The names of the groups are the types of tokens. Source: docs/tdl.md, "Text".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property


class Mode:
    """The tokens that may stand in some place, each a group of its own."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def match(self) -> Callable[[str, int], re.Match[str] | None]:
        """Compiled where it is used first: no text has all modes, which take 12 ms together."""
        return re.compile(self._pattern, re.VERBOSE).match


NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*"
# Behind a name: an instance (server.3), a machine (sat.3), its parts (sat.3.iphy, sat.3.iphy.1), or
# those of all machines (sat.iphy, sat.iphy.1).
DOTTED = rf"(?:\.[0-9]+(?:\.{NAME}(?:\.[0-9]+)?)?|\.{NAME}(?:\.[0-9]+)?)(?![A-Za-z0-9_.])"
SPACE = r"[ \t\u00a0]*"
STRING = r"\"(?:[^\"\\\r\n]|\\[^\r\n])*\"|'(?:[^'\\\r\n]|\\[^\r\n])*'"
VALUE = r"[+±-]?(?:[0-9]|\.[0-9])[\w.%/]*"
_CURLY_STRING = r"“[^“”\r\n]*”|‘[^‘’\r\n]*’"
BARE = r"[^\s;\#\"'“”‘’\[\]\\]+"  # text without quotes
_SHARED = rf"""
    (?P<STRING>{STRING}|{_CURLY_STRING})
  | (?P<COMMENT>\#[^\r\n]*)
  | (?P<CONTINUE>\\[ \t]*(?:\r\n?|\n|\Z))
  | (?P<NEWLINE>\r\n?|\n)
  | (?P<SEMI>;)
"""
VARIABLE = r"\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z0-9_+*()\ \t-]+\})"  # ${i*15}, too
_BOUND = rf"(?:[0-9]+|{VARIABLE})"
RANGE = rf"\[{_BOUND}\.\.{_BOUND}\]"
_PART = rf"[A-Za-z0-9_.%/]|-(?=[A-Za-z0-9_$])|{VARIABLE}"
_LABEL = rf":(?=[^\s:;\#=]+?{SPACE}(?:--|—|–|->))"  # of a link: fast:a--s1
# A word with a variable or a range in it: pg.$i, ${rate}Mb, b[0..49], fast$i:a--s1.
_MIXED = rf"(?P<MIXED>\+?(?:{_PART})*(?:{VARIABLE}|{RANGE})(?:{_PART}|{RANGE})*(?:{_LABEL})?)"
_WORDS = rf"""
    (?P<NAME>{NAME})
    (?:(?P<KEY>{SPACE}[+-]?=)|(?P<LABEL>(?:{DOTTED})?{_LABEL})|(?P<INSTANCE>{DOTTED}))?
  | (?P<DASH>--|—|–)
  | (?P<ARROW>->)
  | (?P<VALUE>{VALUE})
  | (?P<OPEN>\[)
  | (?P<CLOSE>\])
  | (?P<BRACE>[{{}}])
  | (?P<COMMA>,)
  | (?P<HYPHEN>[-‐‑−])
  | {_SHARED}"""
PLAIN = Mode(rf"{SPACE}(?:{_WORDS})")
# Looks at each word twice, so it is for texts that have a '$' or '..' somewhere.
PLAIN_MIXED = Mode(rf"{SPACE}(?:{_MIXED}|{_WORDS})")
# In the block of a `hunt`.
HUNTING = Mode(rf"{SPACE}(?:(?P<EVERY>(?:{NAME}\.)?\*)|{_MIXED}|{_WORDS})")
# After `expect`: no properties, but operators and `*`.
_EXPECTING = rf"""
    (?P<EVERY>(?:{NAME}\.)?\*)
  | (?P<NAME>{NAME})(?P<INSTANCE>{DOTTED})?
  | (?P<OP>=[<>]|[<>=!]=?|[≤≥])
  | (?P<VALUE>{VALUE})
  | (?P<BRACE>[{{}}])
  | (?P<COMMA>,)
  | {_SHARED}"""
EXPECTING = Mode(rf"{SPACE}(?:{_EXPECTING})")
EXPECTING_MIXED = Mode(rf"{SPACE}(?:{_MIXED}|{_EXPECTING})")
# Bare text: an image, a program, a network. Quotes and brackets start something else.
TEXT = Mode(
    rf"""{SPACE}(?:
    (?P<KEY_AHEAD>(?={NAME}{SPACE}=))
  | {_SHARED}
  | (?P<WORD>{BARE}))"""
)
ENV = Mode(
    rf"""{SPACE}(?:
    (?P<ENVITEM>[A-Za-z_][A-Za-z0-9_.-]*:(?:{STRING}|{_CURLY_STRING}|[^\s;\#"'“”‘’]*))
  | (?P<KEY_AHEAD>(?={NAME}{SPACE}=))
  | {_SHARED}
  | (?P<WORD>{BARE}))"""
)
# Of these lists; a quoted value may follow a colon.
LIST = Mode(
    rf"""{SPACE}(?:
    (?P<ENVITEM>[^\s:;\#\"'“”‘’\[\]\\]+:(?:{STRING}|{_CURLY_STRING}))
  | (?P<KEY_AHEAD>(?={NAME}{SPACE}=))
  | {_SHARED}
  | (?P<WORD>{BARE}))"""
)
LISTS = (ENV, LIST)
ARRAY = Mode(rf"{SPACE}(?:(?P<CLOSE>\])|(?P<COMMA>,)|{_SHARED}|(?P<WORD>[^\s;,\#\"'“”‘’\[\]\\]+))")
