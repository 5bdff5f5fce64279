"""Whole runs with real programs, as this user and as an ordinary one."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from runtime.rundir.pcapng import read_packets
from tests.intime import Attempt, exactly, in_time
from tests.runtime.support import Compile, User, records, written
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

LINKS = """
bridge s1
link server--s1 latency=5
"""


def test_instances_are_whole_machines(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "seed 42\n"
        "service server img=x replicas=2 env=COLOUR:blue exec=\"sh -c 'env | sort; hostname; pwd;"
        " echo 10.9.9.$TSTORM_INDEX mine >>/etc/hosts; cat /etc/hosts; ip -br addr;"
        " ls -d /proc/[0-9]* | wc -l; exec sleep 60'\"\n" + LINKS + "at 600ms quit\n"
    )
    result = user.run(plan)
    assert result["outcome"] == "completed", result
    run = user.home / "out"
    said = (run / "logs/server.1.log").read_text()
    home = run / "instances/server.1"
    for line in (
        "TSTORM_INSTANCE=server.1",
        "TSTORM_SERVICE=server",
        "TSTORM_INDEX=1",
        f"TSTORM_RUN_DIR={run}",
        "TSTORM_SEED=42",
        "TSTORM_IPV4=10.77.0.2",
        "TSTORM_IPV6=fd77:7473::2",
        "COLOUR=blue",
        f"TMPDIR={home}/tmp",
        "server-1",
        str(home),
        "10.77.0.1 server.0 server-0 server",
        "fd77:7473::2 server.1 server-1 server",
    ):
        assert line in said.splitlines(), line
    assert "10.77.0.2/16" in said
    assert "fd77:7473::2/64" in said
    assert (home / "tmp").is_dir()
    planned = (run / "hosts").read_text()
    for index in (0, 1):
        own = run / f"instances/.fs/server.{index}/hosts"
        assert own.read_text() == f"{planned}10.9.9.{index} mine\n"


def test_packets_take_the_planned_time(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server\n"
        'service client img=x exec="ping -c 3 -i 0.2 server.0"\n'
        'service six img=x exec="ping -6 -c 3 -i 0.2 server"\n'
        "bridge s1\nlink server--s1 latency=20\nlink client--s1 latency=20\n"
        "link six--s1 latency=20\nat 1500ms quit\n"
    )

    def trial(attempt: Attempt) -> None:
        run = attempt.saw(user.home / attempt.name("out"))
        assert user.run(plan, run.name, **attempt.options)["outcome"] == "completed"
        for name in ("client", "six"):
            said = (run / f"logs/{name}.0.log").read_text()
            times = [float(word.split("=")[1]) for word in said.split() if word.startswith("time=")]
            assert len(times) == 3, said
            assert min(times) >= 80.0
        samples = records(run / "samples.jsonl")
        assert samples[0]["columns"]["links"][0] == "link"
        assert any(sample["links"] for sample in samples[1:])
        pairs = json.loads((run / "summary.json").read_text())["pairs"]
        there = next(p for p in pairs if (p["src"], p["dst"]) == ("client.0", "server.0"))
        assert there["offered_pkts"] == there["delivered_pkts"] >= 3

    in_time(trial)


def test_packets_are_kept_if_that_is_asked_for(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server\n"
        'service client img=x exec="ping -c 3 -i 0.2 server.0"\n'
        "bridge s1\nlink server--s1 latency=20\nlink client--s1 latency=20 loss=20%\n"
        "at 1500ms quit\n"
    )
    said, errors = user.tstorm("run", str(plan), "--packets", "--out", "kept").communicate()
    assert said.strip().endswith("kept"), errors
    run = user.home / "kept"
    summary = json.loads((run / "summary.json").read_text())
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["options"]["packets"] is True
    kept = {}
    for name in ("client.0--s1", "server.0--s1"):
        with (run / f"packets/{name}.pcapng").open("rb") as file:
            kept[name] = list(read_packets(file, name))
    assert summary["captures"]["lost"] == summary["captures"]["unwritten"] == 0
    assert summary["captures"]["written"] == sum(map(len, kept.values()))
    for link in summary["links"]:
        packets = [one for both in kept.values() for one in both if one.interface == link["link"]]
        dropped = [one for one in packets if one.comment]
        assert len(packets) - len(dropped) == link["out_pkts"]
        assert len(dropped) == link["drop_queue"] + link["drop_loss"] + link["drop_down"]
        for one in packets:
            assert 0 < one.at_ns - manifest["start_unix_ns"] < 10 * 10**9


def test_join_leave_crash_and_rejoin(plan_of: Compile, user: User) -> None:
    """The program starts anew at a rejoin, hears of a leave and hears nothing of a crash."""
    program = "sh -c 'trap \\\"echo bye; exit 0\\\" TERM; echo started; sleep 60 & wait'"
    plan = plan_of(
        f'service server img=x replicas=2 exec="{program}"\n'
        + LINKS
        + "at 300ms server.0 crash\nat 300ms server.0 join\n"
        "at 600ms server.1 leave\nat 900ms server.1 join\nat 1200ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    logs = user.home / "out/logs"
    assert written(logs / "server.0.log") == "started\nstarted\nbye\n"
    assert written(logs / "server.1.log") == "started\nbye\nstarted\nbye\n"
    events = records(user.home / "out/events.jsonl")
    done = {event["seq"]: event for event in events if "seq" in event}
    assert [done[seq]["kind"] for seq in sorted(done)] == [
        *("join", "join", "crash", "join", "leave", "join", "quit")
    ]
    assert all(event["applied_ns"] >= event["due_ns"] for event in done.values())
    exits = [event for event in events if event["kind"] == "exit"]
    assert [e["asked"] for e in exits if e["target"] == "server.1"] == [True, True]


def test_who_leaves_can_say_goodbye(plan_of: Compile, user: User) -> None:
    """The network lasts until the program has ended, a link between two instances like others;
    whoever is disconnected has none from then on."""
    goodbye = "ping -q -c 1 -W 1 server.0 | grep -c 1.received"
    program = "sh -c 'trap \\\"" + goodbye + "; exit 0\\\" TERM; echo up; sleep 60 & wait'"
    plan = plan_of(
        f'service server\nservice client img=x replicas=2 exec="{program}"\n'
        "bridge s1\nlink server--s1 latency=20\nlink client.1--s1 latency=20\n"
        "link server--client.0 latency=40\n"
        "at 500ms client.0 leave\nat 500ms client.1 disconnect\nat 700ms client.1 leave\n"
        "at 2500ms client.0 join\nat 3s quit\n"
    )

    def trial(attempt: Attempt) -> None:
        run = attempt.saw(user.home / attempt.name("out"))
        assert user.run(plan, run.name, **attempt.options)["outcome"] == "completed"
        logs = run / "logs"
        assert written(logs / "client.0.log").startswith("up\n1\nup\n")
        assert written(logs / "client.1.log") == "up\n0\n"
        cut = next(event for event in records(run / "events.jsonl") if event["kind"] == "cut")
        assert cut["target"] == "client.0"
        assert 80_000_000 < cut["applied_ns"] - 500_000_000 < 2_000_000_000

    exactly(trial)


def test_programs_that_end_are_events(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server img=x replicas=1 exec=\"sh -c 'exit 7'\"\n"
        "service shot img=x exec=\"sh -c 'kill -9 $$'\"\n"
        "bridge s1\nlink server--s1 latency=1\nlink shot--s1 latency=1\n"
        "at 500ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    summary = json.loads((user.home / "out/summary.json").read_text())
    exits = {entry["target"]: entry for entry in summary["exits"]}
    assert exits["server.0"]["status"] == 7
    assert exits["shot.0"]["signal"] == 9


def test_disconnect_cuts_the_network_only(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server img=x exec=\"sh -c 'echo up; exec sleep 60'\"\n"
        'service client img=x exec="ping -i 0.05 -D server.0"\n'
        "bridge s1\nlink server--s1 latency=1\nlink client--s1 latency=1\n"
        "at 500ms server.0 disconnect\nat 1500ms server.0 reconnect\nat 2s quit\n"
    )

    def trial(attempt: Attempt) -> None:
        run = attempt.saw(user.home / attempt.name("out"))
        assert user.run(plan, run.name, **attempt.options)["outcome"] == "completed"
        assert (run / "logs/server.0.log").read_text() == "up\n"
        lines = (run / "logs/client.0.log").read_text().splitlines()
        times = [float(line[1 : line.index("]")]) for line in lines if line.startswith("[")]
        gaps = [b - a for a, b in pairwise(times)]
        assert len([gap for gap in gaps if gap > 0.9]) == 1, gaps

    exactly(trial)


def test_stubborn_programs_are_killed_after_the_grace(plan_of: Compile, user: User) -> None:
    program = "sh -c 'trap \\\"\\\" TERM; while :; do sleep 1; done'"
    plan = plan_of(f'service server img=x exec="{program}"\n' + LINKS + "at 100ms quit\n")
    assert user.run(plan)["outcome"] == "completed"


def test_start_in_the_middle_with_pace(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server img=x replicas=3 exec=\"sh -c 'echo up; exec sleep 60'\"\n"
        + LINKS
        + "at 10s server.0 crash\nat 20s server.1 disconnect\nat 30s server.2 leave\n"
        "at 40s server.0 join\nat 50s quit\n"
    )
    result = user.run(plan, start_at_ns=25_000_000_000, until_ns=45_000_000_000, pace=20)
    assert result["outcome"] == "completed"
    events = records(user.home / "out/events.jsonl")
    started = sorted(event["target"] for event in events if event["kind"] == "start")
    assert started == ["server.1", "server.2"]
    done = [event for event in events if "seq" in event]
    assert [(event["kind"], event["target"]) for event in done] == [
        ("leave", "server.2"),
        ("join", "server.0"),
    ]
    assert [event["due_ns"] for event in done] == [250_000_000, 750_000_000]


def test_interrupt_ends_cleanly(plan_of: Compile, user: User) -> None:
    program = "sh -c 'trap \\\"echo bye; exit 0\\\" TERM; echo up; sleep 60 & wait'"
    plan = plan_of(f'service server img=x exec="{program}"\n' + LINKS + "at 60s quit\n")
    process = user.begin(plan)
    log = user.home / "out/logs/server.0.log"
    wait_until(lambda: log.exists() and log.read_text() == "up\n", "the program's start")
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    result = json.loads(out.splitlines()[-1])
    assert (result["outcome"], result["exit_code"]) == ("interrupted", 130), err
    assert log.read_text() == "up\nbye\n"
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert summary["outcome"] == "interrupted"
    assert (user.home / "out/report.html").read_text().startswith("<!doctype html>")


def test_nohup_is_respected(plan_of: Compile, user: User) -> None:
    plan = plan_of('service server img=x exec="sleep 60"\n' + LINKS + "at 1500ms quit\n")
    ignore = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    process = user.start("run", str(plan), str(user.home / "out"), "{}", preexec_fn=ignore)
    assert process.stdout is not None
    wait_until(lambda: '"running"' in process.stdout.readline(), "the run's start")
    os.kill(process.pid, signal.SIGHUP)
    out, err = process.communicate(timeout=30)
    assert json.loads(out.splitlines()[-1])["outcome"] == "completed", err


def test_exec_inspect_and_destroy_a_live_run(plan_of: Compile, user: User) -> None:
    plan = plan_of('service server img=x replicas=2 exec="sleep 60"\n' + LINKS + "at 90s quit\n")
    process = user.begin(plan)
    run = str(user.home / "out")
    entered = user.start("exec", run, "server.1", "sh", "-c", "hostname; pwd; ps -e | grep -c .")
    out, err = entered.communicate(timeout=30)
    assert out.splitlines()[:2] == ["server-1", f"{run}/instances/server.1"], err
    for status, script in ((3, "exit 3"), (143, "kill -15 $$")):
        entered = user.start("exec", run, "server.0", "sh", "-c", script)
        entered.communicate(timeout=30)
        assert entered.returncode == status
    entered = user.start("exec", run, "server.7", "true")
    assert "no instance 'server.7'" in entered.communicate(timeout=30)[0]
    state = user.call("inspect", run)
    assert state["live"] is True
    assert state["start_unix_ns"] + state["elapsed_ns"] <= time.time_ns()
    assert [i["state"] for i in state["instances"]] == ["up", "up"]
    assert [event["kind"] for event in state["next_events"]] == ["quit"]
    destroyed = user.call("destroy", run)
    assert [one["was_live"] for one in destroyed] == [True]
    out, _ = process.communicate(timeout=30)
    assert json.loads(out.splitlines()[-1])["outcome"] == "interrupted"
    assert user.call("destroy", run) == []
    assert user.call("inspect", run)["live"] is False


def test_two_runs_at_once(plan_of: Compile, user: User) -> None:
    plan = plan_of(
        "service server img=x exec=\"sh -c 'echo up; exec sleep 60'\"\n" + LINKS + "at 2s quit\n"
    )
    first, second = user.begin(plan, "one"), user.begin(plan, "two")
    for process in (first, second):
        out, err = process.communicate(timeout=30)
        assert json.loads(out.splitlines()[-1])["outcome"] == "completed", err
    assert (user.home / "one/logs/server.0.log").read_text() == "up\n"
    assert (user.home / "two/logs/server.0.log").read_text() == "up\n"


def test_a_directory_in_use_is_refused(plan_of: Compile, user: User) -> None:
    plan = plan_of("service server\n" + LINKS + "at 1s quit\n")
    (user.home / "out").mkdir()
    (user.home / "out/precious").write_text("x")
    process = user.start("run", str(plan), str(user.home / "out"), "{}")
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "is not empty" in out
    assert list((user.home / "out").iterdir()) == [user.home / "out/precious"]


def test_a_file_is_no_run_directory(plan_of: Compile, user: User) -> None:
    plan = plan_of("service server\n" + LINKS + "at 1s quit\n")
    (user.home / "out").write_text("mine")
    process = user.start("run", str(plan), str(user.home / "out"), "{}")
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "is not a directory" in out
    assert (user.home / "out").read_text() == "mine"


def test_too_few_open_files_are_the_machines_fault(plan_of: Compile, user: User) -> None:
    plan = plan_of("service server replicas=20\n" + LINKS + "at 1s quit\n")
    few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (128, 128))
    process = user.start("run", str(plan), str(user.home / "out"), "{}", preexec_fn=few)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 3, out
    assert "20 instances need more than the 128 open files" in out


def test_doctor_says_what_is_in_force(user: User) -> None:
    checks = {check["name"]: check for check in user.call("doctor")}
    assert {"kernel", "namespaces", "ports", "scheduling", "qdisc netem"} <= checks.keys()
    assert all(check["status"] != "fail" for check in checks.values()), checks
    for check in checks.values():
        assert check["status"] == "ok" or check["remedy"], check


def test_a_slow_start_is_no_reason_to_hang(plan_of: Compile, user: User) -> None:
    """A pktd that cannot be greeted is reported with its words."""
    plan = plan_of("service server\n" + LINKS + "at 1s quit\n")
    began = time.monotonic()
    result = user.run(plan, ports="nonsense")
    assert result["outcome"] == "failed"
    assert "pktd refused" in result["message"]
    assert time.monotonic() - began < 30


def test_a_full_disk_fails_the_run_with_a_reason(plan_of: Compile, user: User) -> None:
    events = "".join(f"at 1ms server--s1 set latency={number}\n" for number in range(1, 80))
    plan = plan_of("service server\n" + LINKS + events + "at 60s quit\n")
    room = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (24_000, 24_000))
    process = user.start("run", str(plan), str(user.home / "out"), "{}", preexec_fn=room)
    out, err = process.communicate(timeout=40)
    assert process.returncode == 0, out + err
    result = json.loads(out.splitlines()[-1])
    assert result["outcome"] == "failed"
    assert "events.jsonl: File too large" in result["message"]
    summary = json.loads((user.home / "out/summary.json").read_text())
    assert "report.html: File too large" in summary["no_page"]


def test_a_run_whose_directory_is_removed_says_so(plan_of: Compile, user: User) -> None:
    plan = plan_of('service server img=x exec="sleep 60"\n' + LINKS + "at 60s quit\n")
    process = user.begin(plan)
    manifest = user.home / "out/manifest.json"
    wait_until(lambda: "start_monotonic_ns" in manifest.read_text(), "the run's start")
    shutil.rmtree(user.home / "out")
    os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1, out + err
    assert "cannot write the results of the run" in out
    assert not list((user.home / "state/tstorm/active").iterdir())


def test_the_longest_name_of_a_service(plan_of: Compile, user: User) -> None:
    name = "n" * 63
    plan = plan_of(
        f'service {name} img=x exec="hostname"\nbridge s1\nlink {name}--s1 latency=1\n'
        "at 300ms quit\n"
    )
    assert user.run(plan)["outcome"] == "completed"
    assert len((user.home / f"out/logs/{name}.0.log").read_text().strip()) == 63


def test_run_directory_is_complete(plan_of: Compile, user: User) -> None:
    plan = plan_of("service server\n" + LINKS + "at 200ms quit\n")
    assert user.run(plan)["outcome"] == "completed"
    run = user.home / "out"
    names = {path.name for path in run.iterdir()}
    assert names == {
        *("manifest.json", "summary.json", "report.html", "events.jsonl", "samples.jsonl"),
        *(
            "certificate.json",
            "plan",
            "logs",
            "logs.jsonl",
            "stacks.jsonl",
            "instances",
            "hosts",
            "gai.conf",
            "driver.log",
        ),
    }
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["outcome"] == "completed"
    assert manifest["ports"][0] in ("tap", "packet")
    assert (run / "driver.log").read_text() == ""
    copied = {path.name: path.read_bytes() for path in (run / "plan").iterdir()}
    assert copied == {path.name: path.read_bytes() for path in Path(plan).iterdir()}
