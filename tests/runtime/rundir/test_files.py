"""The files of a run: registry, comparison, summary, report, hosts, environment."""

from __future__ import annotations

import errno
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_source
from compiler.plan.parts import host_names
from compiler.plan.reader import read_plan
from runtime.backend.local import environment
from runtime.backend.local.nursery import Program
from runtime.doctor import namespace_checks
from runtime.doctor.checks import parse_kernel
from runtime.driver import driver_messages, progress
from runtime.errors import MachineError, RunError, no_instance
from runtime.judge.run_end import RunEnd
from runtime.launch import (
    cleanup,
    registry,
    run_status,
    userdirs,
)
from runtime.nearest_rank import nearest_rank
from runtime.page.page_file import render
from runtime.results import event_comparison, summary
from runtime.rundir import (
    discard,
    etchosts,
    held_directory,
    rundir,
    runfiles,
)
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile, read_lines
from runtime.rundir.passing_place import passing_place
from runtime.rundir.runfiles import HUNT_PLACE
from runtime.system import compiled_programs, namespaces, procs
from runtime.system.network import addresses, netlink
from tdl.diagnostics import TdlError
from tests.runtime.recorded import BEGUN
from tests.runtime.support import Compile

OTHER_USER = 1  # daemon


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(userdirs, "TEMPORARY", tmp_path)


def record(run_id: str, process: procs.Process, where: Path) -> registry.RunRecord:
    return registry.RunRecord(run_id, str(where), str(where / "sock"), process, None)


def register(record: registry.RunRecord) -> None:
    """As if made by a process of this machine that has ended since, or holds no lock."""
    claim = registry.register(record)
    assert claim is not None
    os.close(claim._lock)


def myself() -> procs.Process:
    found = procs.identify(os.getpid())
    assert found is not None
    return found


def dead() -> procs.Process:
    """A number that is in use by somebody else than the process that is meant."""
    return replace(myself(), start=myself().start - 1)


def held(path: Path) -> rundir.RunDirectory:
    return rundir.RunDirectory.hold(path)


# -- registry and destroy ---------------------------------------------------------------------


def test_a_name_is_claimed_once(tmp_path: Path) -> None:
    mine = registry.claim("a", str(tmp_path))
    assert mine is not None
    assert registry.claim("a", str(tmp_path)) is None
    assert list(registry.records()) == [mine.record]
    mine.set_keeper(myself())
    assert mine.record.keeper == myself()
    assert list(registry.records()) == [mine.record]
    mine.remove()
    assert list(registry.records()) == []


def test_runs_are_found_by_name_directory_or_alone(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run is going on"):
        registry.find(None)
    register(record("a", myself(), tmp_path / "one"))
    register(record("gone", dead(), tmp_path / "two"))
    assert registry.find(None) == registry.find("a") == registry.find(str(tmp_path / "one"))
    missing = r"no run 'b' is going on, and there is no folder 'b' \(name one of: a\)"
    with pytest.raises(RunError, match=missing):
        registry.find("b")
    register(record("c", myself(), tmp_path / "three"))
    with pytest.raises(RunError, match="more than one"):
        registry.find(None)


def test_why_nothing_can_be_asked_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"^there is no folder /nowhere/runs/a$"):
        registry.find("/nowhere/runs/a")
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(RunError, match=r"run is not the directory of a run: no manifest.json$"):
        registry.find(str(run))
    manifest = run / runfiles.MANIFEST
    manifest.write_text(json.dumps(BEGUN))
    with pytest.raises(RunError, match=r"the run in \S+ does not go on here \(tstorm inspect "):
        registry.find(str(run))
    manifest.write_text(json.dumps({**BEGUN, "outcome": "completed"}))
    with pytest.raises(RunError, match=r"the run in \S+ has ended \(completed\)"):
        registry.find(str(run))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_of_another_users_run_nobody_says_that_it_has_ended(
    tmp_path: Path,
) -> None:
    """As root sees it, who may read it all."""
    manifest = tmp_path / runfiles.MANIFEST
    manifest.write_text(json.dumps(BEGUN))
    os.chown(manifest, OTHER_USER, -1)
    owner = pwd.getpwuid(OTHER_USER).pw_name
    for asked in (run_status.inspect, registry.find):
        with pytest.raises(RunError) as refusal:
            asked(str(tmp_path))
        said = f"{tmp_path} is a run of {owner}: whether it goes on only {owner} can see"
        assert refusal.value.message == said
        assert refusal.value.remedy == f"sudo -u {owner} tstorm inspect {tmp_path}"
    assert registry.other_owner(str(tmp_path)) == owner
    manifest.write_text(json.dumps({**BEGUN, "outcome": "completed"}))
    with pytest.raises(RunError, match="has ended"):
        registry.find(str(tmp_path))


