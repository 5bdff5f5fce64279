"""Client of `tstorm-ns nursery` and of the instances it makes (tcal_c/ns).

A `LocalIncarnation` is led by its PID 1, which holds the namespaces, starts the program, reaps, and
takes everything with it when it dies.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runtime.backend.instance import Incarnation, ProgramEnd
from runtime.errors import MachineError, RunError, fail
from runtime.rundir import held_directory
from runtime.system import process_limits

MESSAGE_BYTES = 192 * 1024  # longest request (tcal_c/ns/ns.h)
MAX_WORDS = 4096  # most arguments, and most variables, of a program (the same place)
ANSWER_SECONDS = 30.0
KILLED = "something has killed its first process (tstorm-ns)"
KILLED_STATUS = 128 + signal.SIGKILL
_END_SECONDS = 5.0  # for a command that is killed to be gone
Operation = tuple[str, ...]  # one of those that furnish an instance (tcal_c/ns/furnish.c)


@dataclass(frozen=True, slots=True)
class Program:
    """What an instance runs."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: Path
    log: Path
    owner: tuple[int, int] | None = None  # of its log: user and group, None: as it is

    def request(self, verb: str = "start") -> bytes:
        if max(len(self.argv), len(self.env)) > MAX_WORDS:
            raise RunError(f"{self.argv[0]} has more than {MAX_WORDS} arguments or variables")
        if any("\0" in word for word in (*self.argv, *self.env, *self.env.values())):
            raise RunError("an argument or variable of the program holds a NUL character")
        words = [verb, str(self.directory), str(len(self.argv)), *self.argv]
        words.extend(f"{name}={value}" for name, value in sorted(self.env.items()))
        data = b"".join(os.fsencode(word) + b"\0" for word in words)
        if len(data) >= MESSAGE_BYTES:
            raise RunError(f"the arguments and environment of {self.argv[0]} are too long")
        return data


def furniture(operations: Sequence[Operation]) -> bytes:
    """What an instance has around its program, as tstorm-ns takes it (tcal_c/ns/furnish.c)."""
    words = ["furnish", *(word for operation in operations for word in operation)]
    if any("\0" in word for word in words):
        raise RunError("a file or directory of the instance holds a NUL character")
    data = b"".join(os.fsencode(word) + b"\0" for word in words)
    if len(data) >= MESSAGE_BYTES:
        raise RunError("an instance has too many files and mounts: put them into folders")
    return data


