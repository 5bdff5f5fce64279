"""Command lines and orders: what makes sense gets through, the rest is refused with its name."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agent.path.enforcer import PathHolds
from runtime.agent.process import orders
from runtime.agent.process.agent import LOST_SECONDS, first_patience
from runtime.agent.process.commandline import AgentOptions, argv, parse
from runtime.agent.process.orders import AttachOrder, BindOrder, OrderError, PortOrder, preparation
from runtime.errors import RunError
from runtime.json_schema import decoded
from runtime.options import RunOptions

HERE = ("127.0.0.1", 7474)
OPTIONS = AgentOptions(Path("a plan"), HERE, ("127.0.0.1", 7473), "fd:9", 4)


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        AgentOptions(Path("p"), HERE, HERE, "key", 0, True, -50_000_000, 300_000_000),
        AgentOptions(Path("p"), HERE, HERE, "key", 0, clock_offset_ns=7),
        AgentOptions(Path("p"), HERE, HERE, "key", 0, wait_seconds=0, ports=Path("a file")),
        AgentOptions(Path("p"), HERE, HERE, "key", 0, captures=Path("a folder")),
        AgentOptions(Path("p"), ("::", 7474), ("fd00::1:2", 7473), "key", 0),
    ],
)
def test_a_command_line_means_what_it_was_made_of(options: AgentOptions) -> None:
    words = argv(options, "python")
    assert words[:4] == ["python", "-P", "-m", "runtime.agent"]
    assert parse(words[4:]) == options


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (["--listen", "here"], "'here' is not ADDRESS:PORT"),
        (["--listen", "1.2.3.4:99999"], "is not ADDRESS:PORT"),
        (["--metadata", "::1:7473"], "'::1:7473' is not ADDRESS:PORT or [IPV6]:PORT"),
        (["--metadata", "[]:7473"], "is not ADDRESS:PORT"),
        (["--datapath-fd", "-1"], "not a number of 0 or more"),
        (["--drop-metadata", "1000000001"], "more than 1000000000 parts"),
        (["--wait", "1.5"], "not a number of 0 or more"),
        (["--plans", "x"], "unrecognized arguments"),
    ],
)
def test_wrong_command_lines(
    change: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse([*argv(OPTIONS)[4:], *change])
    assert end.value.code == 2
    assert says in capsys.readouterr().err


def test_how_long_an_agent_waits_for_its_first_coordinator() -> None:
    assert first_patience(OPTIONS) == 60
    assert first_patience(replace(OPTIONS, wait_seconds=900)) == 900
    assert first_patience(replace(OPTIONS, wait_seconds=0)) == math.inf
    assert first_patience(replace(OPTIONS, wait_seconds=0, resume=True)) == LOST_SECONDS


ORDER: dict[str, Any] = {
    "do": "prepare",
    "run": "r1",
    "digest": "d",
    "host": 1,
    "hosts": [{"name": "h0", "address": "10.0.0.1"}, {"name": "h1", "address": "10.0.0.2"}],
    "starts": [3, 1],
    "placement": [0, 1, 1, -1],
    "addresses": [["10.77.0.1", "fd77:7473::1"], ["10.77.0.2", ""], ["", "fd77:7473::3"]],
    "networks": ["10.77.0.0/16", "fd77:7473::/64"],
    "options": {"pace": 2, "on_agent_loss": "close", "until_ns": None},
}


def endpoints(order: orders.PrepareOrder) -> list[Any]:
    return [host.endpoint for host in order.hosts]


def test_an_order() -> None:
    found = preparation(ORDER, 4, 3)
    assert found.own == (1, 2)
    assert endpoints(found) == [("10.0.0.1", 7473), ("10.0.0.2", 7473)]
    assert found.starts == (3, 1)
    pairs = (("10.77.0.1", "fd77:7473::1"), ("10.77.0.2", ""), ("", "fd77:7473::3"))
    assert (found.addresses, found.networks) == (pairs, ("10.77.0.0/16", "fd77:7473::/64"))
    assert found.options == RunOptions(pace=2, on_agent_loss="close")
    assert (found.options.start_at_ns, found.options.period_ns) == (0, 25_000_000)
    six = [{"address": "FD00:0::1"}, {"address": "fd00::2", "metadata_port": 9}]
    found = preparation({**ORDER, "hosts": six}, 4, 3)
    assert endpoints(found) == [("fd00::1", 7473), ("fd00::2", 9)]
    many = {"hosts": [{"address": f"10.0.1.{n}"} for n in range(200)], "starts": [1] * 200}
    found = preparation({**ORDER, **many, "host": 199, "options": {"hosts": 200}}, 4, 3)
    assert (len(found.hosts), found.own) == (200, ())
    resume = {"t0_ns": -5, "ports": [[3, 1, "/n", "e3"], [4, -1, "/m", "e4"]], "held": [2, 0]}
    again = preparation({**ORDER, "resume": resume}, 4, 3).resume
    assert again is not None
    assert (again.t0_ns, again.held, again.applied) == (-5, (2, 0), 0)
    assert again.ports == (PortOrder(3, 1, "/n", "e3"), PortOrder(4, -1, "/m", "e4"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"host": 2}, "host is 2: there are 2"),
        ({"host": True}, "the request: host must be an integer of 0 or more, not True"),
        ({"placement": [0, 1, 1]}, "placement has 3 items, and 4 are expected"),
        ({"placement": [0, 1, 5, -1]}, "the host of node 2 is 5"),
        ({"placement": [0, 1, -1, -1]}, "the host of node 2 is -1"),
        ({"addresses": [["10.77.0.1", ""]]}, "addresses has 1 items, and 3 are expected"),
        ({"addresses": [["", ""]] * 3}, "node 0 has no address"),
        ({"addresses": [["10.77.0.1"]] * 3}, r"addresses\[0\] must be a list of 2"),
        ({"addresses": [["10.78.0.1", ""]] * 3}, "node 0 is at 10.78.0.1, which is in no"),
        ({"addresses": [["fd77:7473::1", ""]] * 3}, "an address of node 0 is 'fd77:7473::1'"),
        ({"addresses": [[5, ""]] * 3}, r"addresses\[0\]\[0\] must be a text, not 5"),
        ({"networks": []}, "there are 0 networks, and 1 to 32"),
        ({"networks": ["10.77.0.0/16"] * 33}, "there are 33 networks"),
        ({"networks": ["10.77.0.1/16"]}, r"networks\[0\] must be an IPv4 or IPv6 network"),
        ({"starts": [1]}, "starts has 1 items, and 2 are expected"),
        ({"starts": [1, 0]}, r"starts\[1\] must be an integer from 1"),
        ({"starts": [1, 2**64]}, r"starts\[1\] must be"),
        ({"run": 7}, "run must be a text of printable characters, not 7"),
        ({"run": "\ud800"}, "run must be a text of printable characters"),
        ({"hosts": "h"}, "hosts must be a list, not 'h'"),
        ({"hosts": [{"address": "localhost"}] * 2}, r"hosts\[0\].address must be an IPv4 or"),
        ({"hosts": [{"address": "fe80::1%eth0"}] * 2}, r"hosts\[0\].address must be an IPv4 or"),
        ({"options": {"pace": 0}}, "pace is 0"),
        ({"options": {"on_agent_loss": "cry"}}, "options: on_agent_loss is 'cry'"),
        ({"options": {"on_loss": "keep"}}, "does not know the option 'on_loss'"),
        ({"options": {"pace": True}}, "options: pace must be an integer, not True"),
        ({"options": {"version": 2}}, "options have version 2, and this release reads 1"),
        ({"options": {"period_ns": 5}}, "period_ns is 5"),
        ({"resume": 7}, "resume must be an object or null, not 7"),
        ({"resume": {"t0_ns": 1, "ports": [[1, 2]]}}, r"resume.ports\[0\] must be a list of 4"),
        (
            {"resume": {"t0_ns": 1, "ports": [[1, 2, "a b", "e1"]]}},
            r"resume.ports\[0\]\[2\] must be one word",
        ),
        ({"resume": {"t0_ns": 1, "ports": [], "held": [3]}}, "node 3 is no instance"),
        ({"resume": {"t0_ns": 1, "ports": [[1, 3, "a", "b"]]}}, "node 3 is no instance"),
    ],
)
def test_orders_that_make_no_sense(change: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=says):
        preparation({**ORDER, **change}, 4, 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["ports", "t0_ns", "address", "pace"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.sampled_from([*ORDER, "resume"]), JSON)
def test_any_json_is_an_order_or_refused(field: str, value: Any) -> None:
    """With the errors that the channel answers, and no others."""
    with contextlib.suppress(RunError):
        found = preparation({**ORDER, field: value}, 4, 3)
        assert set(found.own) <= {0, 1, 2}


def test_what_is_missing_is_named() -> None:
    with pytest.raises(RunError, match="digest is missing"):
        preparation({key: value for key, value in ORDER.items() if key != "digest"}, 4, 3)


def test_bindings() -> None:
    found = decoded(BindOrder, {"do": "bind", "step": 1, "bind": [[0, 5], [2, 1]]}, "bind")
    assert (found.step, found.bind, found.unbind, found.hold) == (1, {0: 5, 2: 1}, (), ())
    for wrong in ([[0]], [[0, 1, 2]], [["a", 0]], [[0, -1]], [[0, 1 << 16]], {"0": 1}, [7]):
        with pytest.raises(RunError, match="bind: bind"):
            decoded(BindOrder, {"step": 1, "bind": wrong}, "bind")
    with pytest.raises(OrderError, match="node 3 is no instance: the plan has 3"):
        orders.check_nodes(3, [0, 3])


def test_an_interface_is_named_by_a_word_of_python() -> None:
    found = decoded(AttachOrder, {"port": 1, "netns": "/n", "if": "e1", "node": 4}, "attach")
    assert found == AttachOrder(4, 1, "/n", "e1")
    with pytest.raises(RunError, match="attach: if is missing"):
        decoded(AttachOrder, {"node": 4, "port": 1, "netns": "/n"}, "attach")


def test_a_hold_lasts_until_it_is_cut_or_the_node_comes_back() -> None:
    holds = PathHolds()
    holds.hold([3, 5], 4)
    assert [sorted(holds.held(step)) for step in (3, 4, 9)] == [[], [3, 5], [3, 5]]
    assert holds.come_back([3, 7], 6) == [3]
    assert [sorted(holds.held(step)) for step in (5, 6)] == [[3, 5], [5]]
    assert (holds.coming_back(6), holds.coming_back(5)) == ([3], [])
    holds.forget(6)
    assert holds.coming_back(6) == []
    assert holds.cut([3, 5]) == [5]
    assert holds.held(9) == frozenset()
    holds.hold([5], 10)
    assert holds.cut([5]) == [5]
