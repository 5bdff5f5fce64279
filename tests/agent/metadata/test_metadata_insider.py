"""An agent that has the run's key and lies about which start others are in: nobody is muted.

It sends to everybody in everybody's name, with any numbers of starts, at any time. What all others
know must be what they know without it, and starts that the coordinator announces must be heard.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.agent.metadata import codec
from runtime.agent.metadata.auth import Seal
from runtime.agent.metadata.codec import MessageHeader
from tests.agent.hosts import KEY, RUN, Hosts, Told, dumbbell, flow

HOSTS, LIAR = 3, 2
PLACE = [0, 1, 2, 0, 1, 2, 0, 1]
TICKS = 6  # for hello, answer and flows, twice over

starts = st.one_of(st.integers(0, 5), st.integers(0, codec.MAX_BOOT), st.just(codec.MAX_BOOT))
lies = st.tuples(
    st.integers(0, HOSTS - 1),  # the host in whose name
    st.integers(0, LIAR - 1),  # the host that is told
    starts,  # of the sender
    starts,  # of the receiver, as the sender is to know it
)
# What happens between two ticks: lies, and perhaps the restart of a host.
turns = st.tuples(st.lists(lies, max_size=12), st.one_of(st.none(), st.integers(0, LIAR - 1)))


def datagram(sender: int, receiver: int, boot: int, for_boot: int) -> bytes:
    """A hello, which is enough to make a new start known. Its number has been there before, for a
    start that is the present one."""
    seal = Seal(KEY, RUN)
    return seal.close(
        codec.encode(MessageHeader(seal.run_tag, sender, receiver, boot, for_boot, 1, 0))
    )


def world() -> Hosts:
    net = Hosts(dumbbell(4), PLACE)
    net.flows = [[flow(0, 4, 10), flow(3, 7, 20)], [flow(1, 6, 30)], []]
    net.settle()
    return net


def known(net: Hosts) -> list[Told]:
    return [net.known(host) for host in range(LIAR)]


@settings(max_examples=150, deadline=None)
@given(st.lists(turns, min_size=1, max_size=5))
def test_nobody_is_muted(story: list[tuple[list[tuple[int, int, int, int]], int | None]]) -> None:
    net = world()
    before = known(net)
    assert all(before), "each has something to know"
    for told, restarted in story:
        for lie in told:
            net.agents[lie[1]].incoming(net.now_ns, datagram(*lie))
        if restarted is not None:
            net.agents[restarted] = net.start(restarted)
        net.tick(TICKS)
        assert known(net) == before


def test_the_largest_number_there_is() -> None:
    """What muted a pair for good once."""
    net = world()
    before = known(net)
    net.agents[0].incoming(net.now_ns, datagram(1, 0, codec.MAX_BOOT, 0))
    assert net.agents[0].counters()["unannounced"] == 1
    net.flows[1] = [flow(1, 6, 10)]
    net.tick()
    assert net.known(0) != before[0], "the change is heard"
    assert net.agents[0].counters()["stale"] == 0