class LocalIncarnation(Incarnation):
    """An incarnation on this machine, by its PID 1 (`pid`), as the driver sees that.

    ready      done with the netlink socket of its network namespace
    machine    of which it is a part
    started    the start of its program once that is ordered: done with its process number
    furnished  done when it has around its program what it is to have; None: nobody asked for it
    heard      what is heard of programs of the instance is heard of its own
    """

    def __init__(
        self,
        name: str,
        pid: int,
        pidfd: int,
        control: socket.socket,
        machine: MachineKeeper | None = None,
    ) -> None:
        super().__init__(name, pid=pid)
        self.pidfd = pidfd
        self.machine = machine
        self.furnished: asyncio.Future[None] | None = None
        self.heard = False
        self._control = control
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[socket.socket] = self._loop.create_future()
        self.started: asyncio.Future[int] | None = None
        self._furnishing: asyncio.Future[None] | None = None
        self._commands: dict[int, asyncio.Future[int]] = {}  # that go on, by their numbers
        self._last_command = 0
        self._ending = False
        self.on_ended: Callable[[ProgramEnd], None] = lambda _ended: None
        self.on_syncs: Callable[[int], None] = os.close  # of a program that is heard
        control.setblocking(False)
        self._loop.add_reader(control, self._receive)
        self._loop.add_reader(pidfd, self._died)

    def _receive(self) -> None:
        with suppress(BlockingIOError):
            if not self._read():
                self._loop.remove_reader(self._control)  # `gone` tells when the rest is dead too

    def _read(self) -> bool:
        """Takes one message; False at the end. BlockingIOError if there is none now."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        except BlockingIOError:
            raise
        except OSError:
            return False
        if data:
            word, _, text = data.decode(errors="replace").partition(" ")
            self._take(word, text, descriptors)
        return bool(data)

    def _take(self, word: str, text: str, descriptors: list[int]) -> None:
        if word == "ready" and descriptors:
            netlink = socket.socket(fileno=descriptors[0])
            if self.ready.done():
                netlink.close()
            else:
                self.ready.set_result(netlink)
        elif word == "err":
            message = f"cannot set up instance {self.name}: {text}"
            fail(self.ready, MachineError(message, process_limits.remedy_for(text)))
        elif word in ("started", "failed") and self.started and not self.started.done():
            if word == "started":
                self.started.set_result(int(text))
            else:
                fail(self.started, RunError(text))
        elif word in ("furnished", "unfurnished") and self._furnishing is not None:
            self._take_furnished(RunError(text) if word == "unfurnished" else None)
        elif word in ("ended", "refused"):
            self._take_end(word, text)
        elif word == "syncs" and descriptors:
            self.on_syncs(descriptors[0])
        elif word == "exited":
            self.on_ended(ProgramEnd(int(text), 0))
        elif word == "signaled":
            self.on_ended(ProgramEnd(-1, int(text)))

    def _take_furnished(self, refusal: RunError | None) -> None:
        assert self._furnishing is not None
        if refusal is not None:
            fail(self._furnishing, refusal)
        elif not self._furnishing.done():
            self._furnishing.set_result(None)

    def _take_end(self, word: str, text: str) -> None:
        """Of a command."""
        number, _, how = text.partition(" ")
        over = self._commands.pop(int(number), None)
        if over is None or over.done():
            return
        if word == "ended":
            over.set_result(int(how))
        else:
            over.set_exception(RunError(how))

    def _died(self) -> None:
        self._receive_rest()
        self._loop.remove_reader(self.pidfd)
        self._loop.remove_reader(self._control)
        os.close(self.pidfd)
        self._control.close()
        died = f"instance {self.name} died while it was being set up"
        fail(self.ready, MachineError(died, KILLED))
        for waiting in (self.started, self._furnishing):
            if waiting is not None:
                fail(waiting, RunError("the instance was killed"))
        for over in self._commands.values():
            if not over.done():
                over.set_result(KILLED_STATUS)
        if not self.gone.done():
            self.gone.set_result(None)

    def _receive_rest(self) -> None:
        """What it said before it died, in particular how its program ended."""
        with suppress(BlockingIOError):
            for _ in range(16):
                if not self._read():
                    return

    def order_start(self, program: Program) -> asyncio.Future[int]:
        """Orders the program's start. The future is its process number, or RunError with exec's
        reason; the order itself raises RunError if the instance is gone."""
        started = self.started = self._loop.create_future()
        request = program.request()
        try:
            log = held_directory.append(program.log)
            if program.owner is not None:
                os.fchown(log, *program.owner)  # it may open /dev/stderr anew
        except OSError as error:
            raise RunError(f"cannot write {program.log}: {error.strerror}") from error
        try:
            socket.send_fds(self._control, [request], [log])
        except OSError as error:
            raise self._gone("its program was ordered", error) from error
        finally:
            os.close(log)
        return started

    async def run(self, command: Program, output: int) -> int:
        """A command beside its program, started as that would be, with stdout and stderr to this
        descriptor and not to the log. The status with which it ends, as a shell says it; when this
        is cancelled, it is killed, with all of its session. RunError, with exec's reason, if it
        cannot be started."""
        self._last_command = number = self._last_command + 1
        request = command.request(f"run {number}")
        try:
            socket.send_fds(self._control, [request], [output])
        except OSError as error:
            raise self._gone("a command was run in it", error) from error
        over: asyncio.Future[int] = self._loop.create_future()
        self._commands[number] = over
        try:
            await asyncio.wait((over,))
        finally:
            if not over.done():
                self._send(b"end %d" % number)
                await asyncio.wait((over,), timeout=_END_SECONDS)
                if over.done():
                    over.exception()  # nobody hears of it
        return over.result()

    def gate(self, descriptor: int) -> None:
        """The next start waits for end of file on this pipe. RunError if the instance is gone."""
        try:
            socket.send_fds(self._control, [b"gate"], [descriptor])
        except OSError as error:
            raise self._gone("its program's start was prepared", error) from error

    def _gone(self, when: str, error: OSError) -> RunError:
        reason = "" if error.errno == errno.EBADF else f": {error.strerror}"  # closed by _died
        return RunError(f"instance {self.name} had died before {when}{reason}", KILLED)

    def hear_syncs(self, heard: Callable[[int], None]) -> None:
        """Of each program and command from now on that is heard (`make_disk_faulty`) `heard` gets
        the socket that tells what it syncs (tcal_c/ns/faults.c), and closes it."""
        self.on_syncs = heard
        self._send(b"syncs")

    def make_disk_faulty(self, heard: str, root: str) -> None:
        """Programs and commands from now on meet what `set_disk` says in their files below `root`;
        `heard` is not the first of instance.HEARD."""
        self._send(os.fsencode(f"faults {heard} {root}"))

    def set_disk(self, fault: str) -> None:
        """As tcal_c/ns/faults.c takes it: `ok`, `full`, `slow NS`, `error PPB SEED`."""
        self._send(f"disk {fault}".encode())

    def furnish(self, request: bytes) -> asyncio.Future[None]:
        """Orders what `furniture` made. The future is done when it is there, or RunError with the
        reason, after which the instance is of no use."""
        furnished = self._furnishing = self._loop.create_future()
        try:
            self._control.send(request)
        except OSError as error:
            raise self._gone("it was furnished", error) from error
        return furnished

    def stop(self, number: int = signal.SIGTERM) -> None:
        """This signal to its program; when that has ended, or there is none, SIGTERM to what else
        there is and a second later SIGKILL. Its PID 1 ends after the last of them."""
        if not self.gone.done():
            self._ending = True
            self._send(f"stop {number}".encode())

    def signal(self, kind: str) -> None:
        """To every process of the instance, what the kind of event says (event_kinds.SIGNALS)."""
        if not self.gone.done():
            self._send(kind.encode())

    def _send(self, request: bytes) -> None:
        try:
            self._control.send(request)
        except OSError:
            return  # dead already: `gone` is about to say so

    def alive(self) -> bool:
        """Also right before the loop has told of its end. What is killed or told to end is not: its
        devices may go before its PID 1 has."""
        if self.gone.done() or self._ending:
            return False
        poll = select.poll()  # unlike select(2) for any descriptor
        poll.register(self.pidfd, select.POLLIN)
        return not poll.poll(0)

    def arrive(self) -> None:
        """It is there from now on, and not only prepared."""
        if self.machine is not None and not self.gone.done():
            self.machine.present(self)

    def kill(self) -> None:
        """SIGKILL to every process of the instance; together with the others of its machine, if
        these are killed at the same moment."""
        if self.gone.done():
            return
        self._ending = True
        if self.machine is None or not self.machine.killed(self):
            self.kill_alone()

    def kill_alone(self) -> None:
        if not self.gone.done():
            with suppress(ProcessLookupError):  # dead, and the loop has not told us yet
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)


def _number(pidfd: int) -> int:
    """Of a process, as this one counts, where who has made it is in another PID namespace."""
    text = Path(f"/proc/self/fdinfo/{pidfd}").read_text()
    return int(text.partition("\nPid:")[2].split()[0])


def own(incarnation: Incarnation) -> LocalIncarnation:
    assert isinstance(incarnation, LocalIncarnation)  # instances get back what they have made
    return incarnation


class _Keeper:
    """A process that makes others on request, each with namespaces of its own."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def _made(self, request: str, what: str, theirs: socket.socket) -> tuple[int, int]:
        """The number of a new process in the keeper's PID namespace, and a pidfd. RunError."""
        try:
            socket.send_fds(self._control, [os.fsencode(request)], [theirs.fileno()])
            answer, descriptors, _, _ = socket.recv_fds(self._control, 1024, 1)
        except OSError as error:
            reason = error.strerror or str(error)
            raise RunError(f"cannot make {what}: the nursery is gone: {reason}") from error
        word, _, text = answer.decode(errors="replace").partition(" ")
        if word != "ok" or not descriptors:
            raise _refusal(what, text or "the nursery is gone")
        return int(text), descriptors[0]

    def _spawn(
        self, name: str, hostname: str, hosts: str, machine: MachineKeeper | None
    ) -> tuple[LocalIncarnation, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MESSAGE_BYTES)
        try:
            with theirs:
                request = f"spawn {hostname} {hosts}".rstrip()
                number, pidfd = self._made(request, f"instance {name}", theirs)
        except RunError:
            ours.close()
            raise
        pid = number if machine is None else _number(pidfd)
        return LocalIncarnation(name, pid, pidfd, ours, machine), number


