"""One table of limits: the language, the protocol and the pages agree with it.

What pktd and tcald really refuse is asked in tests/pktd/test_limits.py and tests/netem.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.expand.world import MAX_EVENTS
from compiler.pipeline import compile_source
from compiler.plan import format as form
from compiler.plan import packet_class, properties
from compiler.plan.rules.datapath_fit import Misfit, misfit
from compiler.plan.rules.property_limits import HOP_EXACT, LINK, PATHS, jitter_limit
from tdl import bounds, quantities, some_packets, values

ROOT = Path(__file__).resolve().parents[2]
SECOND = 10**9


def test_the_language_allows_what_a_link_may_have() -> None:
    assert bounds.MAX_LATENCY_NS == LINK["delay_ns"] == LINK["jitter_ns"]
    assert LINK["rate_bps"] == bounds.MAX_RATE_BPS
    assert LINK["queue_bytes"] == bounds.MAX_QUEUE_BYTES
    assert values.latency("1d") == values.latency("24h") == LINK["delay_ns"]
    assert values.rate("10Tb") == LINK["rate_bps"]
    assert values.queue("1GiB") == (LINK["queue_bytes"], "bytes")
    assert values.queue("715827p") == (LINK["queue_packets"], "packets")
    assert LINK["queue_packets"] == LINK["queue_bytes"] // 1500
    for read, text in ((values.latency, "86400001"), (values.rate, "10000000000001b")):
        with pytest.raises(values.ValueProblem) as caught:
            read(text)
        assert caught.value.code == "TS0025"
    with pytest.raises(values.ValueProblem, match="too large"):
        values.queue(str(LINK["queue_bytes"] + 1))
    with pytest.raises(values.ValueProblem, match="too large"):
        values.queue(f"{LINK['queue_packets'] + 1}pkt")


def test_a_file_may_hold_what_a_plan_may() -> None:
    assert bounds.MAX_BRIDGES == form.MAX_NODES
    assert bounds.MAX_SERVICES == form.MAX_INSTANCES
    assert 2 * bounds.MAX_LINKS == form.MAX_LINKS
    assert bounds.MAX_EVENTS == MAX_EVENTS
    assert some_packets.MAX_PROTOCOLS == packet_class.MAX_PROTOCOLS
    assert some_packets.MAX_PORT == packet_class.MAX_PORT
    assert bounds.MAX_FLOWS == properties.MAX_FLOWS
    assert LINK["queue_packets"] == bounds.MAX_QUEUE_PACKETS
    assert bounds.MAX_TIME_NS == form.MAX_INT


def test_no_path_is_too_slow_for_a_datapath() -> None:
    """A path visits a node once; the root of the sum of squares is the greatest jitter."""
    for path in PATHS.values():
        assert path["delay_ns"] >= (form.MAX_NODES - 1) * LINK["delay_ns"]
        assert path["rate_bps"] >= LINK["rate_bps"]
        assert path["queue_bytes"] >= LINK["queue_bytes"]
    user = PATHS["user"]
    assert user["jitter_ns"] ** 2 >= (form.MAX_NODES - 1) * LINK["jitter_ns"] ** 2
    assert user["delay_ns"] + 24 * user["jitter_ns"] < 2**63, "signed ns in C"


def test_the_pages_say_so() -> None:
    page = (ROOT / "docs" / "tdl.md").read_text(encoding="utf-8")
    table = dict(
        re.findall(r"^\| ([a-z, ]+) \| (.+?) \|$", page.partition("## Limits of")[2], re.M)
    )
    assert table["latency, jitter"] == "1 day"
    assert table["rates"] == quantities.rate(LINK["rate_bps"]).replace("Tb", " Tb")
    assert table["queues"] == quantities.size(LINK["queue_bytes"]).replace("GiB", " GiB")
    assert table["links"].startswith(f"{bounds.MAX_LINKS:,}")
    assert table["bridges"].startswith(f"{bounds.MAX_BRIDGES:,}")
    assert table["a statement"].startswith(f"{bounds.MAX_WORDS:,}")
    protocol = (ROOT / "docs" / "pktd.md").read_text(encoding="utf-8")
    assert f"delay 0 to {PATHS['user']['delay_ns'] // LINK['delay_ns']:,} days" in protocol
    assert f"jitter 0 to {PATHS['user']['jitter_ns'] // LINK['jitter_ns']} days" in protocol
    tcald = (ROOT / "docs" / "tcal.md").read_text(encoding="utf-8")
    kernel = PATHS["kernel"]
    assert f"jitter of at most {kernel['jitter_ns']:,} ns" in tcald
    assert f"{jitter_limit('kernel', 'pareto'):,} ns" in tcald


STATIC = """\
service a
service b replicas=2
bridges s t
link a--s latency=2h jitter=1s
link s--t latency=5s jitter=1s
link b--t latency=5s jitter=1s up=10Tb queue=1GiB symmetric
"""


def found(more: str = "", datapath: str = "kernel", **between: int) -> Misfit | None:
    return misfit(compile_source(STATIC + more).plan, datapath, **between)


def test_what_both_take_is_no_misfit() -> None:
    assert found() is None  # the root of three is 1.7 s
    assert found("at 5s set latency=1d jitter=1d", "user") is None


def test_jitters_of_a_path_add_up_for_the_kernel() -> None:
    """Each link is within what netem takes, their path from 5 s on is not."""
    one = found("at 5s s--t set jitter=1800ms\nat 9s quit")
    assert one is not None
    assert (one.at_ns, one.line, one.link) == (5 * SECOND, 7, "s->t")
    assert one.what == "the jitter of the path from a.0 to b.0"
    assert one.value == 2_289_104_628
    assert one.limit == PATHS["kernel"]["jitter_ns"]
    assert found("at 5s s--t set jitter=1800ms\nat 9s quit", end_ns=4 * SECOND) is None
    assert (
        found("at 5s s--t set jitter=1800ms\nat 7s s--t set jitter=1s", begin_ns=8 * SECOND) is None
    )


def test_relative_changes_and_distributions_count() -> None:
    one = found("at 1s b.1--t set jitter=150%\nat 2s b.1--t set jitter=150%")
    assert one is not None
    assert (one.at_ns, one.line) == (2 * SECOND, 8)
    assert one.what.endswith("to b.1")
    one = found("at 3s a--s set jitter=1100 dist=pareto")
    assert one is not None
    assert (one.limit, one.line, one.link) == (jitter_limit("kernel", "pareto"), 7, "a.0->s")


def test_paths_that_are_not_there_do_not_count() -> None:
    assert found("at 1s s--t leave\nat 2s s--t set jitter=4s") is None
    one = found("at 1s s--t leave\nat 2s s--t set jitter=4s\nat 3s s--t join")
    assert one is not None
    assert (one.at_ns, one.line) == (3 * SECOND, 8)


def test_a_datapath_that_cannot_do_a_property_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    less = {**PATHS, "kernel": {**PATHS["kernel"], "loss_ppb": 0}}
    monkeypatch.setattr("compiler.plan.rules.datapath_fit.PATHS", less)
    one = found("at 4s b.0->t set loss=1%")
    assert one is not None
    assert str(one) == "the loss of link b.0->t is not possible"
    assert (one.at_ns, one.line) == (4 * SECOND, 7)
    assert found("at 4s b.0->t set loss=1%", "user") is None


@pytest.mark.parametrize("more", ["burst=8000", "duplicate=1%", "corrupt=1%", "reorder=1% by=1ms"])
def test_what_happens_to_single_packets_is_for_runs_on_one_machine(more: str) -> None:
    more = more.replace("burst=8000", "loss=1% burst=8")
    for datapath in ("user", "kernel"):
        one = found(f"at 4s b.0->t set {more}", datapath)
        assert one is not None
        assert (one.limit, one.line, one.link) == (0, 7, "b.0->t")
        assert str(one).endswith("of link b.0->t is not possible")
    assert found(f"at 4s b.0->t set {more}", HOP_EXACT) is None


def test_a_link_of_another_release_may_be_beyond_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tdl.values.MAX_RATE_BPS", 10**15)
    monkeypatch.setattr("compiler.expand.property_changes.LINK", {**LINK, "rate_bps": 10**15})
    values.rate.cache_clear()
    try:
        declared = found("link a--t up=1000Tb", "user")
        changed = found("at 4s b.0->t set up=20Tb", "user")
    finally:
        values.rate.cache_clear()
    assert declared is not None
    assert (declared.what, declared.line) == ("the rate of link a.0->t", 0)
    assert changed is not None
    assert (changed.what, changed.line, changed.at_ns) == (
        "the rate of link b.0->t",
        7,
        4 * SECOND,
    )
