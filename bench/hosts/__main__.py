"""`python -m bench.hosts [--only PART…] [--seeds N]`: runs over local hosts against the model.

shares      the papers' networks over 1, 2 and 4 hosts: measured shares against the model's
agree       random networks, hop-exact and over hosts: rate of every flow, round trip of a probe
reaction    how long until two flows have their shares after the second has begun
congestion  what TCP sees at a link that is too small, over hosts and hop-exact
small       64-byte packets at rates up to 200,000 a second: who loses them
sharing     what TCP takes hop-exact, with each congestion control (only when asked for)
stalls      how long programs do not run because of driver, agents and engine (only when asked for)
soak        a long run: does anything grow or drift (only when asked for; --minutes)

Writes bench/results/hosts.json (the last three: NAME.json) and its tables in
docs/performance.md, where it stands what is measured how. Exit code 1 when a bound is missed (the
figures are written all the same). --keep: the run directories stay there.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import RESULTS
from bench.engine import stalls
from bench.errors import BenchError
from bench.hosts import agree, congestion, reaction, shares, sharing, small, soak, soak_judge
from bench.machine import describe
from bench.report import section, update
from bench.tables import Record
from tests.runs.runlog import IncompleteRunError

FIRST = -10  # nice; only root may
ALONE = ("sharing", "stalls", "soak")  # only when asked for, in files of their own


def main() -> int:
    options = _options()
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)  # before what else the machine does
    results: dict[str, list[Record]] = {}
    try:
        with _folder(options.keep) as folder:
            for name in options.only or [name for name in PARTS if name not in ALONE]:
                results[name] = PARTS[name](folder, options)
    except (BenchError, IncompleteRunError) as error:
        print(f"hosts: {error}", file=sys.stderr)
        return 1
    finally:
        _write(results, partly=bool(options.only))
    found = [text for name, missed in MISSED.items() for text in missed(results.get(name, ()))]
    for text in found:
        print(f"missed: {text}", file=sys.stderr)
    return 1 if found else 0


def _options() -> Namespace:
    parser = ArgumentParser(prog="python -m bench.hosts", description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="may be repeated")
    parser.add_argument("--seeds", type=int, default=12, help="how many random networks")
    parser.add_argument("--minutes", type=int, default=20, help="how long the soak is")
    parser.add_argument("--keep", type=Path, help="a folder for the run directories, which stay")
    return parser.parse_args()


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="tstorm-bench-") as folder:
        yield Path(folder)


def _write(results: dict[str, list[Record]], *, partly: bool) -> None:
    """Each file keeps what was not measured now, if only parts were asked for."""
    machine = {**describe(), "privilege": "root" if os.geteuid() == 0 else "user"}
    files = {name: name if name in ALONE else "hosts" for name in results}
    for file in sorted(set(files.values())):
        path = RESULTS / f"{file}.json"
        now = {name: rows for name, rows in results.items() if files[name] == file}
        before = json.loads(path.read_text())["results"] if partly and path.exists() else {}
        document = {"format": 1, "machine": machine, "results": {**before, **now}}
        RESULTS.mkdir(exist_ok=True)
        path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        print(section(file, {**document, "results": now}))
    if files:
        update(RESULTS)


PARTS: dict[str, Callable[[Path, Namespace], list[Record]]] = {
    "shares": lambda folder, _options: shares.measure(folder),
    "agree": lambda folder, options: agree.measure(folder, options.seeds),
    "congestion": lambda folder, _options: congestion.measure(folder),
    "reaction": lambda folder, _options: reaction.measure(folder),
    "small": lambda folder, _options: small.measure(folder),
    "stalls": lambda folder, _options: stalls.measure(folder),
    "sharing": lambda folder, _options: sharing.measure(folder),
    "soak": lambda folder, options: soak.measure(folder, options.minutes),
}
MISSED: dict[str, Callable[[Sequence[Record]], list[str]]] = {
    "shares": shares.missed,
    "congestion": congestion.missed,
    "reaction": reaction.missed,
    "agree": agree.missed,
    "small": small.missed,
    "soak": soak_judge.missed,
}

if __name__ == "__main__":
    sys.exit(main())
