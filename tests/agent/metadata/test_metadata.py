"""Metadata between agents: what is told, to whom, when; and what is made of what comes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from compiler.plan.properties import LinkState
from runtime.agent.metadata import codec
from runtime.agent.metadata.auth import Seal
from runtime.agent.metadata.codec import MessageHeader
from runtime.agent.metadata.ledger import AGE_NS, LOOK_NS
from runtime.agent.metadata.metadata import COUNTERS, VERDICTS, Metadata
from runtime.agent.metadata.outgoing import REFRESH_NS, SLOT_NS
from tests.agent.hosts import KEY, RUN, TICK_NS, Hosts, dumbbell, flow, telling
from tests.plan.networks import PLAIN, build
from tests.simulation.volume import HEADER_BYTES, TARGET, Fleet, targets

TEN, TWENTY, THIRTY = 10_027_008, 20_054_016, 30_015_488  # Mb/s as they are told
SECOND_TICKS = 1_000_000_000 // TICK_NS
MS = 1_000_000
ALTERNATE = [0, 1, 0, 1, 0, 1, 0, 1]  # instance -> host, of dumbbell(4)


def two_hosts() -> Hosts:
    return Hosts(dumbbell(4), ALTERNATE)


def bytes_of(net: Hosts) -> int:
    return sum(len(datagram) for _, _, datagram in net.sent)


def total(net: Hosts, name: str) -> int:
    return sum(agent.counters()[name] for agent in net.agents)


# --- what is told, and when ------------------------------------------------------------------


def test_flows_of_others_are_known_from_the_tick_after_the_hello() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10), flow(2, 7, 20, greedy=True, wait_ns=7 * MS)], [flow(1, 4, 30)]]
    net.tick()
    assert net.known(0) == net.known(1) == {}
    net.tick()
    assert net.known(1) == {(0, 5): (TEN, False), (2, 7): (7 * MS, True)}
    assert net.known(0) == {(1, 4): (THIRTY, False)}


def test_what_changes_is_told_in_the_same_tick() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10), flow(2, 7, 20)]
    net.settle()
    net.flows[0] = [flow(2, 7, 20, greedy=True), flow(4, 1, 30)]
    net.tick()
    assert net.known(1) == {(2, 7): (0, True), (4, 1): (THIRTY, False)}
    net.flows[0] = []
    net.tick()
    assert net.known(1) == {}


def test_nothing_is_said_as_long_as_nothing_changes() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.tick(2 * SECOND_TICKS)
    before = total(net, "sent")
    net.tick(5 * SECOND_TICKS)
    refreshes = 5_000_000_000 // REFRESH_NS
    assert total(net, "sent") - before == 2 * refreshes


def test_a_change_is_told_in_three_ticks_and_then_no_more() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    net.tick(SECOND_TICKS)
    counts = []
    net.flows[0] = [flow(0, 5, 10), flow(2, 7, 20)]
    for _ in range(4):
        before = net.agents[0].counters()["sent_flows"]
        net.tick()
        counts.append(net.agents[0].counters()["sent_flows"] - before)
    assert counts[:3] == [1, 1, 1] or sum(counts) in (4, 5), "a refresh may fall among them"


def test_small_changes_wait_for_a_slot_and_tiny_ones_for_the_refresh() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    net.tick(SECOND_TICKS)
    waited = []
    for mbps in (10.2, 10.24):
        net.flows[0] = [flow(0, 5, mbps)]
        told = codec.rate_of(codec.code_of(round(mbps * 1e6)))
        ticks = 0
        while net.known(1)[0, 5][0] != told:
            net.tick()
            ticks += 1
            assert ticks < SECOND_TICKS
        waited.append(ticks)
    assert waited[0] <= SLOT_NS // TICK_NS
    assert waited[1] <= REFRESH_NS // TICK_NS


def test_the_rate_of_a_greedy_flow_may_move_without_a_word() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10, greedy=True)]
    net.tick(2 * SECOND_TICKS)
    before = total(net, "sent_flows")
    for tick in range(5 * SECOND_TICKS):
        net.flows[0] = [flow(0, 5, 10 + tick % 7, greedy=True)]
        net.tick()
    assert total(net, "sent_flows") - before == 5_000_000_000 // REFRESH_NS


def test_how_long_a_greedy_flow_waits_is_told_at_slots_and_once() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10, greedy=True, wait_ns=10 * MS)]
    net.tick(2 * SECOND_TICKS)
    before = total(net, "sent_flows")
    for tick in range(SECOND_TICKS):  # it moves all the time
        net.flows[0] = [flow(0, 5, 10, greedy=True, wait_ns=(10 + tick % 2 + tick) * MS)]
        net.tick()
    assert total(net, "sent_flows") - before == SECOND_TICKS * TICK_NS // SLOT_NS
    assert net.known(1)[0, 5][0] >= (10 + SECOND_TICKS - SLOT_NS // TICK_NS) * MS
    net.tick(SECOND_TICKS)
    assert net.known(1)[0, 5] == telling(net.flows[0][0])
    before = total(net, "sent_flows")
    for tick in range(SECOND_TICKS):  # by less than is worth a message
        waits = net.flows[0][0].wait_ns + (tick % 2) * MS // 5
        net.flows[0] = [flow(0, 5, 10, greedy=True, wait_ns=waits)]
        net.tick()
    assert total(net, "sent_flows") - before <= 1_000_000_000 // REFRESH_NS + 2


def test_a_report_beyond_one_datagram_comes_in_several() -> None:
    count = 60
    net = Hosts(dumbbell(count), [0] * count + [1] * count)
    net.flows[0] = [flow(src, count + dst, 10) for src in range(count) for dst in range(20)]
    net.tick(2)
    assert 3 <= len(net.sent) <= 5
    assert max(len(datagram) for _, _, datagram in net.sent) > 1300
    assert all(len(datagram) <= codec.MAX_DATAGRAM for _, _, datagram in net.sent)
    assert len(net.known(1)) == 1200


def test_one_part_lost_leaves_the_others() -> None:
    count = 60
    net = Hosts(dumbbell(count), [0] * count + [1] * count)
    net.settle()
    net.flows[0] = [flow(src, count + dst, 10) for src in range(count) for dst in range(20)]
    parts = iter([True])
    net.lose = lambda source, *_: source == 0 and next(parts, False)
    net.tick()
    assert 600 < len(net.known(1)) < 1200
    net.tick()  # told again
    assert len(net.known(1)) == 1200


def test_refreshes_of_many_flows_are_spread() -> None:
    count = 40
    net = Hosts(dumbbell(count), [0] * count + [1] * count)
    net.flows[0] = [flow(src, count + dst, 10) for src in range(count) for dst in range(15)]
    net.tick(2 * SECOND_TICKS)
    sizes = []
    for _ in range(REFRESH_NS // TICK_NS):
        net.tick()
        sizes.append(sum(len(datagram) for source, _, datagram in net.sent if source == 0))
    assert sum(size > 0 for size in sizes) == 5
    assert max(sizes) < 1.3 * sum(sizes) / 5


def test_one_host_says_nothing() -> None:
    net = Hosts(dumbbell(2), [0, 0, 0, 0])
    net.flows[0] = [flow(0, 2, 10)]
    net.tick(10)
    assert net.sent == []
    assert net.known(0) == {}


def test_nothing_happens_before_the_first_epoch() -> None:
    agent = Metadata(KEY, RUN, 0, [1, 1])
    assert agent.outgoing(0, []) == []
    assert len(agent.remote(0)) == 0


# --- to whom ---------------------------------------------------------------------------------


def islands() -> Hosts:
    """a.0 (host 0), a.1 (1) and b.0 (0) on one island; c.0 (2), d.0 (3) and e.0 (0) on another,
    where only the link towards e.0 has a limit."""
    free = LinkState(True, 0, 1_000_000, 0, 0, 625_000, "normal")
    topology = build(
        [("a", 2), ("b", 1), ("c", 1), ("d", 1), ("e", 1)],
        ["s1", "s2"],
        [
            ("a", "s1", PLAIN, PLAIN),
            ("b", "s1", PLAIN, PLAIN),
            ("c", "s2", free, free),
            ("d", "s2", free, free),
            ("e", "s2", free, PLAIN),
        ],
    )
    return Hosts(topology, [0, 1, 0, 2, 3, 0])


def test_only_those_who_share_a_limited_link_are_told() -> None:
    net = islands()
    net.flows[0] = [flow(0, 2, 10), flow(0, 1, 20), flow(5, 3, 20)]
    net.flows[2] = [flow(3, 4, 10), flow(3, 5, 20)]
    net.settle()
    assert net.known(1) == {(0, 2): (TEN, False)}, "0 -> 1 shares with flows of host 0 only"
    assert net.known(2) == {}, "5 -> 3 passes no limited link"
    assert net.known(3) == {(3, 5): (TWENTY, False)}, "it may send to 5 itself"
    assert net.known(0) == {}, "5 does not send to itself"
    seen: set[tuple[int, int]] = set()
    for _ in range(SECOND_TICKS):
        net.tick()
        seen |= {(source, to) for source, to, _ in net.sent}
    assert seen == {(0, 1), (1, 0), (2, 3), (3, 2)}, "the others have heard of each other by now"
    assert net.interest.neighbours(0) == 0b0010
    assert net.interest.neighbours(2) == 0b1000


def test_who_cannot_know_the_bottleneck_is_told_a_cap() -> None:
    """Three on the left, their link s1 -> s2, then far.0 behind a link of its own."""
    topology = build(
        [("left", 3), ("right", 2), ("far", 2)],
        ["s1", "s2", "s3"],
        [
            ("left", "s1", PLAIN, PLAIN),
            ("right", "s2", PLAIN, PLAIN),
            ("far", "s3", PLAIN, PLAIN),
            ("s1", "s2", PLAIN, PLAIN),
            ("s2", "s3", PLAIN, PLAIN),
        ],
    )
    net = Hosts(topology, [0, 1, 2, 0, 0, 0, 3])
    names = {link.name: number for number, link in enumerate(topology.links)}
    shared, own = names["s1->s2"], names["left.0->s1"]
    for bottleneck, capped in ((shared, False), (own, True), (-1, False)):
        more = {"allocation_bps": 30_000_000, "bottleneck": bottleneck}
        net.flows[0] = [flow(0, 6, 10, greedy=True, **more)]
        net.tick(2)
        for host in (1, 2):
            expected = (THIRTY, False) if capped else (0, True)
            assert net.known(host)[0, 6] == expected, (bottleneck, host)


def test_who_shares_no_link_any_more_is_told_of_an_end() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    net.settle()
    apart = Hosts(dumbbell(4), [0, 0, 0, 0, 0, 0, 0, 0], hosts=2)
    for agent in net.agents:
        agent.epoch(1, apart.interest, net.now_ns)
    net.tick()
    assert net.known(1) == {}
    for agent in net.agents:
        agent.epoch(2, net.interest, net.now_ns)
    net.tick()
    assert net.known(1) == {(0, 5): (TEN, False)}


# --- what may happen on the way --------------------------------------------------------------


def churn(net: Hosts, ticks: int, seed: int) -> None:
    """Random flows of everybody, of which some change in each tick."""
    rnd = random.Random(seed)
    count = len(net.placement) - 2
    pairs = [
        [(s, d) for s in range(count) for d in range(count) if s != d and net.placement[s] == host]
        for host in range(net.count)
    ]
    for _ in range(ticks):
        for host, mine in enumerate(pairs):
            kept = [one for one in net.flows[host] if rnd.random() < 0.97]
            if rnd.random() < 0.4:
                src, dst = rnd.choice(mine)
                kept = [one for one in kept if (one.src, one.dst) != (src, dst)]
                kept.append(flow(src, dst, rnd.choice([1, 10, 90]), greedy=rnd.random() < 0.5))
            net.flows[host] = kept
        net.tick()


def agrees(net: Hosts) -> bool:
    """Whether every host knows all flows of all others, as they are."""
    for host in range(net.count):
        expected = {
            (one.src, one.dst): telling(one)
            for other in range(net.count)
            if other != host
            for one in net.flows[other]
        }
        if net.known(host) != expected:
            return False
    return True


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_everybody_knows_in_the_end_whatever_is_lost(share: float) -> None:
    net = Hosts(dumbbell(4), [0, 1, 2, 0, 1, 2, 0, 1])
    net.lossy(share)
    churn(net, 100, seed=7)
    if not share:
        assert agrees(net)
    net.lose = lambda *_: False
    net.tick(AGE_NS // TICK_NS + 1)
    assert agrees(net)
    assert total(net, "missing") > 0 or not share
    assert all(total(net, name) == 0 for name in REFUSALS)


REFUSALS = [name for name in VERDICTS[1:] if name not in ("replayed", "late")]


def test_most_changes_are_known_soon_although_a_third_is_lost() -> None:
    net = two_hosts()
    net.settle()
    net.lossy(0.3)
    soon = 0
    for change in range(400):
        net.flows[0] = [flow(0, 5, 10 + change % 2 * 10)]
        net.tick(3)
        soon += net.known(1).get((0, 5)) == ((TWENTY if change % 2 else TEN), False)
        net.tick(3)
    assert soon > 0.94 * 400


def test_reordered_and_doubled_datagrams_change_nothing() -> None:
    net = Hosts(dumbbell(4), [0, 1, 2, 0, 1, 2, 0, 1])
    rnd = random.Random(3)
    waiting: list[tuple[int, int, bytes]] = []

    def shuffle(source: int, to: int, datagram: bytes) -> bool:
        """Each datagram comes up to 8 datagrams later, and one in five twice."""
        waiting.append((source, to, datagram))
        for _ in range(rnd.choice([0, 1, 2]) if len(waiting) > 8 else 0):
            _, receiver, found = waiting.pop(rnd.randrange(len(waiting)))
            for _ in range(rnd.choice([1, 1, 1, 1, 2])):
                net.agents[receiver].incoming(net.now_ns, found)
        return True

    net.lose = shuffle
    churn(net, 200, seed=8)
    for _, to, datagram in waiting:
        net.agents[to].incoming(net.now_ns, datagram)
    waiting.clear()
    assert total(net, "reordered") > 50
    assert total(net, "replayed") > 50
    net.lose = lambda *_: False
    net.tick(REFRESH_NS // TICK_NS + 1)
    assert agrees(net)
    assert all(total(net, name) == 0 for name in REFUSALS)


def test_a_host_that_falls_silent_has_no_flows_after_a_while() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.settle()
    last_ns = net.now_ns
    net.lose = lambda source, *_: source == 0
    while net.known(1):
        net.tick()
        assert net.now_ns - last_ns <= AGE_NS + LOOK_NS
    assert net.now_ns - last_ns > AGE_NS
    assert net.agents[1].counters()["aged_flows"] == 1
    assert net.known(0) == {(1, 4): (THIRTY, False)}
    net.lose = lambda *_: False
    net.tick(REFRESH_NS // TICK_NS)
    assert net.known(1) == {(0, 5): (TEN, False)}


def test_messages_of_other_epochs_are_taken_and_counted() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.settle()
    net.agents[0].epoch(3, net.interest, net.now_ns)
    net.flows = [[flow(0, 5, 20)], [flow(1, 4, 10)]]
    net.tick()
    assert net.known(1) == {(0, 5): (TWENTY, False)}
    assert net.known(0) == {(1, 4): (TEN, False)}
    ahead = [agent.counters()["epoch_ahead"] for agent in net.agents]
    behind = [agent.counters()["epoch_behind"] for agent in net.agents]
    assert (ahead, behind) == ([0, 1], [1, 0])


def test_clocks_may_differ_by_anything() -> None:
    """Each agent sees its own clock only: the same ticks, with host 1 a day ahead, or behind."""
    told: list[list[object]] = []
    for offset_ns in (0, 86_400_000_000_000, -900_000_000):
        net = two_hosts()
        rnd = random.Random(5)
        told.append([])
        for tick in range(40):
            net.flows[0] = [flow(0, 5, rnd.choice([1, 10, 11]))] if tick % 9 else []
            times = [net.now_ns + tick * TICK_NS, net.now_ns + tick * TICK_NS + offset_ns]
            sent = [a.outgoing(t, f) for a, t, f in zip(net.agents, times, net.flows, strict=True)]
            for datagrams in sent:
                for to, datagram in datagrams:
                    net.agents[to].incoming(times[to], datagram)
            told[-1].append(net.agents[1].remote(times[1]))
    assert told[0] == told[1] == told[2]
    assert any(told[0])


# --- restarts --------------------------------------------------------------------------------


def test_what_a_restarted_sender_had_told_is_void() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10), flow(2, 7, 20)], [flow(1, 4, 30)]]
    net.settle()
    net.agents[0] = net.start(0)
    net.flows[0] = [flow(2, 7, 20)]
    net.tick()  # its hello
    assert net.known(1) == {}
    net.tick()  # the answer, and with it all flows
    assert net.known(0) == {(1, 4): (THIRTY, False)}
    net.tick()
    assert net.known(1) == {(2, 7): (TWENTY, False)}
    counters = net.agents[1].counters()
    assert counters["restarts_seen"] == 1
    assert net.agents[0].counters()["restarts_seen"] == 0


def test_messages_of_an_earlier_start_are_stale() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    net.settle()
    recorded = [datagram for source, _, datagram in net.sent if source == 0]
    net.agents[0] = net.start(0)
    net.flows[0] = []
    net.tick(2)
    for datagram in recorded:
        net.agents[1].incoming(net.now_ns, datagram)
    assert net.known(1) == {}
    assert net.agents[1].counters()["stale"] == len(recorded) > 0


def test_nothing_from_before_its_start_can_be_replayed_to_a_receiver() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    recorded: list[bytes] = []
    for _ in range(50):
        net.tick()
        recorded += [datagram for source, _, datagram in net.sent if source == 0]
    net.flows[0] = []
    net.agents[1] = net.start(1)
    for datagram in recorded:
        net.agents[1].incoming(net.now_ns, datagram)
    assert net.known(1) == {}
    assert net.agents[1].counters()["stale"] > len(recorded) // 2
    net.tick(2)
    net.flows[0] = [flow(2, 7, 20)]
    net.tick()
    assert net.known(1) == {(2, 7): (TWENTY, False)}


def test_both_restart_at_once() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.settle()
    net.agents[0] = net.start(0)
    net.agents[1] = net.start(1)
    net.tick(2)
    assert net.known(1) == {(0, 5): (TEN, False)}
    assert net.known(0) == {(1, 4): (THIRTY, False)}


@pytest.mark.parametrize("start", [0, -1, 2**64])
def test_a_start_needs_a_number(start: int) -> None:
    with pytest.raises(ValueError, match="cannot number a start"):
        Metadata(KEY, RUN, 0, [1, start])
    agent = Metadata(KEY, RUN, 0, [1, 1])
    with pytest.raises(ValueError, match="cannot number a start"):
        agent.announce([1, start])
    with pytest.raises(ValueError, match="3 starts of 2 hosts"):
        agent.announce([1, 1, 1])


def test_hosts_are_checked() -> None:
    for me, hosts in ((2, 2), (-1, 2), (0, 0), (0, 70_000)):
        with pytest.raises(ValueError, match="is not a host"):
            Metadata(KEY, RUN, me, [1] * hosts)
    agent = Metadata(KEY, RUN, 0, [1])
    with pytest.raises(ValueError, match="instances are on 2 hosts of 1"):
        agent.epoch(0, two_hosts().interest, 0)


def test_a_start_that_was_not_announced_yet_is_taken_once_it_is() -> None:
    """An agent is back and speaks before the others have heard of it from the coordinator."""
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.settle()
    net.agents[0] = Metadata(KEY, RUN, 0, [2, 1])
    net.agents[0].epoch(0, net.interest, 0)
    net.tick(SECOND_TICKS // 2)
    counters = net.agents[1].counters()
    assert counters["unannounced"] > 0
    assert counters["restarts_seen"] == 0
    assert net.known(1) == {(0, 5): (TEN, False)}, "as it was told last"
    net.agents[1].announce([2, 1])
    assert net.known(1) == {(0, 5): (TEN, False)}, "until the new start is heard of"
    net.tick(SECOND_TICKS // 4)
    assert net.agents[1].counters()["restarts_seen"] == 1
    assert net.known(1) == {(0, 5): (TEN, False)}
    assert net.known(0) == {(1, 4): (THIRTY, False)}


def test_an_announcement_from_before_changes_nothing() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], []]
    net.settle()
    net.agents[1].announce([3, 7])
    net.agents[1].announce([1, 1])
    for datagram in crafted(sequence=1):
        net.agents[1].incoming(net.now_ns, datagram)
    assert net.agents[1].counters()["stale"] == 1
    for datagram in crafted(boot=3, sequence=1):
        net.agents[1].incoming(net.now_ns, datagram)
    assert net.known(1) == {(0, 5): (TEN, False)}, "its own number stays that of the start"


# --- what is refused -------------------------------------------------------------------------


def crafted(**changes: object) -> Iterator[bytes]:
    """What host 0 tells host 1 next, or might: a flow 0 -> 5 of 10 Mb/s."""
    fields: dict[str, object] = {
        "key": KEY, "run": RUN, "sender": 0, "receiver": 1, "boot": 1, "for_boot": 1,
        "sequence": 1000, "path": 5, "value": codec.value_of(10_000_000, False),
    }  # fmt: skip
    fields |= changes
    seal = Seal(fields["key"], fields["run"])  # type: ignore[arg-type]
    names = ("sender", "receiver", "boot", "for_boot", "sequence")
    header = MessageHeader(seal.run_tag, *(fields[name] for name in names), 0)  # type: ignore[call-arg, arg-type]
    [(count, body)] = codec.flow_bodies([(fields["path"], fields["value"])])  # type: ignore[list-item]
    yield seal.close(codec.encode(header, count, body))


@pytest.mark.parametrize(
    ("changes", "counter"),
    [
        ({}, "taken"),
        ({"key": KEY[::-1]}, "forged"),
        ({"run": b"run-2"}, "other_run"),
        ({"receiver": 0}, "misdirected"),
        ({"sender": 1}, "misdirected"),
        ({"sender": 2}, "misdirected"),
        ({"boot": 0}, "stale"),
        ({"boot": 2}, "unannounced"),
        ({"boot": 2**64 - 1}, "unannounced"),
        ({"for_boot": 2}, "stale"),
        ({"for_boot": 0}, "malformed"),  # flows for nobody
        ({"path": 13}, "malformed"),  # 1 -> 5, which is of host 1
        ({"path": 0}, "malformed"),  # 0 -> 0
        ({"path": 64}, "malformed"),  # 8 -> 0
        ({"sequence": 1}, "replayed"),
    ],
)
def test_each_refusal_has_its_counter(changes: dict[str, object], counter: str) -> None:
    net = two_hosts()
    net.settle()
    agent = net.agents[1]
    before = agent.counters()
    for datagram in crafted(**changes):
        agent.incoming(net.now_ns, datagram)
    after = agent.counters()
    moved = {name for name in VERDICTS if after[name] != before[name]}
    assert moved == {counter}
    assert net.known(1) == ({(0, 5): (TEN, False)} if counter == "taken" else {})


def test_what_is_no_message_is_counted() -> None:
    net = two_hosts()
    net.settle()
    [good] = crafted()
    tries = {
        "garbage": [b"", b"TM", bytes(46), b"GET / HTTP/1.1\r\n" * 10, good[:45]],
        "too_long": [good + bytes(1400), bytes(1401)],
        "other_version": [good[:2] + b"\x01" + good[3:]],
        "forged": [good + b"\0", good[:-1] + b"\0", good[:46]],
    }
    for counter, datagrams in tries.items():
        for datagram in datagrams:
            net.agents[1].incoming(net.now_ns, datagram)
        assert net.agents[1].counters()[counter] == len(datagrams), counter
    assert net.known(1) == {}


def test_every_truncation_and_every_bit_is_noticed() -> None:
    net = two_hosts()
    net.settle()
    [good] = crafted()
    agent = net.agents[1]
    taken = agent.counters()["taken"]
    broken = [good[:length] for length in range(len(good))]
    for bit in range(8 * len(good)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        broken.append(bytes(flipped))
    for number, datagram in enumerate(broken, 1):
        agent.incoming(net.now_ns, datagram)
        counters = agent.counters()
        refused = sum(counters[name] for name in VERDICTS[1:])
        assert (counters["taken"], refused) == (taken, number)
    assert net.known(1) == {}
    agent.incoming(net.now_ns, good)
    assert net.known(1) == {(0, 5): (TEN, False)}


def test_a_forged_flood_leaves_what_is_known_alone() -> None:
    net = two_hosts()
    net.flows[0] = [flow(0, 5, 10)]
    net.settle()
    rnd = random.Random(1)
    [forged] = crafted(key=bytes(32))
    recorded = [datagram for _, to, datagram in net.sent if to == 1]
    for _ in range(2000):
        choice = rnd.choice([forged, rnd.randbytes(rnd.randrange(1600)), *recorded])
        net.agents[1].incoming(net.now_ns, choice)
    assert net.known(1) == {(0, 5): (TEN, False)}
    net.flows[0] = [flow(0, 5, 20)]
    net.tick()
    assert net.known(1) == {(0, 5): (TWENTY, False)}


def test_what_came_in_adds_up() -> None:
    net = two_hosts()
    net.flows = [[flow(0, 5, 10)], [flow(1, 4, 30)]]
    net.tick(50)
    counters = [agent.counters() for agent in net.agents]
    assert set(counters[0]) == set(COUNTERS)
    for mine, other in zip(counters, reversed(counters), strict=True):
        assert sum(mine[name] for name in VERDICTS) == other["sent"]
        assert mine["received_bytes"] == other["sent_bytes"]
        assert mine["taken_flows"] == other["sent_flows"]


# The targets for the volume of metadata: bytes follow from the seed, so they may be asserted.


def test_the_targets_are_met_with_headers() -> None:
    """160 instances, 80 flows, 4 agents: 50 kB/s at rest, 300 kB/s while all flows change."""
    rows = {row["what"]: row for row in targets(1)}
    assert set(rows) == {"at rest", "restless", "all told anew"}
    for what, row in rows.items():
        assert (row["instances"], row["flows"], row["hosts"]) == (160, 80, 4)
        assert 0 < row["payload_bytes_s"] < row["with_headers_bytes_s"] <= row["bound_bytes_s"], (
            what
        )
    assert rows["at rest"]["bound_bytes_s"] == 50_000
    assert rows["restless"]["with_headers_bytes_s"] > 5 * rows["at rest"]["with_headers_bytes_s"]


def test_silence_costs_a_heartbeat() -> None:
    side, _, hosts = TARGET
    fleet = Fleet(side, hosts, 0, change=False)
    fleet.run(4)
    fleet.run(40)
    assert fleet.datagrams == hosts * (hosts - 1) * 2
    assert fleet.bytes + HEADER_BYTES * fleet.datagrams < 80 * fleet.datagrams