def test_an_instance_may_be_meant_by_its_service() -> None:
    known = ["a.0", "b.0", "b.1"]
    assert str(no_instance("a", known)) == "'a' is a service, not an instance (write a.0)"
    assert no_instance("b", known).remedy == "name one of its instances, such as b.0"
    assert str(no_instance("a.1", known)) == (
        "the run has no instance 'a.1' (there are: a.0, b.0, b.1)"
    )


def test_a_reused_number_is_not_killed(tmp_path: Path) -> None:
    """The process has the recorded number but started at another time."""
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        found = procs.identify(bystander.pid)
        assert found is not None
        other = replace(found, start=found.start + 1)
        register(replace(record("a", dead(), tmp_path), keeper=other))
        done = cleanup.destroy(everything=True)
        assert [(one.run_id, one.was_live, one.processes) for one in done] == [("a", False, 0)]
        assert bystander.poll() is None
        assert cleanup.destroy(everything=True) == []
    finally:
        bystander.kill()
        bystander.wait()


def test_destroy_kills_the_keeper_of_a_dead_run(tmp_path: Path) -> None:
    keeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    found = procs.identify(keeper.pid)
    assert found is not None
    (tmp_path / "sock").touch()
    held(tmp_path).write_json(runfiles.MANIFEST, BEGUN)
    register(replace(record("a", dead(), tmp_path), keeper=found))
    assert [(one.run_id, one.processes) for one in cleanup.sweep()] == [("a", 1)]
    assert keeper.wait() == -signal.SIGKILL
    assert not (tmp_path / "sock").exists()
    assert held(tmp_path).manifest()["outcome"] == "killed"


def test_sweep_leaves_live_runs_alone(tmp_path: Path) -> None:
    register(record("a", myself(), tmp_path))
    assert cleanup.sweep() == []
    assert len(list(registry.records())) == 1


def test_a_foreign_directory_is_not_trusted(tmp_path: Path) -> None:
    state = tmp_path / "state/tstorm/active"
    state.mkdir(parents=True)
    state.chmod(0o777)
    with pytest.raises(RunError, match="open to others"):
        userdirs.records()


@pytest.mark.parametrize("obstacle", ["file", "link to nowhere", "link to a directory"])
def test_an_obstacle_in_tmp_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, obstacle: str
) -> None:
    """Anybody can put something there before us."""
    monkeypatch.setattr(userdirs, "TEMPORARY", tmp_path)
    place = tmp_path / userdirs._temporary_name()
    (tmp_path / "x").mkdir(mode=0o700)

    def put(path: Path) -> None:
        if obstacle == "file":
            path.touch()
        else:
            path.symlink_to(tmp_path / ("x" if obstacle == "link to a directory" else "nowhere"))

    put(place)
    used = registry.socket_path("r").parent
    assert used.parent == tmp_path
    assert used != place
    assert not used.is_symlink()
    place.unlink()
    assert registry.socket_path("r").parent == used, "what is ours already comes first"
    used.rmdir()
    for number in range(userdirs._TRIES):
        put(place.with_name(f"{place.name}.{number}") if number else place)
    with pytest.raises(RunError, match=str(place)) as refusal:
        registry.socket_path("r")
    assert "remove" in refusal.value.remedy
    assert not list((tmp_path / "x").iterdir())


@pytest.mark.parametrize("value", ["", "not/absolute"])
def test_without_a_home_records_are_in_tmp(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
) -> None:
    def unknown(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(userdirs, "TEMPORARY", tmp_path)
    monkeypatch.setattr(Path, "expanduser", unknown)
    monkeypatch.setenv("XDG_STATE_HOME", value)
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    mine = tmp_path / userdirs._temporary_name()
    assert userdirs.records() == mine / "active"
    assert registry.socket_path("r").parent == mine


def test_a_record_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot record the run in .*File name too long"):
        registry.claim("n" * 300, str(tmp_path))


def test_socket_paths_are_short(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: Path
) -> None:
    monkeypatch.setattr(userdirs, "TEMPORARY", workspace)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 200)))
    assert len(str(registry.socket_path("n" * 300))) < 100


