"""Records of runs in a home that machines and containers share, and the directories they are in."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from runtime.errors import RunError
from runtime.launch import (
    cleanup,
    registry,
    run_status,
    userdirs,
)
from runtime.rundir import rundir, runfiles
from runtime.system import locks, process_scope, procs
from runtime.system.process_scope import ProcessScope
from runtime.system.procs import Process
from tests.runtime.recorded import BEGUN
from tests.runtime.support import NOBODY, ROOT

NOWHERE = Process(1 << 22, 1)  # above the highest number that Linux gives


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(userdirs, "TEMPORARY", tmp_path)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One with an id, which a container may lack."""
    (tmp_path / "machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(process_scope, "_MACHINE_ID", tmp_path / "machine-id")


@contextmanager
def lost(where: Path, at: ProcessScope, *, lock: bool = False) -> Iterator[registry.RunRecord]:
    """The record of a run at a place, of processes that nobody here has; locked if asked."""
    record = registry.RunRecord("far", str(where), str(where / "sock"), NOWHERE, None, at)
    claim = registry.register(record)
    assert claim is not None
    if not lock:
        os.close(claim._lock)
    yield claim.record
    if lock:
        os.close(claim._lock)


def begun(path: Path) -> rundir.RunDirectory:
    """The directory of the run that `lost` records."""
    directory = rundir.RunDirectory.hold(path)
    directory.write_json(runfiles.MANIFEST, {**BEGUN, "run_id": "far"})
    return directory


def names() -> list[str]:
    return [record.run_id for record in registry.records()]


def other_container() -> ProcessScope:
    return replace(process_scope.here(), pids="4:1", host="box")


def other_machine() -> ProcessScope:
    return replace(other_container(), machine="another", boot="another")


def earlier_boot() -> ProcessScope:
    return replace(process_scope.here(), boot="of yesterday")


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (other_container, "in another container (or PID namespace) of this machine"),
        (other_machine, "on another machine (or in another container)"),
    ],
)
@pytest.mark.parametrize("lock", [True, False])
def test_a_run_of_elsewhere_is_told_and_left_alone(
    tmp_path: Path, at: type[ProcessScope], words: str, lock: bool
) -> None:
    directory = begun(tmp_path)
    (tmp_path / "sock").touch()
    where = f"{words}, host name box"
    with lost(tmp_path, at(), lock=lock) as record:
        assert cleanup.sweep() == []
        left = cleanup.Destroyed("far", str(tmp_path), False, 0, where)
        assert cleanup.destroy() == cleanup.destroy(everything=True) == [left]
        for name in ("far", str(tmp_path)):
            for asked in (cleanup.destroy, registry.find, run_status.inspect):
                with pytest.raises(RunError) as refusal:
                    asked(name)  # type: ignore[operator]
                assert refusal.value.message == f"run far is {where}"
                assert refusal.value.remedy.endswith("tstorm destroy far --forget")
        with pytest.raises(RunError, match="no run is going on") as refusal:
            registry.find(None)
        assert where in refusal.value.remedy
        assert run_status.live_runs() == []
        assert list(registry.records()) == [record]
    assert (tmp_path / "sock").exists()
    assert "outcome" not in directory.manifest()


def test_a_run_here_is_found_beside_one_of_elsewhere(tmp_path: Path) -> None:
    mine = registry.claim("near", str(tmp_path))
    assert mine is not None
    with lost(tmp_path, other_machine()):
        assert registry.find(None) == registry.find(str(tmp_path)) == mine.record
        assert [run["run_id"] for run in run_status.live_runs()] == ["near"]
    mine.remove()


