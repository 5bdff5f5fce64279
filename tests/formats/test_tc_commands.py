"""What labs say to tc(8) becomes properties of one direction of a link."""

from __future__ import annotations

import pytest

from tdl.formats.topologies.tc_commands import NoShapingError, shapings

NETEM = "tc qdisc add dev eth1 root netem"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{NETEM} delay 20ms", "latency=20ms"),
        (f"sudo /sbin/{NETEM} delay 0.1s 10msecs", "latency=0.1s jitter=10ms dist=uniform"),
        (f"{NETEM} delay 9us 1us distribution normal", "latency=9us jitter=1us dist=normal"),
        (f"{NETEM} loss random 1.5% duplicate 2 corrupt 0.1%",
         "loss=1.5% duplicate=2% corrupt=0.1%"),
        (f"{NETEM} rate 10mbit delay 5ms", "up=10000000b latency=5ms"),
        (f"{NETEM} rate 1.5kbps", "up=12000b"),
        ("tc q replace dev eth1 root tbf rate 1Gbit burst 32kbit latency 50ms",
         "up=1000000000b queue=50ms"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_command(command: str, words: str) -> None:
    (found,) = shapings(command)
    assert found is not None
    assert found.device == "eth1"
    assert " ".join(f"{word}={value}" for word, value in found.words.items()) == words
    assert (found.lost, found.otherwise) == ([], [])


def test_what_links_do_not_have_is_told() -> None:
    (found,) = shapings(f"{NETEM} delay 100 10 25% limit 1000 reorder 5% loss gemodel 1% 10%")
    assert found is not None
    assert found.words == {"latency": "100us", "jitter": "10us", "dist": "uniform"}
    assert found.lost == ["the correlation of delay", "limit", "reorder", "loss gemodel"]
    said = "delay 100 without a unit is 100 microseconds"
    assert found.otherwise == [said, "jitter 10 without a unit is 10 microseconds"]


@pytest.mark.parametrize(
    "command", ["ip link set eth1 up", "tc qdisc del dev eth1 root", "tc class add dev eth1", "tc",
                "tc qdisc add dev eth1 root fq_codel", "echo tc qdisc add"]
)  # fmt: skip
def test_other_commands_shape_nothing(command: str) -> None:
    assert list(shapings(command)) == [None]


def test_a_line_of_a_shell_is_several_commands() -> None:
    found = list(shapings(f'sh -c "ip a; {NETEM} delay 1ms && {NETEM} loss 1%"'))
    assert [one and [*one.words] for one in found] == [None, ["latency"], ["loss"]]


@pytest.mark.parametrize("wrong", ["delay fast", "delay", "loss 5x", "rate 10parsec", '"'])
def test_what_tc_would_refuse_is_an_error(wrong: str) -> None:
    with pytest.raises(NoShapingError):
        list(shapings(f"{NETEM} {wrong}"))
