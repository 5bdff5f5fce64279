"""The largest values that the language has, carried out; and what only one datapath cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.process import tstorm

ROOT = Path(__file__).resolve().parents[2]
FAR = """\
service a exec="sleep 100"
service b exec="sleep 100" replicas=2
bridges s1 s2
link a--s1 latency=1d up=10Tb down=unlimited queue=1GiB
link b.0--s2 latency=1d jitter=1d dist=pareto
link s2--b.1 latency=1ms
link s1--s2 latency=1d jitter=2s
at 200ms a--s1 set latency=50% queue-=1
at 400ms s1--s2 set jitter+=1s
at 600ms quit
"""

pytestmark = pytest.mark.e2e


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "far.tdl").write_text(FAR, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("hosts", [(), ("--hosts", "2")], ids=["links", "paths"])
def test_what_the_language_allows_runs_to_its_end(place: Path, hosts: tuple[str, ...]) -> None:
    """Three days from a to b.0: sums along a path too."""
    done = tstorm(place, "run", "far.tdl", *hosts, "--format", "json", "--quiet")
    assert json.loads(done.stdout)["outcome"] == "completed"


def test_what_the_kernel_cannot_do_is_told_before_anything_starts(place: Path) -> None:
    """With the line that declares it, or that sets it; whatever the kernel here has."""
    kernel = ("--hosts", "2", "--datapath", "kernel", "--out", "r", "--quiet")
    done = tstorm(place, "run", "far.tdl", *kernel, code=1)
    assert done.stderr.startswith(
        "error: far.tdl:5: the jitter of the path from a.0 to b.0 is 86,400.000023148 s, "
        "at most 0.357913941 s are possible with the kernel, at 0 s\n"
    )
    assert "hint: lower the jitter of s2->b.0, or use --datapath user" in done.stderr
    (place / "far.tdl").write_text(FAR.replace("jitter=1d dist=pareto", ""), encoding="utf-8")
    tstorm(place, "compile", "far.tdl", "--no-manifests")
    for source, name in (("far.tdl", "far.tdl"), ("far.plan", "far.plan/source.tdl")):
        done = tstorm(place, "run", source, *kernel, code=1)
        assert done.stderr.startswith(
            f"error: {name}:9: the jitter of the path from a.0 to b.0 is 3 s"
        )
    assert not (place / "r").exists()


def test_what_no_datapath_can_do_is_an_error_of_the_text(place: Path) -> None:
    (place / "far.tdl").write_text(
        FAR.replace("queue=1GiB", "queue=2GiB")
        .replace("up=10Tb", "up=20Tb")
        .replace("latency=1ms", "latency=25h"),
        encoding="utf-8",
    )
    done = tstorm(place, "check", "far.tdl", "--format", "json", code=1)
    found = [(one["code"], one["line"], one["hint"]) for one in json.loads(done.stdout)]
    assert found == [
        ("TS0025", 4, "at most 10Tb"),
        ("TS0025", 4, "at most 1GiB"),
        ("TS0025", 6, "at most one day"),
    ]
    twice = FAR.replace("at 200ms a--s1 set latency=50%", "at 200ms a--s1 set latency=200%")
    (place / "far.tdl").write_text(twice, encoding="utf-8")
    done = tstorm(place, "check", "far.tdl", code=1)
    assert "far.tdl:8:1: error TS0215: the latency of 'a.0->s1' would be beyond" in done.stderr
