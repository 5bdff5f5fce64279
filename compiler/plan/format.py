"""What every part of the plan's reader and writer shares: names, versions, limits, JSON, errors.

Specified in docs/plan.md. Bump FORMAT_VERSION whenever a reader of the old version would
misunderstand or refuse what is written now: a new or missing field, another meaning, another
order. Nothing is added silently: readers refuse what they do not know.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, NoReturn

FORMAT_NAME = "thunderstorm-plan"
FORMAT_VERSION = 6
TOOL_VERSION = "0.1.0"  # of this release; tests hold it equal to pyproject.toml

HEADER = "plan.json"
SOURCE = "source.tdl"
TOPOLOGY = "topology.json"
TIMELINE = "timeline.jsonl"
SNAPSHOTS = "snapshots.jsonl"
ROUTES = "routes.bin"
EXPECTATIONS = "expectations.json"
FIGURES = "figures.json"
ATTACHED = "files.tar"  # what services are given, and included texts
MANIFESTS = "manifests"  # folder of rendered files, no part of the plan
FILES = (  # all but the header, sorted
    EXPECTATIONS,
    FIGURES,
    ATTACHED,
    ROUTES,
    SNAPSHOTS,
    SOURCE,
    TIMELINE,
    TOPOLOGY,
)
REBUILT = (
    ROUTES,
    SNAPSHOTS,
)  # follow from the others: delivery.py makes them again

MAX_HEADER_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 30
MAX_ATTACHED_BYTES = 64 << 20  # contents of files.tar, without what tar adds
MAX_INT = (1 << 63) - 1
MAX_NODES = 65_535
MAX_LINKS = 1_048_574
MAX_INSTANCES = 65_000
MAX_PARAMS = 100
MAX_TRACES = 65_534
MAX_DELAYS = 1000  # files
MAX_PARAM = 1000  # characters of a value
PPB = 1_000_000_000

ROUTINGS = ("delay", "hops", "direct", "ecmp")  # their places are numbers in tsroutes.h
DISTRIBUTIONS = ("normal", "uniform", "pareto", "paretonormal")


class PlanError(Exception):
    """A plan that cannot be used: which file, which line (0 = none), what is wrong, what to do."""

    def __init__(self, file: str, what: str, hint: str = "", line: int = 0) -> None:
        self.file = file
        self.what = what
        self.hint = hint or "compile the source again"
        self.line = line
        place = f"{file}:{line}" if line else file
        super().__init__(f"{place}: {what}; {self.hint}")


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> bytes:
    """The one way to write `value`: keys sorted, no spaces, ASCII, one final newline."""
    return _ENCODER.encode(value).encode("ascii") + b"\n"


def digest_and_size(data: bytes) -> dict[str, object]:
    """What the header says of a file."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def _not_an_integer(text: str) -> NoReturn:
    raise ValueError(f"the number {text[:40]} is not an integer")


_DECODER = json.JSONDecoder(parse_float=_not_an_integer, parse_constant=_not_an_integer)


def parse(data: bytes, file: str, line: int = 0, *, any_form: bool = False) -> Any:
    """Decodes one canonical JSON document, its newline included. Anything else: PlanError.

    With `any_form` the document need not be canonical, which saves writing it again to compare.
    """
    try:
        text = data.decode("ascii")
        value = _DECODER.decode(text)
        if "\\ud" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # refuses half a surrogate pair
        same = any_form or canonical(value) == data
    except RecursionError:
        raise PlanError(file, "nested too deeply", line=line) from None
    except ValueError as error:
        raise PlanError(file, f"not valid JSON of a plan ({error})", line=line) from None
    if not same:
        raise PlanError(
            file,
            "not in canonical form (sorted keys, no spaces, plain integers, one final newline)",
            "the file was edited or written by another program: " + "compile the source again",
            line,
        )
    return value


class Place:
    """Where a value was read, to name it in errors; checks values as they are taken."""

    __slots__ = ("file", "line", "what")

    def __init__(self, file: str, line: int = 0, what: str = "") -> None:
        self.file = file
        self.line = line
        self.what = what

    def fail(self, message: str, hint: str = "") -> NoReturn:
        prefix = f"{self.what}: " if self.what else ""
        raise PlanError(self.file, prefix + message, hint, self.line)

    def fields(self, value: Any, *names: str) -> list[Any]:
        """The values of exactly these fields, in this order."""
        if type(value) is not dict:
            return self.fail("an object is expected")
        if len(value) == len(names):
            try:
                return [value[name] for name in names]
            except KeyError:
                pass
        unknown = sorted(value.keys() - set(names))
        if unknown:
            return self.fail(f"unknown field {unknown[0]!r:.60}")
        missing = [name for name in names if name not in value]
        return self.fail(f"field {missing[0]!r} is missing")

    def items(self, value: Any, size: int | None = None) -> list[Any]:
        if type(value) is not list or (size is not None and len(value) != size):
            self.fail("a list" + (f" of {size}" if size is not None else "") + " is expected")
        found: list[Any] = value
        return found

    def integer(self, value: Any, name: str, low: int = 0, high: int = MAX_INT) -> int:
        if type(value) is not int or not low <= value <= high:
            self.fail(f"{name} must be an integer from {low} to {high}, not {value!r:.60}")
        return value

    def text(self, value: Any, name: str) -> str:
        if type(value) is not str:
            self.fail(f"{name} must be a string, not {value!r:.60}")
        return value

    def word(self, value: Any, name: str, words: tuple[str, ...]) -> str:
        if type(value) is not str or value not in words:
            self.fail(f"{name} must be one of {', '.join(words)}, not {value!r:.60}")
        return value

    def texts(self, value: Any, name: str) -> tuple[str, ...]:
        return tuple(self.text(item, name) for item in self.items(value))
