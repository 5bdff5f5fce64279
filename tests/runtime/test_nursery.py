"""The holder of an instance, without a run around it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import termios
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from runtime.backend.local import nursery
from runtime.backend.local.nursery import Program
from runtime.errors import RunError
from runtime.system import compiled_programs

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


@pytest.mark.parametrize("end", [nursery.Holder.kill, nursery.Holder.stop])
def test_who_is_to_end_counts_as_dead_at_once(
    tmp_path: Path, end: Callable[[nursery.Holder], None]
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