def test_runs_of_one_name_in_two_folders_of_records_have_two_sockets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workspace: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workspace))
    found = set()
    for name in ("one", "other", "one"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        found.add(registry.socket_path("r"))
    assert len(found) == 2
    assert {path.parent for path in found} == {workspace / "tstorm"}


def test_sockets_that_nobody_listens_on_are_removed(
    monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workspace))
    old = time.time() - 2 * registry.STALE_SECONDS
    paths = {name: registry.socket_path(name) for name in ("lost", "live", "known", "new")}
    kept = []
    for name, path in paths.items():
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.bind(str(path))
        kept.append(one)
        if name == "live":
            one.listen()
        if name != "new":
            os.utime(path, (old, old))
    register(replace(record("known", myself(), workspace), socket=str(paths["known"])))
    registry.remove_stale_sockets()
    assert [name for name, path in paths.items() if path.exists()] == ["live", "known", "new"]
    for one in kept:
        one.close()


def test_drafts_of_the_dead_are_removed() -> None:
    draft = userdirs.records() / ".some-run.1"
    draft.write_text("{}")
    os.utime(draft, (0, 0))
    cleanup.destroy(everything=True)
    assert not draft.exists()


# -- comparison -------------------------------------------------------------------------------


def event(seq: int, **more: Any) -> dict[str, Any]:
    base = {"seq": seq, "kind": "crash", "target": "a.0", "args": {}, "planned_ns": seq * 1000}
    return {**base, "due_ns": seq * 1000, "applied_ns": seq * 1000 + 5, "lag_ns": 5, **more}


def log(directory: Path, *entries: dict[str, Any]) -> Path:
    directory.mkdir()
    run = held(directory)
    run.write_json(runfiles.MANIFEST, BEGUN)
    file = LineFile(run, "events.jsonl", pytest.fail)
    for entry in entries:
        file.append(entry)
    file.close()
    return directory


def test_the_same_events_in_another_order_of_completion_are_the_same(tmp_path: Path) -> None:
    a = log(tmp_path / "a", event(0), event(1))
    b = log(tmp_path / "b", event(1, applied_ns=9), event(0))
    assert event_comparison.differ(event_comparison.load(a), event_comparison.load(b)) == []


def test_differences_are_told(tmp_path: Path) -> None:
    gone = {"kind": "exit", "target": "a.0", "status": 3, "signal": 0, "asked": False}
    a = log(tmp_path / "a", event(0), event(1, target="a.1"), event(2), gone)
    b = log(tmp_path / "b", event(0), event(1), {**gone, "asked": True})
    assert [
        str(difference)
        for difference in event_comparison.differ(
            event_comparison.load(a), event_comparison.load(b)
        )
    ] == [
        "event 1: 1000 ns crash a.1 / 1000 ns crash a.0",
        "event 2: 2000 ns crash a.0 / nothing",
        "exit: 1 × a.0 ended with status 3 / nothing",
    ]


def test_comparing_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not the directory of a run"):
        event_comparison.load(tmp_path)
    with pytest.raises(RunError, match=r"cannot read .*events\.jsonl: No such file"):
        held(tmp_path).write_json(runfiles.MANIFEST, BEGUN)
        event_comparison.load(tmp_path)


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"kind":"cut"}\n{"seq":1,"ki')
    assert list(read_lines(held(tmp_path), "events.jsonl")) == [{"kind": "cut"}]


def test_a_damaged_line_is_an_error_with_its_number(tmp_path: Path) -> None:
    path = log(tmp_path / "a", event(0)) / "events.jsonl"
    with path.open("ab") as file:
        file.write(b"{]\n{}\n")
    with pytest.raises(RunError, match=r"events\.jsonl:2 is damaged"):
        event_comparison.load(tmp_path / "a")


def test_what_cannot_be_written_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[str] = []
    file = LineFile(held(tmp_path), "events.jsonl", told.append)
    file.append({"kind": "cut"})
    write = os.write
    room = iter([3, 0])

    def almost_full(descriptor: int, data: bytes) -> int:
        if left := next(room):
            return write(descriptor, data[:left])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", almost_full)
    file.append({"seq": 1})
    monkeypatch.undo()
    file.append({"seq": 2})
    file.close()
    assert told == [f"cannot write {tmp_path / 'events.jsonl'}: No space left on device"]
    assert list(read_lines(held(tmp_path), "events.jsonl")) == [{"kind": "cut"}]


def test_a_path_that_is_no_utf8_can_be_written(tmp_path: Path) -> None:
    said = {"outcome": "failed", "message": "/r\udcff/driver.log é"}
    held(tmp_path).write_json(runfiles.MANIFEST, {**BEGUN, **said})
    assert held(tmp_path).manifest() == {**BEGUN, **said}


# -- summary and report -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [
        ([5], 99, 5),
        ([5, 6], 50, 5),
        ([5, 6], 0, 5),
        (list(range(1, 101)), 99, 99),
        (list(range(1, 101)), 50, 50),
    ],
)
def test_percentiles_are_nearest_ranks(values: list[int], percent: int, wanted: int) -> None:
    assert nearest_rank(values, percent) == wanted


