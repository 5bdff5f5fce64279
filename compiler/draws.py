"""The random draws of the compiler: a counter-based generator over SHA-256.

Specified in docs/draws.md, so that another program can draw the same numbers. Every statement has
its own key; every purpose within a statement has its own stream. Nothing here depends on the
Python version, the platform or PYTHONHASHSEED.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Protocol

PPB = 1_000_000_000
# What a run is asked for is under way so long before its moment: a run that is to be the same until
# a moment T (`--reseed`) has the same events for so long after T.
UNDER_WAY_NS = 10_000_000
TRIES = 64  # rejected candidates before `choose` counts the legal ones instead

_WORDS = Struct(">4Q").unpack
_COUNTER = Struct(">Q").pack


_RESEED = re.compile(rb"^#: reseed ([0-9]{1,19}) ([0-9]{1,19})[ \t\r]*\n?", re.M)


def reseeds(source: bytes) -> tuple[tuple[int, int], ...]:
    """Moments from which on statements draw by other seeds, and these, in order. A source says it
    in comments: `#: reseed NS SEED`."""
    return tuple(sorted((int(at_ns), int(seed)) for at_ns, seed in _RESEED.findall(source)))


def with_reseeds(source: bytes, moments: Mapping[int, int]) -> bytes:
    """The source with these in place of those that it has."""
    text = _RESEED.sub(b"", source)
    lines = "".join(f"#: reseed {at_ns} {seed}\n" for at_ns, seed in sorted(moments.items()))
    return text + b"\n" * (not text.endswith(b"\n") and bool(lines)) + lines.encode()


def statement_key(seed: int | str, text: str, ordinal: int) -> bytes:
    """The 32-byte key of a statement: its canonical text, and its place among identical ones.
    `seed`: `SEED from NS` where another seed is in force from that moment on."""
    head = f"thunderstorm draws 1\nstatement\n{seed}\n{ordinal}\n"
    return hashlib.sha256(head.encode() + text.encode()).digest()


def link_seed(seed: int, name: str) -> int:
    """63 bits that key the loss and jitter of one link direction."""
    text = f"thunderstorm draws 1\nlink\n{seed}\n{name}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


class Candidates(Protocol):
    """What a sample is drawn from, as far as it matters to whoever records draws."""

    @property
    def word(self) -> str:
        """What the legal ones are: 'joined'."""

    def name(self, position: int) -> str:
        """What people call a candidate."""

    def count_legal(self) -> int: ...

    def all_legal(self) -> list[int]:
        """Their positions, ascending: faster than to ask for each."""


class Stream:
    """An endless sequence of 64-bit words for one purpose (`label`) of one statement."""

    __slots__ = ("_base", "_block", "_words")

    def __init__(self, key: bytes, label: str) -> None:
        self._base = hashlib.sha256(key + label.encode() + b"\n")
        self._block = 0
        self._words: list[int] = []

    def word(self) -> int:
        """The next word: block n of the stream is SHA-256(key, label, newline, n), four words."""
        if not self._words:
            block = self._base.copy()
            block.update(_COUNTER(self._block))
            self._block += 1
            self._words = list(_WORDS(block.digest()))
            self._words.reverse()
        return self._words.pop()

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), 1 <= bound <= 2**64. Bound 1 takes no word.

        The low bits of each word, as many as `bound - 1` has, until one is in range.
        """
        assert 1 <= bound <= 1 << 64
        mask = (1 << (bound - 1).bit_length()) - 1
        if not mask:
            return 0
        while True:
            value = self.word() & mask
            if value < bound:
                return value

    def chance(self, ppb: int) -> bool:
        """True with probability ppb / 10**9. Always takes the same number of draws."""
        return self.below(PPB) < ppb

    def choose(
        self, size: int, legal: Callable[[int], bool], candidates: Candidates | None = None
    ) -> int:
        """A uniform choice among the positions in [0, size) that are legal; there must be one."""
        return self.sample(size, legal, 1, candidates)[0]

    def sample(
        self,
        size: int,
        legal: Callable[[int], bool],
        count: int,
        candidates: Candidates | None = None,
    ) -> list[int]:
        """`count` different legal positions in [0, size), uniformly, in the order drawn.

        There must be as many. Positions are drawn over all candidates and those that are illegal or
        taken rejected, so that who else is legal disturbs the choice least. After TRIES rejections
        in a row the legal ones that are left are listed, and the rest is drawn from the list.
        """
        taken: dict[int, None] = {}
        misses = 0
        while len(taken) < count and misses < TRIES:
            position = self.below(size)
            if position not in taken and legal(position):
                taken[position] = None
                misses = 0
            else:
                misses += 1
        chosen = list(taken)
        if len(chosen) < count:
            left = candidates.all_legal() if candidates else filter(legal, range(size))
            rest = [position for position in left if position not in taken]
            while len(chosen) < count:
                chosen.append(rest.pop(self.below(len(rest))))
        return chosen
