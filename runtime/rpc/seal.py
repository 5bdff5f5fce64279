"""Proves and seals what goes over a control channel: the handshake and the frames, without I/O.

Both sides know one key of 32 bytes. All messages before authentication have a fixed size:

    server → client   MAGIC (8)  server's nonce (32)
    client → server   MAGIC (8)  client's nonce (32)  client's proof (32)
    server → client   server's proof (32)

So a server says nothing but a random number to a stranger. A proof is keyed BLAKE2b (RFC 7693)
over MAGIC and both nonces; a fresh key for each direction comes from the same bytes. The four uses
differ by BLAKE2b's personalisation, so that nothing made for one is good for another.

Then frames: kind (1 byte), length (3), tag (16), payload. The tag covers the number of the frame in
its direction, kind, length and payload: a frame that was altered, repeated, left out, moved or sent
back is not valid. A message is any number of MORE frames, each full, and a LAST one; END is a
goodbye, after which there is nothing. docs/agent.md (Channel).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from abc import ABC, abstractmethod

KEY_BYTES = 32
NONCE_BYTES = 32
PROOF_BYTES = 32
TAG_BYTES = 16
MAGIC = b"tstorm\x00\x01"  # the last byte is the version: raise it when anything here changes

FRAME_BYTES = 1 << 16  # payload of the largest frame
MESSAGE_BYTES = 64 << 20  # longest message: some 60 times a sample of 10,000 paths

MORE, LAST, END = 0, 1, 2
_HEADER = struct.Struct(">I")  # kind and length
_COUNTER = struct.Struct(">Q")
_OVERHEAD = _HEADER.size + TAG_BYTES

_CLIENT_PROOF, _SERVER_PROOF = b"ts-client-proof", b"ts-server-proof"
_TO_SERVER, _TO_CLIENT = b"ts-frames-up", b"ts-frames-down"


class SealError(Exception):
    """What came is not what somebody with the key sends. `counter` says what to count it as."""

    def __init__(self, counter: str, message: str) -> None:
        super().__init__(message)
        self.counter = counter


def _keyed(key: bytes, person: bytes, data: bytes, size: int) -> bytes:
    return hashlib.blake2b(data, key=key, person=person, digest_size=size).digest()


class Sealer:
    """Makes the frames of one direction."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._counter = 0

    def _frame(self, kind: int, payload: bytes) -> bytes:
        header = _HEADER.pack(kind << 24 | len(payload))
        counted = _COUNTER.pack(self._counter) + header + payload
        self._counter += 1
        return header + _keyed(self._key, b"", counted, TAG_BYTES) + payload

    def seal(self, message: bytes) -> bytes:
        """All frames of one message. ValueError if it is too long."""
        if len(message) > MESSAGE_BYTES:
            raise ValueError(f"{len(message)} bytes are too many for one message")
        pieces = [message[at : at + FRAME_BYTES] for at in range(0, len(message), FRAME_BYTES)]
        *more, last = pieces or [b""]
        return b"".join([*(self._frame(MORE, piece) for piece in more), self._frame(LAST, last)])

    def end(self) -> bytes:
        """The goodbye."""
        return self._frame(END, b"")


class Opener:
    """Checks and opens the frames of one direction. `frames` counts the valid ones."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._data = bytearray()
        self._message = bytearray()
        self.frames = 0
        self.ended = False  # the peer has said goodbye

    @property
    def inside(self) -> bool:
        """Whether what has come so far stops within a frame or a message."""
        return bool(self._data or self._message)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now. SealError at the first frame that is not valid."""
        self._data += data
        found: list[bytes] = []
        while len(self._data) >= _OVERHEAD:
            kind, length = self._header()
            if len(self._data) < _OVERHEAD + length:
                break
            payload = self._open(length)
            if kind == END:
                self.ended = True
                continue
            self._message += payload
            if len(self._message) > MESSAGE_BYTES:
                raise SealError("bad_frames", "a message is longer than the limit")
            if kind == LAST:
                found.append(bytes(self._message))
                self._message.clear()
        if self.ended and self.inside:
            raise SealError("bad_frames", "something follows the goodbye")
        return found

    def _header(self) -> tuple[int, int]:
        """Refuses a size or kind that no frame has, before anything waits for it."""
        (word,) = _HEADER.unpack_from(self._data)
        kind, length = word >> 24, word & 0xFFFFFF
        legal = {MORE: length == FRAME_BYTES, LAST: length <= FRAME_BYTES, END: length == 0}
        if self.ended or not legal.get(kind, False):
            raise SealError("bad_frames", "a frame has a header that no frame has")
        return kind, length

    def _open(self, length: int) -> bytes:
        header = bytes(self._data[: _HEADER.size])
        tag = bytes(self._data[_HEADER.size : _OVERHEAD])
        payload = bytes(self._data[_OVERHEAD : _OVERHEAD + length])
        counted = _COUNTER.pack(self.frames) + header + payload
        if not hmac.compare_digest(tag, _keyed(self._key, b"", counted, TAG_BYTES)):
            raise SealError("bad_frames", "a frame is not genuine, or not the next one")
        self.frames += 1
        del self._data[: _OVERHEAD + length]
        return payload