def test_a_record_is_forgotten_when_asked_unless_its_lock_is_held(tmp_path: Path) -> None:
    (tmp_path / "sock").touch()
    with lost(tmp_path, other_machine(), lock=True):
        with pytest.raises(RunError, match="its record is locked"):
            cleanup.forget("far")
        assert names() == ["far"]
    assert [(one.run_id, one.forgotten) for one in cleanup.forget("far")] == [("far", True)]
    assert names() == []
    assert (tmp_path / "sock").exists(), "its name may be another's here"
    assert cleanup.forget("far") == []


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_record_that_its_writer_did_not_put_in_place_goes_with_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool
) -> None:
    """With file systems that have files without a name, and with others."""
    if not unnamed:
        monkeypatch.setattr(os, "O_TMPFILE", os.O_CREAT | os.O_EXCL)  # what is there already
    mine = registry.claim("near", str(tmp_path))
    assert mine is not None
    kept, lock = registry._draft(mine.record)[1:]
    assert registry._decode(kept.read_bytes(), "near").run_id == "near"
    cleanup.sweep()
    assert kept.exists(), "its writer lives"
    os.close(lock)  # as a kill does
    cleanup.sweep()
    assert not kept.exists()
    assert names() == ["near"]
    mine.remove()


def test_a_live_run_is_not_forgotten(tmp_path: Path) -> None:
    mine = registry.claim("near", str(tmp_path))
    assert mine is not None
    with pytest.raises(RunError, match="goes on here"):
        cleanup.forget("near")
    assert names() == ["near"]
    mine.remove()


def test_a_record_of_an_earlier_boot_is_removed(machine: None, tmp_path: Path) -> None:
    directory = begun(tmp_path)
    with lost(tmp_path, earlier_boot()):
        assert [one.run_id for one in cleanup.sweep()] == ["far"]
    assert directory.manifest()["outcome"] == "killed"


def test_numbers_of_an_earlier_boot_name_nobody(machine: None, tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        found = procs.identify(bystander.pid)
        assert found is not None
        record = registry.RunRecord("old", str(tmp_path), "/nowhere", found, found, earlier_boot())
        claim = registry.register(record)
        assert claim is not None
        os.close(claim._lock)
        assert [(one.was_live, one.processes) for one in cleanup.destroy("old")] == [(False, 0)]
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize("why", ["held", "no lock", "file system", "no id", "another id"])
def test_a_copy_of_this_machine_is_not_an_earlier_boot(
    machine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, why: str
) -> None:
    """Two machines from one image have one id: only a lock tells whether the other one lives."""
    at = earlier_boot()
    if why == "file system":
        monkeypatch.setattr(locks, "_file_system", lambda _: ("9p", ["rw"]))
    if why == "no lock":
        monkeypatch.setattr(locks, "take", lambda _: locks.UNKNOWN)
    with lost(tmp_path, replace(at, machine="x") if "id" in why else at, lock=why == "held"):
        if why == "no id":
            process_scope._MACHINE_ID.unlink()
        assert cleanup.sweep() == []
        assert names() == ["far"]


def test_a_lock_that_is_held_is_stronger_than_a_missing_process(tmp_path: Path) -> None:
    with lost(tmp_path, process_scope.here(), lock=True):
        assert cleanup.sweep() == []
        cleanup.destroy(everything=True)
        assert names() == ["far"]
    assert [one.run_id for one in cleanup.sweep()] == ["far"]


def test_without_locks_the_dead_of_this_machine_are_still_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As on a network file system without a lock server."""

    def refuse(*_: object) -> bytes:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks, "fcntl", SimpleNamespace(**{**vars(fcntl), "fcntl": refuse}))
    mine = registry.claim("near", str(tmp_path))
    assert mine is not None
    assert not mine.record.locked
    with lost(tmp_path, other_machine()):
        assert cleanup.sweep() == []
        assert names() == ["far", "near"]
    cleanup.forget("far")
    with lost(tmp_path, process_scope.here()):
        assert [one.run_id for one in cleanup.sweep()] == ["far"]
    mine.remove()
    assert names() == []


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        (("nfs4", ["rw", "vers=4.2", "local_lock=none"]), True),
        (("nfs", ["rw", "nolock", "local_lock=all"]), False),
        (("fuse.sshfs", ["rw"]), False),
        (("", []), False),
        (("ext4", ["rw"]), True),
    ],
)
def test_locks_count_where_everybody_sees_them(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, list[str]], seen: bool
) -> None:
    monkeypatch.setattr(locks, "_file_system", lambda _: options)
    assert locks.seen_by_all(0) is seen


def test_a_file_system_is_known_by_its_mount() -> None:
    with Path("/proc/self/status").open() as file:
        assert locks._file_system(file.fileno())[0] == "proc"


@pytest.mark.parametrize("version", [{}, {"version": 99, "new": {}}])
def test_a_record_of_another_release_is_told_and_can_be_forgotten(
    tmp_path: Path, version: dict[str, object]
) -> None:
    me = {"pid": os.getpid(), "start": 1, "boot": "b"}
    old = {"run_id": "old", "directory": "/d", "socket": "/s", "tstorm": me, "keeper": None}
    (userdirs.records() / "old.json").write_text(json.dumps({**old, **version}))
    assert cleanup.sweep() == []
    with pytest.raises(RunError, match="another release of tstorm") as refusal:
        registry.find("/d")
    assert "tstorm destroy old --forget" in refusal.value.remedy
    assert [one.forgotten for one in cleanup.forget("old")] == [True]
    assert names() == []


# -- directories --------------------------------------------------------------------------------


@pytest.mark.root
def test_root_makes_nothing_in_somebody_elses_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As under sudo -E: a user could not start a run any more."""
    home, own = tmp_path / "home", tmp_path / "root"
    for path in (home / ".local/state", home / "run"):
        path.mkdir(parents=True)
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    before = sorted(home.rglob("*"))
    own.mkdir()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(own)))
    assert userdirs.records() == own / ".local/state/tstorm/active"
    assert userdirs.sockets().parent == tmp_path
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    monkeypatch.setattr(userdirs, "SYSTEM_STATE", tmp_path / "lib")
    assert userdirs.records() == tmp_path / "lib/tstorm/active"
    assert sorted(home.rglob("*")) == before


