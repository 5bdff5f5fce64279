"""Tags and replay windows."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.metadata.auth import (
    MARK_NS,
    WINDOW,
    Seal,
    SequenceWindow,
)

KEY = bytes(range(32))


def test_a_tag_is_the_one_of_the_specification() -> None:
    person = b"tstorm metadata1"
    own = hashlib.blake2b(b"run", key=KEY, person=person, digest_size=32).digest()
    tag = hashlib.blake2b(b"message", key=own, person=person, digest_size=16).digest()
    seal = Seal(KEY, b"run")
    assert seal.close(b"message") == b"message" + tag
    assert seal.holds(b"message" + tag)
    assert seal.run_tag == hashlib.blake2b(b"run", digest_size=4).digest()


@given(st.binary(min_size=1, max_size=60), st.data())
def test_every_bit_counts(message: bytes, data: st.DataObject) -> None:
    sealed = bytearray(Seal(KEY, b"run").close(message))
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    assert not Seal(KEY, b"run").holds(bytes(sealed))


def test_other_keys_and_runs_have_other_tags() -> None:
    sealed = Seal(KEY, b"run").close(b"message")
    assert not Seal(KEY[::-1], b"run").holds(sealed)
    assert not Seal(KEY, b"nur").holds(sealed)
    assert not Seal(KEY, b"run").holds(b"")


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_key_has_32_bytes(length: int) -> None:
    with pytest.raises(ValueError, match=f"has 32 bytes, and this one {length}"):
        Seal(bytes(length), b"run")


def test_a_number_is_new_once() -> None:
    window = SequenceWindow(0)
    numbers = [1, 2, 5, 4, 3, 1000, 6, 999]
    assert [window.judge(number, 0) for number in numbers] == [""] * 8
    assert {window.judge(number, 0) for number in numbers} == {"replayed"}
    assert window.highest == 1000


def test_what_is_too_far_back_is_late() -> None:
    window = SequenceWindow(0)
    assert window.judge(5000, 0) == ""
    assert window.judge(5000 - WINDOW, 0) == "late"
    assert window.judge(5001 - WINDOW, 0) == ""
    assert window.judge(5000 + 2 * WINDOW, 0) == ""
    assert window.judge(5000, 0) == "late"
    assert window.judge(5001 + WINDOW, 0) == ""


def test_what_was_overtaken_long_ago_is_late() -> None:
    window = SequenceWindow(0)
    assert window.judge(10, 0) == ""
    assert window.judge(9, MARK_NS // 2) == ""
    assert window.judge(20, MARK_NS) == ""
    assert window.judge(8, MARK_NS + 1) == ""  # 10 came less than two marks ago
    assert window.judge(30, 2 * MARK_NS) == ""
    assert window.judge(7, 2 * MARK_NS) == "late"
    assert window.judge(19, 2 * MARK_NS) == ""
    assert window.judge(29, 9 * MARK_NS) == "late"  # nothing came in between


def test_missing_numbers_are_counted_until_they_come() -> None:
    window = SequenceWindow(0)
    for number, missing in ((7, 0), (8, 0), (11, 2), (10, 1), (10, 1), (3, 1), (2000, 1989)):
        window.judge(number, 0)
        assert window.missing == missing


@given(st.integers(0, 2**32), st.integers(1, 200))
def test_it_agrees_with_a_set(seed: int, length: int) -> None:
    """Random numbers near each other, against the definition."""
    rnd = random.Random(seed)
    window, seen, highest = SequenceWindow(0), set[int](), 0
    for _ in range(length):
        highest = max([0, *seen])
        number = max(1, highest + rnd.choice([1, 1, 2, -1, -3, -1023, -1024, 700, 1500]))
        expected = "replayed" if number in seen else ""
        if number <= highest - WINDOW:
            expected = "late"
        assert window.judge(number, 0) == expected
        seen.add(number)
