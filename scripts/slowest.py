"""`scripts/slowest`: where the time of the last whole test run went, from its JUnit files.

phase    by the clock, of processors (its own, and what everybody took meanwhile), and the sum over
         its tests: how many of them were side by side
file     the sum over its tests, set-ups in it, what they took of processors, and how many there are
test     the longest, and what they took of processors
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.phases import PHASES, file_of, folder

FILES, TESTS = 40, 25  # how many of each are shown


@dataclass(frozen=True, slots=True)
class Test:
    phase: str
    file: str
    name: str
    seconds: float  # set-up and tear-down included
    setup_seconds: float  # tests/setuptimes.py notes this
    processor_seconds: float  # and this


def tests(phase: str, report: Path) -> Iterator[Test]:
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        noted = {one.get("name"): one.get("value", "0") for one in case.iter("property")}
        took_s = (float(noted.get(name, 0)) for name in ("setup_s", "processors_s"))
        yield Test(phase, file_of(case), str(case.get("name")), float(case.get("time", 0)), *took_s)


def main(place: Path) -> str:
    entries = json.loads((place / PHASES).read_text())
    found = [one for e in entries if e["report"] for one in tests(e["name"], place / e["report"])]
    lines = ["   began  seconds  processors  machine     tests   sum  phase"]
    for entry in entries:
        times = [one.seconds for one in found if one.phase == entry["name"]]
        lines.append(
            f"{entry['began_s']:8.0f} {entry['seconds']:8.0f} {entry['processor_seconds']:11.0f}"
            f" {entry['machine_seconds']:8.0f} {len(times):9d} {sum(times):5.0f}  {entry['name']}"
        )
    by_file: dict[tuple[str, str], list[Test]] = defaultdict(list)
    for one in found:
        by_file[one.file, one.phase].append(one)
    lines += ["", " seconds  set-ups  processors  tests  file (phase)"]
    longest = sorted(by_file.items(), key=lambda item: -sum(t.seconds for t in item[1]))
    for (file, phase), own in longest[:FILES]:
        whole, setups = sum(t.seconds for t in own), sum(t.setup_seconds for t in own)
        used = sum(t.processor_seconds for t in own)
        lines.append(f"{whole:8.1f} {setups:8.1f} {used:11.1f} {len(own):6d}  {file} ({phase})")
    lines += ["", " seconds  set-up  processors  test (phase)"]
    for one in sorted(found, key=lambda t: -t.seconds)[:TESTS]:
        lines.append(
            f"{one.seconds:8.1f} {one.setup_seconds:7.1f} {one.processor_seconds:11.1f}"
            f"  {one.file}::{one.name} ({one.phase})"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        print(main(Path(sys.argv[1]) if sys.argv[1:] else folder()))
    except FileNotFoundError as error:
        sys.exit(f"no test run has left its reports: {error.filename} (make test does)")
