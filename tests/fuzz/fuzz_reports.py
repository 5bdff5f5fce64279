"""Mutated run directories: every report, picture and comparison ends in what was asked for or in an
error in words; none in a traceback, and none shows a terminal control characters.

    python -m tests.fuzz.fuzz_reports [--seconds N] [--seed N]

One file of a whole run (tests/page/synthetic.py, or of the run that FUZZ_RUN names) has values
replaced, removed and moved, or bytes changed, cut and put in; then one command of those that tell
of runs is called in its directory. Prints the seed of the first failure and exits 1.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import click
from click.testing import CliRunner, Result

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.fuzz_rundir import TEXTS, mutate_json
from tests.fuzz.seeds import Words, mutate_bytes, run
from tests.page.synthetic import SECOND, Shape, make
from tstorm.cli import cli
from tstorm.exit_codes import CommandError

SHAPE = Shape(seconds=8, interval_ns=SECOND, probe_ns=SECOND)
LINES = ("events.jsonl", "samples.jsonl", "probes.jsonl", "logs.jsonl", "stacks.jsonl")
DOCUMENTS = ("manifest.json", "summary.json", "certificate.json")
HOSTILE = (*TEXTS, b"</script><script>", "\u2028\u202e".encode(), b"\xed\xa0\x80", b"\x1b[31mred")
REPORTS = tuple(("report", "RUN", "--format", form) for form in ("html", "md", "json", "junit"))
TABLES = ("paths", "pairs", "links", "probes", "events", "contacts")
COMMANDS = (
    *REPORTS,
    *(("report", "RUN", "--format", "csv", "--table", table) for table in TABLES),
    *(("inspect", "RUN", "--format", form) for form in ("table", "json")),
    *(("compare", "RUN", "WHOLE", "--format", form) for form in ("table", "json", "html")),
    ("compare", "WHOLE", "RUN"),
    ("logs", "RUN", "--around", "4s"),
)
PICTURES = (
    ("plot", "RUN", "--pair", "PAIR", "-o", "picture.svg"),
    ("plot", "RUN", "--link", "LINK", "-o", "picture.svg"),
    ("plot", "RUN", "--topology", "--at", "4s", "-o", "picture.svg"),
)


@cache
def whole() -> Path:
    """The run that nobody has touched."""
    given = os.environ.get("FUZZ_RUN")
    if given:
        return Path(given).resolve()
    place = tempfile.TemporaryDirectory(prefix="tstorm-fuzz-")
    atexit.register(place.cleanup)
    return make(Path(os.path.realpath(place.name)) / "run", SHAPE)


def words(command: tuple[str, ...], spoilt: Path) -> list[str]:
    ours = {"RUN": [str(spoilt)], "WHOLE": [str(whole())], "picture.svg": [f"{spoilt}.svg"]}
    ours |= {"PAIR": ["client.0", "server.0"], "LINK": ["s1--client.0"]}
    if os.environ.get("FUZZ_RUN"):
        ours["LINK"] = ["s1--s2"]
    return [word for one in command for word in ours.get(one, [one])]


def spoil(rnd: random.Random, directory: Path) -> None:
    names = [name for name in (*DOCUMENTS, *LINES) if (directory / name).exists()]
    names += [f"logs/{path.name}" for path in sorted((directory / "logs").iterdir())]
    name = rnd.choice(names)
    path = directory / name
    data = path.read_bytes()
    kind = rnd.random()
    if kind < 0.05:
        path.unlink()
    elif kind < 0.7 and not name.startswith("logs/"):
        path.write_bytes(mutate_json(rnd, name, data))
    elif kind < 0.8:
        path.write_bytes(data[: rnd.randrange(len(data) + 1)])  # killed in the middle
    else:
        path.write_bytes(mutate_bytes(rnd, data, HOSTILE))


def is_refused(result: Result) -> bool:
    """Whether it ended with an error in words. AssertionError if it ended in any other way."""
    error = result.exception
    if error is None:
        return False
    assert isinstance(error, (CommandError, click.ClickException, SystemExit)), "a traceback"
    said = f"{error}{result.stderr}"
    assert "error" in said.lower() or "warning" in said or "usage" in said.lower(), said
    return True


def ask(command: tuple[str, ...], spoilt: Path) -> bool:
    """True if it was answered. Whatever else it raises is a fault of the command."""
    result = CliRunner().invoke(cli, words(command, spoilt), prog_name="tstorm")
    try:
        refused = is_refused(result)
    except AssertionError:
        if isinstance(result.exception, Exception):
            raise result.exception from None
        raise
    shown = result.stderr if "html" in command or "json" in command else result.output
    hidden = [c for c in shown if not c.isprintable() and c not in "\n\r\t"]
    assert not hidden, f"a terminal was shown {hidden[:5]}"
    return not refused


def attempt(seed: int, *, pictures: bool = True) -> bool:
    """True if the command was answered."""
    rnd = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="tstorm-fuzz-") as name:
        spoilt = Path(os.path.realpath(name)) / "run"
        shutil.copytree(whole(), spoilt, ignore=shutil.ignore_patterns("report.html", ".fs"))
        spoil(rnd, spoilt)
        return ask(rnd.choice((*COMMANDS, *PICTURES) if pictures else COMMANDS), spoilt)


def main() -> int:
    closing = "{count} commands about mutated run directories, {true} answered, the others refused"
    return run("fuzz_reports", __doc__, attempt, Words("answered", "refused", closing))


if __name__ == "__main__":
    sys.exit(main())