def in_namespace(script: str, *options: str) -> str:
    """What a Python program prints that unshare(1) starts; None of it is this user's any more."""
    argv = ["unshare", *options, sys.executable, "-c", script]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.ordinary
@pytest.mark.e2e
def test_a_number_in_a_user_namespace_names_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "tstorm-0").mkdir(mode=0o700)
    script = (
        "from pathlib import Path; from runtime.launch import userdirs\n"
        f"userdirs.TEMPORARY = Path({str(tmp_path)!r})\n"
        "print(userdirs.sockets().name, userdirs._temporary().name)"
    )
    one, same = in_namespace(script, "--user", "--map-root-user").split()
    assert one == same
    assert one.startswith("tstorm-0-user")
    assert not list((tmp_path / "tstorm-0").iterdir())


@pytest.mark.e2e
@pytest.mark.root
def test_a_stranger_without_a_number_is_not_taken_for_us(tmp_path: Path) -> None:
    """Where nobody is mapped all owners have the number 65534, as this process has."""
    for name, owner in (("ours", 0), ("theirs", NOBODY), ("others", 1000)):
        (tmp_path / name).mkdir(mode=0o700)
        os.chown(tmp_path / name, owner, owner)
    tmp_path.chmod(0o755)
    script = (
        "from pathlib import Path; from runtime.launch import userdirs; import os\n"
        f"place = Path({str(tmp_path)!r})\n"
        "print(os.geteuid(), *(userdirs._is_ours(place / n) for n in ('ours', 'theirs', 'others')))"
    )
    assert in_namespace(script, "--user") == "65534 True False False"


@pytest.mark.e2e
def test_foreign_process_numbers_are_refused_by_name() -> None:
    script = (
        "from runtime.system import process_scope\nfrom runtime.errors import MachineError\n"
        "try:\n    process_scope.here()\nexcept MachineError as error:\n    print(error)"
    )
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    said = in_namespace(script, *user, "--pid", "--fork")
    assert "/proc is not that of the PID namespace" in said
    assert "--mount-proc" in said


@pytest.mark.parametrize(
    ("place", "run_id", "stays"),
    [("tstorm-at-x", "far", False), ("tstorm-at-x", "other", True), ("mine", "far", True)],
)
def test_a_run_that_was_to_be_thrown_away_is(
    tmp_path: Path, place: str, run_id: str, *, stays: bool
) -> None:
    where = tmp_path / place / "run"
    where.mkdir(parents=True)
    begun(where).write_json(runfiles.MANIFEST, {**BEGUN, "run_id": run_id})
    with lost(where, process_scope.here()):
        cleanup.destroy("far")
    assert where.parent.exists() == stays
