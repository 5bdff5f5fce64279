"""What the kernel says it has for an interface, found by pyroute2 and tc, not by tcald."""

from __future__ import annotations

import ipaddress
import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute

from tests.netem.support import Space

_LATENCY64, _JITTER64 = 10, 11  # TCA_NETEM_…, in ns


@dataclass(frozen=True, slots=True)
class Shaped:
    """What one destination's packets get."""

    rate_bps: int
    ceil_bps: int
    burst_bytes: int
    delay_s: float
    jitter_s: float
    loss: float
    limit_packets: int
    queue_bytes: int


class Tree:
    """A reading of eth0 in a namespace, all at one time."""

    def __init__(self, space: Space) -> None:
        with IPRoute(netns=space.path) as ip:
            index = ip.link_lookup(ifname="eth0")[0]
            self.classes = {row["handle"]: row for row in ip.get_classes(index)}
            self._raw = {row["handle"]: row for row in ip.get_qdiscs(index)}
        said = space.run("tc", "-j", "qdisc", "show", "dev", "eth0")
        self.qdiscs: list[dict[str, Any]] = json.loads(said)
        (htb,) = [row["handle"] for row in self.qdiscs if row["kind"] == "htb"]
        shown = space.run("tc", "filter", "show", "dev", "eth0", "parent", htb)
        self._filters = list(_filters(shown))

    def of(self, address: str) -> Shaped | None:
        """None when no filter has the whole address."""
        number = self._class_of(address)
        if number is None:
            return None
        options = self.classes[number].get_attr("TCA_OPTIONS")
        parameters = options.get_attr("TCA_HTB_PARMS")
        netem = self._below(number, "netem")
        fifo = self._below(number, "bfifo")["options"]
        return Shaped(
            rate_bps=8 * (options.get_attr("TCA_HTB_RATE64") or parameters["rate"]),
            ceil_bps=8 * (options.get_attr("TCA_HTB_CEIL64") or parameters["ceil"]),
            burst_bytes=parameters["buffer"] * 64 * parameters["rate"] // 1_000_000_000,
            delay_s=self._seconds(netem, _LATENCY64),
            jitter_s=self._seconds(netem, _JITTER64),
            loss=netem["options"].get("loss-random", {"loss": 0.0})["loss"],
            limit_packets=netem["options"]["limit"],
            queue_bytes=fifo["limit"],
        )

    def fullest_bucket(self) -> int:
        """The most filters with an address that stand in one bucket of a hash table."""
        return max(Counter(found.bucket for found in self._filters).values())

    def kinds(self) -> Counter[str]:
        return Counter(row["kind"] for row in self.qdiscs)

    def _class_of(self, address: str) -> int | None:
        wanted = ipaddress.ip_address(address)
        for found in self._filters:
            if found.address == wanted:
                return found.number
        return None

    def _below(self, number: int, kind: str) -> dict[str, Any]:
        """The qdisc of that kind somewhere below a class."""
        parent = f"{number >> 16:x}:{number & 0xFFFF:x}"
        while True:
            (found,) = [row for row in self.qdiscs if row.get("parent", "").startswith(parent)]
            if found["kind"] == kind:
                return found
            parent = found["handle"]

    def _seconds(self, netem: dict[str, Any], attribute: int) -> float:
        """tc tells delays of up to 2^32 ticks of 64 ns, pyroute2 has no name for the attributes."""
        options = self._raw[int(netem["handle"].rstrip(":"), 16) << 16].get_attr("TCA_OPTIONS")
        (ns,) = [
            struct.unpack_from("=q", value.data, value.offset + 4)[0]
            for name, value in options["attrs"]
            if name == "UNKNOWN" and value["header"]["type"] == attribute
        ]
        return float(ns) / 1e9


@dataclass(frozen=True, slots=True)
class _Filter:
    """One that has a destination address in full."""

    bucket: str
    number: int  # of its class
    address: ipaddress.IPv4Address | ipaddress.IPv6Address


def _filters(text: str) -> Iterator[_Filter]:
    """From tc's words: pyroute2 0.9 reads the keys of a u32 filter four bytes off."""
    for part in text.split("\nfilter "):
        head = re.search(r" fh (\w+:\w*):\w+ .*flowid (\w+):(\w+) ", part)
        keys = re.findall(r"match (\w{8})/ffffffff at (\d+)", part)
        for words, first in ((4, 24), (1, 16)):
            wanted = [str(first + 4 * word) for word in range(words)]
            if head and [at for _, at in keys] == wanted:
                number = int(head[2], 16) << 16 | int(head[3], 16)
                address = bytes.fromhex("".join(value for value, _ in keys))
                yield _Filter(head[1], number, ipaddress.ip_address(address))