def _refusal(what: str, reason: str) -> MachineError:
    return MachineError(f"cannot make {what}: {reason}", process_limits.remedy_for(reason))


class MachineKeeper(_Keeper):
    """PID 1 of a machine with parts, which lives as long as the run. Its parts are killed together
    if all that are there are to be killed at one moment, as by its crash: none of them lives to see
    another one dead."""

    def __init__(self, name: str, pidfd: int, control: socket.socket) -> None:
        super().__init__(control)
        self.name = name
        self.pid = _number(pidfd)
        self.pidfd = pidfd
        # In its PID namespace, of parts that are not present yet.
        self._numbers: dict[LocalIncarnation, int] = {}
        self._present: set[LocalIncarnation] = set()
        self._to_kill: set[LocalIncarnation] = set()

    @property
    def is_up(self) -> bool:
        """Whether any of its parts is there."""
        return bool(self._present)

    def spawn(self, name: str, hostname: str, hosts: str = "") -> LocalIncarnation:
        """As that of the nursery."""
        incarnation, self._numbers[incarnation] = self._spawn(name, hostname, hosts, self)
        incarnation.gone.add_done_callback(lambda _gone: self._forget(incarnation))
        return incarnation

    def _forget(self, incarnation: LocalIncarnation) -> None:
        self._numbers.pop(incarnation, None)
        self._present.discard(incarnation)

    def present(self, incarnation: LocalIncarnation) -> None:
        with suppress(OSError):  # it is dead, and so is the part
            self._control.send(b"present %d" % self._numbers.pop(incarnation))
            self._present.add(incarnation)

    def killed(self, incarnation: LocalIncarnation) -> bool:
        """Whether the part will be killed, when all that are to be killed now are known."""
        if incarnation not in self._present:
            return False
        if not self._to_kill:
            asyncio.get_running_loop().call_soon(self._kill)
        self._to_kill.add(incarnation)
        return True

    def _kill(self) -> None:
        incarnations, self._to_kill = self._to_kill, set()
        if incarnations >= self._present:
            group = _group_of(incarnations)
            if group:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
        for incarnation in incarnations:
            incarnation.kill_alone()

    def close(self) -> None:
        self._control.close()
        os.close(self.pidfd)


