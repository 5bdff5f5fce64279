"""The names that instances find each other by, in /etc/hosts, and what each stands for.

Beside these a service may have other names (`alias=`), which are none of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from compiler.plan.types import Node, Topology

LOOPBACK = (
    ("127.0.0.1", ("localhost",)),
    ("::1", ("localhost", "ip6-localhost", "ip6-loopback")),
)
MAX_HOSTNAME = 63  # a label of DNS; the kernel takes 64


def hostname(name: str) -> str:
    """Host name of instance `server.0`: a dot would make it a domain name.

    One that is too long is cut and told apart by 32 bits of the name's SHA-256.
    """
    whole = name.replace(".", "-")
    if len(whole) <= MAX_HOSTNAME:
        return whole
    end = hashlib.sha256(name.encode()).hexdigest()[:8] + "-" + name.rpartition(".")[2]
    return whole[: MAX_HOSTNAME - len(end) - 1] + "-" + end


def own_names(topology: Topology) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Of each node the names that it alone has, its own first. A host name that is also a service's
    or a bridge's belongs to that, and one of two instances to neither."""
    hosts = {node.name: hostname(node.name) for node in topology.nodes if node.is_instance}
    taken = {one for one, instances in Counter(hosts.values()).items() if instances > 1}
    taken.update(one.name for one in topology.services)
    taken.update(node.name for node in topology.nodes if node.service < 0)
    for node in topology.nodes:
        host = hosts.get(node.name)
        yield node, (node.name,) if host is None or host in taken else (node.name, host)
