"""Packets of a record are joined from their sender to where they arrived or were lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.plan.reader import read_plan
from runtime.results import sent_packets
from runtime.results.sent_packets import SentPacket, SentPackets, recorded_packets, thinned
from runtime.rundir.pcapng import Packet
from runtime.rundir.rundir import recorded
from runtime.schedule import PlanClock
from tests.runtime.rundir import packets_made
from tests.runtime.rundir.packets_made import MS, frame

START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return packets_made.make(tmp_path / "run", START_NS)


def read(run: Path, pace: int = 1) -> SentPackets:
    found = recorded_packets(recorded(run), read_plan(run / "plan"), PlanClock(0, pace), START_NS)
    assert found is not None
    return found


def replaced(run: Path, *records: Packet) -> SentPackets:
    for path in (run / "packets").iterdir():
        path.unlink()
    (run / "packets").rmdir()
    packets_made.put(run, records, START_NS)
    return read(run)


def ends(run: Path) -> tuple[str, str]:
    a, b, *_ = read_plan(run / "plan").topology.nodes
    return a.ipv4, b.ipv4


def test_a_packet_is_joined_over_its_links_whatever_its_ttl(run: Path) -> None:
    lost = "lost by the draw"
    assert read(run).packets == [
        SentPacket(1 * MS, 4 * MS, 0, 1, 3, "", "ping", 28),
        SentPacket(10 * MS, 12 * MS, 1, 0, 1, lost, "ping's answer", 28),
    ]
    assert list(read(run).told()) == []
    # Delays are real time, and the moments of the plan pass faster.
    assert [one.sent_ns for one in read(run, pace=10).packets] == [10 * MS, 100 * MS]


def test_a_run_without_a_record_has_none(run: Path) -> None:
    for path in (run / "packets").iterdir():
        path.unlink()
    (run / "packets").rmdir()
    assert recorded_packets(recorded(run), read_plan(run / "plan"), PlanClock(0, 1), 0) is None


def test_equal_packets_keep_their_order_and_duplicates_have_one_beginning(run: Path) -> None:
    a, b = ends(run)
    same = frame(a, b)
    found = replaced(
        run,
        Packet("a.0->s1", 2 * MS, same, "", 0),
        Packet("a.0->s1", 3 * MS, same, "", 0),
        Packet("s1->b.0", 4 * MS, same, "", 0),
        Packet("s1->b.0", 5 * MS, same, "", 0),
        Packet("s1->b.0", 6 * MS, same, "", 0),
    )
    assert [(one.sent_ns, one.end_ns) for one in found.packets] == [
        (1 * MS, 4 * MS),
        (2 * MS, 5 * MS),
        (2 * MS, 6 * MS),
    ]


def test_what_the_first_link_loses_was_sent_then_and_what_is_never_seen_again_says_so(
    run: Path,
) -> None:
    a, b = ends(run)
    found = replaced(
        run,
        Packet("a.0->s1", 7 * MS, frame(a, b, 1), "dropped: the link was down", 0),
        Packet("a.0->s1", 9 * MS, frame(a, b, 2), "", 5),
        Packet("s1->b.0", 9 * MS, frame(a, b, 3), "", 0),
    )
    assert [(one.sent_ns, one.end_ns, one.cause) for one in found.packets] == [
        (7 * MS, 7 * MS, "the link was down"),
        (8 * MS, 9 * MS, "not seen after s1"),
    ]
    assert (found.stray, found.missing) == (1, 5)
    assert len(list(found.told())) == 2


def test_only_the_first_records_of_a_long_run_are_kept(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_packets, "MOST_RECORDS", 4)
    a, b = ends(run)
    records = []
    for number in range(20):
        at_ns, data = number * 10 * MS, frame(a, b, number)
        records.append(Packet("a.0->s1", at_ns + 2 * MS, data, "", 0))
        records.append(Packet("s1->b.0", at_ns + 4 * MS, data, "", 0))
    found = replaced(run, *records)
    assert found.until_ns is not None
    arrived = [one for one in found.packets if not one.cause and one.end_ns < found.until_ns]
    assert [one.sent_ns for one in arrived] == [at * 10 * MS + MS for at in range(len(arrived))]
    assert any("until" in words for words in found.told())


SENT = st.builds(
    SentPacket,
    st.integers(0, 999),
    st.integers(0, 999),
    st.just(0),
    st.just(1),
    st.just(0),
    st.sampled_from(["", "lost by the draw"]),
    st.just("ping"),
    st.integers(0, 9),
)


@given(st.lists(SENT, max_size=60), st.integers(1, 50), st.integers(1, 9))
def test_no_more_are_kept_than_asked_and_lost_ones_first(
    packets: list[SentPacket], most: int, slices: int
) -> None:
    packets.sort(key=lambda one: one.sent_ns)
    kept, left_out = thinned(packets, most, 0, 1000, slices)
    assert len(kept) <= most
    assert len(kept) + sum(left_out) == len(packets)
    assert [one.sent_ns for one in kept] == sorted(one.sent_ns for one in kept)
    if len(packets) <= most:
        assert kept == packets
    elif slices == 1:
        lost = [one for one in packets if one.cause]
        assert [one for one in kept if one.cause] == lost[:most]
