"""campaign.json: what it keeps of the experiment, and what makes a campaign another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.options import DEFAULTS
from tstorm.campaign import campaign_record
from tstorm.campaign.campaign_record import CampaignRecord
from tstorm.campaign.carryout import CampaignRequest, compiled
from tstorm.campaign.points import Grid, Point
from tstorm.exit_codes import CommandError

MAIN = 'param proto = raft\ninclude "$proto.tdl"\nbridge s\nlink a--s latency=1ms\nat 1s quit\n'
INCLUDED = 'service a img=x exec="sleep {}"\n'


LATE = """\
param delay = 1ms
service a
service b
bridge s
link a--s latency=$delay
link b--s latency=$delay
expect rtt a b < 1ms from 0s to 1s
at 2s quit
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A parameter chooses the file that it includes."""
    for seconds, name in enumerate(("raft", "paxos", "zab")):
        (tmp_path / f"{name}.tdl").write_text(INCLUDED.format(seconds))
    (tmp_path / "main.tdl").write_text(MAIN)
    return tmp_path / "main.tdl"


def begun(text: Path, *values: str) -> CampaignRecord:
    return compiled(CampaignRequest(str(text), DEFAULTS), Grid(range(1, 3), (("proto", values),)))


def test_a_parameter_may_choose_what_is_included(text: Path) -> None:
    campaign = begun(text, "raft", "paxos")
    asked = CampaignRequest(str(text), DEFAULTS, campaign)
    for point in campaign.grid.points():
        assert dict(asked.plan(point).plan.params) == dict(point.params)
    (text.parent / "paxos.tdl").write_text(INCLUDED.format(9))
    asked.plan(Point(1, (("proto", "raft"),)))
    with pytest.raises(CommandError, match="was changed while its campaign went on"):
        asked.plan(Point(1, (("proto", "paxos"),)))


def test_each_value_is_known_again_and_more_may_be_added(text: Path) -> None:
    campaign = begun(text, "raft", "paxos")
    kept = campaign_record.read(json.loads(json.dumps(campaign.to_record())), "campaign.json")
    assert kept == campaign
    assert list(campaign_record.differences(kept, begun(text, "zab", "paxos", "raft"))) == []
    (text.parent / "paxos.tdl").write_text(INCLUDED.format(9))
    (said,) = campaign_record.differences(kept, begun(text, "zab", "paxos", "raft"))
    assert said == f"the experiment: {text} was another text, or files that it names were"


def test_a_record_has_one_digest_where_parameters_choose_no_file(text: Path) -> None:
    text.write_text(MAIN.replace('"$proto.tdl"', '"raft.tdl"'))
    assert "source_digests" not in begun(text, "raft", "paxos").to_record()


@pytest.mark.parametrize("many", [63, 20_000])
def test_a_grid_that_no_number_counts_is_refused(text: Path, many: int) -> None:
    kept = begun(text, "raft").to_record()
    kept["grid"]["params"] = {f"p{number}": ["a", "b"] for number in range(many)}
    with pytest.raises(RunError, match="its grid has more than 10000 points"):
        campaign_record.read(kept, "campaign.json")


def test_a_warning_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And again where a parameter gives it other words."""
    (tmp_path / "main.tdl").write_text(LATE)
    asked = CampaignRequest(str(tmp_path / "main.tdl"), DEFAULTS)
    compiled(asked, Grid(range(1, 4), (("delay", ("2ms", "3ms")),)))
    assert capsys.readouterr().err.count("warning TS0950") == 2
    for point in Grid(range(1, 4), (("delay", ("2ms", "3ms", "4ms")),)).points():
        asked.plan(point)
    assert capsys.readouterr().err.count("warning TS0950") == 1
