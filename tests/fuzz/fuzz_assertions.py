"""Mutated files of assertions: each is read within bounds, and says no more than its lines do.

    python -m tests.fuzz.fuzz_assertions [--seconds N] [--seed N]

Lines as SDKs write them (tests/expectations/sdk_lines.py) have values replaced, removed and
moved, or bytes flipped, cut and put in. What is read is compared with a slow second reader. Prints
the seed of the first failure and exits 1.
"""

from __future__ import annotations

import io
import json
import random
import sys
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from runtime.expectations.assertions.sdk_records import TYPES, SdkRecords
from tests.expectations.sdk_lines import SDK, SETUP, assertion, guidance, text
from tests.fuzz.seeds import Words, mutate_bytes, run

MESSAGES = ("a", "b", "c\u2028", "")
VALUES = (None, True, False, 0, 2**80, 1e400, "", "always", [], {}, [[]], "\ud800")


def records(rnd: random.Random) -> list[Any]:
    found: list[Any] = [SDK, SETUP, guidance("x"), {"event": {}}]
    for _ in range(rnd.randint(1, 12)):
        kind, must = rnd.choice(TYPES), rnd.random() < 0.5
        said = rnd.choice((None, True, False))
        if kind == "sometimes":
            must = True
        found.append(assertion(kind, rnd.choice(MESSAGES), said, must_hit=must))
    rnd.shuffle(found)
    return found


def spoil(rnd: random.Random, record: Any) -> Any:
    """A value replaced or removed."""
    said = record.get("antithesis_assert")
    if said is None or rnd.random() < 0.2:
        return rnd.choice(VALUES)
    name = rnd.choice(sorted(said))
    changed = {**said, name: rnd.choice(VALUES)}
    if rnd.random() < 0.3:
        del changed[name]
    return {"antithesis_assert": changed}


def understood(data: bytes) -> dict[tuple[str, bool, str], set[bool]]:
    """By a reader of its own: what each assertion was, of lines that are right."""
    found: dict[tuple[str, bool, str], set[bool]] = {}
    for line in data.split(b"\n"):
        try:
            said = json.loads(line)["antithesis_assert"]
            key = said["assert_type"], said["must_hit"], said["message"]
            flags = [said["hit"], said["must_hit"], *([said["condition"]] if said["hit"] else [])]
            right = all(type(one) is bool for one in flags) and type(key[2]) is str
            if right and key[0] in TYPES:
                found.setdefault(key, set()).update(flags[2:])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def attempt(seed: int) -> bool:
    """Whether all lines were right."""
    rnd = random.Random(seed)
    lines = records(rnd)
    for at in rnd.sample(range(len(lines)), rnd.choice((0, 0, 1, 3))):
        lines[at] = spoil(rnd, lines[at])
    data = text(*lines)
    if rnd.random() < 0.5:
        data = mutate_bytes(rnd, data)
    told = SdkRecords()
    told.read(io.BytesIO(data), "a.0", "x.jsonl")
    wanted = understood(data)
    seen = {
        key: {flag for flag, one in ((True, one.true), (False, one.false)) if one is not None}
        for key, one in told.found.items()
    }
    assert seen == wanted, f"{seen} is not {wanted}"
    for one in told.found.values():
        assert not one.violated or one.reached
    return not told.problems


def main() -> int:
    closing = "{count} mutated files of assertions, {true} of them whole"
    return run("fuzz_assertions", __doc__, attempt, Words("whole", "damaged", closing))


if __name__ == "__main__":
    sys.exit(main())
