"""The suite of examples/regions passes with the right configuration, and finds the wrong one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.process import ended, environment
from tests.cli.support import status, tstorm
from tests.examples.conftest import EXAMPLES
from tests.intime import Attempt, in_time

FOLDER = EXAMPLES / "regions"
NO_ETCD = shutil.which("etcd") is None or shutil.which("etcdctl") is None


@pytest.mark.parametrize("name", ["store", "hasty"])
def test_both_configurations_compile(name: str) -> None:
    done = tstorm("check", "--strict", str(FOLDER / f"{name}.tdl"))
    assert status(done) == 0, done.output


def session(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = f"--tstorm-artifacts={place / 'runs'}"
    return ended(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", kept, *arguments],
        cwd=FOLDER,
        env=environment(place),
        timeout=240,
    )


@pytest.mark.e2e
@pytest.mark.skipif(NO_ETCD, reason="etcd-server and etcd-client are not installed")
def test_the_right_configuration_passes(tmp_path: Path) -> None:
    def trial(attempt: Attempt) -> None:
        place = tmp_path / attempt.name("try")
        place.mkdir()
        done = session(place, "--tstorm-keep=all")
        for manifest in place.glob("runs/*/run/manifest.json"):
            attempt.saw(manifest.parent)
        assert done.returncode == 0, done.stdout
        assert "2 passed" in done.stdout

    in_time(trial)


@pytest.mark.e2e
@pytest.mark.skipif(NO_ETCD, reason="etcd-server and etcd-client are not installed")
def test_an_election_timeout_below_the_round_trip_is_found(tmp_path: Path) -> None:
    def trial(attempt: Attempt) -> None:
        """On a machine that is late by more than the timeouts differ a member may win once."""
        place = tmp_path / attempt.name("try")
        place.mkdir()
        done = session(place, "--store", "hasty.tdl", "-k", "leader")
        for manifest in place.glob("runs/*/run/manifest.json"):
            attempt.saw(manifest.parent)
        assert done.returncode == 1, done.stdout
        assert "0 leaders after " in done.stdout
        assert "the round trip between the nearest two regions takes 9" in done.stdout
        [page] = place.glob("runs/*/run/report.html")
        assert f"page: {page.as_uri()}\n" in done.stdout

    in_time(trial)
