"""`tstorm-hold run`: a container's program starts, ends and comes back as ordered."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.hold.conftest import Start, StartHeld
from tests.hold.support import HOLD, Container, order, state_of
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

FOREVER = "echo up; exec sleep 1000"


def test_nothing_runs_before_the_join(held: StartHeld, tmp_path: Path) -> None:
    made = held(FOREVER)
    assert made.processes() == set()
    made.give("join")
    made.wait_for("held", "started")
    made.wait_for_word("up")
    assert len(made.processes()) == 1


def test_reports_are_kept_in_a_file_with_the_times_of_both_clocks(
    held: StartHeld, tmp_path: Path
) -> None:
    (tmp_path / "reports").write_text("of a container before\n")
    begun_ns = time.monotonic_ns()
    made = held(FOREVER)
    made.give("join", "crash", "join")
    made.wait_for("held", "started", "ended", "crashed", "started")
    first, *kept = (tmp_path / "reports").read_text().splitlines()
    assert first == "of a container before"
    assert [json.loads(line) for line in kept] == made.events()
    times = [event["monotonic_ns"] for event in made.events()]
    assert begun_ns < times[0]
    assert times == sorted(times)
    assert times[-1] < time.monotonic_ns()


def test_leave_and_rejoin_without_the_container_ending(held: StartHeld) -> None:
    made = held("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    life = ["started", "ended", "left"]
    for times in (1, 2):
        made.give("join")
        wait_until(lambda: made.said().endswith("up\n"), "the program")
        made.give("leave")
        made.wait_for("held", *life * times)
    assert made.events()[2]["status"] == 3
    assert made.said().split() == ["up", "bye"] * 2
    assert made.process.poll() is None


def test_crash_kills_everything_at_once(held: StartHeld) -> None:
    made = held("trap '' TERM; setsid sh -c 'echo one; sleep 1000' & sleep 1000 & wait")
    made.give("join")
    made.wait_for_word("one")
    assert len(made.processes()) >= 4
    made.give("crash")
    made.wait_for("held", "started", "ended", "crashed")
    assert made.events()[2]["signal"] == signal.SIGKILL
    assert made.processes() == set()
    made.give("join")
    made.wait_for("held", "started", "ended", "crashed", "started")


def test_a_kill_ends_the_program_and_the_next_join_starts_it(held: StartHeld) -> None:
    """What the timeline asks then is a crash and a join."""
    made = held("trap '' TERM; setsid sh -c 'echo one; sleep 1000' & sleep 1000 & wait")
    made.give("join")
    made.wait_for_word("one")
    made.give("kill")
    made.wait_for("held", "started", "ended")
    assert made.events()[2]["signal"] == signal.SIGKILL
    assert made.processes() == set()
    made.give("crash")
    made.give("join")
    made.wait_for("held", "started", "ended", "ignored", "started")


def test_a_leave_tells_the_program_first_and_the_rest_when_it_has_ended(held: StartHeld) -> None:
    """So a server that ends its workers itself, in its own order, is let do so."""
    child = "setsid sh -c \"trap 'echo child; exit' TERM; echo up; while :; do sleep 0.01; done\""
    made = held(f"{child} & trap 'sleep 0.3; echo program; exit 3' TERM; while :; do wait; done")
    made.give("join")
    made.wait_for_word("up")
    made.give("leave")
    made.wait_for("held", "started", "ended", "left")
    assert made.events()[2]["status"] == 3
    assert made.said().split() == ["up", "program", "child"]
    assert made.processes() == set()


def test_who_outlives_the_program_of_a_leave_is_killed_a_second_later(held: StartHeld) -> None:
    made = held("setsid sh -c \"trap '' TERM; echo up; sleep 1000\" & exec sleep 1000")
    made.give("join")
    made.wait_for_word("up")
    made.give("leave")
    made.wait_for("held", "started", "ended", "left")
    ended, left = made.events()[2:]
    assert ended["signal"] == signal.SIGTERM
    assert left["monotonic_ns"] - ended["monotonic_ns"] >= 990_000_000
    assert made.processes() == set()


def test_a_leave_sends_the_signal_that_is_stated_and_waits_for_the_grace_that_is(
    held: StartHeld,
) -> None:
    script = "trap 'echo int' INT; trap 'echo term' TERM; echo up; while :; do sleep 0.01; done"
    made = held(script, options=("--stop", "SIGINT", "--grace", "400"))
    made.give("join")
    made.wait_for_word("up")
    made.give("leave")
    made.wait_for("held", "started", "ended", "left")
    assert made.events()[2]["signal"] == signal.SIGKILL
    assert made.said().split() == ["up", "int"]
    assert made.events()[2]["unix_ns"] - made.events()[1]["unix_ns"] >= 390_000_000


def test_a_program_that_ignores_term_is_killed_after_the_grace(held: StartHeld) -> None:
    made = held("trap '' TERM; echo up; while :; do sleep 0.05; done")
    made.give("join")
    made.wait_for_word("up")
    made.give("leave")
    made.wait_for("held", "started", "ended", "left")
    assert made.events()[2]["signal"] == signal.SIGKILL
    # The kill may be late on a busy machine, never early.
    assert made.events()[2]["unix_ns"] - made.events()[1]["unix_ns"] >= 4_900_000_000
    assert made.processes() == set()


def test_a_join_within_the_grace_does_not_wait_for_it(held: StartHeld) -> None:
    made = held("trap '' TERM; echo up; while :; do sleep 0.05; done")
    made.give("join")
    made.wait_for_word("up")
    made.give("leave", "join")
    made.wait_for("held", "started", "ended", "left", "started")
    assert made.events()[2]["signal"] == signal.SIGKILL
    assert made.events()[4]["pid"] != made.events()[1]["pid"]


def test_queued_orders_are_done_in_order_and_none_is_merged(held: StartHeld) -> None:
    made = held(FOREVER)
    os.kill(made.pid, signal.SIGSTOP)
    made.give("join", "crash", "join", "crash", "join")
    assert made.names() == ["held"]
    os.kill(made.pid, signal.SIGCONT)
    life = ["started", "ended", "crashed"]
    made.wait_for("held", *life, *life, "started")


def test_orders_that_change_nothing_are_said(held: StartHeld) -> None:
    made = held(FOREVER)
    made.give("leave", "crash", "join", "join")
    made.wait_for("held", "ignored", "ignored", "started", "ignored")
    assert [event.get("order") for event in made.events()] == [None, "leave", "crash", None, "join"]
    os.kill(made.pid, 35)  # the signal alone, without a value
    made.wait_for("held", "ignored", "ignored", "started", "ignored", "ignored")
    assert made.events()[5]["order"] == "not an order"


def test_a_program_that_ends_by_itself_is_reported_and_may_join_again(held: StartHeld) -> None:
    made = held("sleep 1000 & exit 4")
    made.give("join")
    made.wait_for("held", "started", "ended")
    assert made.events()[2]["status"] == 4
    wait_until(lambda: made.processes() == set(), "its children to end")
    made.give("leave", "join")
    made.wait_for("held", "started", "ended", "ignored", "started", "ended")


def state(made: Container) -> set[str]:
    return {state_of(pid) for pid in made.processes()}


def test_a_pause_stops_every_process_and_a_resume_lets_them_go_on(held: StartHeld) -> None:
    made = held("setsid sleep 1000 & echo up; exec sleep 1000")
    made.give("join")
    made.wait_for_word("up")
    made.give("resume", "pause", "pause")
    made.wait_for("held", "started", "ignored", "paused", "ignored")
    wait_until(lambda: state(made) == {"T"}, "all of them to stop")
    made.give("resume")
    made.wait_for("held", "started", "ignored", "paused", "ignored", "resumed")
    wait_until(lambda: state(made) == {"S"}, "all of them to go on")


def test_who_is_paused_can_leave_and_can_crash(held: StartHeld) -> None:
    made = held("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    made.give("join")
    made.wait_for_word("up")
    made.give("pause", "leave")
    made.wait_for("held", "started", "paused", "ended", "left")
    assert (made.events()[3]["status"], made.said().split()) == (3, ["up", "bye"])
    made.give("join", "pause", "crash", "pause")
    life = ["started", "paused", "ended", "crashed", "ignored"]
    made.wait_for("held", "started", "paused", "ended", "left", *life)
    assert made.processes() == set()


def test_a_setup_runs_once_before_the_first_start(held: StartHeld, tmp_path: Path) -> None:
    setup = ("--setup", "3", "sh", "-c", "echo setup; sleep 1000 & exit 0")
    made = held("echo up; exec sleep 1000", options=setup)
    made.give("join")
    made.wait_for("held", "setup", "set_up", "started")
    made.wait_for_word("up")
    assert made.said().split() == ["setup", "up"]
    assert len(made.processes()) == 1  # what the setup has left behind has ended with it
    made.give("crash", "join")
    made.wait_for("held", "setup", "set_up", "started", "ended", "crashed", "started")


def test_a_setup_can_be_ordered_before_the_join(held: StartHeld, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    wait = f"while ! test -e {ready}; do sleep 0.01; done"
    made = held(FOREVER, options=("--setup", "3", "sh", "-c", wait))
    made.give("setup", "setup", "leave")
    made.wait_for("held", "setup", "ignored", "ignored")
    ready.touch()
    made.wait_for("held", "setup", "ignored", "ignored", "set_up")
    wait_until(lambda: made.processes() == set(), "the setup's end")
    made.give("setup", "join")
    made.wait_for("held", "setup", "ignored", "ignored", "set_up", "ignored", "started")


def test_a_join_that_comes_during_the_setup_waits_for_it(held: StartHeld, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    wait = f"while ! test -e {ready}; do sleep 0.01; done"
    made = held(FOREVER, options=("--setup", "3", "sh", "-c", wait))
    made.give("setup", "join")
    made.wait_for("held", "setup")
    ready.touch()
    made.wait_for("held", "setup", "set_up", "started")


def test_a_setup_that_fails_is_a_start_that_fails(held: StartHeld, tmp_path: Path) -> None:
    once = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 4; }}"
    made = held(FOREVER, options=("--setup", "3", "sh", "-c", once))
    made.give("join")
    made.wait_for("held", "setup", "set_up", "failed")
    assert made.events()[2]["status"] == 4
    assert made.events()[3]["error"] == "setup ended with 4"
    made.give("join")
    made.wait_for("held", "setup", "set_up", "failed", "setup", "set_up", "started")


@pytest.mark.parametrize("order", ["leave", "crash"])
def test_who_is_to_end_during_its_setup_was_never_started(held: StartHeld, order: str) -> None:
    made = held(FOREVER, options=("--setup", "2", "sleep", "1000"))
    made.give("join", order)
    ended = {"leave": "left", "crash": "crashed"}[order]
    made.wait_for("held", "setup", "failed", "set_up", ended)
    assert made.events()[2]["error"] == "it was ended before its program ran"
    made.give("join")
    made.wait_for("held", "setup", "failed", "set_up", ended, "setup")


def test_readiness_is_asked_for_until_the_command_says_so(held: StartHeld, tmp_path: Path) -> None:
    ready = ("--ready", "3", "sh", "-c", f"echo asked; test -e {tmp_path}/ready")
    made = held(FOREVER, options=ready)
    made.give("join")
    made.wait_for_word("up")
    (tmp_path / "ready").touch()
    made.wait_for("held", "started", "ready")
    assert made.said().split() == ["up"]
    made.give("crash", "join")
    made.wait_for("held", "started", "ready", "ended", "crashed", "started", "ready")


def test_readiness_is_given_up(held: StartHeld) -> None:
    late = ("--ready-timeout", "300", "--ready", "1", "false")
    made = held("sleep 1000 & wait", options=late)
    made.give("join")
    made.wait_for("held", "started", "not_ready")
    started, given_up = made.events()[1:]
    assert given_up["monotonic_ns"] - started["monotonic_ns"] >= 290_000_000


def test_words_have_the_run_s_own_variables(held: StartHeld, tmp_path: Path) -> None:
    addresses = ("env", "TSTORM_ADDRESSES=fd00::1,10.1.2.3", "TSTORM_INDEX=4", "NAME=other")
    made = held(
        'echo "$1 $2 $TSTORM_IPV6"; exec sleep 1000',
        *("sh", "$TSTORM_IPV4", "a${TSTORM_INDEX}b$NAME"),
        options=("--setup", "2", "echo", "in $TSTORM_INSTANCE of $TSTORM_INDEX"),
        prefix=addresses,
    )
    made.give("join")
    made.wait_for_word("fd00::1")
    lines = ["in $TSTORM_INSTANCE of 4", "10.1.2.3 a4b$NAME fd00::1"]
    assert made.said().splitlines() == lines


@pytest.mark.root
def test_another_user_than_that_of_the_container(held: StartHeld, tmp_path: Path) -> None:
    caps = "sed -n 's/^CapEff:\\s*//p' /proc/self/status"
    who = f"touch mine; pwd; id -u; id -g; {caps}; echo $HOME; exec sleep 1000"
    setup = ("--setup", "2", "id", "-u")
    cwd = ("--cwd", str(tmp_path / "cwd"))
    tmp_path.chmod(0o755)
    made = held(who, options=("--user", "nobody", *cwd, *setup), prefix=("env", "HOME=/"))
    made.give("join")
    made.wait_for_word("/nonexistent")
    user, cwd_seen, *said = made.said().split()
    assert cwd_seen == str(tmp_path / "cwd")
    assert (tmp_path / "cwd/mine").stat().st_uid == int(user)
    assert user == said[0] != "0"
    assert int(said[2], 16) == 0
    made.give("leave")
    made.wait_for("held", "setup", "set_up", "started", "ended", "left")


def test_a_user_that_the_container_has_not_is_known_before_the_join(container: Start) -> None:
    made = container("run", "--user", "no-such-user", "--", "true")
    assert made.exit_code() == 125
    assert "no user no-such-user" in made.err.read_text()


@pytest.mark.ordinary
def test_orphans_are_reaped(held: StartHeld) -> None:
    made = held("for i in 1 2 3 4 5; do sh -c 'sh -c : & :' ; done; echo done; exec sleep 1000")
    made.give("join")
    made.wait_for_word("done")
    tasks = Path(f"/proc/{made.pid}/task/{made.pid}/children")
    wait_until(lambda: len(tasks.read_text().split()) == 1, "all orphans but the program")
    assert made.names() == ["held", "started"]


def test_sigterm_is_a_leave_and_the_end(held: StartHeld) -> None:
    made = held("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done")
    made.give("join")
    made.wait_for_word("up")
    os.kill(made.pid, signal.SIGTERM)
    assert made.exit_code() == 9
    assert made.names() == ["held", "started", "ended", "left"]


def test_orders_to_one_that_ends_are_not_done_and_cost_nothing(held: StartHeld) -> None:
    made = held("trap '' TERM; echo up; while :; do sleep 0.05; done")
    made.give("join")
    made.wait_for_word("up")
    os.kill(made.pid, signal.SIGTERM)
    made.give("crash", "join")
    fields = ["0"] * 20

    def ended() -> bool:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields[:] = Path(f"/proc/{made.pid}/stat").read_text().rpartition(") ")[2].split()
        return made.process.poll() is not None

    wait_until(ended, "its end, after the grace")
    assert made.exit_code() == 128 + signal.SIGKILL
    assert made.names() == ["held", "started", "ended", "left"]
    assert int(fields[11]) + int(fields[12]) < os.sysconf("SC_CLK_TCK")  # of five seconds


def test_sigterm_before_a_join_ends_it(held: StartHeld) -> None:
    made = held(FOREVER)
    os.kill(made.pid, signal.SIGTERM)
    assert made.exit_code() == 143
    assert made.said() == ""


@pytest.mark.ordinary
def test_the_program_finds_signals_session_and_environment_as_new(held: StartHeld) -> None:
    fields = "'s/^Sig(Blk|Ign):\\s*//p' /proc/self/status"
    made = held(
        f"sed -nE {fields}; cut -d' ' -f6 /proc/$$/stat; echo $$; echo end; sleep 1000", "arg"
    )
    made.give("join")
    made.wait_for_word("end")
    blocked, ignored, session, pid, _ = made.said().split()
    assert (int(blocked, 16), int(ignored, 16)) == (0, 0)
    assert session == pid


@pytest.mark.parametrize(
    ("program", "status", "words"),
    [
        ("no-such-program", 127, "cannot run no-such-program: No such file"),
        ("/nowhere/at/all", 127, "cannot run /nowhere/at/all: No such file"),
        ("/etc/passwd", 126, "cannot run /etc/passwd: Permission denied"),
    ],
)
def test_a_missing_program_is_known_before_the_join(
    container: Start, program: str, status: int, words: str
) -> None:
    made = container("run", "--", program)
    assert made.exit_code() == status
    assert words in made.err.read_text()


def test_a_program_that_the_kernel_refuses_is_reported(container: Start, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/nowhere/interpreter\n")
    program.chmod(0o755)
    made = container("run", "--reports", str(tmp_path / "reports"), "--", str(program))
    made.init()
    made.give("join")
    made.wait_for("held", "failed")
    assert made.events()[1]["program"] == str(program)
    assert "No such file" in made.events()[1]["error"]
    program.write_text("#!/bin/sh\nexit 5\n")
    made.give("join")
    made.wait_for("held", "failed", "started", "ended")


def test_a_file_of_reports_that_cannot_be_written_is_said_once(container: Start) -> None:
    made = container("run", "--reports", "/proc/nowhere/reports", "--", "sh", "-c", FOREVER)
    made.init()
    made.give("join", "crash")
    made.wait_for("held", "started", "ended", "crashed")
    assert made.err.read_text().count("/proc/nowhere/reports is not kept") == 1


@pytest.mark.root
def test_an_ordinary_user_in_the_container(held: StartHeld) -> None:
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all")
    made = held("id -u; exec sleep 1000", prefix=user)
    made.give("join")
    made.wait_for_word("65534")
    made.give("crash")
    made.wait_for("held", "started", "ended", "crashed")
    assert "is not kept" in made.err.read_text()  # the folder is root's


def test_it_refuses_to_be_another_process_than_1() -> None:
    done = subprocess.run(
        [HOLD, "run", "--", "true"], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 125
    assert "only as process 1" in done.stderr


def test_no_order_reaches_another_program() -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        done = order(other.pid, "crash")
        assert (done.returncode, other.poll()) == (1, None)
        assert "no tstorm-hold that takes orders" in done.stderr
        other.kill()
    assert order(other.pid, "join").returncode == 1
    assert order(0, "join").returncode == 125
    assert order(1, "jump").returncode == 125
