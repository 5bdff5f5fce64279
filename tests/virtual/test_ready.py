"""Setups, readiness and ends by programs in virtual time: what is before time 0 repeats as well."""

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]

EXPERIMENT = """
service db img=x exec="sh -c 'sleep 0.25; exec python3 -m http.server 8000'" ready=tcp:8000 \
  setup="sh -c 'echo making; sleep 0.3; date +%N > made'" expect=run
service late img=x exec="sh -c 'echo late; sleep 100'" setup="sh -c 'sleep 0.1; touch made'" \
  ready="test -e made" keep=no
service bench img=x replicas=2 exec="sh -c 'echo $TSTORM_INDEX; sleep 0.4'" expect=success
bridge s1
link db--s1 latency=1
link late--s1 latency=1
link bench--s1 latency=1
start when ready
quit when bench exits
at 100ms late join
at 200ms bench.0 join
at 300ms bench.1 join
at 400ms late pause for 100ms
at 1h late crash
"""


def test_all_of_it_repeats(tmp_path: Path, kernel: list[str]) -> None:
    (tmp_path / "exp.tdl").write_text(EXPERIMENT.replace(" \\\n ", ""), encoding="utf-8")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--quiet", "--out", "first")
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr
    events = [
        json.loads(line) for line in (tmp_path / "first/events.jsonl").read_text().splitlines()
    ]
    (ready,) = (one for one in events if one["kind"] == "ready" and one["target"] == "db.0")
    assert -1_000_000_000 < ready["ready_ns"] <= 0
    (over,) = (one for one in events if one["kind"] == "quit")
    assert 700_000_000 <= over["applied_ns"] < 800_000_000
    assert (tmp_path / "first/logs.jsonl").read_text().count("late.0") >= 1
