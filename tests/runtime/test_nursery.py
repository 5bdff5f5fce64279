"""The holder of an instance, without a run around it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import termios
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path

import pytest

from runtime.backend.local import enter_instance, nursery
from runtime.backend.local.nursery import Program
from runtime.errors import RunError
from runtime.system import compiled_programs
from runtime.system.process_scope import namespace
from tests.waiting import until

DEADLINE_SECONDS = 20.0

pytestmark = [pytest.mark.e2e, pytest.mark.root]


def carried_out(
    conversation: Callable[[nursery.Nursery], Coroutine[None, None, None]], folder: Path
) -> None:
    async def whole() -> None:
        with (folder / "ns.log").open("wb") as log:
            maker = nursery.start(compiled_programs.find("tstorm-ns"), {}, log)
            try:
                await conversation(maker)
            finally:
                maker.close()

    asyncio.run(whole())
    assert (folder / "ns.log").read_text() == ""


def test_an_order_to_end_comes_before_a_start_that_waits(tmp_path: Path) -> None:
    """The program would start after SIGTERM, and nobody would tell it to end."""
    mark = tmp_path / "started"
    program = Program(
        ("/bin/sh", "-c", f"touch {mark}; exec sleep 60"), {}, tmp_path, tmp_path / "log"
    )

    async def conversation(maker: nursery.Nursery) -> None:
        holder = maker.spawn("a.0", "a-0")
        (await asyncio.wait_for(holder.ready, DEADLINE_SECONDS)).close()
        waiting, closing = os.pipe2(os.O_CLOEXEC)
        holder.gate(waiting)
        os.close(waiting)
        started = holder.order_start(program)
        while fcntl.ioctl(holder._control, termios.TIOCOUTQ, b"\0" * 4) != b"\0" * 4:
            await asyncio.sleep(0.001)  # until it has read both
        signal.pidfd_send_signal(holder.pidfd, signal.SIGSTOP)
        holder.stop()  # both wait when it goes on
        os.close(closing)
        signal.pidfd_send_signal(holder.pidfd, signal.SIGCONT)
        with pytest.raises(RunError):
            await asyncio.wait_for(started, DEADLINE_SECONDS)
        await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)

    carried_out(conversation, tmp_path)
    assert not mark.exists()


@pytest.mark.parametrize("end", [nursery.LocalIncarnation.kill, nursery.LocalIncarnation.stop])
def test_who_is_to_end_counts_as_dead_at_once(
    tmp_path: Path, end: Callable[[nursery.LocalIncarnation], None]
) -> None:
    """Its devices may go before the kernel says that it has."""

    async def conversation(maker: nursery.Nursery) -> None:
        holder = maker.spawn("a.0", "a-0")
        (await asyncio.wait_for(holder.ready, DEADLINE_SECONDS)).close()
        signal.pidfd_send_signal(holder.pidfd, signal.SIGSTOP)
        assert holder.alive()
        end(holder)
        assert not holder.alive()
        signal.pidfd_send_signal(holder.pidfd, signal.SIGCONT)
        await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)

    carried_out(conversation, tmp_path)


async def _came(*holders: nursery.LocalIncarnation) -> None:
    """They are there, and the machine's first process has taken note of it."""
    for one in holders:
        (await asyncio.wait_for(one.ready, DEADLINE_SECONDS)).close()
        one.arrive()
    async with asyncio.timeout(DEADLINE_SECONDS):
        while len({os.getpgid(one.pid) for one in holders}) > 1:
            await asyncio.sleep(0.001)


async def _went(*holders: nursery.LocalIncarnation) -> None:
    """They are dead, and their descriptors closed: else a test that comes later is told of them."""
    for one in holders:
        one.kill()
    for one in holders:
        await asyncio.wait_for(one.gone, DEADLINE_SECONDS)


