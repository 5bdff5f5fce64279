"""The codec: everything that goes in comes out, and nothing else comes in."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from runtime.agent.metadata import codec
from runtime.agent.metadata.codec import CodecError, Message, MessageHeader

RATES = st.one_of(st.integers(0, 70_000), st.integers(0, 2**63))
VALUES = st.integers(0, codec.MAX_VALUE)
FLOWS = st.dictionaries(
    st.one_of(st.integers(0, 400), st.integers(0, 25_600), st.integers(0, 2**32 - 1)),
    VALUES,
    max_size=900,
).map(lambda flows: sorted(flows.items()))
HEADERS = st.builds(
    MessageHeader,
    run_tag=st.binary(min_size=4, max_size=4),
    sender=st.integers(0, 2**16 - 1),
    receiver=st.integers(0, 2**16 - 1),
    boot=st.integers(0, codec.MAX_BOOT),
    for_boot=st.integers(0, codec.MAX_BOOT),
    sequence=st.integers(1, codec.MAX_SEQUENCE),
    epoch=st.integers(0, codec.MAX_EPOCH),
)
TAG = bytes(codec.TAG_BYTES)
# What may follow magic and version: the other fixed fields, numbers, and what might be a tag.
NUMBERS = st.builds(
    lambda fixed, numbers: fixed + b"".join(map(codec.varint, numbers)) + TAG,
    st.binary(min_size=24, max_size=24),
    st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**62)), max_size=40),
)
HEADER = MessageHeader(b"runs", 1, 2, 3, 4, 5, 6)
HEAD_BYTES = 27


def whole(*numbers: bytes) -> bytes:
    """A datagram with these varints after the fixed part."""
    fixed = codec.encode(HEADER)[:HEAD_BYTES]
    return fixed + b"".join(numbers) + TAG


def plain(*numbers: int) -> bytes:
    return whole(*map(codec.varint, numbers))


@given(HEADERS, FLOWS)
def test_what_is_encoded_is_decoded(header: MessageHeader, flows: list[tuple[int, int]]) -> None:
    found: list[tuple[int, int]] = []
    for count, body in codec.flow_bodies(flows) or [(0, b"")]:
        datagram = codec.encode(header, count, body) + TAG
        assert len(datagram) <= codec.MAX_DATAGRAM
        seen, message = codec.decode(datagram)
        assert seen == header
        assert (message.sequence, message.epoch) == (header.sequence, header.epoch)
        assert len(message.paths) == len(message.values) == count
        found += zip(message.paths, message.values, strict=True)
    assert found == flows


@given(HEADERS, FLOWS)
def test_there_is_one_way_to_say_it(header: MessageHeader, flows: list[tuple[int, int]]) -> None:
    """Whatever is decoded is, encoded again, the same bytes: two datagrams never mean the same."""
    for count, body in codec.flow_bodies(flows):
        datagram = codec.encode(header, count, body) + TAG
        seen, message = codec.decode(datagram)
        again = codec.flow_bodies(zip(message.paths, message.values, strict=True))
        assert codec.encode(seen, *again[0]) + TAG == datagram


def test_as_much_as_fits_goes_into_one() -> None:
    flows = [(path, codec.MAX_VALUE) for path in range(0, 4000, 2)]
    pieces = codec.flow_bodies(flows)
    assert sum(count for count, _ in pieces) == 2000
    assert all(codec.ROOM - 5 <= len(body) <= codec.ROOM for _, body in pieces[:-1])
    assert codec.flow_bodies([]) == []


@given(RATES)
def test_rates_are_right_within_four_thousandths(rate_bps: int) -> None:
    told = codec.rate_of(codec.code_of(rate_bps))
    assert abs(told - rate_bps) * 256 <= rate_bps


@given(st.integers(0, codec.MAX_CODE - 1))
def test_codes_ascend_and_are_their_own_rates(code: int) -> None:
    assert codec.rate_of(code) < codec.rate_of(code + 1) < 2**63
    assert codec.code_of(codec.rate_of(code)) == code


@pytest.mark.parametrize(
    ("rate_bps", "told"),
    [
        (0, 0),
        (1, 1),
        (255, 255),
        (257, 258),
        (514, 516),
        (10**9, 998_244_352),
        (2**70, 255 << 55),
    ],
)
def test_rates_are_rounded_half_up_and_end_somewhere(rate_bps: int, told: int) -> None:
    assert codec.rate_of(codec.code_of(rate_bps)) == told


def test_the_smallest_message_is_a_message() -> None:
    datagram = codec.encode(MessageHeader(b"runs", 0, 1, 1, 0, 1, 0)) + TAG
    assert len(datagram) == codec.MIN_DATAGRAM == 46
    assert codec.decode(datagram)[1] == Message(1, 0, [], [])


@pytest.mark.parametrize(
    ("datagram", "why"),
    [
        (plain(5, 6, 0) + bytes(1400), "longer than 1400 bytes"),
        (plain(5, 6, 0)[1:], "shorter than 46 bytes"),
        (b"UM" + plain(5, 6, 0)[2:], "not a metadata message"),
        (b"TM\x01" + plain(5, 6, 0)[3:], "version 1, and this is 2"),
        (whole(b"\x05\x06\x80"), "ends within a number"),
        (whole(b"\x05\x86\x01"), "not all there"),
        (plain(0, 6, 0), "a sequence number out of range"),
        (plain(1 << 62, 6, 0), "a sequence number out of range"),
        (plain(5, 1 << 32, 0), "an epoch out of range"),
        (plain(5, 6, 1), "1 flows are announced, and 0 numbers follow"),
        (plain(5, 6, 1, 7), "1 flows are announced, and 1 numbers follow"),
        (plain(5, 6, 0, 7, 8), "0 flows are announced, and 2 numbers follow"),
        (plain(5, 6, 2**62, 7, 8), "are announced, and 2 numbers follow"),
        (plain(5, 6, 2, 7, 8, 0, 8), "a flow that is there twice"),
        (plain(5, 6, 1, 7, codec.MAX_VALUE + 1), "a value out of range"),
        (whole(b"\x85\x00\x06\x00"), "longer than it need be"),
        (whole(b"\x05\x06\x00\x80\x80\x00"), "longer than it need be"),
        (whole(b"\x05\x06\x01" + b"\xff" * 9 + b"\x01" + b"\x00"), "more than 63 bits"),
    ],
)
def test_what_is_against_a_rule_is_refused(datagram: bytes, why: str) -> None:
    with pytest.raises(CodecError, match=why):
        codec.decode(datagram)


@given(HEADERS, FLOWS.filter(bool), st.data())
def test_what_is_cut_short_is_refused(
    header: MessageHeader, flows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Its last 16 bytes are then another tag: without keys, the numbers give it away."""
    count, body = codec.flow_bodies(flows)[0]
    datagram = codec.encode(header, count, body) + TAG
    length = data.draw(st.integers(0, len(datagram) - 1))
    with pytest.raises(CodecError):
        codec.decode(datagram[:length])


