"""What an instance has around its program, and how it is stopped: its PID 1 without a run."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path, PurePosixPath

import pytest

from runtime.backend.local import nursery
from runtime.backend.local.filesystem import instance_filesystem
from runtime.backend.local.filesystem.instance_filesystem import _write
from runtime.backend.local.nursery import LocalIncarnation, Program
from runtime.errors import RunError
from runtime.system.userids import Identity
from tests.runtime.test_nursery import DEADLINE_SECONDS, carried_out
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.root]
ENV = {"PATH": os.environ["PATH"]}


async def made(maker: nursery.Nursery, *operations: nursery.Operation) -> LocalIncarnation:
    holder = maker.spawn("a.0", "a-0")
    (await asyncio.wait_for(holder.ready, DEADLINE_SECONDS)).close()
    done = holder.furnish(nursery.furniture(operations))
    try:
        await asyncio.wait_for(done, DEADLINE_SECONDS)
    except RunError:
        await over(holder)
        raise
    return holder


async def over(holder: LocalIncarnation) -> None:
    holder.kill()
    await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)


async def said(holder: LocalIncarnation, folder: Path, words: str, directory: str = "/") -> str:
    """What a shell in the instance says, as its program."""
    log = folder / "said"
    log.write_text("")
    program = Program(("/bin/sh", "-c", words), ENV, Path(directory), log)
    ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    holder.on_ended = ended.set_result
    await asyncio.wait_for(holder.order_start(program), DEADLINE_SECONDS)
    await asyncio.wait_for(ended, DEADLINE_SECONDS)
    return log.read_text()


def private(place: Path) -> list[tuple[str, ...]]:
    """A root with a machine's /etc and /usr under overlays, upper layers in `place`."""
    for name in ("root", "upper/etc", "work/etc"):
        (place / name).mkdir(parents=True)
    layers = f"index=off,lowerdir=/etc,upperdir={place}/upper/etc,workdir={place}/work/etc"
    links = [name for name in ("bin", "sbin", "lib", "lib64") if Path("/", name).is_symlink()]
    for name in links:
        (place / "root" / name).symlink_to(Path("/", name).readlink())
    binds = [("bind", f"/{name}", f"/{name}", "rw") for name in ("proc", "dev", "usr")]
    binds += [
        ("bind", f"/{name}", f"/{name}", "rw")
        for name in ("bin", "sbin", "lib", "lib64")
        if name not in links and Path("/", name).exists()
    ]
    return [("root", str(place / "root")), ("overlay", "/etc", layers), *binds]


