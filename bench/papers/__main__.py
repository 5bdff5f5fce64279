"""`python -m bench.papers [--only NAME …] [--missing] [--quick] [--time real|virtual|both]`.

Carries out the published experiments one by one, and writes each one's rows as soon as it is done:
bench/results/papers/NAME.json (quick/NAME.json with --quick, or in the folder of --out; no document
uses those). So a run that was interrupted goes on with --missing, and one experiment is repeated
with --only. Then the tables of docs/fidelity.md are brought up to the files. A missed row is a row,
and so is a part that failed; exit code 1 when an experiment or a part of it could not be carried
out, 130 when interrupted. The others are carried out all the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import RESULTS
from bench.errors import BenchError
from bench.machine import describe
from bench.papers.catalogue import ALL, Experiment
from bench.papers.children import end_in_order
from bench.papers.context import FAILURES, Context
from bench.papers.rows import blame, incomplete, missed
from bench.report import update
from bench.tables import Record

FORMAT = 1
FOLDER = RESULTS / "papers"
INTERRUPTED = 130


def main() -> int:
    options = _options()
    end_in_order()
    folder = options.out or (FOLDER / "quick" if options.quick else FOLDER)
    names = chosen(folder, options.only or list(ALL), options.missing)
    try:
        failures = play(names, folder, options.quick, options.time)
    except KeyboardInterrupt:
        _say("interrupted; --missing goes on")
        return INTERRUPTED
    finally:
        if folder == FOLDER:
            update(RESULTS)
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.papers", description=__doc__)
    parser.add_argument("--only", choices=list(ALL), action="append", help="may be repeated")
    parser.add_argument("--missing", action="store_true", help="only those without a whole result")
    parser.add_argument("--quick", action="store_true", help="a look, not for figures")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to write JSON instead")
    parser.add_argument("--time", choices=("real", "virtual", "both"), default="both")
    return parser.parse_args()


def chosen(folder: Path, names: Sequence[str], only_missing: bool) -> list[str]:
    """In the catalogue's order. A result of which a part failed is missing, too."""
    wanted = [name for name in ALL if name in names]
    return [name for name in wanted if not (only_missing and _whole(folder / f"{name}.json"))]


def _whole(path: Path) -> bool:
    return path.exists() and not incomplete(json.loads(path.read_text())["results"]["rows"])


def play(
    names: Sequence[str],
    folder: Path,
    quick: bool,
    time_: str,
    experiments: Callable[[str], Experiment] = ALL.__getitem__,
) -> list[str]:
    """Carries out the experiments and writes their files. The names of those that failed, wholly or
    in part."""
    failures: list[str] = []
    for name in names:
        _say(f"{name} …")
        try:
            document = one(experiments(name), quick, time_)
        except FAILURES as error:
            failures.append(name)
            _say(f"{name} failed: {error}")
            continue
        write(folder / f"{name}.json", document)
        rows = document["results"]["rows"]
        failures += [name] if incomplete(rows) else []
        for text in missed(rows):
            _say(f"  missed: {text}")
        _say(f"{name}: {document['seconds']} s")
    return failures


def one(experiment: Experiment, quick: bool, time_: str) -> Record:
    """The document of one experiment."""
    machine, began = describe(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ts-papers-") as folder:
        Path(folder).chmod(0o755)  # programs of other users are started from there
        context = Context(Path(folder), quick, time_)
        rows = blame(experiment.measure(context), machine)
    if not rows:
        raise BenchError("there is no place here where it can be carried out")
    cannot = [{"what": what, "why": why} for what, why in sorted(context.cannot.items())]
    return {
        "format": FORMAT,
        "machine": machine,
        "quick": quick,
        "seconds": round(time.monotonic() - began),
        "time": time_,
        "results": {"rows": rows, "cannot": cannot},
    }


def write(path: Path, document: Record) -> None:
    """Whole or not at all: an interrupted run leaves no half of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    new.replace(path)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
