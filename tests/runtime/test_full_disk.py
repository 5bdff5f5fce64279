"""A disk without space or inodes: the run says so, has an outcome, and can be closed.

The disk is a small tmpfs in a mount namespace of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.rundir import reserve
from runtime.rundir.rundir import RunDirectory
from tests.cli.process import ended
from tests.runtime import recorded
from tests.runtime.support import ROOT, Compile, state

DEADLINE_SECONDS = 240.0
TSTORM = f"{shlex.quote(sys.executable)} -m tstorm"
UNTIL_FULL = """\
for _ in $(seq 1200); do
    [ "$(df --output=avail disk | tail -1)" -eq 0 ] && break
    sleep 0.1
done"""
FULL = "No space left on device"
# A run whose program takes all the space there is.
GREEDY = """\
service a img=x exec="sh -c 'cat /dev/zero > $TSTORM_RUN_DIR/fill; sleep 900'"
bridge s1
link a--s1 latency=1ms
"""


def on_disk(place: Path, options: str, script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in `place`, where `disk` is a file system of its own; skips if none can be."""
    (place / "disk").mkdir(exist_ok=True)
    private = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "-r"]
    mount = f"mount -t tmpfs -o {options} none disk"
    trial = subprocess.run(
        [*private, "sh", "-c", mount], cwd=place, capture_output=True, text=True, check=False
    )
    if trial.returncode != 0:
        pytest.skip(f"no file system can be mounted: {trial.stderr}")
    return ended(
        [*private, "sh", "-c", f"{mount} || exit 99\n{script}"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT), **state(place)},
        timeout=DEADLINE_SECONDS,
    )


def found(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The manifest that the script printed last, after a line of its own."""
    value: dict[str, Any] = json.loads(done.stdout.partition("MANIFEST\n")[2])
    return value


@pytest.mark.ordinary
@pytest.mark.e2e
def test_a_run_that_fills_its_disk_has_an_outcome(plan_of: Compile, workspace: Path) -> None:
    plan = plan_of(GREEDY + "at 600s quit\n")
    done = on_disk(
        workspace,
        "size=2m",
        f"""\
{TSTORM} run {plan} --quiet --out disk/out & run=$!
{UNTIL_FULL}
kill -TERM $run
wait $run
echo $?
{TSTORM} inspect disk/out
ls -A disk/out
echo MANIFEST; cat disk/out/manifest.json""",
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("1\n"), done
    assert FULL in done.stderr
    manifest = found(done)
    assert manifest["outcome"] == "failed"
    assert FULL in manifest["message"]
    assert manifest["start_monotonic_ns"] > 0, "what was known stays"
    assert ": failed\n" in done.stdout  # inspect
    assert ".new" not in done.stdout
    assert reserve.NAME not in done.stdout


@pytest.mark.e2e
def test_destroy_closes_a_killed_run_on_a_full_disk(plan_of: Compile, workspace: Path) -> None:
    plan = plan_of(GREEDY + "at 600s quit\n")
    done = on_disk(
        workspace,
        "size=2m",
        f"""\
{TSTORM} run {plan} --quiet --out disk/out & run=$!
{UNTIL_FULL}
grep -q start_monotonic disk/out/manifest.json || echo not started
kill -9 $run
wait $run
dd if=/dev/zero of=disk/more bs=1k 2>/dev/null
{TSTORM} destroy --all --format json
echo MANIFEST; cat disk/out/manifest.json""",
    )
    assert "Traceback" not in done.stderr
    assert "not started" not in done.stdout
    assert json.loads(done.stdout.partition("MANIFEST")[0])[0]["unclosed"] == "", done
    assert found(done)["outcome"] == "killed"


@pytest.mark.e2e
def test_a_disk_without_room_for_the_page_has_all_else(plan_of: Compile, workspace: Path) -> None:
    """The page can be made later, elsewhere."""
    plan = plan_of("service a\nbridge s1\nlink a--s1 latency=1ms\nat 100ms quit\n")
    done = on_disk(
        workspace,
        "size=200k",
        f"""\
{TSTORM} run {plan} --quiet --out disk/out >/dev/null
echo $?
ls -A disk/out
{TSTORM} inspect disk/out | grep "^page:"
{TSTORM} report disk/out --format html -o page.html
head -c 15 page.html
echo MANIFEST; cat disk/out/manifest.json""",
    )
    code, *others = done.stdout.partition("MANIFEST")[0].splitlines()
    assert code == "0", done
    assert "summary.json" in others
    assert "report.html" not in others
    assert not any(".new" in name for name in others)
    why = f"report.html: {FULL}"
    assert done.stderr.startswith("warning: the run has no page: cannot write ")
    assert why in done.stderr.splitlines()[0]
    assert "`tstorm report " in done.stderr.splitlines()[1]
    assert any(line.startswith("page: it could not be written: ") for line in others)
    assert "<!doctype html>" in done.stdout
    manifest = found(done)
    assert manifest["outcome"] == "completed"
    assert why in manifest["no_page"]


@pytest.mark.parametrize("inodes", [2, 6, 10, 16, 20, 26])
def test_a_disk_without_inodes_is_named_and_left_as_it_was(
    plan_of: Compile, workspace: Path, inodes: int
) -> None:
    plan = plan_of(GREEDY + "at 1s quit\n")
    text = workspace / "exp.tdl"
    text.write_text(GREEDY + "at 1s quit\n")
    done = on_disk(
        workspace,
        f"size=9m,nr_inodes={inodes}",
        f"""\
export XDG_STATE_HOME=$PWD/disk/state
for source in {plan} {text}; do
    {TSTORM} run $source --quiet --out disk/sub/out >/dev/null && echo succeeded
    grep -qs '"outcome": "failed"' disk/sub/out/manifest.json && rm -r disk/sub  # had begun
    [ -e disk/sub ] && find disk/sub
    ls -A disk/state/tstorm/active 2>/dev/null | grep .
done
{TSTORM} compile {text} -o disk/exp.plan >/dev/null || ls -A disk | grep -v state
true""",
    )
    assert done.returncode == 0, done
    assert "Traceback" not in done.stderr, done.stderr
    assert FULL in done.stderr
    assert "[Errno" not in done.stderr
    assert done.stdout == ""


def test_the_reserve_has_its_blocks_and_is_used_once(tmp_path: Path) -> None:
    run = RunDirectory.hold(tmp_path)
    manifest = {key: value for key, value in recorded.MANIFEST.items() if key != "outcome"}
    run.begin_manifest(manifest)
    size = (tmp_path / "manifest.json").stat().st_size
    held = (tmp_path / reserve.NAME).stat()
    assert held.st_blocks * 512 >= held.st_size >= 2 * size + 8000
    run.update_manifest(hosts=["x" * 10_000])
    assert (tmp_path / reserve.NAME).stat().st_size >= 20_000
    assert (tmp_path / reserve.NAME).stat().st_ino == held.st_ino
    run.close_manifest("failed", "é\n" * 5000)
    assert (tmp_path / "manifest.json").stat().st_ino == held.st_ino
    assert sorted(path.name for path in tmp_path.iterdir()) == ["manifest.json"]
    found = RunDirectory.hold(tmp_path).manifest()
    assert (found["outcome"], len(found["message"])) == ("failed", 1000)
    run.close_manifest("failed", "again")  # without one
    assert RunDirectory.hold(tmp_path).manifest()["message"] == "again"
