"""What agents tell each other: datagrams out, datagrams in, and what they say.

Input: this agent's flows at every tick and the datagrams of others. Output: datagrams with the host
that each is for, and the flows of others as they stand. docs/metadata.md is the specification. The
socket and the clock are the caller's: times are arguments (CLOCK_MONOTONIC), and no time of this
host's ever reaches another one, so that it does not matter what their clocks differ by. Which start
of an agent is the present one only the coordinator says: nothing from the network is believed that
would end another agent's.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.agent.metadata import codec
from runtime.agent.metadata.auth import Seal, SequenceWindow
from runtime.agent.metadata.codec import CodecError, MessageHeader
from runtime.agent.metadata.interest import Interest
from runtime.agent.metadata.ledger import Ledger
from runtime.agent.metadata.outgoing import (
    REFRESH_NS,
    SLOT_NS,
    AnnouncementState,
    Pieces,
)
from runtime.agent.vocabulary import LocalFlow, RemoteFlow

HEARTBEAT_NS = REFRESH_NS  # a host that is told nothing for that long is told that
HELLO_NS = SLOT_NS  # how often a host that was not heard of yet is greeted

# Each datagram that comes in is counted in one of these.
VERDICTS = (
    "taken",
    "too_long",
    "garbage",
    "other_version",
    "other_run",
    "misdirected",
    "forged",
    "unannounced",
    "stale",
    "malformed",
    "replayed",
    "late",
)
COUNTERS = (
    *VERDICTS,
    "received_bytes",
    "sent",
    "sent_bytes",
    "sent_flows",
    "taken_flows",
    "reordered",
    "missing",
    "epoch_ahead",
    "epoch_behind",
    "restarts_seen",
    "aged_flows",
)


class _Peer:
    """Another host, as far as it was heard of."""

    __slots__ = ("due", "heard", "met", "sent_ns", "sequence", "start", "window")

    def __init__(self, start: int) -> None:
        self.start = start  # the number of its present start, from the coordinator
        self.heard = False  # of that start
        self.met = False  # of any
        self.window = SequenceWindow(0)
        self.sequence = 0  # of what was sent to it
        self.sent_ns = -HEARTBEAT_NS  # when
        self.due = False  # it waits for a sign of ours


class Metadata:
    """One agent's metadata, of one start of the agent."""

    def __init__(self, key: bytes, run: bytes, me: int, starts: Sequence[int]) -> None:
        """`starts` numbers the present start of each host's agent, this one's included: greater
        than that of any earlier agent of the host in this run, from 1 to 2^64 - 1. ValueError for
        numbers out of range."""
        if not 0 <= me < len(starts) <= codec.MAX_HOSTS:
            raise ValueError(f"host {me} of {len(starts)} is not a host")
        _check_starts(starts)
        self._seal = Seal(key, run)
        self._me = me
        self._boot = starts[me]
        self._peers = [_Peer(start) for start in starts]
        self._live = 0  # the hosts that were heard of
        self._number = 0
        self._interest: Interest | None = None
        self._telling = AnnouncementState()
        self._ledger: Ledger | None = None
        self._counters = dict.fromkeys(COUNTERS, 0)

    def epoch(self, number: int, interest: Interest, now_ns: int) -> None:
        """The network is now as in epoch `number`. Comes before anything else."""
        del now_ns  # nothing about an epoch depends on it
        if interest.hosts > len(self._peers):
            raise ValueError(f"instances are on {interest.hosts} hosts of {len(self._peers)}")
        self._number = number
        self._interest = interest
        self._telling.epoch(interest)
        if self._ledger is None:
            self._ledger = Ledger(len(self._peers), interest.instances, interest.placement)

    def announce(self, starts: Sequence[int]) -> None:
        """The coordinator's word on which start of each agent is the present one. Numbers below
        those known already are from before, and change nothing. ValueError as at the beginning.

        What an agent told before its new start stands until that is heard of, or grows old.
        """
        if len(starts) != len(self._peers):
            raise ValueError(f"{len(starts)} starts of {len(self._peers)} hosts")
        _check_starts(starts)
        for host, (peer, start) in enumerate(zip(self._peers, starts, strict=True)):
            if start > peer.start and host != self._me:
                peer.start, peer.heard = start, False
                self._live &= ~(1 << host)
                self._telling.forget(host)

    def counters(self) -> dict[str, int]:
        """Cumulative, by the names of docs/metadata.md."""
        aged = self._ledger.aged if self._ledger else 0
        missing = sum(peer.window.missing for peer in self._peers) + self._counters["missing"]
        return {**self._counters, "aged_flows": aged, "missing": missing}

    def remote(self, now_ns: int) -> list[RemoteFlow]:
        """The flows of other hosts as they stand, by host; the same object as long as nothing about
        a flow is new. Ages are in steps of ledger.AGE_STEP_NS."""
        return [] if self._ledger is None else self._ledger.flows(now_ns)

    # --- out ---------------------------------------------------------------------------------

    def outgoing(self, now_ns: int, flows: Sequence[LocalFlow]) -> list[tuple[int, bytes]]:
        """(host, datagram) to send now. `flows` are all that move; one that is missing has ended.

        To be called at every tick, in order of time.
        """
        if len(self._peers) == 1 or self._interest is None:
            return []
        pieces = Pieces(self._telling.tick(now_ns, flows, self._live))
        out: list[tuple[int, bytes]] = []
        neighbours = self._interest.neighbours(self._me)
        for host, peer in enumerate(self._peers):
            for count, body in pieces.of(host):
                out.append((host, self._datagram(host, peer, now_ns, count, body)))
            if host != self._me and self._is_due(peer, now_ns, neighbours >> host & 1):
                out.append((host, self._datagram(host, peer, now_ns, 0, b"")))
        return out

    def _is_due(self, peer: _Peer, now_ns: int, neighbour: int) -> bool:
        """Whether it has to be shown that we are there. Also those that are no neighbours yet are
        greeted: they may be in the next epoch, and flows are told only to who was heard of."""
        waited_ns = now_ns - peer.sent_ns
        if not peer.heard:
            return waited_ns >= HELLO_NS
        return peer.due or (neighbour == 1 and waited_ns >= HEARTBEAT_NS)

    def _datagram(self, host: int, peer: _Peer, now_ns: int, count: int, body: bytes) -> bytes:
        peer.sequence += 1
        peer.sent_ns, peer.due = now_ns, False
        header = MessageHeader(
            self._seal.run_tag,
            self._me,
            host,
            self._boot,
            peer.start if peer.heard else 0,
            peer.sequence,
            self._number,
        )
        datagram = self._seal.close(codec.encode(header, count, body))
        self._counters["sent"] += 1
        self._counters["sent_bytes"] += len(datagram)
        self._counters["sent_flows"] += count
        return datagram

    # --- in ----------------------------------------------------------------------------------

    def incoming(self, now_ns: int, datagram: bytes) -> None:
        """Takes a datagram as it came; whatever is wrong with it is counted, and it is dropped."""
        self._counters["received_bytes"] += len(datagram)
        self._counters[self._judged(now_ns, datagram)] += 1

    def _judged(self, now_ns: int, datagram: bytes) -> str:
        """Takes it or not; returns the counter that it belongs to. Cheap tests come first."""
        if len(datagram) > codec.MAX_DATAGRAM:
            return "too_long"
        if len(datagram) < codec.MIN_DATAGRAM:
            return "garbage"
        magic, version, run_tag, sender, receiver, boot, for_boot = codec.split_head(datagram)
        if magic != codec.MAGIC:
            return "garbage"
        if version != codec.VERSION:
            return "other_version"
        if run_tag != self._seal.run_tag:
            return "other_run"
        if receiver != self._me or sender == self._me or sender >= len(self._peers):
            return "misdirected"
        if not self._seal.holds(datagram):
            return "forged"
        return self._genuine(now_ns, sender, boot, for_boot, datagram)

    def _genuine(self, now_ns: int, sender: int, boot: int, for_boot: int, datagram: bytes) -> str:
        """The same of what somebody with the key has made, who may still be lying about starts."""
        peer = self._peers[sender]
        if boot > peer.start:
            return "unannounced"
        if boot < peer.start or for_boot not in (0, self._boot):
            return "stale"
        try:
            message = codec.decode_numbers(datagram)
        except CodecError:
            return "malformed"
        if not peer.heard:
            self._meet(sender, peer, now_ns)
        verdict = peer.window.judge(message.sequence, now_ns)
        if verdict:
            return verdict
        return self._take(now_ns, sender, peer, bool(for_boot), message)

    def _meet(self, host: int, peer: _Peer, now_ns: int) -> None:
        """A host is heard of for the first time since its start."""
        if peer.met:
            self._counters["restarts_seen"] += 1
            self._counters["missing"] += peer.window.missing
        peer.heard = peer.met = True
        peer.window = SequenceWindow(now_ns)
        self._live |= 1 << host
        if self._ledger is not None:
            self._ledger.forget(host)

    def _take(
        self, now_ns: int, sender: int, peer: _Peer, bound: bool, message: codec.Message
    ) -> str:
        newest = message.sequence == peer.window.highest
        if not bound:
            peer.due = True  # it does not know us: show ourselves
            return "malformed" if message.paths else "taken"
        if message.paths and (
            self._ledger is None
            or not self._ledger.take(
                sender, message.sequence, newest, now_ns, message.paths, message.values
            )
        ):
            return "malformed"
        counters = self._counters
        counters["taken_flows"] += len(message.paths)
        counters["reordered"] += not newest
        if message.epoch != self._number:
            counters["epoch_ahead" if message.epoch > self._number else "epoch_behind"] += 1
        return "taken"


def _check_starts(starts: Sequence[int]) -> None:
    for start in starts:
        if not 0 < start <= codec.MAX_BOOT:
            raise ValueError(f"{start} cannot number a start: 1 to 2^64 - 1 can")
