"""Links that lose in bursts, copy, damage and reorder, in virtual time: again to the last byte."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from tests.cli.process import tstorm
from tests.runs import impaired

pytestmark = [pytest.mark.virtual, pytest.mark.e2e]


@pytest.mark.parametrize("kind", impaired.LINKS)
def test_programs_get_what_was_asked_for_and_the_same_again(tmp_path: Path, kind: str) -> None:
    impaired.lay_out(tmp_path, kind)
    options = ("--time", "virtual", "--no-probes", "--quiet")
    tstorm(tmp_path, "run", "exp.tdl", *options, "--out", "first")
    impaired.check(tmp_path / "first", kind)
    done = tstorm(tmp_path, "replay", "first", "--check", "--quiet", "--out", "second")
    assert "everything is the same" in done.stderr


def test_values_of_an_interval_go_back(tmp_path: Path) -> None:
    """To nothing, and to what they were."""
    impaired.lay_out(tmp_path, "others")
    source = tmp_path / "exp.tdl"
    text = source.read_text().replace(impaired.LINKS["others"], "corrupt=20%")
    text += "from 2s to 3s sender--s set duplicate=50% corrupt=0\n"
    source.write_text(text + "from 4s to 4500ms sender--s set reject=100%\n")
    tstorm(tmp_path, "run", "exp.tdl", "--time", "virtual", "--no-probes", "--out", "run")
    log = (tmp_path / "run/logs/receiver.0.log").read_text()
    arrived = [int(line) for line in log.split()]
    twice = sorted({number for number in arrived if arrived.count(number) > 1})
    assert 400 < len(twice) < 560
    first, last = twice[0], twice[-1]
    assert last - first < 1000
    there = set(arrived)
    gone = [number for number in range(impaired.SENT) if number not in there]
    assert not any(first < number < last for number in gone)
    runs = [list(group) for _, group in groupby(range(impaired.SENT), there.__contains__)]
    refused = max((run for run in runs if run[0] not in there), key=len)
    assert len(refused) > 400
    assert refused[0] > last
    after = [number for number in gone if number > refused[-1]]
    assert 0.13 < len(after) / (impaired.SENT - refused[-1]) < 0.27
