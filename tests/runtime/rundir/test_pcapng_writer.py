"""What `PacketWriter` writes is what the strict reader reads."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from runtime.rundir.pcapng import Packet, read_packets
from runtime.rundir.pcapng_writer import PacketWriter

NAMES = ("a->b", "a->b/offered", "b->a")
PACKETS = st.lists(
    st.builds(
        Packet,
        interface=st.sampled_from(NAMES),
        at_ns=st.integers(0, 2**64 - 1),
        data=st.binary(max_size=70),
        comment=st.sampled_from(("", "dropped: lost by the draw")),
        missing=st.integers(0, 5),
    )
)


@given(PACKETS, st.integers(0, 40))
def test_packets_come_back_and_those_skipped_leave_what_was_missing(
    packets: list[Packet], behind: int
) -> None:
    file, ends = io.BytesIO(), dict.fromkeys(NAMES, 0)
    writer = PacketWriter(file, NAMES, "x")
    for number, packet in enumerate(packets):
        (writer.skip if number % 3 == 2 else writer.add)(packet)
    missing = sum(one.missing for one in packets)
    first = sum(one.missing for one in packets if one.interface == NAMES[0])
    writer.ended(NAMES[0], first + behind)
    writer.close()
    file.seek(0)
    found = list(read_packets(file, "x", ends.__setitem__))
    kept = [one for number, one in enumerate(packets) if number % 3 != 2]
    assert [(one.interface, one.at_ns, one.data, one.comment) for one in found] == [
        (one.interface, one.at_ns, one.data, one.comment) for one in kept
    ]
    assert sum(ends.values()) == missing + behind == writer.missing
    assert writer.written == len(kept)