def test_summary_and_report(plan_of: Compile, tmp_path: Path) -> None:
    plan = read_plan(plan_of("service a img=x\nbridge s1\nlink a--s1 latency=1\nat 1s quit\n"))
    run = log(
        tmp_path / "run",
        event(0, kind="join", due_ns=0, lag_ns=7, network_ns=2, started_ns=9),
        {"kind": "exit", "target": "<a>", "error": "<b>&", "applied_ns": 5},
    )
    directory = held(run)
    samples = LineFile(directory, "samples.jsonl", pytest.fail)
    samples.append({"columns": {"links": ["link", "pkts"], "pairs": ["src", "dst", "pkts"]}})
    samples.append({"links": [[0, 1], [1, 1]], "pairs": [[0, 0, 3]]})
    samples.append({"links": [[0, 5]], "pairs": []})
    samples.close()
    facts = {"totals": {"rx": "12", "late": "x"}}
    found = summary.summarise(directory, plan, 2, RunEnd("completed", facts=facts))
    assert found["links"] == [{"link": "a.0->s1", "pkts": 5}, {"link": "s1->a.0", "pkts": 1}]
    assert found["pairs"] == [{"src": "a.0", "dst": "a.0", "pkts": 3}]
    assert found["engine"] == {"rx": 12}
    events = found["events"]
    assert isinstance(events, dict)
    assert events["network_lag"]["max_ns"] == 2
    assert events["start_lag"]["max_ns"] == 9
    page = render(directory, {"run_id": "<script>"}, found)
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert title.startswith("&lt;script&gt;")
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert "<" not in data
    assert "<b>&" in json.dumps(json.loads(data)["events"])


def test_progress_survives_its_channel() -> None:
    state = progress.ServiceState("a", 1, 0, 2, 0, 0)
    following = progress.NextEvent(5, "crash", "a.0")
    one = progress.Progress("running", "r", "/d", 1, 2, 3, 4, 5, following, (state,), "news")
    for said in (one, driver_messages.RunStarted({"engine": "pktd"}), RunEnd("failed", "why")):
        assert driver_messages.read(json.loads(json.dumps(driver_messages.write(said)))) == said
    assert driver_messages.read({"call": 1}) is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"progress": {}}, "progress: phase is missing"),
        ({"started": 1}, "the start is 1"),
        ({"final": {"outcome": 1}}, "the end: outcome must be a text"),
    ],
)
def test_what_a_driver_never_says_is_refused(message: dict[str, Any], words: str) -> None:
    with pytest.raises(RunError, match=words):
        driver_messages.read(message)


def test_an_outcome_waits_for_its_reader_without_limit() -> None:
    """Who reads may have been stopped for any time (^Z), with all news on the way."""
    ours, theirs = driver_messages.pair()
    with ours, theirs:
        driver = driver_messages.DriverEnd(theirs)
        theirs.setblocking(False)
        sent = 0
        with suppress(BlockingIOError):
            while True:
                theirs.send(driver_messages.encode({"progress": "x" * 1000}))
                sent += 1
        final = threading.Thread(target=driver.send_final, args=(RunEnd("failed"),), daemon=True)
        final.start()
        assert all("progress" in (driver_messages.receive(ours) or {}) for _ in range(sent))
        assert driver_messages.receive(ours) == driver_messages.write(RunEnd("failed"))
        final.join(60)
        assert theirs.gettimeout() is None


# -- what an instance sees --------------------------------------------------------------------


