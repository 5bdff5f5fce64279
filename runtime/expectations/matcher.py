"""Looks for a regular expression in lines, as a program of its own: an expression that takes for
ever takes nothing but this process.

Standard input: one line of JSON, {"pattern": TEXT, "key": TEXT, "has": TEXT}. Then, any number of
times, a line with a number of bytes and so many bytes of JSON, a list of texts. Each list is
answered by a line of JSON, a row for each text that has the pattern in it: its position; what the
pattern's first group has taken, with a key instead what stands there in the JSON of the text (null:
nothing); and whether the second pattern is in the text, with a key in what stands there. Uses
nothing of the project: it is run by path.
"""

import json
import re
import resource
import sys
import warnings
from typing import Any

MOST_MEMORY = 1 << 30
MOST_TAKEN = 200  # characters of what a group has taken


def at_key(value: Any, key: str) -> Any:
    """What stands in a JSON value at names and positions with dots between them; None: nothing."""
    for part in key.split("."):
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def in_json(line: str, key: str) -> str | None:
    """As a text: a number as it is written, what is no text as JSON. None if the line has no object
    that ends with it, or nothing there."""
    try:
        whole = json.loads(line[line.find("{") :], parse_int=str, parse_float=str)
        value = at_key(whole, key) if isinstance(whole, dict) else None
    except (ValueError, RecursionError):
        return None
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def main() -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("ignore")  # what will mean something else in another Python
    source, target = sys.stdin.buffer, sys.stdout.buffer
    wanted = json.loads(source.readline())
    pattern, key, has = re.compile(wanted["pattern"]), wanted["key"], re.compile(wanted["has"])
    while head := source.readline():
        found = []
        for number, line in enumerate(json.loads(source.read(int(head)))):
            if match := pattern.search(line):
                group = match[1] if pattern.groups else None
                taken = in_json(line, key) if key else group
                looked_at = taken if key else line
                fits = looked_at is not None and has.search(looked_at) is not None
                found.append((number, taken and taken[:MOST_TAKEN], fits))
        target.write(json.dumps(found).encode() + b"\n")
        target.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
