"""mem= in virtual time: enforced by the guest's control groups (version 2), for anybody."""

import json
from pathlib import Path

import pytest

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
    assert "it wanted more memory than its mem=" in done.stderr
    assert "cannot be enforced" not in done.stderr
    summary = json.loads((tmp_path / "first/summary.json").read_bytes())
    assert [(one["target"], one["signal"]) for one in summary["failures"]] == [("small.0", 9)]
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr
