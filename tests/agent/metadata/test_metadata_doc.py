"""docs/metadata.md against the code: its example, its counters, its numbers."""

from __future__ import annotations

import re
from pathlib import Path

from runtime.agent.metadata import auth, codec, ledger, outgoing
from runtime.agent.metadata.codec import MessageHeader
from runtime.agent.metadata.metadata import COUNTERS, HEARTBEAT_NS, HELLO_NS, VERDICTS, Metadata
from runtime.agent.vocabulary import RemoteFlow
from tests.agent.hosts import Hosts, dumbbell

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "metadata.md").read_text()
KEY = bytes(range(32))
RUN = b"example-run"
INSTANCES = 160


def example() -> bytes:
    """The dump at the end: hexadecimal digits up to the bar in each line."""
    dump = DOCUMENT.split("## An example")[1].split("```")[1]
    return bytes.fromhex("".join(line.split("|")[0] for line in dump.strip().splitlines()))


def test_the_example_is_what_it_says() -> None:
    header, message = codec.decode(example())
    seal = auth.Seal(KEY, RUN)
    assert header == MessageHeader(seal.run_tag, 0, 3, 2, 1, 300, 7)
    assert list(message.paths) == [85, 4 * INSTANCES + 81, 4 * INSTANCES + 83]
    amounts = [codec.rate_of(value >> 1) for value in message.values]
    assert amounts == [9_568_256, 300, 0]
    assert [value & 1 for value in message.values] == [0, 1, 0]
    assert "9,568,256 b/s" in DOCUMENT
    assert message.values[1] == codec.wait_value(30_000_000)
    assert codec.code_of(9_600_000) == 2194
    assert seal.holds(example())


def test_the_example_is_what_an_agent_makes_and_takes() -> None:
    header, message = codec.decode(example())
    flows = list(zip(message.paths, message.values, strict=True))
    [(count, body)] = codec.flow_bodies(flows)
    assert auth.Seal(KEY, RUN).close(codec.encode(header, count, body)) == example()
    place = [n % 4 if n < 4 else 0 for n in range(INSTANCES)]
    net = Hosts(dumbbell(INSTANCES // 2), [*place[:4], *([0] * (INSTANCES - 4))], hosts=4)
    agent = Metadata(KEY, RUN, 3, [2, 1, 1, 1])
    agent.epoch(7, net.interest, 0)
    agent.incoming(0, example())
    assert agent.counters()["taken"] == 1
    assert list(agent.remote(0)) == [
        RemoteFlow(0, 85, 9_568_256, False, 0, 0),
        RemoteFlow(4, 81, 0, True, 0, 0, 30_000_000),
    ]


def test_every_counter_is_described() -> None:
    receiving = DOCUMENT.split("## Receiving")[1].split("## ")[0]
    named = re.findall(r"^\|[^|]*\| `(\w+)` \|$", receiving, re.MULTILINE)
    assert tuple(dict.fromkeys(named)) == (*VERDICTS[1:], "taken")
    table = DOCUMENT.split("## Counters")[1].split("## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"\w+", " ".join(cells))) == sorted(COUNTERS[len(VERDICTS) :])


def test_numbers_in_the_text_are_those_in_force() -> None:
    text = " ".join(DOCUMENT.split())
    for part in (
        f"at most {codec.MAX_DATAGRAM:,} bytes",
        f"less than {codec.MIN_DATAGRAM}",
        f"version, {codec.VERSION} |",
        f"at most {codec.MAX_CODE:,}",
        f"one every {outgoing.SLOT_NS // 10**6} ms",
        f"again every {outgoing.REFRESH_NS // 10**6} ms",
        f"more than {outgoing.JUMP} steps",
        f"in the next {outgoing.REPEATS} ticks",
        f"with {outgoing.BURIALS} more refreshes",
        f"up to {outgoing.FLOWS_A_SLOT} flows",
        f"up to {outgoing.SLOTS} slots",
        f"sent nothing for {HEARTBEAT_NS // 10**6} ms",
        f"sent one every {HELLO_NS // 10**6} ms",
        f"without a message for {ledger.AGE_NS // 10**9} s",
        f"{auth.WINDOW:,} or more below the highest",
        f"more than 1 to {2 * auth.MARK_NS // 10**9} s before",
        f"personalisation `{auth._PERSON.decode()}`",
    ):
        assert part in text, part
