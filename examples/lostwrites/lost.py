#!/usr/bin/env python3
"""lost.py RUN: how many acknowledged writes the database has lost. Ends with 1 if there are any."""

import json
import sys
from pathlib import Path

run = Path(sys.argv[1])
start_ns = json.loads((run / "manifest.json").read_text())["start_monotonic_ns"]
found = set((run / "logs/reader.0.log").read_text().split())
if "end" not in found:
    sys.exit("the reader did not read everything")

lines = (run / "logs/writer.0.log").read_text().splitlines()
writes = [line.split(maxsplit=2) for line in lines]
acknowledged = [(int(at_ns), n) for at_ns, n, outcome in writes if outcome == "acknowledged"]
lost = [at_ns for at_ns, n in acknowledged if n not in found]

print(f"writes: {len(writes)}, acknowledged: {len(acknowledged)}, lost: {len(lost)}")
if lost:
    first, last = ((at_ns - start_ns) / 1e9 for at_ns in (lost[0], lost[-1]))
    print(f"the first was acknowledged at {first:.1f} s, the last at {last:.1f} s")
    sys.exit(1)
