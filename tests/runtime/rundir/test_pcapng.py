"""The reader of files of packets: what pktd writes is read, the rest is refused with a place."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from runtime.rundir.pcapng import Packet, read_packets
from tests.fuzz.fuzz_pcapng import attempt
from tests.runtime.rundir.pcapng_writer import block, file, head

NAMES = ("a.0->s1", "s1->a.0")
PACKETS = [
    Packet(NAMES[0], 10**18 + 1, b"\x02" * 14 + b"E" + bytes(40), "", 0),
    Packet(NAMES[1], 10**18 + 7, b"\x02" * 61, "dropped: lost by the draw", 0),
    Packet(NAMES[0], 10**18 + 9, b"\x02" * 60, "", 12),
]
WHOLE = file(PACKETS, NAMES)


def read(data: bytes) -> list[Packet]:
    return list(read_packets(io.BytesIO(data), "x.pcapng"))


def refusal(data: bytes) -> str:
    with pytest.raises(RunError) as found:
        read(data)
    return found.value.message


def test_what_was_written_is_read() -> None:
    assert read(WHOLE) == PACKETS
    assert read(file(PACKETS, NAMES, order=">")) == PACKETS
    assert read(head("<", NAMES)) == []


def test_what_a_crash_has_cut_is_left_out() -> None:
    ends = len(head("<", NAMES))
    for size in range(ends, len(WHOLE)):
        found = read(WHOLE[:size])
        assert found == PACKETS[: len(found)]
    assert read(WHOLE[:ends]) == []


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "there is nothing in it"),
        (b"no such file", "it is no pcapng file"),
        (head("<", NAMES)[:8] + bytes(4), "it is no pcapng file"),
        (head("<", NAMES) * 2, "a file begins with its one section header"),
        (head("<", [str(n) for n in range(17)]), "there are more than 16 interfaces"),
        (head("<", ["ä"]), "a text is not ASCII"),
        (head("<", NAMES) + block("<", 3, bytes(4)), "a block has the unknown type 0x3"),
        (head("<", NAMES) + struct.pack("<II", 6, 0), "a block has the length 0"),
        (head("<", NAMES) + struct.pack("<II", 6, 1 << 20), "a block has the length 1048576"),
        (head("<", NAMES) + struct.pack("<IIII", 6, 16, 0, 20), "a block has two lengths"),
        (head("<", NAMES) + block("<", 6, bytes(4)), "a block is too short"),
        (head("<", NAMES) + block("<", 6, struct.pack("<5I", 2, 0, 0, 0, 0)), "no interface 2"),
        (head("<", NAMES) + block("<", 6, struct.pack("<5I", 0, 0, 0, 9, 9)), "a packet is cut"),
        (head("<", NAMES) + block("<", 6, struct.pack("<5I", 0, 0, 0, 0, 1)), "a packet is cut"),
        (
            head("<", NAMES) + block("<", 6, struct.pack("<5I", 0, 0, 0, 1, 1) + b"abcd"),
            "a packet is cut or not padded with zeros",
        ),
        (
            head("<", NAMES) + block("<", 6, struct.pack("<5IHHI", 0, 0, 0, 0, 0, 9, 4, 0)),
            "a block has the option 9 of 4 bytes",
        ),
        (
            head("<", NAMES) + block("<", 6, struct.pack("<5IHHI", 0, 0, 0, 0, 0, 1, 4, 0)),
            "options have no end",
        ),
        (
            head("<", NAMES) + block("<", 6, struct.pack("<5III", 0, 0, 0, 0, 0, 0, 0)),
            "options go on behind their end",
        ),
        (WHOLE + WHOLE[len(head("<", NAMES)) :], "interface 0 goes on behind its end"),
    ],
)
def test_what_pktd_does_not_write_is_refused(data: bytes, words: str) -> None:
    said = refusal(data)
    assert words in said
    assert said.startswith("x.pcapng: at byte ")


TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=9)


@given(
    st.lists(
        st.builds(
            Packet,
            st.sampled_from(NAMES),
            st.integers(0, 2**64 - 1),
            st.binary(max_size=80),
            TEXTS,
            st.integers(0, 2**64 - 1),
        )
    ),
    st.sampled_from("<>"),
)
def test_any_packets_are_read_as_written(packets: list[Packet], order: str) -> None:
    assert read(file(packets, NAMES, order=order)) == packets


def test_mutated_files_are_read_or_refused() -> None:
    refused = sum(not attempt(seed) for seed in range(2000))
    assert 300 < refused < 2000
