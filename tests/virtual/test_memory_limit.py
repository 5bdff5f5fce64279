"""mem= in virtual time: enforced by the guest's control groups (version 2), for anybody."""

import json
from pathlib import Path

import pytest

from runtime.backend.local.instance_commands import OUT_OF_MEMORY
from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """
service small mem=50Mi cpu=100m exec="python3 -c 'print(len(bytearray(200<<20)))'"
service large mem=900Mi exec="python3 -c 'print(len(bytearray(200<<20)))'"
service shown mem=10Mi exec="cat /proc/self/cgroup"
service free exec="cat /proc/self/cgroup"
bridge s1
link small--s1 latency=1ms
link large--s1 latency=1ms
link shown--s1 latency=1ms
link free--s1 latency=1ms
at 1s quit
"""


@pytest.mark.ordinary
def test_a_program_that_wants_more_memory_is_killed_in_each_run(
    tmp_path: Path, kernel: list[str]
) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT, encoding="utf-8")
    done = tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "first")
    logs = {path.stem: path.read_text() for path in (tmp_path / "first/logs").iterdir()}
    assert logs == {
        "small.0": "",
        "large.0": f"{200 << 20}\n",
        "shown.0": "0::/tstorm-run/shown.0\n",
        "free.0": "0::/tstorm-run/free.0\n",
    }
    assert f"small.0: ended by itself with signal 9: {OUT_OF_MEMORY}" in done.stderr
    assert "for the mem= of their instance: 1 of small.0" in done.stderr
    assert "cannot be enforced" not in done.stderr
    summary = json.loads((tmp_path / "first/summary.json").read_bytes())
    [failure] = summary["failures"]
    assert (failure["target"], failure["signal"]) == ("small.0", 9)
    assert failure["reason"] == OUT_OF_MEMORY
    shown = tstorm(tmp_path, "inspect", "first").stdout
    assert f"small.0: signal 9: {OUT_OF_MEMORY}" in shown
    assert "for the mem= of their instance: 1 of small.0" in shown
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr


TWO = """
service two mem=64Mi files=two.sh exec="sh two.sh"
service other exec="sleep 5"
bridge s1
link two--s1 latency=1ms
link other--s1 latency=1ms
at 5s quit
"""
TWO_SH = """\
takes='import time
held = bytearray(40 << 20)
for at in range(0, len(held), 4096): held[at] = 1
time.sleep(0.3)
print("has it", flush=True)'
python3 -c "$takes" & sleep 0.2
python3 -c "$takes" & wait
echo both are done
"""


def test_one_of_two_that_want_more_together_is_killed_and_the_other_goes_on(
    tmp_path: Path, kernel: list[str]
) -> None:
    (tmp_path / "exp.tdl").write_text(TWO, encoding="utf-8")
    (tmp_path / "two.sh").write_text(TWO_SH, encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "first")
    assert (tmp_path / "first/logs/two.0.log").read_text() == "has it\nboth are done\n"
    summary = json.loads((tmp_path / "first/summary.json").read_bytes())
    assert (summary["failures"], summary["exits"][0]["status"]) == ([], 0)
    assert summary["oom_kills"] == [{"target": "two.0", "processes": 1}]
    assert (
        "two.0    *** oom_kill the kernel killed a process of it"
        in tstorm(tmp_path, "logs", "first").stdout
    )
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr


EDGES = (44, 52, 54, 56, 58, 60)  # MiB: from what fits to what does not, beside Python's own 10
EDGE = """\
import sys

held = bytearray(int(sys.argv[1]) << 20)
for at in range(0, len(held), 4096):
    held[at] = 1
import asyncio, decimal, email, http.client, json

json.dumps([str(decimal.Decimal(3))] * 1000)
"""


def test_a_program_that_nearly_fits_is_done_or_killed_and_never_reads_its_files_for_ever(
    tmp_path: Path, kernel: list[str]
) -> None:
    lines = ["bridge s1"]
    for mib in EDGES:
        lines.append(f'service s{mib} mem=64Mi files=edge.py exec="python3 edge.py {mib}"')
        lines.append(f"link s{mib}--s1 latency=1ms")
    (tmp_path / "exp.tdl").write_text("\n".join([*lines, "at 1s quit\n"]), encoding="utf-8")
    (tmp_path / "edge.py").write_text(EDGE, encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "first")
    summary = json.loads((tmp_path / "first/summary.json").read_bytes())
    killed = sorted((one["target"], one["signal"]) for one in summary["failures"])
    assert killed == [(f"s{mib}.0", 9) for mib in EDGES[1:]]
