"""Reports of a run while it goes on, and of its end."""

from __future__ import annotations

import signal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from runtime.launch.run_result import EXIT_CODES
from runtime.options import INTERRUPTED
from tests.cli.process import DEADLINE_SECONDS, begun, tstorm
from tests.waiting import wait_until

TDL = """\
service a exec="sleep 999"
bridge s
link a--s latency=1ms
at 900s quit
"""

pytestmark = pytest.mark.e2e


def test_a_report_of_a_run_that_goes_on_and_of_its_end(tmp_path: Path) -> None:
    (tmp_path / "x.tdl").write_text(TDL, encoding="utf-8")
    asked = ("run", "x.tdl", "--out", "r", "--junit", "j.xml", "--quiet")
    with begun(tmp_path, *asked) as process:
        wait_until((tmp_path / "r/samples.jsonl").exists, "the run goes on")
        done = tstorm(tmp_path, "report", "r")
        assert "note: r goes on" in done.stderr
        assert "**The run goes on: this is what it has recorded so far.**" in done.stdout
        tstorm(tmp_path, "report", "r", "-o", "so-far.html")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == EXIT_CODES[INTERRUPTED]
    suite = ET.parse(tmp_path / "j.xml").find("testsuite")
    assert suite is not None
    failed = suite.findall("testcase[error]")
    assert [case.get("name") for case in failed] == ["the run comes to its end"]
    done = tstorm(tmp_path, "report", "r")
    assert done.stderr == ""
    assert "- outcome: interrupted" in done.stdout