def test_a_program_is_the_user_that_is_stated(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    async def conversation(maker: nursery.Nursery) -> None:
        holder = await made(maker, ("user", "1234:5678:9:10"))
        words = "id -u; id -g; id -G; grep CapEff /proc/self/status"
        assert (await said(holder, tmp_path, words)).split() == [
            *("1234", "5678", "5678", "9", "10"),
            *("CapEff:", "0000000000000000"),
        ]
        await over(holder)

    carried_out(conversation, tmp_path)


def test_sysctls_are_of_the_instance(tmp_path: Path) -> None:
    before = Path("/proc/sys/net/ipv4/tcp_keepalive_time").read_text()

    async def conversation(maker: nursery.Nursery) -> None:
        holder = await made(maker, ("sysctl", "net/ipv4/tcp_keepalive_time", "77"))
        words = "cat /proc/sys/net/ipv4/tcp_keepalive_time"
        assert await said(holder, tmp_path, words) == "77\n"
        await over(holder)

    carried_out(conversation, tmp_path)
    assert Path("/proc/sys/net/ipv4/tcp_keepalive_time").read_text() == before


def test_a_refused_operation_names_itself(tmp_path: Path) -> None:
    async def conversation(maker: nursery.Nursery) -> None:
        for operation, what in (
            (("sysctl", "net/ipv4/nothing", "1"), "/proc/sys/net/ipv4/nothing"),
            (("bind", "/etc", str(tmp_path / "absent"), "rw"), "absent"),
            (("bind", str(tmp_path / "source"), "/mnt", "rw"), "source"),
        ):
            with pytest.raises(RunError, match=what):
                await made(maker, operation)

        cover = ("tmpfs", str(tmp_path / "covered"))
        for missing in (
            ("bind", "/etc", str(tmp_path / "absent"), "rw"),
            ("directory", str(tmp_path / "absent"), "755", "0", "0"),
            ("file", "/etc/hostname", str(tmp_path / "absent/file"), "644", "0", "0"),
        ):
            with pytest.raises(RunError, match="absent"):
                await made(maker, cover, missing)

    (tmp_path / "covered").mkdir()
    carried_out(conversation, tmp_path)
    assert not (tmp_path / "absent").exists()  # nothing is made on the machine


def test_a_root_of_its_own_keeps_what_is_written(tmp_path: Path) -> None:
    mark = "tstorm-test-mark"

    async def conversation(maker: nursery.Nursery) -> None:
        holder = await made(maker, *private(tmp_path), ("pivot",))
        words = f"echo here >/etc/{mark}; rm /etc/hostname; cat /etc/{mark}; ls /; ls -d /work"
        answer = await said(holder, tmp_path, words)
        assert answer.startswith("here\n")
        assert "etc" in answer.split()
        await over(holder)

    carried_out(conversation, tmp_path)
    assert (tmp_path / "upper/etc" / mark).read_text() == "here\n"
    assert not Path("/etc", mark).exists()
    assert Path("/etc/hostname").exists()


def test_targets_do_not_leave_the_root(tmp_path: Path) -> None:
    """An image may have any links."""
    operations = private(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "root/way").symlink_to("../../../../../../.." + str(outside))
    (tmp_path / "root/other").symlink_to(outside)
    source = tmp_path / "source"
    source.write_text("text\n")

    async def conversation(maker: nursery.Nursery) -> None:
        more = [
            ("file", str(source), "/fresh/place/copied", "640", "7", "8"),
            ("bind", str(source), "/srv/bound", "ro"),
        ]
        holder = await made(maker, *operations, *more, ("pivot",))
        words = "cat /fresh/place/copied; stat -c '%a %u %g' /fresh/place/copied; echo >/srv/bound"
        assert (await said(holder, tmp_path, words)).startswith("text\n640 7 8\n")
        await over(holder)
        for target in ("/way/file", "/other/file"):
            with pytest.raises(RunError, match=target):
                await made(maker, *operations, ("file", str(source), target, "644", "0", "0"))

    carried_out(conversation, tmp_path)
    assert source.read_text() == "text\n"
    assert not list(outside.iterdir())


def test_a_user_reaches_its_directory_below_a_closed_home(tmp_path: Path) -> None:
    closed, inner = tmp_path / "closed", tmp_path / "closed/inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("text\n")
    (closed / "secret").write_text("secret\n")
    closed.chmod(0o700)
    who = Identity("", 1234, 1234)
    assert instance_filesystem.closed_above(inner, Identity("", 0, 0)) is None

    async def conversation(maker: nursery.Nursery) -> None:
        cover = instance_filesystem.cover_operations([inner, tmp_path / "absent"], who)
        holder = await made(maker, *cover, ("user", who.text))
        answer = await said(holder, tmp_path, f"cat {inner}/file; ls {closed}", str(inner))
        assert answer == "text\ninner\n"
        await over(holder)

    carried_out(conversation, tmp_path)


def test_files_are_placed_whatever_hides_their_source(tmp_path: Path) -> None:
    """A run directory below a home that is covered is such a place."""
    closed, inner = tmp_path / "closed", tmp_path / "closed/inner"
    inner.mkdir(parents=True)
    (closed / "kept").write_text("text\n")
    closed.chmod(0o700)

    async def conversation(maker: nursery.Nursery) -> None:
        cover = instance_filesystem.cover_operations([inner], Identity("", 1234, 1234))
        file = ("file", str(closed / "kept"), str(inner / "placed"), "4755", "1234", "1234")
        holder = await made(maker, *cover, file)
        words = f"ls {closed}; cat {inner}/placed; stat -c '%a %u' {inner}/placed"
        assert await said(holder, tmp_path, words) == "inner\ntext\n4755 1234\n"
        await over(holder)

    carried_out(conversation, tmp_path)


def test_a_file_in_the_instances_directory_keeps_its_set_id_bits(tmp_path: Path) -> None:
    _write(tmp_path, PurePosixPath("file"), b"text\n", 0o4755, (1234, 1234))
    status = (tmp_path / "file").stat()
    assert (status.st_mode & 0o7777, status.st_uid) == (0o4755, 1234)


def test_the_signal_goes_to_the_program_first(tmp_path: Path) -> None:
    """Its children hear of it when it has ended, and are killed if they do not care."""
    log = tmp_path / "log"
    words = (
        "setsid sh -c 'trap \"echo child; exit\" TERM; while :; do sleep 0.01; done' & "
        "setsid sh -c 'trap \"\" TERM; echo two; while :; do sleep 0.01; done' & "
        "trap 'sleep 0.2; echo program; exit 3' INT; echo ready; while :; do sleep 0.01; done"
    )

    async def conversation(maker: nursery.Nursery) -> None:
        holder = await made(maker)
        program = Program(("/bin/sh", "-c", words), ENV, tmp_path, log)
        ended: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        holder.on_ended = ended.set_result
        await holder.order_start(program)
        wait_until(lambda: {"ready", "two"} <= set(log.read_text().split()), "programs")
        holder.stop(signal.SIGINT)
        await asyncio.wait_for(ended, DEADLINE_SECONDS)
        assert getattr(ended.result(), "status", None) == 3
        await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)

    carried_out(conversation, tmp_path)
    known = ("ready", "program", "child")  # a shell may say how others ended
    assert [word for word in log.read_text().split() if word in known] == [*known]


def states(pid: int) -> set[str]:
    """Of the children of a process, as ps(1) has them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {
        Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] for child in children
    }


@pytest.mark.parametrize("end", ["resume", "stop", "kill"])
def test_a_paused_instance_stands_still_and_can_end(tmp_path: Path, end: str) -> None:
    log = tmp_path / "log"
    words = "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done"

    async def conversation(maker: nursery.Nursery) -> None:
        holder = await made(maker)
        await holder.order_start(Program(("/bin/sh", "-c", words), ENV, tmp_path, log))
        wait_until(lambda: log.read_text() == "ready\n", "the program")
        holder.signal("pause")
        still = {"T", "D"}  # D: one that waits for a child, which is stopped, to begin
        wait_until(lambda: states(holder.pid) <= still, "it stands still")
        if end == "resume":
            holder.signal("resume")
            wait_until(lambda: not states(holder.pid) & still, "it goes on")
        if end == "kill":
            holder.kill()
        else:
            holder.stop()
        await asyncio.wait_for(holder.gone, DEADLINE_SECONDS)

    carried_out(conversation, tmp_path)
    assert log.read_text() == ("ready\n" if end == "kill" else "ready\nbye\n")
