"""Who may be believed: the tag of a message, and which messages of a sender are new.

Input: the run's key and id, datagrams, sequence numbers and times. Output: yes or no. No I/O, no
clock. docs/metadata.md (authentication, replay) is the specification; BLAKE2 is RFC 7693.
"""

from __future__ import annotations

import hashlib
import hmac

from runtime.agent.metadata.codec import RUN_TAG_BYTES, TAG_BYTES

KEY_BYTES = 32
_PERSON = b"tstorm metadata1"  # BLAKE2's personalisation: the key has other uses too
WINDOW = 1024  # sequence numbers
MARK_NS = 1_000_000_000  # see Window


class Seal:
    """Makes and checks tags with a key of this run and of nothing else."""

    def __init__(self, key: bytes, run: bytes) -> None:
        """`key` has 32 bytes (ValueError if not), `run` is the run's id."""
        if len(key) != KEY_BYTES:
            raise ValueError(f"a metadata key has {KEY_BYTES} bytes, and this one {len(key)}")
        own = hashlib.blake2b(run, key=key, person=_PERSON, digest_size=KEY_BYTES).digest()
        self._keyed = hashlib.blake2b(key=own, person=_PERSON, digest_size=TAG_BYTES)
        self.run_tag = hashlib.blake2b(run, digest_size=RUN_TAG_BYTES).digest()

    def _tag(self, message: bytes) -> bytes:
        digest = self._keyed.copy()
        digest.update(message)
        return digest.digest()

    def close(self, message: bytes) -> bytes:
        """The message with its tag."""
        return message + self._tag(message)

    def holds(self, datagram: bytes) -> bool:
        """Whether the last 16 bytes are the tag of what is before them; in constant time."""
        return hmac.compare_digest(self._tag(datagram[:-TAG_BYTES]), datagram[-TAG_BYTES:])


class SequenceWindow:
    """Which sequence numbers of one sender, since one of its starts, were seen.

    A number is new once, as long as it is among the 1,024 up to the highest and was not overtaken
    by one that came longer ago than one to two marks: what is taken is never older than the ledger
    remembers.
    """

    __slots__ = ("_first", "_floor", "_mark", "_mark_ns", "_seen", "highest", "missing")

    def __init__(self, now_ns: int) -> None:
        self.highest = 0
        self.missing = 0  # numbers between the first and the highest that did not come
        self._seen = 0  # bit n: highest - n
        self._first = 0
        self._floor = 0
        self._mark = 0
        self._mark_ns = now_ns

    def judge(self, sequence: int, now_ns: int) -> str:
        """'' and noted if it is new; else 'replayed' or 'late'."""
        waited_ns = now_ns - self._mark_ns
        if waited_ns >= MARK_NS:
            self._floor = self._mark if waited_ns < 2 * MARK_NS else self.highest
            self._mark, self._mark_ns = self.highest, now_ns
        ahead = sequence - self.highest
        if ahead > 0:
            self.missing += ahead - 1 if self.highest else 0
            self._first = self._first or sequence
            self._seen = (self._seen << ahead | 1) & _ALL if ahead < WINDOW else 1
            self.highest = sequence
            return ""
        if -ahead < WINDOW and self._seen >> -ahead & 1:
            return "replayed"
        if -ahead >= WINDOW or sequence <= self._floor:
            return "late"
        self._seen |= 1 << -ahead
        self.missing -= sequence > self._first
        return ""


_ALL = (1 << WINDOW) - 1
