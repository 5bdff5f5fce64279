"""Packets of a run as pcapng, for `tstorm capture`: live from the engine or the engines of one that
goes on, in a cluster from nodes, or from what a finished one has kept (`--packets`).

Packets come from the run through a pipe that never makes it wait; what this process does not take
in time is missing, and counted. They are filtered here.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from runtime.agent.pod import node_capture
from runtime.backend.onehost import captures
from runtime.errors import RunError
from runtime.launch import registry, run_status
from runtime.rpc.control import ask
from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.pcapng_writer import PacketWriter
from runtime.rundir.rundir import plan_in
from runtime.rundir.runfiles import PACKETS
from tstorm.live.merged_capture import MergedCapture
from tstorm.live.packet_filter import Wanted
from tstorm.live.steered_runs import is_in_cluster

if TYPE_CHECKING:
    from tstorm.options.cluster import Where

_PROGRAM = "tstorm capture"
# Of probes (docs/probes.md): their IP protocol; and what begins the payload of the echoes that are
# sent in a cluster, in either order of bytes (tcal_c/probe/wire.h).
_PROBES, _ECHOES = 253, frozenset((b"EPPT", b"TPPE"))
_MOST_BYTES = 1 << 50  # of a file, which is read packet by packet
_IPV4, _IPV6 = b"\x08\x00", b"\x86\xdd"
_ICMP = (1, 58)

Ended = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class CaptureTarget:
    """What is to be captured."""

    target: str  # an instance or a link
    is_link: bool
    probes: bool
    wanted: Wanted | None  # None: all
    program: bytes = b""  # the same for a kernel (tstorm/live/packet_filter.py), b"": all

    def takes(self, packet: Packet) -> bool:
        """Whether it is to be in the file."""
        if packet.comment and not self.is_link:
            return False  # it never came to the instance
        if not self.probes and _is_probe(packet.data):
            return False
        return self.wanted is None or self.wanted(packet.data)


@dataclass(frozen=True, slots=True)
class PacketSource:
    """Interfaces, and packets in the order of time; `packets` is told who hears of an end."""

    interfaces: Sequence[str]
    packets: Callable[[Ended], Iterator[Packet]]
    close: Callable[[], None]
    left_out: Sequence[str] = ()  # instances to and from which there is no path now
    rest: Callable[[], Iterator[Packet]] = lambda: iter(())  # read, when nobody waits any longer


@dataclass(frozen=True, slots=True)
class Captured:
    """How many packets are in the file, and how many were lost before the filter. `cut`: interfaces
    whose packets end where nobody has ended them, since a run or its machine broke off."""

    written: int
    missing: int
    cut: Sequence[str]


def opened(run: str, asked: CaptureTarget, where: Where | None = None) -> PacketSource:
    """Of a run that goes on or has kept its packets. RunError, PlanError, OSError."""
    if is_in_cluster(run, where):
        return _in_cluster(run, asked, where)
    try:
        record = registry.find(run)
    except RunError:
        if not Path(run).is_dir():
            raise
        return _kept(run, asked)
    return _live(Path(record.socket), asked)


def _live(control: Path, asked: CaptureTarget) -> PacketSource:
    """Of one engine, or of each host that has something of it."""
    request: dict[str, object] = {
        "ask": "capture",
        "target": asked.target,
        "is_link": asked.is_link,
        "probes": asked.probes,
    }
    interfaces: list[str] = []
    files: list[BinaryIO] = []
    with ExitStack() as stack:  # what one refuses is captured nowhere
        parts = 1
        while len(files) < parts:
            answer, pipe = ask(control, {**request, "part": len(files)})
            assert pipe is not None
            files.append(stack.enter_context(os.fdopen(pipe, "rb")))
            interfaces += [str(name) for name in answer["interfaces"]]
            parts, since_ns = int(answer["parts"]), int(answer["since_ns"])
        stack.pop_all()
    left_out = [str(name) for name in answer["left_out"]]
    if parts == 1 and not since_ns:
        [file] = files
        place = "packets from the run"
        packets = partial(read_packets, file, place)
        return PacketSource(interfaces, packets, file.close, left_out)
    # Not closed: a thread may wait in each, and what is closed then waits for that.
    merged = MergedCapture(files, since_ns)
    return PacketSource(interfaces, merged.packets, lambda: None, left_out, merged.rest)


def _in_cluster(run: str, asked: CaptureTarget, where: Where | None) -> PacketSource:
    """Of an instance as the kernel of its node has them, of a path as the engines of its nodes."""
    from tstorm.k8s import cluster_capture, connection  # of an extra that is not always there

    context, namespace = (where.context, where.namespace) if where else (None, None)
    with ExitStack() as stack:
        there = stack.enter_context(connection.connect(context))
        if asked.is_link:
            program, probes = asked.program, asked.probes
            streams = stack.enter_context(
                cluster_capture.path_opened(
                    there, run, namespace, asked.target, program, probes=probes
                )
            )
            merged = MergedCapture(streams.files, streams.since_ns)
            names, left_out, close = streams.interfaces, streams.left_out, stack.pop_all().close
            return PacketSource(names, merged.packets, close, left_out, merged.rest)
        file = stack.enter_context(
            cluster_capture.opened(there, run, namespace, asked.target, asked.program)
        )
        close = stack.pop_all().close
    names = [node_capture.sent_by(asked.target), node_capture.come_to(asked.target)]
    return PacketSource(names, partial(read_packets, file, "packets from the node"), close)


def _kept(run: str, asked: CaptureTarget) -> PacketSource:
    directory = run_status.directory_of(run)
    if not directory.has(PACKETS):
        raise RunError(
            "the run has ended, and it has kept no packets",
            f"tstorm replay {run} --packets keeps them",
        )
    topology = plan_in(directory).topology
    places = captures.at(topology, asked.target, is_link=asked.is_link)
    own = {place.name for place in places}
    names, folder, stack = captures.file_names(topology), directory.enter(PACKETS), ExitStack()
    files = [names[number] for number in sorted({place.file for place in places})]
    opened_files = [
        (name, stack.enter_context(folder.reading(name, _MOST_BYTES))) for name in files
    ]

    def packets(ended: Ended) -> Iterator[Packet]:
        def told(interface: str, missing: int) -> None:
            if interface in own:
                ended(interface, missing)

        streams = [read_packets(file, name, told) for name, file in opened_files]
        for packet in heapq.merge(*streams, key=lambda one: one.at_ns):
            if packet.interface in own:
                yield packet

    return PacketSource(sorted(own), packets, stack.close)


def write(source: PacketSource, asked: CaptureTarget, file: BinaryIO) -> Captured:
    """Until the run has ended, the reader of the file has gone or Ctrl-C. RunError, OSError."""
    try:
        writer = PacketWriter(file, source.interfaces, _PROGRAM)
        cut: Sequence[str] = ()
        try:
            _write_all(source.packets(writer.ended), asked, writer)
            cut = writer.unended
        except KeyboardInterrupt:
            _write_all(source.rest(), asked, writer)
        writer.close()
        return Captured(writer.written, writer.missing, cut)
    finally:
        source.close()


def _write_all(packets: Iterator[Packet], asked: CaptureTarget, writer: PacketWriter) -> None:
    for packet in packets:
        if asked.takes(packet):
            writer.add(packet)
        else:
            writer.skip(packet)


def _is_probe(frame: bytes) -> bool:
    """Of this run or another: programs send neither."""
    kind = frame[12:14]
    if kind == _IPV4 and len(frame) > 34:
        protocol, inner = frame[23], 14 + 4 * (frame[14] & 0xF)
    elif kind == _IPV6 and len(frame) > 54:
        protocol, inner = frame[20], 54
    else:
        return False
    if protocol == _PROBES:
        return True
    return protocol in _ICMP and frame[inner + 8 : inner + 12] in _ECHOES