def test_parts_of_a_machine_die_of_one_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is prepared for their next life lives; so do the others if only one is killed."""
    groups: list[int] = []
    killpg = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *one: (groups.append(one[0]), killpg(*one)))

    async def conversation(maker: nursery.Nursery) -> None:
        machine = maker.machine("m", "m")
        assert not machine.is_up
        parts = [machine.spawn(f"m.{name}.0", f"m-{name}-0") for name in "abc"]
        await _came(*parts)
        again = [machine.spawn(f"m.{name}.0", f"m-{name}-0") for name in "ab"]
        wanted = os.getpgid(parts[0].pid)
        parts[2].kill()
        await asyncio.wait_for(parts[2].gone, DEADLINE_SECONDS)
        assert machine.is_up
        assert parts[0].alive()
        assert groups == []
        await _went(*parts[:2])
        assert groups == [wanted]
        assert not machine.is_up
        await _came(*again)
        assert all(one.alive() for one in again)
        assert os.getpgid(again[0].pid) != wanted
        await _went(*again)

    carried_out(conversation, tmp_path)


def test_a_command_in_a_machine_sees_all_parts_and_no_network(tmp_path: Path) -> None:
    place = {"user_namespace": namespace("user"), "user": "", "directory": "/", "machine": "m"}
    program = Program(("/bin/sleep", "60"), {}, tmp_path, tmp_path / "log")
    argv = ("/bin/sh", "-c", "hostname; cat /proc/[0-9]*/comm; cat /proc/net/dev")

    async def conversation(maker: nursery.Nursery) -> None:
        machine = maker.machine("m", "m-host")
        parts = [machine.spawn(f"m.a.{at}", f"m-a-{at}") for at in range(2)]
        await _came(*parts)
        for one in parts:
            await asyncio.wait_for(one.order_start(program), DEADLINE_SECONDS)
        keeper = str(compiled_programs.find("tstorm-ns"))
        done = await asyncio.create_subprocess_exec(
            *enter_instance.command(keeper, place, machine.pidfd, argv),
            pass_fds=[machine.pidfd],
            stdout=asyncio.subprocess.PIPE,
        )
        name, *said = (await done.communicate())[0].decode().splitlines()
        assert (done.returncode, name) == (0, "m-host")
        assert said.count("sleep") == len(parts)
        assert [line.split(":")[0].strip() for line in said if ":" in line] == ["lo"]
        await _went(*parts)

    carried_out(conversation, tmp_path)


def _states(pid: int) -> dict[str, str]:
    """By its name, of those that a process has begun."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            before, _, behind = Path(f"/proc/{child}/stat").read_text().rpartition(")")
            found[before.partition("(")[2]] = behind.split()[0]
    return found


def test_who_has_entered_goes_on_after_a_pause(tmp_path: Path) -> None:
    place = {"user_namespace": namespace("user"), "user": "", "directory": "/"}
    keeper, argv = str(compiled_programs.find("tstorm-ns")), ("/bin/sh", "-c", "read it; exit 3")

    async def conversation(maker: nursery.Nursery) -> None:
        holder = maker.spawn("a.0", "a-0")
        await _came(holder)
        entered = await asyncio.create_subprocess_exec(
            *enter_instance.command(keeper, place, holder.pidfd, argv),
            pass_fds=[holder.pidfd],
            stdin=asyncio.subprocess.PIPE,
        )
        await until(lambda: _states(entered.pid) == {"sh": "S"}, "the command")
        holder.signal("pause")
        await until(lambda: _states(entered.pid) == {"sh": "T"}, "it is stopped")
        holder.signal("resume")
        await until(lambda: _states(entered.pid) == {"sh": "S"}, "it goes on")
        await asyncio.wait_for(entered.communicate(b"it\n"), DEADLINE_SECONDS)
        assert entered.returncode == 3
        await _went(holder)

    carried_out(conversation, tmp_path)


def test_commands_beside_a_program(tmp_path: Path) -> None:
    """One that is ended is ended with all of its session; a daemon has left that, and lives as long
    as the instance."""
    output = tmp_path / "output"
    env = {"PATH": os.environ["PATH"], "WORD": "one"}

    def command(text: str) -> Program:
        return Program(("/bin/sh", "-c", text), env, tmp_path, tmp_path / "no log")

    async def conversation(maker: nursery.Nursery) -> None:
        holder = maker.spawn("a.0", "a-0")
        await _came(holder)
        with output.open("wb") as file:
            ran = [holder.run(command(f"echo $WORD; exit {n}"), file.fileno()) for n in range(4)]
            assert await asyncio.gather(*ran) == [0, 1, 2, 3]
            missing = Program(("/no/such",), {}, tmp_path, tmp_path / "no log")
            with pytest.raises(RunError, match="No such file"):
                await holder.run(missing, file.fileno())
            assert await holder.run(command("setsid sleep 999 & exit 0"), file.fileno()) == 0
            long = asyncio.create_task(
                holder.run(command("timeout 777 sleep 777; true"), file.fileno())
            )
            await until(lambda: {"sh", "sleep"} <= _states(holder.pid).keys(), "both are there")
            await until(lambda: "timeout" in _of_pid_namespace(holder.pid), "and what it begins")
            long.cancel()
            with pytest.raises(asyncio.CancelledError):
                await long
            assert sorted(_of_pid_namespace(holder.pid)) == ["sleep", "tstorm-ns"]
            last = asyncio.create_task(holder.run(command("sleep 777"), file.fileno()))
            await until(lambda: len(_states(holder.pid)) == 2, "the last one")
            holder.kill()
            assert await last == 128 + signal.SIGKILL
            await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)
            with pytest.raises(RunError, match="had died before a command was run in it"):
                await holder.run(command("true"), file.fileno())

    carried_out(conversation, tmp_path)
    assert output.read_text() == "one\n" * 4
    assert not (tmp_path / "no log").exists()


def _of_pid_namespace(pid: int) -> list[str]:
    """The names of all that live there; zombies do not."""
    found, wanted = [], Path(f"/proc/{pid}/ns/pid").readlink()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (place / "ns/pid").readlink() == wanted:
                before, _, behind = (place / "stat").read_text().rpartition(")")
                found += [before.partition("(")[2]] * (behind.split()[0] != "Z")
    return found