def _group_of(incarnations: Iterable[LocalIncarnation]) -> int:
    """The process group that all of these are in, 0 if they are in several."""
    try:
        groups = {os.getpgid(one.pid) for one in incarnations}
    except ProcessLookupError:  # one has died by itself
        return 0
    return groups.pop() if len(groups) == 1 else 0


class Nursery(_Keeper):
    """The process that makes instances. `closed` is done if it dies."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        super().__init__(control)
        self._process = process
        self._machines: dict[str, MachineKeeper] = {}
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._watch = os.pidfd_open(process.pid)
        loop.add_reader(self._watch, self._ended)

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._watch)
        if not self.closed.done():
            self.closed.set_result(None)

    def spawn(self, name: str, hostname: str, hosts: str = "") -> LocalIncarnation:
        """Makes an incarnation; it becomes `ready` by itself. Takes well under a millisecond.
        `hosts`: a file that is to be its /etc/hosts."""
        incarnation, _ = self._spawn(name, hostname, hosts, None)
        return incarnation

    def machine(self, name: str, hostname: str) -> MachineKeeper:
        """Makes a machine, whose parts see each other's processes only from without. RunError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_SECONDS)
        what = f"machine {name}"
        try:
            with theirs:
                _, pidfd = self._made(f"machine {hostname}", what, theirs)
            word, _, text = ours.recv(1024).decode(errors="replace").partition(" ")
        except OSError as error:
            ours.close()
            raise _refusal(what, error.strerror or str(error)) from error
        except RunError:
            ours.close()
            raise
        made = self._machines[name] = MachineKeeper(name, pidfd, ours)
        if word != "ready":
            raise _refusal(what, text or "its first process has ended")
        return made

    def close(self) -> None:
        """Ends it, and with it every instance that is left."""
        for machine in self._machines.values():
            machine.close()
        self._control.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def start(program: Path, environment: Mapping[str, str], log: IO[bytes]) -> Nursery:
    """`environment` is also that of every instance's PID 1, where programs can read it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, ExitStack() as failing:
        failing.callback(ours.close)
        argv: Sequence[str] = (
            str(program),
            *("nursery", "--parent", str(os.getpid()), "--control", str(theirs.fileno())),
        )
        process = process_limits.start(
            "the process that makes instances (tstorm-ns)",
            argv,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
        )
        failing.pop_all()
    ours.settimeout(ANSWER_SECONDS)
    return Nursery(process, ours)
