"""An instance sends random frames while others measure: the run must not mind.

    python -m tests.trials.frames --seconds 300 --seed 1

A run over two hosts: four honest instances ping each other, one sends frames of every kind that is
known to have disturbed something, and random ones, on ordinary and on raw sockets (also round the
queueing disciplines). Exits with 0 if the run was completed, no agent was lost, no honest instance
was accused, no ping was faster than planned and most were answered; with 1 if not. Prints what was
sent and what the ports dropped. The same seed gives the same frames; how many fit into the time is
up to the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.cli.process import ended
from tests.trials import ethernet as eth
from tests.trials.ethernet import ARP, EVERYBODY, IPV4, IPV6, arp, frame, icmpv6, ipv4, ipv6, udp

ROOT = Path(__file__).resolve().parents[2]
FRAMES_PER_S = 1500  # more is a test of the processor
ONE_WAY_MS = 25.0
ANSWERED = 0.8  # of all pings, at least: a busy machine may lose some, a dead network has none
PING_INTERVAL_S = 0.2
ROUND_S = 5
AFTER_S = 2.0  # pings go on when the frames have ended

Make = Callable[[random.Random], bytes]


class Kinds:
    """Frames of one instance among others. Each method is a kind, with draws of its own."""

    def __init__(self, ipv4_address: str, ipv6_address: str) -> None:
        self.own, self.own_six = ipv4_address, ipv6_address
        self.mac = eth.mac_of(ipv4_address)
        self.all: dict[str, Make] = {
            name: getattr(self, name)
            for name in sorted(vars(Kinds))
            if not name.startswith("_") and callable(getattr(Kinds, name))
        }

    def _address(self, draw: random.Random) -> str:
        near = [f"10.77.0.{draw.randrange(1, 8)}", self.own, "10.77.255.255", "10.77.0.0"]
        under = ["100.64.0.1", "100.64.1.1", "100.64.1.2", "100.64.255.255"]
        far = ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "192.0.2.1"]
        return draw.choice([draw.choice(near), draw.choice(under), draw.choice(far)])

    def _six(self, draw: random.Random) -> str:
        near = [f"fd77:7473::{draw.randrange(1, 8):x}", self.own_six]
        return draw.choice([*near, "::", "::1", "fe80::1", "ff02::1", "ff02::2", "2001:db8::1"])

    def _mac(self, draw: random.Random) -> str:
        groups = [EVERYBODY, "01:00:5e:00:00:01", "33:33:00:00:00:01", "01:80:c2:00:00:00"]
        near = [eth.mac_of(f"10.77.0.{draw.randrange(1, 8)}"), self.mac]
        hosts = [eth.mac_of("100.64.0.1"), eth.mac_of("100.64.1.1"), "02:01:64:40:01:01"]
        return draw.choice([draw.choice(near), draw.choice(hosts), draw.choice(groups)])

    def _bytes(self, draw: random.Random, most: int = 1400) -> bytes:
        return draw.randbytes(draw.randrange(most))

    def arp_claim(self, draw: random.Random) -> bytes:
        """That an agent's, the coordinator's or somebody else's address is here."""
        whose = draw.choice(["100.64.0.1", "100.64.1.1", "100.64.1.2", self._address(draw)])
        operation = draw.choice([eth.REQUEST, eth.REPLY])
        body = arp(operation, (self.mac, whose), (EVERYBODY, whose))
        return frame(draw.choice([EVERYBODY, self._mac(draw)]), self.mac, ARP, body)

    def arp_any(self, draw: random.Random) -> bytes:
        sender = (self._mac(draw), self._address(draw))
        target = (self._mac(draw), self._address(draw))
        body = arp(draw.randrange(6), sender, target)
        return frame(self._mac(draw), self._mac(draw), ARP, body + self._bytes(draw, 60))

    def own_datagram(self, draw: random.Random) -> bytes:
        to = f"10.77.0.{draw.randrange(1, 8)}"
        packet = ipv4(self.own, to, 17, udp(self._bytes(draw), draw.randrange(65536)))
        return frame(eth.mac_of(to), self.mac, IPV4, packet)

    def spoofed_datagram(self, draw: random.Random) -> bytes:
        to = self._address(draw)
        packet = ipv4(self._address(draw), to, 17, udp(self._bytes(draw), draw.choice([7473, 9])))
        return frame(self._mac(draw), draw.choice([self.mac, self._mac(draw)]), IPV4, packet)

    def agent_datagram(self, draw: random.Random) -> bytes:
        """To an agent, or in its name."""
        ends = ["100.64.0.1", "100.64.1.1", "100.64.1.2", self.own]
        packet = ipv4(draw.choice(ends), draw.choice(ends), 17, udp(self._bytes(draw), 7473))
        return frame(self._mac(draw), self.mac, IPV4, packet)

    def single_in_group(self, draw: random.Random) -> bytes:
        to = f"10.77.0.{draw.randrange(1, 8)}"
        group = draw.choice([EVERYBODY, "01:00:5e:00:00:01"])
        return frame(group, self.mac, IPV4, ipv4(self.own, to, 17, udp(b"x", 9)))

    def fragment(self, draw: random.Random) -> bytes:
        to = f"10.77.0.{draw.randrange(1, 8)}"
        source = draw.choice([self.own, self._address(draw)])
        packet = ipv4(source, to, 17, self._bytes(draw), fragment=draw.randrange(65536))
        return frame(eth.mac_of(to), self.mac, IPV4, packet)

    def broken_ip(self, draw: random.Random) -> bytes:
        """Headers with bytes changed: lengths, versions, protocols."""
        kind = draw.choice([IPV4, IPV6])
        six = ipv6(self.own_six, "fd77:7473::1", 17, udp(self._bytes(draw, 200), 9))
        packet = bytearray(six if kind == IPV6 else ipv4(self.own, "10.77.0.1", 17, b"x" * 40))
        for _ in range(draw.randrange(1, 4)):
            packet[draw.randrange(len(packet))] = draw.randrange(256)
        return frame(eth.mac_of("10.77.0.1"), self.mac, kind, bytes(packet))

    def six_any(self, draw: random.Random) -> bytes:
        body = udp(self._bytes(draw), draw.randrange(65536))
        packet = ipv6(self._six(draw), self._six(draw), draw.choice([17, 6, 58, 0, 44, 60]), body)
        return frame(self._mac(draw), self.mac, IPV6, packet)

    def discovery(self, draw: random.Random) -> bytes:
        kind = draw.choice([eth.SOLICITATION, eth.ADVERTISEMENT, eth.REDIRECT])
        source, dest, target = self._six(draw), self._six(draw), self._six(draw)
        body = eth.discovery(source, dest, kind, target, self._mac(draw))
        return frame(self._mac(draw), self.mac, IPV6, body)

    def router(self, draw: random.Random) -> bytes:
        body = self._bytes(draw, 80)
        packet = icmpv6(self._six(draw), "ff02::1", draw.randrange(130, 140), body)
        return frame("33:33:00:00:00:01", self.mac, IPV6, packet)

    def vlan(self, draw: random.Random) -> bytes:
        inner = ipv4(self.own, f"10.77.0.{draw.randrange(1, 8)}", 17, udp(b"x", 9))
        number = draw.randrange(65536)
        return eth.tagged(self._mac(draw), self.mac, number, draw.choice([IPV4, 0x8100]), inner)

    def link_protocols(self, draw: random.Random) -> bytes:
        """Spanning tree, LLDP, pause frames, LACP."""
        last, kind = draw.choice([(0, 38), (0x0E, eth.LLDP), (1, 0x8808), (2, 0x8809)])
        head = bytes.fromhex("424203") if kind == 38 else b""
        return frame(f"01:80:c2:00:00:{last:02x}", self.mac, kind, head + self._bytes(draw, 60))

    def noise(self, draw: random.Random) -> bytes:
        return self._bytes(draw, 1500)


