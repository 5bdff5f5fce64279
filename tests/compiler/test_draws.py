"""The generator of docs/draws.md: known values, and what its numbers are like."""

from __future__ import annotations

import hashlib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from compiler.draws import Stream, link_seed, statement_key

TEXT = "from 30m to 3h30m server churn 40% replace 50%"


def test_known_values() -> None:
    """Computed by hand from docs/draws.md; they must never change within a plan format."""
    key = hashlib.sha256(b"thunderstorm draws 1\nstatement\n42\n0\n" + TEXT.encode()).digest()
    assert statement_key(42, TEXT, 0) == key
    assert key.hex() == "b543c077214e66523af0ad688a7a585cac43be856d9a3ccf065c58f063df1eaf"
    block = hashlib.sha256(key + b"when\n" + bytes(8)).digest()
    following = hashlib.sha256(key + b"when\n" + bytes(7) + b"\x01").digest()
    words = [int.from_bytes(block[i : i + 8], "big") for i in (0, 8, 16, 24)]
    words.append(int.from_bytes(following[:8], "big"))
    stream = Stream(key, "when")
    assert [stream.word() for _ in range(5)] == words
    assert [Stream(key, "who").below(1000) for _ in range(2)] == [836, 836]
    assert link_seed(42, "server.0->s1") == 4198677521875666886


def test_streams_are_independent() -> None:
    key = statement_key(1, TEXT, 0)
    first = [Stream(key, label).word() for label in ("when", "who", "replace")]
    others = [Stream(statement_key(*args), "when").word() for args in ((2, TEXT, 0), (1, TEXT, 1))]
    assert len({*first, *others}) == 5


@given(bound=st.integers(1, 2**64), seed=st.integers(0, 99))
def test_below_stays_below(bound: int, seed: int) -> None:
    stream = Stream(statement_key(seed, "x", 0), "when")
    assert all(0 <= stream.below(bound) < bound for _ in range(5))


def test_below_one_takes_no_word() -> None:
    key = statement_key(0, "x", 0)
    stream = Stream(key, "who")
    assert stream.below(1) == 0
    assert stream.word() == Stream(key, "who").word()


def test_below_is_uniform() -> None:
    """Chi-square over 7 values: 99.9 % of the time below 22.5; the key is fixed, so always."""
    stream = Stream(statement_key(0, "uniform", 0), "who")
    counts = Counter(stream.below(7) for _ in range(7000))
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 22.5


def test_chance_has_its_probability() -> None:
    stream = Stream(statement_key(0, "chance", 0), "replace")
    assert 2850 < sum(stream.chance(300_000_000) for _ in range(10_000)) < 3150
    assert not any(stream.chance(0) for _ in range(100))
    assert all(stream.chance(1_000_000_000) for _ in range(100))


@given(
    size=st.integers(1, 300),
    data=st.data(),
)
def test_sample_is_legal_and_distinct(size: int, data: st.DataObject) -> None:
    allowed = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    count = data.draw(st.integers(1, len(allowed)))
    stream = Stream(statement_key(count, "sample", 0), "who")
    chosen = stream.sample(size, allowed.__contains__, count)
    assert len(chosen) == len(set(chosen)) == count
    assert set(chosen) <= allowed


def test_sample_of_the_rare_is_uniform() -> None:
    """Two legal among 10,000: drawn from the list after the rejections, both as often."""
    stream = Stream(statement_key(0, "rare", 0), "who")
    counts = Counter(stream.choose(10_000, {17, 9_999}.__contains__) for _ in range(300))
    assert set(counts) == {17, 9_999}
    assert min(counts.values()) > 110


def test_who_else_is_legal_disturbs_a_choice_least() -> None:
    """Taking one candidate away changes the choice only where it was chosen."""
    for ordinal in range(50):
        key = statement_key(0, "stable", ordinal)
        before = Stream(key, "who").choose(10, lambda _: True)
        after = Stream(key, "who").choose(10, lambda position: position != 3)
        assert after == before or before == 3