def test_hosts_name_instances_services_and_host_names(plan_of: Compile) -> None:
    text = (
        "service a img=x replicas=2\nservice a-0 img=x\nbridge s1\nlink a--s1 latency=1\n"
        "link a-0--s1 latency=1\nat 1s quit\n"
    )
    lines = etchosts.text(read_plan(plan_of(text)).topology, hops=True).splitlines()
    assert "10.77.0.1 a.0 a" in lines  # its host name is the other service's
    assert "10.77.0.2 a.1 a-1 a" in lines
    assert "10.77.0.3 a-0.0 a-0-0 a-0" in lines
    assert lines[0].startswith("127.0.0.1 localhost")
    assert lines[-2:] == ["10.77.255.254 s1", "fd77:7473::1:0 s1"]


def test_hosts_name_interfaces(plan_of: Compile) -> None:
    """The instance's own name is that of its first one."""
    text = (
        "service a img=x interfaces\nservice b img=x\nbridges s1 s2\nlink a--s1\nlink a--s2\n"
        "link b--s1\nlink b--s2\nat 1s quit\n"
    )
    found = etchosts.text(read_plan(plan_of(text)).topology, hops=False).splitlines()
    assert [line for line in found if "a" in line.partition(" ")[2].split(".")] == [
        "10.77.0.1 a.0 a-0 a",
        "fd77:7473::1 a.0 a-0 a",
        "10.77.0.3 a.0.eth1",
        "fd77:7473::3 a.0.eth1",
    ]
    only = read_plan(plan_of("network ipv6\n" + text)).topology
    assert etchosts.text(only, hops=False).splitlines()[-1] == "fd77:7473::3 a.0.eth1"


def test_hosts_name_bridges_that_answer(plan_of: Compile) -> None:
    text = "service a img=x\nbridges b a-0\nlink a--b\nlink b--a-0\nat 1s quit\n"
    topology = read_plan(plan_of(text)).topology
    lines = etchosts.text(topology, hops=True).splitlines()
    assert "10.77.0.1 a.0 a" in lines  # its host name is a bridge's
    assert "10.77.255.253 a-0" in lines
    assert not any(line.endswith(" b") for line in etchosts.text(topology, hops=False).split("\n"))
    silent = read_plan(plan_of("hops silent\n" + text)).topology
    assert not any(line.endswith(" b") for line in etchosts.text(silent, hops=True).split("\n"))
    only = read_plan(plan_of("network ipv6\n" + text)).topology
    assert etchosts.text(only, hops=True).split("\n")[-3:] == [
        "fd77:7473::1:0 b",
        "fd77:7473::1:1 a-0",
        "",
    ]


OF_ALL_KINDS = """\
service a img=x replicas=2 alias=%s
service b img=x interfaces
service sat-0-app img=x
external pc if=eth1 address=10.1.1.123
node sat {
    service app img=x
    service more img=x
    bridge inner
    link app--inner
    link more--inner
}
bridges s t
link a--s
link b--s
link b--t
link sat-0-app--s
link pc--s
link sat.app--s
link s--t
at 1s quit
"""


def test_no_alias_is_what_hosts_files_have(plan_of: Compile) -> None:
    topology = read_plan(plan_of(OF_ALL_KINDS % "other")).topology
    lines = etchosts.text(topology, hops=True).splitlines()
    names = {name for line in lines for name in line.split()[1:]} - {"other"}
    assert names >= {"localhost", "a.1", "a-1", "b.0.eth1", "pc-0", "sat.0.more", "sat.0.inner"}
    with pytest.raises(TdlError) as refused:
        compile_source(OF_ALL_KINDS % ";".join(names))
    found = refused.value.diagnostics
    said = [(one.code, one.span.line, one.message.split("'")[1]) for one in found]
    assert sorted(said) == sorted(("TS0139", 1, name) for name in names)


def test_a_host_name_of_two_instances_is_of_neither(plan_of: Compile) -> None:
    """They are sat.0.app.0 and sat-0-app.0."""
    topology = read_plan(plan_of(OF_ALL_KINDS % "other")).topology
    found = etchosts.text(topology, hops=True).split()
    assert "sat.0.app.0" in found and "sat-0-app.0" in found and "sat-0-app-0" not in found