def send(seconds: float, seed: int) -> None:
    """Inside the instance: sends for so long, then prints how many of which kind."""
    kinds = Kinds(os.environ["TSTORM_IPV4"], os.environ["TSTORM_IPV6"])
    names = list(kinds.all)
    draw, sent = random.Random(seed), Counter[str]()
    sockets = [eth.RawSocket("eth0"), eth.RawSocket("eth0", bypass=True)]
    begin, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - begin) < seconds:
        if count >= elapsed * FRAMES_PER_S:
            time.sleep(0.002)
            continue
        name = draw.choice(names)
        sent[name] += draw.choice(sockets).send(kinds.all[name](draw))
        count += 1
    print("sent " + json.dumps(sent, sort_keys=True), flush=True)
    time.sleep(3600)


# -- the run --------------------------------------------------------------------------------------


def text(seconds: float, seed: int) -> str:
    """Instances 1 to 5; `bad` is the last. Everybody is one hop of 12.5 ms from the bridge."""
    me = f"{sys.executable} -m tests.trials.frames"
    ping = f"-i {PING_INTERVAL_S} -w {int(seconds + AFTER_S)}"
    return (
        "service still replicas=2\n"
        f'service near img=x exec="ping -4 {ping} still.0"\n'
        f'service far img=x exec="ping -6 {ping} still.1"\n'
        f'service bad img=x env=PYTHONPATH:"{ROOT}" '
        f'exec="{me} --send --seconds {seconds} --seed {seed}"\n'
        "bridge s1\n"
        + "".join(f"link {n}--s1 latency=12.5\n" for n in ("still", "near", "far", "bad"))
        + f"at {seconds + AFTER_S + 2:g}s quit\n"
    )


