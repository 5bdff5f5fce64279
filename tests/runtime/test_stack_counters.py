"""The texts of /proc/PID/net, and what is made of them. No run."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.rundir.held_directory import HeldDirectory
from runtime.rundir.line_files import LineFile
from runtime.rundir.runfiles import check_stack
from runtime.stacks import counters, stack_summary, watch
from runtime.system.network import netdev

SNMP = b"""Ip: Forwarding DefaultTTL InReceives InDiscards
Ip: 1 64 100 3
Tcp: ActiveOpens RetransSegs MaxConn
Tcp: 5 7 -1
Udp: InDatagrams NoPorts InErrors RcvbufErrors SndbufErrors
Udp: 90 0 11 11 0
"""
NETSTAT = b"""TcpExt: SyncookiesSent ListenOverflows ListenDrops
TcpExt: 0 2 4
IpExt: InNoRoutes
IpExt: 9
"""
SIX = (
    b"Ip6InDiscards                   \t2\nUdp6RcvbufErrors                \t0\nIp6OutDiscards\t5\n"
)
DEVICES = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop"
    b" fifo colls carrier compressed\n"
    b"    lo: 1 1 0 9 0 0 0 0 1 1 0 9 0 0 0 0\n"
    b"  eth0: 10 2 0 6 0 0 0 0 20 3 0 8 0 0 0 0\n"
)
TEXTS = {"snmp": SNMP, "netstat": NETSTAT, "snmp6": SIX, "dev": DEVICES}
FOUND = {
    "Ip6InDiscards": 2,
    "Ip6OutDiscards": 5,
    "IpInDiscards": 3,
    "TcpExtListenDrops": 4,
    "TcpExtListenOverflows": 2,
    "TcpRetransSegs": 7,
    "UdpRcvbufErrors": 11,
    "eth0_rx_dropped": 6,
    "eth0_tx_dropped": 8,
}
YOUNG = ("UdpMemErrors", "Udp6MemErrors")  # since Linux 5.11


def test_the_wanted_counters_are_found_by_their_names() -> None:
    assert counters.parse(TEXTS) == FOUND


def test_a_repeated_syn_ack_is_not_told_as_a_drop() -> None:
    tcp = b"Tcp: InErrs InCsumErrors\nTcp: 2 1\n"
    found = counters.parse({**TEXTS, "snmp": tcp})
    assert (found["TcpInErrs"], found["TcpInCsumErrors"]) == (2, 1)
    assert "TcpInErrs" not in counters.DROPS
    assert "TcpInCsumErrors" in counters.DROPS


def test_the_interfaces_columns_are_told_apart() -> None:
    assert netdev.counts(DEVICES) == netdev.DeviceCounts(10, 2, 6, 20, 3, 8)
    assert netdev.counts(DEVICES.replace(b"eth0", b"eth1")) is None
    more = DEVICES + b"  eth1: 1 1 0 1 0 0 0 0 2 1 0 1 0 0 0 0\n"
    assert netdev.counts(more) == netdev.counts(DEVICES) == netdev.of_all(DEVICES)
    assert netdev.of_all(more) == netdev.DeviceCounts(11, 3, 7, 22, 4, 9)
    assert netdev.of_all(b"    lo: 1 2 3\n") is None
    assert netdev.counts(b"  eth0: 1 2 3\n") is None


def test_a_kernel_without_ipv6_or_a_counter_is_no_error() -> None:
    assert counters.parse(dict.fromkeys(TEXTS, b"")) == {}
    assert counters.parse({**TEXTS, "snmp6": b"", "netstat": b"TcpExt: ListenDrops\nTcpExt:\n"})


def test_the_own_namespace_has_them() -> None:
    """Names that this kernel has: a misspelt one would never move."""
    with watch.OpenStack(os.getpid()) as stack:
        first = stack.read()
        assert set(stack.read()) >= set(first)  # the same files, read again
    titles = b"".join(Path(f"/proc/self/net/{name}").read_bytes() for name in counters.FILES)
    names = set(titles.decode().replace(":", " ").split())
    groups = ("TcpExt", "Ip6", "Udp6", "Ip", "Tcp", "Udp")
    for name in {*counters.DROPS, *counters.SIGNS}:
        if name.startswith("eth0") or name in YOUNG:
            continue
        group = next(one for one in groups if name.startswith(one))
        assert {name, name.removeprefix(group)} & names, name


def test_a_dead_process_has_no_stack() -> None:
    with pytest.raises(OSError):
        watch.OpenStack(0x7FFFFFFF)


def test_backlogs_are_of_all_processors() -> None:
    text = b"0000000a 00000001 00000002 0\n000000ff 00000010 00000000 0\n"
    assert counters.parse_softnet(text) == {"SoftnetDropped": 17, "SoftnetTimeSqueezed": 2}


def test_only_what_grew_has_moved() -> None:
    assert watch.moved({"a": 1, "b": 2}, {"b": 2, "c": 3, "a": 4}) == {"a": 3, "c": 3}


def test_lines_come_to_sums_and_a_sentence() -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "header"},
        {"instance": "b.1", "counters": {"UdpRcvbufErrors": 1000, "TcpRetransSegs": 5}},
        {"instance": "a.0", "counters": {"TcpRetransSegs": 5}},
        {"instance": "b.1", "counters": {"UdpRcvbufErrors": 234, "TcpExtListenDrops": 1}},
        {"instance": "", "counters": {"SoftnetTimeSqueezed": 3}},
    ]
    found = stack_summary.sum_up(lines)
    assert found == {
        "stacks": {
            "a.0": {"TcpRetransSegs": 5},
            "b.1": {"TcpExtListenDrops": 1, "TcpRetransSegs": 5, "UdpRcvbufErrors": 1234},
        },
        "softnet": {"SoftnetTimeSqueezed": 3},
    }
    links = [{"drop_queue": 1, "drop_loss": 2, "drop_down": 0}]
    assert stack_summary.line({**found, "links": links}) == (
        "dropped by instances' own stacks, not by the network: b.1 UdpRcvbufErrors 1,234 (the"
        " receive buffer of a UDP socket was full), TcpExtListenDrops 1 (a listening TCP socket"
        " had no room for a connection); the network dropped 3 packets"
    )


def test_what_was_lost_at_the_boundary_is_no_programs_own() -> None:
    """The stack counts them again, wherever they came from."""
    stacks = {"a.0": {"eth0_tx_dropped": 1493, "IpOutDiscards": 1493, "UdpSndbufErrors": 1490}}
    assert stack_summary.line({"stacks": stacks, "links": []}) == (
        "lost between instances' stacks and the network's links: a.0 eth0_tx_dropped 1,493 (eth0"
        " was given packets that were not taken from it: too many, or too large); the network"
        " dropped 0 packets"
    )


def test_nobody_who_dropped_nothing_is_named() -> None:
    assert stack_summary.line({"stacks": {"a.0": {"TcpRetransSegs": 5}}, "links": []}) == ""
    assert stack_summary.line({}) == ""


@pytest.mark.parametrize(
    "line", [{"at_ns": 1, "instance": "a.0", "counters": {"x": -1}}, {"at_ns": 1}, {"kind": 5}, []]
)
def test_a_line_of_another_shape_is_refused(line: object) -> None:
    with pytest.raises(RunError, match=r"stacks\.jsonl:7"):
        check_stack(line, "stacks.jsonl:7")


@pytest.mark.parametrize("rests", [False, True])
def test_in_virtual_time_nobody_looks_while_no_packet_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rests: bool
) -> None:
    """3,600 rounds were most of what an idle hour cost. In real time others use the machine, too,
    and what it drops is looked at each second."""
    looks: list[int] = []
    monkeypatch.setattr(watch, "softnet", lambda: looks.append(1) or {})
    monkeypatch.setattr(watch, "_until", lambda _due_ns: asyncio.sleep(0))
    held = HeldDirectory.hold(tmp_path)
    samples = LineFile(held, "samples.jsonl", pytest.fail)
    file = LineFile(held, "stacks.jsonl", pytest.fail)
    stacks = watch.StackWatch(file, lambda: 0, rests=rests)

    async def looked(moves: bool) -> bool:
        looks.clear()
        if moves:
            samples.append({})
        for _ in range(20):
            await asyncio.sleep(0)
        return bool(looks)

    async def seen() -> list[bool]:
        task = asyncio.create_task(stacks.run(samples))
        found = [await looked(moves) for moves in (True, False, True)]
        task.cancel()
        return found

    assert asyncio.run(seen()) == [True, not rests, True]