def test_each_instance_has_a_hosts_file_and_those_it_changed_stay(
    tmp_path: Path, plan_of: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "service a img=x replicas=2\nbridge s1\nlink a--s1\nat 1s quit\n"
    topology = read_plan(plan_of(text)).topology
    (tmp_path / "instances").mkdir()
    run = rundir.RunDirectory.hold(tmp_path)
    homes = run.enter("instances")
    (tmp_path / "hosts").write_text(etchosts.text(topology, hops=True))
    files = etchosts.OwnHosts(homes, topology, ["a.0", "a.1"], hops=True)
    own = tmp_path / "instances/.fs"
    assert files.paths == {name: f"{own}/{name}/hosts" for name in ("a.0", "a.1")}
    assert {Path(path).read_text() for path in files.paths.values()} == {
        etchosts.text(topology, hops=True)
    }
    with Path(files.paths["a.1"]).open("a") as changed:
        changed.write("10.9.9.9 mine\n")
    assert discard.discard(run, []) == []
    assert [str(path.relative_to(own)) for path in own.rglob("*")] == ["a.1", "a.1/hosts"]
    (own / "a.1/hosts").write_text(etchosts.text(topology, hops=True))
    assert discard.discard(run, []) == []
    assert not own.exists()
    monkeypatch.setattr(etchosts, "MOST_BYTES", 2 * len(etchosts.text(topology, hops=True)) - 1)
    assert etchosts.OwnHosts(homes, topology, ["a.0", "a.1"], hops=True).paths == {}
    assert etchosts.OwnHosts(homes, topology, ["a.0"], hops=True).paths == {
        "a.0": f"{own}/a.0/hosts"
    }


def test_a_file_has_no_name_before_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a writer that is killed leaves nothing."""
    seen: list[list[str]] = []
    folder = HeldDirectory.hold(tmp_path)
    monkeypatch.setattr(held_directory, "write_all", lambda *_: seen.append(folder.names()))
    folder.write("summary.json", b"{}")
    assert seen == [[]]
    assert folder.names() == ["summary.json"]


def test_host_names_fit_into_the_kernels_room() -> None:
    assert host_names.hostname("a" * 61 + ".0") == "a" * 61 + "-0"
    names = ["a" * 62 + ".0", "a" * 63 + ".0", "a" * 63 + ".1", "a" * 63 + ".64999"]
    found = [host_names.hostname(name) for name in names]
    assert len(set(found)) == len(names)
    assert all(len(name) <= host_names.MAX_HOSTNAME for name in found)
    assert re.fullmatch("a+-[0-9a-f]{8}-64999", found[-1])


@pytest.mark.parametrize(
    ("argv", "env", "words"),
    [
        (("x",) * 5000, {}, "x has more than 4096 arguments"),
        (("x",), {f"V{number}": "" for number in range(5000)}, "x has more than 4096"),
        (("x", "a\0b"), {}, "NUL"),
        (("x",), {"A": "1\0LD_PRELOAD=y"}, "NUL"),
        (("x", "a" * 200_000), {}, "too long"),
    ],
)
def test_programs_that_cannot_be_ordered(
    argv: tuple[str, ...], env: dict[str, str], words: str
) -> None:
    with pytest.raises(RunError, match=words):
        Program(argv, env, Path("/"), Path("/log")).request()


def test_programs_get_little_from_the_caller() -> None:
    caller = {"PATH": "/x", "AWS_SECRET": "s", "LC_ALL": "C", "HOME": "/root", "TZ": "UTC"}
    found = environment.inherited(caller)
    assert found.pop("PATH").split(":")[0] == "/x"
    assert found == {"LC_ALL": "C", "TZ": "UTC"}
    assert environment.inherited({})["PATH"].startswith("/usr/local/sbin")


def test_a_relative_program_is_where_the_source_is(plan_of: Compile) -> None:
    text = 'service a img=x exec="./serve -p 1"\nbridge s1\nlink a--s1 latency=1\nat 1s quit\n'
    topology = read_plan(plan_of(text)).topology
    service, node = topology.services[0], topology.nodes[0]
    run = Path("/runs/r")
    env = environment.variables({}, service, node, run, 9, "/where")
    program = environment.program(run, service, node, env, "/sources", {})
    assert program is not None
    assert env["TSTORM_START_DIR"] == "/where"
    assert program.argv == ("/sources/serve", "-p", "1")
    assert program.log == run / "logs/a.0.log"
    assert program.request().startswith(
        b"start\0/runs/r/instances/a.0\x003\0/sources/serve\0-p\x001\0"
    )


def test_kernel_answers_are_read() -> None:
    """An acknowledgement, and a refusal with the kernel's words (linux/netlink.h)."""
    good = bytes.fromhex("2400000002000001000000000000000000000000") + bytes(16)
    words = b"Address already assigned.\0"
    attribute = (4 + len(words)).to_bytes(2, "little") + b"\x01\x00" + words
    attribute += bytes(-len(attribute) % 4)
    head = (36 + len(attribute)).to_bytes(4, "little") + bytes.fromhex("02000003")
    bad = head + bytes(8) + (-17).to_bytes(4, "little", signed=True) + bytes(16) + attribute
    assert netlink._answer_errors(good + bad) == [(0, ""), (17, "Address already assigned.")]
    refusal = addresses._refusal(netlink.Refusal("add fd77::1 to eth0", 97, ""), "a.0")
    assert "ipv6.disable" in refusal.remedy


# -- the machine ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "value", "words"),
    [
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor profile"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces"),
    ],
)
def test_the_switch_that_forbids_namespaces_is_named(
    tmp_path: Path, switch: str, value: str, words: str
) -> None:
    path = tmp_path / switch
    path.parent.mkdir(parents=True)
    path.write_text(value + "\n")
    assert words in namespaces.refusal_remedy(tmp_path)


