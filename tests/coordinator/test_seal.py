"""The handshake and the frames, without I/O: no attack gets a wrong message through."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.rpc import seal
from runtime.rpc.seal import ClientHandshake, Handshake, Opener, Sealer, SealError, ServerHandshake

KEY = bytes(range(32))
OTHER = bytes(32)
HEAD = 4 + seal.TAG_BYTES
LENGTHS = [0, 1, seal.FRAME_BYTES - 1, seal.FRAME_BYTES, seal.FRAME_BYTES + 1, 3 * seal.FRAME_BYTES]
MESSAGES = st.lists(st.binary(max_size=60), min_size=1, max_size=6)


def met(client: Handshake, server: Handshake) -> tuple[Handshake, Handshake]:
    """Both after a handshake without anybody between."""
    proof = client.feed(server.opening)
    assert client.feed(server.feed(proof)) == b""
    assert client.opener and server.opener
    return client, server


def pair() -> tuple[Handshake, Handshake]:
    return met(ClientHandshake(KEY), ServerHandshake(KEY))


def frames_of(data: bytes) -> list[bytes]:
    """Cuts what a sealer made into frames."""
    found = []
    while data:
        size = HEAD + int.from_bytes(data[1:4], "big")
        found.append(data[:size])
        data = data[size:]
    return found


def opened(opener: Opener, data: bytes) -> list[bytes]:
    """What comes out before the first error, byte by byte: an error must not swallow anything."""
    found: list[bytes] = []
    try:
        for at in range(len(data)):
            found += opener.feed(data[at : at + 1])
    except SealError:
        pass
    return found


# -- frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
def test_messages_of_every_length_arrive_whole(length: int) -> None:
    message = bytes(n % 251 for n in range(length))
    data = Sealer(KEY).seal(message)
    opener = Opener(KEY)
    assert opener.feed(data) == [message]
    assert opener.frames == len(frames_of(data)) == max(1, -(-length // seal.FRAME_BYTES))
    assert not opener.inside


@given(MESSAGES, st.lists(st.integers(1, 90), min_size=1, max_size=30))
def test_any_portions_give_the_same_messages(messages: list[bytes], sizes: list[int]) -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    data = b"".join(map(sealer.seal, messages)) + sealer.end()
    found: list[bytes] = []
    turn = 0
    while data:
        size = sizes[turn % len(sizes)]
        found += opener.feed(data[:size])
        data, turn = data[size:], turn + 1
    assert found == messages
    assert opener.ended


@given(MESSAGES, st.data())
def test_truncation_gives_a_beginning_and_no_goodbye(
    messages: list[bytes], data: st.DataObject
) -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    stream = b"".join(map(sealer.seal, messages)) + sealer.end()
    cut = data.draw(st.integers(0, len(stream) - 1))
    found = opener.feed(stream[:cut])
    assert found == messages[: len(found)]
    assert not opener.ended


@given(MESSAGES, st.data())
def test_a_changed_bit_lets_nothing_wrong_through(
    messages: list[bytes], data: st.DataObject
) -> None:
    sealer = Sealer(KEY)
    parts = [sealer.seal(message) for message in messages]
    stream = bytearray(b"".join(parts))
    bit = data.draw(st.integers(0, 8 * len(stream) - 1))
    stream[bit // 8] ^= 1 << bit % 8
    whole, end = 0, 0
    for part in parts:
        end += len(part)
        whole += end <= bit // 8
    opener = Opener(KEY)
    assert opened(opener, bytes(stream)) == messages[:whole]
    assert not opener.ended


@given(st.lists(st.binary(max_size=20), min_size=2, max_size=6, unique=True), st.data())
def test_frames_must_come_once_and_in_order(messages: list[bytes], data: st.DataObject) -> None:
    sealer = Sealer(KEY)
    parts = [sealer.seal(message) for message in messages]
    order = data.draw(st.lists(st.sampled_from(range(len(parts))), min_size=1, max_size=8))
    right = 0
    while right < len(order) and order[right] == right:
        right += 1
    found = opened(Opener(KEY), b"".join(parts[n] for n in order))
    assert found == messages[:right]


def test_a_frame_left_out_within_a_message_is_noticed() -> None:
    frames = frames_of(Sealer(KEY).seal(bytes(3 * seal.FRAME_BYTES)))
    with pytest.raises(SealError, match="not genuine"):
        Opener(KEY).feed(frames[0] + frames[2])


def test_frames_of_the_other_direction_or_session_are_refused() -> None:
    client, server = pair()
    assert client.sealer and server.sealer and client.opener and server.opener
    sent = client.sealer.seal(b"{}")
    with pytest.raises(SealError, match="not genuine"):
        client.opener.feed(sent)  # reflected
    later, _ = pair()
    _, other = pair()
    assert other.opener and later.opener
    with pytest.raises(SealError, match="not genuine"):
        other.opener.feed(sent)  # replayed
    assert server.opener.feed(sent) == [b"{}"]
    with pytest.raises(SealError, match="not genuine"):
        server.opener.feed(sent)  # repeated


def header(kind: int, length: int) -> bytes:
    return (kind << 24 | length).to_bytes(4, "big")


@pytest.mark.parametrize(
    "kind, length",
    [(0, 0), (0, seal.FRAME_BYTES - 1), (1, seal.FRAME_BYTES + 1), (1, 0xFFFFFF), (2, 1), (3, 0)],
)
def test_sizes_that_no_frame_has_are_refused_at_once(kind: int, length: int) -> None:
    with pytest.raises(SealError, match="a header that no frame has"):
        Opener(KEY).feed(header(kind, length) + bytes(seal.TAG_BYTES))


def test_nothing_follows_the_goodbye() -> None:
    sealer, opener = Sealer(KEY), Opener(KEY)
    assert opener.feed(sealer.end()) == []
    with pytest.raises(SealError, match=r"follows the goodbye|that no frame has"):
        opener.feed(sealer.seal(b"{}"))


def test_a_goodbye_within_a_message_is_no_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    sealer = Sealer(KEY)
    begin = frames_of(sealer.seal(bytes(seal.FRAME_BYTES + 1)))[0]
    sealer = Sealer(KEY)
    sealer.seal(b"")  # counts one frame
    with pytest.raises(SealError, match="follows the goodbye"):
        Opener(KEY).feed(begin + sealer.end())


def test_messages_have_a_limit_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Sealer(KEY).seal(bytes(4 * seal.FRAME_BYTES))
    monkeypatch.setattr(seal, "MESSAGE_BYTES", 3 * seal.FRAME_BYTES)
    with pytest.raises(SealError, match="longer than the limit"):
        Opener(KEY).feed(data)
    with pytest.raises(ValueError, match="too many for one message"):
        Sealer(KEY).seal(bytes(3 * seal.FRAME_BYTES + 1))


@given(st.binary(max_size=200))
def test_garbage_is_never_a_message(data: bytes) -> None:
    opener = Opener(KEY)
    assert opened(opener, data) == []
    assert not opener.ended
    assert opener.frames == 0


# -- handshake ----------------------------------------------------------------------------------


def test_the_handshake_as_documented() -> None:
    """Bytes by hand, so that another program can be written from the documentation."""
    ns, nc = b"S" * 32, b"C" * 32
    server = ServerHandshake(KEY, ns)
    assert server.opening == b"tstorm\x00\x01" + ns
    transcript = b"tstorm\x00\x01" + ns + nc

    def keyed(person: bytes) -> bytes:
        return hashlib.blake2b(transcript, key=KEY, person=person, digest_size=32).digest()

    proof = b"tstorm\x00\x01" + nc + keyed(b"ts-client-proof")
    assert server.feed(proof) == keyed(b"ts-server-proof")
    key = keyed(b"ts-frames-up")
    text = header(1, 2) + b"{}"
    tag = hashlib.blake2b(bytes(8) + text, key=key, digest_size=16).digest()
    assert server.opener is not None
    assert server.opener.feed(header(1, 2) + tag + b"{}") == [b"{}"]


def test_messages_both_ways_and_together_with_the_handshake() -> None:
    client, server = ClientHandshake(KEY), ServerHandshake(KEY)
    proof = server.feed(client.feed(server.opening))
    assert server.sealer is not None
    client.feed(proof + server.sealer.seal(b"welcome"))
    assert client.opener and client.sealer and server.opener
    assert client.opener.feed(client.rest) == [b"welcome"]
    assert server.opener.feed(client.sealer.seal(b"hello")) == [b"hello"]


def test_other_keys_are_refused_by_both() -> None:
    server = ServerHandshake(KEY)
    with pytest.raises(SealError, match="does not have this run's key") as refusal:
        server.feed(ClientHandshake(OTHER).feed(server.opening))
    assert refusal.value.counter == "wrong_key"
    client = ClientHandshake(KEY)
    client.feed(ServerHandshake(OTHER).opening)
    with pytest.raises(SealError, match="does not have this run's key"):
        client.feed(bytes(32))


def test_a_recorded_handshake_is_no_use() -> None:
    first = ServerHandshake(KEY)
    recorded = ClientHandshake(KEY).feed(first.opening)
    assert first.feed(recorded)
    with pytest.raises(SealError, match="does not have this run's key"):
        ServerHandshake(KEY).feed(recorded)


def test_what_a_client_sends_does_not_prove_a_server() -> None:
    """Sent back to it, in either place."""
    client = ClientHandshake(KEY)
    opening = ServerHandshake(KEY).opening
    message = client.feed(opening)
    with pytest.raises(SealError, match="does not have this run's key"):
        client.feed(message[-32:])
    with pytest.raises(SealError, match="does not have this run's key"):
        ServerHandshake(KEY).feed(opening + bytes(32))


def test_a_server_hears_nothing_beyond_the_proof() -> None:
    server = ServerHandshake(KEY)
    with pytest.raises(SealError, match="more than the handshake"):
        server.feed(ClientHandshake(KEY).feed(server.opening) + b"x")
    assert server.opener is None


@given(st.binary(max_size=120), st.lists(st.integers(1, 120), min_size=1))
def test_no_garbage_proves_anything(data: bytes, sizes: list[int]) -> None:
    for handshake in (ServerHandshake(KEY), ClientHandshake(KEY)):
        said = b""
        rest = data
        try:
            for size in sizes:
                said += handshake.feed(rest[:size])
                rest = rest[size:]
        except SealError:
            pass
        assert handshake.opener is None
        if isinstance(handshake, ServerHandshake):
            assert said == b"", "a stranger is told nothing"


@settings(max_examples=200)
@given(st.integers(0, 8 * 72 - 1))
def test_a_changed_bit_of_the_proof_proves_nothing(bit: int) -> None:
    server = ServerHandshake(KEY, b"S" * 32)
    message = bytearray(ClientHandshake(KEY, b"C" * 32).feed(server.opening))
    message[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SealError):
        server.feed(bytes(message))


@pytest.mark.parametrize("size", [0, 31, 33])
def test_keys_have_one_length(size: int) -> None:
    with pytest.raises(ValueError, match="a key has 32 bytes"):
        ServerHandshake(bytes(size))


def test_nonces_and_sessions_differ() -> None:
    assert ServerHandshake(KEY).opening != ServerHandshake(KEY).opening
    (one, _), (two, _) = pair(), pair()
    assert one.sealer and two.sealer
    assert one.sealer.seal(b"x") != two.sealer.seal(b"x")