@given(st.one_of(st.binary(max_size=1500), NUMBERS))
def test_garbage_is_refused_or_understood(datagram: bytes) -> None:
    try:
        _, message = codec.decode(b"TM" + bytes([codec.VERSION]) + datagram)
    except CodecError as error:
        assert str(error)
    else:
        assert len(message.paths) == len(message.values)
        assert sorted(set(message.paths)) == message.paths
        assert all(0 <= value <= codec.MAX_VALUE for value in message.values)


def test_garbage_gets_as_far_as_the_numbers() -> None:
    """Or the test above would prove nothing: a version that is refused hides all the rest."""
    seen = find(NUMBERS, lambda rest: _is_understood(b"TM" + bytes([codec.VERSION]) + rest))
    assert len(seen) >= codec.MIN_DATAGRAM - 3


def _is_understood(datagram: bytes) -> bool:
    try:
        return bool(codec.decode(datagram)[1].paths)
    except CodecError:
        return False


@pytest.mark.parametrize("version", [0, 1, 3, 255])
def test_another_version_is_refused_by_name_whatever_follows(version: int) -> None:
    datagram = plain(5, 6, 1, 7, 8)
    other = datagram[:2] + bytes([version]) + datagram[3:]
    with pytest.raises(CodecError, match=f"^version {version}, and this is {codec.VERSION}$"):
        codec.decode(other)


@given(st.integers(0, 10**15))
def test_waits_are_right_within_four_thousandths_or_half_a_unit(wait_ns: int) -> None:
    value = codec.wait_value(wait_ns)
    told_ns = codec.rate_of(value >> 1) * codec.WAIT_UNIT_NS
    assert value & 1, "greedy"
    assert value != codec.ENDED
    assert abs(told_ns - wait_ns) <= codec.WAIT_UNIT_NS // 2 + (wait_ns + codec.WAIT_UNIT_NS) / 256


def test_the_longest_wait_fits_into_a_message() -> None:
    assert codec.wait_value(2**200) == codec.MAX_VALUE
