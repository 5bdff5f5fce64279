"""The line between a guest and its host: records in, records out, however the bytes are cut."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from runtime.virtual.line import AHEAD_BYTES, HostEnd, Lines, Renaming, encode, pair
from tests.waiting import in_a_loop

RECORDS = st.lists(st.dictionaries(st.text(), st.integers(0, 1 << 60) | st.text()), max_size=5)


@given(RECORDS, st.integers(1, 40))
def test_records_arrive_whole_and_in_order_however_they_are_cut(
    records: list[dict[str, object]], size: int
) -> None:
    data = b"".join(encode(record) for record in records)
    lines = Lines()
    parts = (data[at : at + size] for at in range(0, len(data), size))
    assert [record for part in parts for record in lines.take(part)] == records


@pytest.mark.parametrize("data", [b"{\n", b"[]\n", b"1\n", b"\xff\n", b"\n"])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="line"):
        list(Lines().take(data))


@in_a_loop
async def test_the_host_hears_the_guest_and_its_end() -> None:
    ours, theirs = pair()
    host = HostEnd(ours, Renaming({"/run/tstorm/run": "/home/me/runs/a"}))
    with theirs:
        theirs.sendall(encode({"final": {}}) + encode({"more": "see /run/tstorm/run/x"}))
        assert host.receive() == [{"final": {}}, {"more": "see /home/me/runs/a/x"}]
        host.send({"stop": True})
        assert theirs.recv(100) == encode({"stop": True})
    assert host.receive() is None
    host.close()


@pytest.mark.parametrize("got", ["1", 1.5, None, True, [1]])
@in_a_loop
async def test_what_a_guest_confirms_is_a_number(got: object) -> None:
    ours, theirs = pair()
    host = HostEnd(ours, Renaming({"/a": "/b"}))
    with theirs:
        theirs.sendall(encode({"got": got}))
        with pytest.raises(RunError, match="no number"):
            host.receive()
    host.close()


@in_a_loop
async def test_no_more_is_on_its_way_than_a_guest_has_room_for_and_nobody_waits() -> None:
    ours, theirs = pair()
    host = HostEnd(ours, Renaming({"/a": "/b"}))
    record = {"say": "x" * 50_000}
    host.send(record)
    with pytest.raises(BlockingIOError):  # it may not have opened its side yet
        theirs.recv(1, socket.MSG_DONTWAIT)
    theirs.sendall(encode({"got": 0}))
    assert host.receive() == []
    data = b""
    while len(data) < len(encode(record)):
        part = theirs.recv(1 << 20)
        assert 0 < len(part) <= AHEAD_BYTES
        with pytest.raises(BlockingIOError):
            theirs.recv(1, socket.MSG_DONTWAIT)
        data += part
        theirs.sendall(encode({"got": len(data)}))
        assert host.receive() == []
    assert data == encode(record)
    host.close()
    theirs.close()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/run/tstorm/run", '/a b/\u00fc"'),
        ("is /run/tstorm/run/logs/x, /run/tstorm/run.", 'is /a b/\u00fc"/logs/x, /a b/\u00fc".'),
        ("/run/tstorm/running", "/run/tstorm/running"),
        ("/x/run/tstorm/run", "/x/run/tstorm/run"),
    ],
)
def test_the_guests_name_of_the_run_directory_becomes_the_hosts(said: str, shown: str) -> None:
    (record,) = Lines(rename=Renaming({"/run/tstorm/run": '/a b/\u00fc"'})).take(
        encode({"m": said})
    )
    assert record == {"m": shown}


def test_several_names_are_replaced_at_once() -> None:
    rename = Renaming({"/run": "/home/a-run", "a-run": "b"})
    (record,) = Lines(rename=rename).take(encode({"id": "a-run", "at": "/run/x", "c": "a-run-2"}))
    assert record == {"id": "b", "at": "/home/a-run/x", "c": "a-run-2"}
