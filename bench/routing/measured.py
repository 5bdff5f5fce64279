"""`python -m bench.routing.measured PROGRAM ARGUMENT…`: runs it; what it took, as a line of JSON.

A process of its own, and a small one: what the kernel calls the peak memory of a child is never
less than what its parent had when it started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from bench.tables import Record


def measured(argv: list[str]) -> Record:
    """{wall_s, cpu_s, peak_mib, status, stdout, stderr} of one command, its children included."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err) as running:
            _, status, usage = os.wait4(running.pid, 0)
            wall_s = time.perf_counter() - began
            running.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    return {
        "wall_s": round(wall_s, 4),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 4),
        "peak_mib": round(usage.ru_maxrss / 1024, 1),
        "status": running.returncode,
        "stdout": texts[0],
        "stderr": texts[1],
    }


if __name__ == "__main__":
    json.dump(measured(sys.argv[1:]), sys.stdout)
