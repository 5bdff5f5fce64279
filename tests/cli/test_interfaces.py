"""What `paths`, `explain` and the page tell of instances with several interfaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from runtime.page import page_network
from tests.cli.support import status, tstorm
from tstorm.exit_codes import OK

TDL = """\
service phone interfaces replicas=2
service web
bridges home cell
link phone--home latency=2ms
link phone--cell latency=30ms
link web--home latency=1ms
link home--cell latency=1ms
at 5s phone.0--cell leave
at 6s phone.1 crash
at 9s quit
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "a.tdl").write_text(TDL)
    return str(tmp_path / "a.tdl")


def _pairs(*arguments: str) -> dict[tuple[str, str], int | None]:
    result = tstorm("paths", *arguments, "--format", "json")
    assert status(result) == OK, result.stderr
    return {(one["src"], one["dst"]): one["delay_ns"] for one in json.loads(result.stdout)}


def test_paths_have_a_row_for_each_interface(file: str) -> None:
    found = _pairs(file, "--from", "phone.0")
    assert found["phone.0", "web.0"] == 3_000_000
    assert found["phone.0.eth1", "web.0"] == 32_000_000
    assert ("phone.0", "phone.0.eth1") not in found
    assert ("phone.0", "phone.1.eth1") in found
    assert len(found) == 2 * 3
    assert _pairs(file, "--from", "phone.0.eth1", "--to", "web").keys() == {
        ("phone.0.eth1", "web.0")
    }
    gone = _pairs(file, "--at", "6s")
    assert gone["phone.0.eth1", "web.0"] is None
    assert not any(name.startswith("phone.1") for pair in gone for name in pair)


def test_explain_says_what_an_interface_lacks(file: str) -> None:
    ends = ("--from", "phone.0.eth1", "--to", "web")
    told = tstorm("explain", file, *ends, "--at", "5s").stdout
    assert "phone.0->cell" in told and "down" in told
    crashed = tstorm("explain", file, "--from", "phone.1.eth1", "--to", "web", "--at", "6s").stdout
    assert "instance phone.1" in crashed or "phone.1 " in crashed
    own = tstorm("explain", file, "--from", "phone.0", "--to", "phone.0.eth1")
    assert "'phone.0' has no path to itself" in own.stderr


def test_the_page_draws_an_instance_once_with_all_its_links() -> None:
    found = page_network.record(compile_source(TDL).plan, None, [])
    assert found["nodes"] == ["phone.0", "phone.1", "web.0", "home", "cell"]
    assert found["services"] == [0, 0, 1, -1, -1]
    ends = dict(zip(found["links"], found["ends"], strict=True))
    assert ends["phone.0->home"] == [0, 3] and ends["phone.0->cell"] == [0, 4]
    assert ends["cell->phone.1"] == [4, 1]
    assert found["epochs"][0]["nodes"] == [[node, "up"] for node in range(5)]
    changed = {epoch["at_ns"]: epoch["nodes"] for epoch in found["epochs"]}
    assert changed[6 * 10**9] == [[1, "down"]]
