"""What tcald is measured against: the same tree for N destinations by `tc -batch` and by pyroute2.

Both make, for each destination, an htb class, a netem below it, a fifo below that, and a u32
filter; tc with the same two-level hash on the last two octets. pyroute2, which can neither make
hash tables nor put the fifo there, has a flat list and no fifo.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator

from pyroute2 import IPRoute

from bench.engine.netns import Namespace
from bench.errors import BenchError
from bench.tables import Record

DEVICE = "eth0"
_BURST_BYTES = 3028
_QUEUE_BYTES = 100_000
_LIMIT = 10_000


def destination(index: int) -> str:
    """An address of 10.77.0.0/16."""
    return f"10.77.{(index + 2) >> 8}.{(index + 2) & 255}"


class TcBatch:
    """One `tc -batch` process a step, its lines ready before the clock starts."""

    name = "tc -batch"

    def __init__(self, space: Namespace) -> None:
        self._space = space

    def initialise(self, count: int) -> None:
        self._batch(_tree(count))

    def rates(self, count: int, turn: int) -> None:
        self._batch(_class("change", index, 20_000_000 + turn) for index in range(count))

    def delays(self, count: int, turn: int) -> None:
        self._batch(_netem("change", index, 2000 + turn, 1) for index in range(count))

    def both(self, count: int, turn: int) -> None:
        """Rates, delays and losses in one process."""
        lines = [_class("change", index, 30_000_000 + turn) for index in range(count)]
        self._batch(lines + [_netem("change", index, 3000 + turn, 1) for index in range(count)])

    def usage(self, count: int) -> None:
        argv = self._space.argv(["tc", "-s", "class", "show", "dev", DEVICE])
        said = subprocess.run(argv, capture_output=True, text=True, check=False)
        found = sum(line.startswith("class htb") for line in said.stdout.splitlines())
        if found < count:
            raise BenchError(f"tc showed {found} of {count} classes: {said.stderr.strip()}")

    def close(self) -> None:
        """Nothing is kept open."""

    def _batch(self, lines: Iterable[str]) -> None:
        argv = self._space.argv(["tc", "-batch", "-"])
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"tc -batch: {done.stderr.strip()[:300]}")


def _class(verb: str, index: int, rate_bps: int) -> str:
    rate = f"rate {rate_bps}bit ceil {rate_bps}bit burst {_BURST_BYTES} cburst {_BURST_BYTES}"
    return f"class {verb} dev {DEVICE} parent 1: classid 1:{index + 2:x} htb {rate} quantum 1514"


def _netem(verb: str, index: int, delay_us: int, loss_percent: float) -> str:
    words = f"netem limit {_LIMIT} delay {delay_us}us loss {loss_percent}%"
    return f"qdisc {verb} dev {DEVICE} parent 1:{index + 2:x} handle {index + 2:x}: {words}"


def _tree(count: int) -> Iterator[str]:
    yield f"qdisc add dev {DEVICE} root handle 1: htb default 1"
    yield f"filter add dev {DEVICE} parent 1: prio 1 protocol ip handle 1: u32 divisor 256"
    yield (
        f"filter add dev {DEVICE} parent 1: prio 1 protocol ip u32 link 1:"
        " hashkey mask 0x0000ff00 at 16 match ip dst 10.77.0.0/16"
    )
    for third in sorted({(index + 2) >> 8 for index in range(count)}):
        table = f"{third + 2:x}:"
        yield f"filter add dev {DEVICE} parent 1: prio 1 protocol ip handle {table} u32 divisor 256"
        yield (
            f"filter add dev {DEVICE} parent 1: prio 1 protocol ip u32 ht 1:{third:x} link {table}"
            f" hashkey mask 0x000000ff at 16 match ip dst 10.77.{third}.0/24"
        )
    for index in range(count):
        third, fourth = divmod(index + 2, 256)
        number = f"{index + 2:x}"
        yield _class("add", index, 10_000_000)
        yield _netem("add", index, 1000, 0)
        yield f"qdisc add dev {DEVICE} parent {number}: bfifo limit {_QUEUE_BYTES}"
        yield (
            f"filter add dev {DEVICE} parent 1: prio 1 protocol ip u32 ht {third + 2:x}:{fourth:x}"
            f" match ip dst {destination(index)}/32 flowid 1:{number}"
        )


class Pyroute2:
    """One request and its answer after the other, as the library is used."""

    name = "pyroute2"

    def __init__(self, space: Namespace) -> None:
        self._ip = IPRoute(netns=str(space.path))
        self._device = self._ip.link_lookup(ifname=DEVICE)[0]

    def initialise(self, count: int) -> None:
        tc, device = self._ip.tc, self._device
        tc("add", "htb", device, handle=0x10000, default=1)
        for index in range(count):
            number = index + 2
            self._class("add-class", index, 10_000_000)
            self._netem("add", index, 1000, 0)
            value = (10 << 24) + (77 << 16) + number
            tc(
                *("add-filter", "u32", device),
                parent=0x10000,
                prio=1,
                protocol=0x0800,
                target=0x10000 | number,
                keys=[f"{value:#010x}/0xffffffff+16"],
            )

    def rates(self, count: int, turn: int) -> None:
        for index in range(count):
            self._class("change-class", index, 20_000_000 + turn)

    def delays(self, count: int, turn: int) -> None:
        for index in range(count):
            self._netem("change", index, 2000 + turn, 1)

    def usage(self, count: int) -> None:
        found: list[Record] = list(self._ip.get_classes(self._device))
        if len(found) < count:
            raise BenchError(f"pyroute2 got {len(found)} of {count} classes")

    def close(self) -> None:
        self._ip.close()

    def _class(self, verb: str, index: int, rate_bps: int) -> None:
        self._ip.tc(
            *(verb, "htb", self._device),
            handle=0x10000 | (index + 2),
            parent=0x10000,
            rate=f"{rate_bps}bit",
            ceil=f"{rate_bps}bit",
            burst=_BURST_BYTES,
            cburst=_BURST_BYTES,
            quantum=1514,
        )

    def _netem(self, verb: str, index: int, delay_us: int, loss_percent: float) -> None:
        self._ip.tc(
            *(verb, "netem", self._device),
            handle=(index + 2) << 16,
            parent=0x10000 | (index + 2),
            delay=delay_us,
            limit=_LIMIT,
            loss=loss_percent,
        )
