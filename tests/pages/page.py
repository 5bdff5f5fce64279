"""A page of docs/ as what its reader does: files to write, commands to type, output to see.

What a fenced block is, by its first word:
  console  commands, each after `$ ` (`> ` where it goes on), followed by what it prints; where
           nothing is shown, anything may be printed. `…` in a line is any text, as a line of its
           own any lines. `# ends with N` behind a command is its exit code, else it is 0
  text     right after a console block: what its last command prints, but for the numbers
  sh       what is done once for a machine. It is not run; tests know what may stand there
  tdl      an example, which must compile
A block of any word is a file if the paragraph before says "Write `NAME`" or "Add to `NAME`".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(Write|Add to) `([^`]+)`")
_ENDS = re.compile(r"\s*# ends with (\d+).*$")
_NUMBER = re.compile(r"\d+(\.\d+)?")
_ANY_LINES = "(?:.*\n)*?"


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str
    append: bool


@dataclass(frozen=True, slots=True)
class Command:
    text: str
    code: int = 0
    shown: str = ""
    exact: bool = True  # else numbers may differ


@dataclass(frozen=True, slots=True)
class Setup:
    text: str


@dataclass(frozen=True, slots=True)
class Example:
    text: str


Step = File | Command | Setup | Example


def steps(page: str) -> list[Step]:
    """What the page tells its reader to do, in order. A block of no known kind is a ValueError."""
    found: list[Step] = []
    fences = list(_FENCE.finditer(page))
    ends = [0, *(fence.end() for fence in fences)]
    for fence, before in zip(fences, ends, strict=False):
        word, body = fence.groups()
        between = page[before : fence.start()].strip("\n")
        file = _FILE.search(between.rpartition("\n\n")[2])
        if file:
            found.append(File(file[2], body, append=file[1] == "Add to"))
        elif word == "console":
            found += _commands(body)
        elif word == "text" and not between and found and isinstance(found[-1], Command):
            found[-1] = replace(found[-1], shown=body, exact=False)
        elif word == "sh":
            found.append(Setup(body))
        elif word == "tdl":
            found.append(Example(body))
        elif word == "diff":
            continue  # a change of the sources, which a reader does not type
        else:
            raise ValueError(f"a block of no known kind: ```{word}\n{body}")
    return found


def commands(page: str) -> list[Command]:
    """Those of all console blocks, also where they are marked by their first `$ ` only."""
    bodies = (body for word, body in _FENCE.findall(page) if word in ("console", ""))
    return [command for body in bodies if body.startswith("$ ") for command in _commands(body)]


def _commands(body: str) -> list[Command]:
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
    if parts[0]:
        raise ValueError(f"a console block begins with output:\n{body}")
    return [_command(part) for part in parts[1:]]


def _command(part: str) -> Command:
    first, _, shown = part.partition("\n")
    while shown.startswith("> "):
        more, _, shown = shown[2:].partition("\n")
        first = f"{first}\n{more}"
    ends = _ENDS.search(first)
    return Command(_ENDS.sub("", first), int(ends[1]) if ends else 0, shown)


def agrees(command: Command, printed: str) -> bool:
    """Whether the command printed what the page shows."""
    shown = command.shown
    if not shown:
        return True
    if not command.exact:
        shown, printed = _without_numbers(shown), _without_numbers(printed)
    return re.fullmatch(_pattern(shown), printed) is not None


def _pattern(shown: str) -> str:
    return "".join(
        _ANY_LINES
        if line == "…"
        else ".*?".join(re.escape(piece) for piece in line.split("…")) + "\n"
        for line in shown.splitlines()
    )


def _without_numbers(text: str) -> str:
    return re.sub(r" +", " ", _NUMBER.sub("#", text))


def links(page: str) -> list[str]:
    """Targets of the page's links that are not addresses, without what follows `#`."""
    prose = _FENCE.sub("", page)
    return [target for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose) if target]
