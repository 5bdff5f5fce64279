"""Where pods are is where their instances are."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from compiler.pipeline import compile_source
from runtime.backend.k8s.podplacement import MAX_NETWORKS, addresses_of, networks, placed
from runtime.backend.k8s.pods import Pod, pod
from runtime.errors import RunError
from runtime.rundir import etchosts
from tests.doubles.api import shown

TEXT = (
    "service server img=x replicas=3\nservice client img=x\nbridge s\n"
    "link server--s latency=1\nlink client--s latency=1\nat 1s quit\n"
)


def found(**nodes: str) -> dict[str, Pod]:
    every = {}
    for number, name in enumerate(("server.0", "server.1", "server.2", "client.0")):
        where = nodes.get(name.replace(".", "_"), "n0")
        one = shown(name.replace(".", "-"), node=where, ips=[f"10.244.{where[1:]}.{number + 2}"])
        every[name] = pod(one)
    return every


def test_hosts_are_the_nodes_that_have_instances_by_name() -> None:
    topology = compile_source(TEXT).plan.topology
    where = placed(topology, found(server_0="n7", server_1="n2", server_2="n7", client_0="n2"))
    names = [node.name for node in topology.nodes]
    assert where.nodes == ("n2", "n7")
    hosts = dict(zip(names, where.placement.hosts, strict=True))
    assert hosts == {"server.0": 1, "server.1": 0, "server.2": 1, "client.0": 0, "s": -1}
    assert where.placement.networks == ("10.244.2.0/24", "10.244.7.0/24")
    lines = list(etchosts.entries(topology, where.placement.addresses))
    assert lines[0] == "10.244.7.2 server.0 server-0 server"
    assert len(lines) == 4


def test_addresses_of_both_families_and_of_one() -> None:
    assert addresses_of(pod(shown("a-0", ips=["fd00::5", "10.0.0.5"]))) == ("10.0.0.5", "fd00::5")
    assert addresses_of(pod(shown("a-0", ips=["fd00:0::5"]))) == ("", "fd00::5")
    for wrong in ([], ["ten"]):
        with pytest.raises(RunError, match="pod a-0 has "):
            addresses_of(pod(shown("a-0", ips=wrong)))


@pytest.mark.parametrize("count", [1, 40, 1000, 5000])
def test_networks_are_few_and_hold_every_address(count: int) -> None:
    pairs = [(f"10.{n % 200}.{n // 200}.9", f"fd00:{n:x}::9") for n in range(count)]
    few = networks(pairs)
    assert 1 <= len(few) <= MAX_NETWORKS
    known = [ip_network(one) for one in few]
    for address in (ip_address(text) for pair in pairs for text in pair):
        assert any(address in one for one in known)