def carry_out(seconds: float, seed: int, place: Path) -> tuple[int, str]:
    """Status and stderr of the run; it leaves `out`."""
    experiment = place / "frames.tdl"
    experiment.write_text(text(seconds, seed))
    command = [sys.executable, "-m", "tstorm"]
    command += ["run", str(experiment), "--hosts", "2", "--out", str(place / "out")]
    paths = os.pathsep.join([str(ROOT), *(p for p in sys.path if p.endswith("site-packages"))])
    places = {"XDG_STATE_HOME": str(place / "state"), "XDG_RUNTIME_DIR": str(place / "xdg")}
    (place / "xdg").mkdir()
    done = ended(command, env={**os.environ, **places, "PYTHONPATH": paths}, timeout=seconds + 240)
    return done.returncode, done.stderr


def pings(log: Path) -> tuple[int, float]:
    """How many were answered, and the fastest, ms."""
    words = log.read_text().split() if log.exists() else []
    times = [float(word.removeprefix("time=")) for word in words if word.startswith("time=")]
    return len(times), min(times, default=0.0)


def verdict(seconds: float, status: int, out: Path) -> tuple[list[str], dict[str, Any]]:
    """What is wrong, and what there is to print."""
    summary = json.loads((out / "summary.json").read_text())
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    wrong = [] if status == 0 else [f"the run ended with {status}: {summary['message']}"]
    bad = [e for e in events if e["kind"] in ("agent_lost", "late", "device_gone")]
    wrong += [f"{event['kind']} {event['target']}" for event in bad]
    refused = {row["instance"]: row for row in summary["refused"]}
    honest = (row for name, row in refused.items() if name != "bad.0")
    wrong += [f"accused: {row}" for row in honest if row.keys() & {"source", "frame", "outside"}]
    found: dict[str, Any] = {"dropped": refused.get("bad.0", {})}
    if not found["dropped"]:
        wrong.append("nothing that it sent was dropped")
    for name in ("near.0", "far.0"):
        answered, fastest = found[name] = pings(out / f"logs/{name}.log")
        if answered < ANSWERED * seconds / PING_INTERVAL_S:
            wrong.append(f"{name}: only {answered} pings were answered")
        elif fastest < 2 * ONE_WAY_MS:
            wrong.append(f"{name}: a ping took {fastest} ms of at least {2 * ONE_WAY_MS}")
    log = (out / "logs/bad.0.log").read_text()
    found["sent"] = next((line[5:] for line in log.splitlines() if line.startswith("sent ")), log)
    if not log.startswith("sent "):
        wrong.append("the sender did not come to its end")
    return wrong, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.trials.frames", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=float, default=300.0, help="for how long (300)")
    parser.add_argument("--rounds", type=int, help=f"instead: so many times {ROUND_S} s")
    parser.add_argument("--seed", type=int, default=1, help="of the frames (1)")
    parser.add_argument("--send", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.send:
        send(asked.seconds, asked.seed)
        return 0
    seconds = asked.rounds * ROUND_S if asked.rounds else asked.seconds
    with tempfile.TemporaryDirectory(prefix="tstorm-frames-") as name:
        status, said = carry_out(seconds, asked.seed, Path(name))
        if not (Path(name) / "out/summary.json").exists():
            print(said)
            return 1
        wrong, found = verdict(seconds, status, Path(name) / "out")
    for what, value in found.items():
        print(f"{what}: {value}")
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
