"""The text of a class of packets: read and written the same, and refused where it is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.plan.packet_class import FORM, PacketClass, is_sound, numbered, parse

NAMES = ("a.0", "b-c.12")
_words = st.sampled_from(["icmp", "tcp", "udp:53", "sctp:65535", "from:a.0", "to:b-c.12"])
_values = st.none() | st.integers(0, 10**9)
classes = st.builds(
    lambda words, *values: PacketClass(";".join(dict.fromkeys(words)), *values),
    st.lists(_words, min_size=1, max_size=6),
    *[_values] * 4,
)


@given(classes)
def test_it_is_read_as_it_was_written(found: PacketClass) -> None:
    text = str(found)
    assert re.fullmatch(FORM, text)
    assert parse(text) == (found if found.values else PacketClass())
    assert is_sound(text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "tcp:65536;loss:1",
        "from:a.1;loss:1",
        "tcp;loss:1;loss:2",
        "tcp;loss:1000000001",
        "udp;delay:86400000000001",
        ";".join([*(f"tcp:{port}" for port in range(1, 18)), "loss:1"]),
        ";".join([*["from:a.0"] * 65, "loss:1"]),
    ],
)
def test_numbers_and_names_are_checked(text: str) -> None:
    assert re.fullmatch(FORM, text)
    assert not is_sound(text, NAMES)


@pytest.mark.parametrize(
    "text", ["tcp", "loss:1", "tcp;loss:1;udp", "http;loss:1", "from:s;loss:1"]
)
def test_what_is_no_text_of_one(text: str) -> None:
    assert not re.fullmatch(FORM, text)


def test_the_engine_is_told_numbers() -> None:
    text = "tcp:80;from:a.0;to:b-c.12;loss:1"
    assert numbered(text, {"a.0": [0], "b-c.12": [7, 9]}) == "tcp:80;from:0;to:7;to:9;loss:1"
    assert numbered("", {}) == ""