def test_a_missing_hosts_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_HOSTS", tmp_path / "hosts")
    assert "create /etc/hosts" in namespaces.refusal_remedy(tmp_path)


def test_an_argument_that_names_a_file_beside_the_text_is_told(tmp_path: Path) -> None:
    own, source = tmp_path / "own", tmp_path / "source"
    for folder in (own, source):
        folder.mkdir()
        (folder / "both").touch()
    (source / "serve.py").touch()

    def told(*words: str) -> str:
        return environment.misplaced(Program(words, {}, own, own / "log"), str(source))

    assert told("python3", "-u", "serve.py") == (
        f"; 'serve.py' is in {source}, but the program runs in {own}"
    )
    for fine in ("both", "absent", "x" * 5000, f"{own}/both", ""):
        assert told("python3", fine) == ""


def test_a_doctor_that_cannot_make_instances_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refused() -> list[dict[str, str]]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(namespace_checks, "_attach", refused)
    monkeypatch.setattr(namespace_checks, "_hosts", lambda: {"name": "local hosts"})
    monkeypatch.setattr(namespace_checks, "_disciplines", list)
    monkeypatch.setattr(namespaces, "_SWITCHES", ())
    monkeypatch.setattr(namespaces, "_CONTAINER_MARKS", ("/",))
    assert namespace_checks.main() == 0
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["instances"]["status"] == "fail"
    assert "--security-opt systempaths=unconfined" in found["instances"]["remedy"]


def test_without_a_switch_something_else_is_suspected(tmp_path: Path) -> None:
    assert "seccomp" in namespaces.refusal_remedy(tmp_path)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("dumbbell", "dumbbell"),
        (".hidden", "hidden"),
        ("a b\n", "a-b"),
        ("", "run"),
        ("../../etc", "etc"),
    ],
)
def test_names_of_runs_are_safe(name: str, wanted: str) -> None:
    assert rundir.experiment_name(name) == wanted


def test_kernel_versions() -> None:
    assert parse_kernel("6.18.44-fc") == (6, 18)
    assert parse_kernel("strange") == (0, 0)


def test_a_missing_program_says_how_to_get_it() -> None:
    with pytest.raises(MachineError, match="run `make`") as refusal:
        compiled_programs.find("no-such-program")
    assert refusal.value.exit_code == 3


def test_places_that_a_killed_command_has_left_are_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not those whose command goes on, which has just made them, or in which a run is known."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ("tstorm-why-left", "tstorm-why-new", "tstorm-why-run", "other-left")
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "tstorm-hunt-link").symlink_to("other-left")
    (tmp_path / names[0] / "run").mkdir()
    register(record("a", myself(), tmp_path / names[2] / "run"))
    with passing_place(HUNT_PLACE) as live:
        for name in (names[0], names[2], names[3], live.name):
            os.utime(tmp_path / name, (0, 0))
        cleanup.sweep()
        there = {one.name for one in tmp_path.iterdir()}
        assert names[0] not in there
        assert there >= {*names[1:], "tstorm-hunt-link", live.name}
    assert not live.exists()