class Handshake(ABC):
    """One side of the start of a connection.

    Send `opening` first, then feed() what comes and send what that returns; `sealer` and `opener`
    are there once both sides are proven. `rest` is what came after the handshake.
    """

    opening = b""
    _wanted = 0

    def __init__(self, key: bytes, nonce: bytes = b"") -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = key
        self._nonce = nonce or os.urandom(NONCE_BYTES)
        self._data = b""
        self.sealer: Sealer | None = None
        self.opener: Opener | None = None
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        """What to send now. Raises SealError."""
        self._data += data
        out = b""
        while self.opener is None and self._right_so_far() and len(self._data) >= self._wanted:
            message, self._data = self._data[: self._wanted], self._data[self._wanted :]
            out += self._take(message)
        if self.opener is not None:
            self.rest, self._data = self._data, b""
        return out

    @abstractmethod
    def _right_so_far(self) -> bool:
        """Whether what has come can be part of the handshake. SealError if it cannot."""

    @abstractmethod
    def _take(self, message: bytes) -> bytes:
        """Takes the peer's next message. Returns the answer. SealError."""

    def _check_magic(self) -> None:
        """Garbage is known by its first bytes."""
        begin = self._data[: len(MAGIC)]
        if begin != MAGIC[: len(begin)]:
            raise SealError("garbage", "the peer does not speak this protocol, or another version")

    def _prove(self, person: bytes, transcript: bytes) -> bytes:
        return _keyed(self._key, person, transcript, PROOF_BYTES)

    def _check(self, proof: bytes, person: bytes, transcript: bytes) -> None:
        if not hmac.compare_digest(proof, self._prove(person, transcript)):
            raise SealError("wrong_key", "the peer does not have this run's key")

    def _finish(self, transcript: bytes, ours: bytes, theirs: bytes) -> None:
        self.sealer = Sealer(_keyed(self._key, ours, transcript, KEY_BYTES))
        self.opener = Opener(_keyed(self._key, theirs, transcript, KEY_BYTES))


class ServerHandshake(Handshake):
    """The agent's side."""

    _wanted = len(MAGIC) + NONCE_BYTES + PROOF_BYTES

    def __init__(self, key: bytes, nonce: bytes = b"") -> None:
        super().__init__(key, nonce)
        self.opening = MAGIC + self._nonce

    def _right_so_far(self) -> bool:
        self._check_magic()
        if len(self._data) > self._wanted:  # a client waits for our proof before it says more
            raise SealError(
                "garbage", "the peer sent more than the handshake before it had proven the key"
            )
        return True

    def _take(self, message: bytes) -> bytes:
        nonce, proof = message[len(MAGIC) : -PROOF_BYTES], message[-PROOF_BYTES:]
        transcript = MAGIC + self._nonce + nonce
        self._check(proof, _CLIENT_PROOF, transcript)
        self._finish(transcript, _TO_CLIENT, _TO_SERVER)
        return self._prove(_SERVER_PROOF, transcript)


class ClientHandshake(Handshake):
    """The coordinator's side."""

    _wanted = len(MAGIC) + NONCE_BYTES

    def __init__(self, key: bytes, nonce: bytes = b"") -> None:
        super().__init__(key, nonce)
        self._transcript = b""

    def _right_so_far(self) -> bool:
        if not self._transcript:
            self._check_magic()
        return True

    def _take(self, message: bytes) -> bytes:
        if self._transcript:
            self._check(message, _SERVER_PROOF, self._transcript)
            self._finish(self._transcript, _TO_SERVER, _TO_CLIENT)
            return b""
        self._transcript = message + self._nonce
        self._wanted = PROOF_BYTES
        return MAGIC + self._nonce + self._prove(_CLIENT_PROOF, self._transcript)
