"""Run directories of any size, made without a run: a server and clients around one bridge.

The same arguments give the same bytes. Counters, probes, logs and events agree with each other as
far as a page looks at them; traffic swings, one client's link is cut now and then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source, write
from runtime.datapath.sampler import LINK_COLUMNS, PAIR_COLUMNS
from tests.runtime.recorded import MANIFEST, lines

SECOND = 10**9
DELAY_NS = 2_000_000
RATE_BPS = 100_000_000


@dataclass(frozen=True, slots=True)
class Shape:
    """Each client talks with the server, so there are two pairs for each."""

    clients: int = 1
    seconds: int = 60
    interval_ns: int = SECOND // 10  # between two samples
    probe_ns: int = SECOND  # between two probes of a pair
    expected: bool = True

    @property
    def samples(self) -> int:
        return self.seconds * SECOND // self.interval_ns

    def names(self) -> list[str]:
        return ["server.0", *(f"client.{number}" for number in range(self.clients))]


def source(shape: Shape) -> bytes:
    half = shape.seconds // 2
    return (
        f'service server img=x exec="sleep 9"\nservice client img=x replicas={shape.clients}'
        ' exec="sleep 9"\nbridge s1\n'
        "link server--s1 latency=1ms up=100Mb symmetric\n"
        "link client--s1 latency=1ms up=100Mb symmetric\n"
        f"at {half}s client.0 disconnect\nat {half + 1}s client.0 reconnect\n"
        f"at {half + 2}s server--s1 set latency=5ms\nat {shape.seconds}s quit\n"
    ).encode()


def _swing(number: int, step: int) -> int:
    """Bytes in one sample: a slow triangle of each pair's own."""
    place = (step + number * 7) % 120
    return 1000 + 40 * abs(place - 60) * (number % 5 + 1)


def _rows(shape: Shape) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Cumulative counters of links and pairs, sample by sample. Node 0 is the server; link 0 leads
    from it to the bridge, 1 back, then two for each client."""
    nodes = shape.clients + 1
    sent = [0] * (2 * shape.clients)
    for step in range(shape.samples):
        for number in range(2 * shape.clients):
            sent[number] += _swing(number, step)
        links, pairs = [], []
        down, up = sum(sent[0::2]), sum(sent[1::2])
        wait = 3000 * (step % 10)
        links += [_link(0, down, wait), _link(1, up, 0)]
        for client in range(shape.clients):
            there, back = sent[2 * client], sent[2 * client + 1]
            links += [_link(2 + 2 * client, back, 0), _link(3 + 2 * client, there, wait)]
            pairs += [_pair(0, client + 1, there), _pair(client + 1, 0, back)]
        assert len(links) == 2 * nodes
        yield links, pairs


def _link(number: int, size: int, wait: int) -> list[int]:
    packets = size // 1000
    return [number, packets, size, packets, size, packets // 50, 0, 0, wait, wait // 1000, wait]


def _pair(src: int, dst: int, size: int) -> list[int]:
    packets = size // 1000
    return [src, dst, packets, size, packets, size, packets // 50, 0, 0, 0]


def _ends(shape: Shape) -> list[list[str]]:
    found = []
    for name in shape.names()[1:]:
        found += [["server.0", name], [name, "server.0"]]
    return found


def write_samples(path: Path, shape: Shape) -> tuple[list[list[int]], list[list[int]]]:
    """The last counters."""
    links: list[list[int]] = []
    pairs: list[list[int]] = []
    columns = {"links": LINK_COLUMNS, "pairs": PAIR_COLUMNS}
    with path.open("w") as file:
        file.write(json.dumps({"columns": columns, "interval_ns": shape.interval_ns}) + "\n")
        for step, (links, pairs) in enumerate(_rows(shape), 1):
            at_ns = step * shape.interval_ns
            one = {"at_ns": at_ns, "elapsed_ns": at_ns, "links": links, "pairs": pairs}
            file.write(json.dumps(one, separators=(",", ":")) + "\n")
    return links, pairs


def write_probes(path: Path, shape: Shape) -> None:
    ends = _ends(shape)
    header = {
        "kind": "header", "format": "tstorm-probes", "version": 1, "start_monotonic_ns": 1,
        "clock": "one", "measure": "one-way", "pairs": ends, "interval_ns": shape.probe_ns,
        "intervals_ns": [shape.probe_ns] * len(ends), "of": len(ends), "not_probed": [],
    }  # fmt: skip
    with path.open("w") as file:
        file.write(json.dumps(header) + "\n")
        for step in range(shape.seconds * SECOND // shape.probe_ns):
            at_ns = step * shape.probe_ns
            probes = [
                [
                    pair,
                    at_ns + pair,
                    None if (step + pair) % 97 == 96 else _delay(shape, pair, step),
                ]
                for pair in range(len(ends))
            ]
            report = {"at_ns": at_ns + shape.probe_ns, "probes": probes}
            file.write(json.dumps(report, separators=(",", ":")) + "\n")


def _delay(shape: Shape, pair: int, step: int) -> int:
    later = step * shape.probe_ns > (shape.seconds // 2 + 2) * SECOND
    return DELAY_NS + 4_000_000 * later + 5000 * (pair % 7) + 1000 * (step * 31 % 97)


def events(shape: Shape) -> list[dict[str, Any]]:
    half = shape.seconds // 2 * SECOND
    names = shape.names()
    planned: list[tuple[int, str, str, dict[str, int]]] = [(0, "join", name, {}) for name in names]
    planned += [
        (half, "disconnect", "client.0", {}),
        (half + SECOND, "reconnect", "client.0", {}),
        (half + 2 * SECOND, "set", "server.0->s1", {"delay_ns": 5_000_000}),
        (half + 2 * SECOND, "set", "s1->server.0", {"delay_ns": 5_000_000}),
        (shape.seconds * SECOND, "quit", "", {}),
    ]
    found = [
        {
            "seq": seq, "kind": kind, "target": target, "args": args, "line": 6, "planned_ns": at,
            "due_ns": at, "applied_ns": at + 300_000, "lag_ns": 300_000,
        }
        for seq, (at, kind, target, args) in enumerate(planned)
    ]  # fmt: skip
    header = {"kind": "header", "start_unix_ns": 1, "start_monotonic_ns": 1, "version": 1}
    ended = {
        "kind": "exit",
        "target": names[-1],
        "applied_ns": half * 3 // 2,
        "status": 3,
        "signal": 0,
    }
    return [header, *found[:-1], ended, found[-1]]


EXPECTATIONS: list[dict[str, Any]] = [
    {
        "text": "expect rtt client.0 server.0 < 10ms from 1s to 20s", "line": 7, "file": "",
        "kind": "rtt", "state": "passed", "message": "the largest was 4.2 ms", "figure": 4_200_000,
        "threshold": 10_000_000, "unit": "ns", "at_ns": 5 * SECOND,
        "subject": "client.0 -> server.0", "log": [],
    },
    {
        "text": 'expect no log client "<b>panic</b>"', "line": 8, "file": "", "kind": "no_log",
        "state": "failed", "message": "client.0 said it once", "figure": 1, "threshold": 0,
        "unit": "", "at_ns": 31 * SECOND, "subject": "client.0",
        "log": [{"instance": "client.0", "at_ns": 31 * SECOND, "line": "<b>panic</b>: no server"}],
    },
    {
        "text": "expect throughput client.0 server.0 > 1Mb at 90s", "line": 9, "file": "",
        "kind": "throughput", "state": "not_measured", "message": "the run ended before 90 s",
        "figure": None, "threshold": 1_000_000, "unit": "bps", "at_ns": None,
        "subject": "client.0 -> server.0", "log": [],
    },
]  # fmt: skip


def summary(
    shape: Shape, links: list[list[int]], pairs: list[list[int]], count: int
) -> dict[str, Any]:
    names = shape.names()
    link_names = ["server.0->s1", "s1->server.0"]
    for name in names[1:]:
        link_names += [f"{name}->s1", f"s1->{name}"]
    lag = {"count": count, "p50_ns": 300_000, "p99_ns": 300_000, "max_ns": 300_000}
    failed = {
        "target": names[-1], "applied_ns": shape.seconds * SECOND * 3 // 4, "status": 3,
        "signal": 0, "last_log_line": "lost the server",
    }  # fmt: skip
    reason = {
        "what": "driver_stall", "subject": "the driver", "at_ns": shape.seconds * SECOND // 3,
        "text": "the driver stood still for 612 ms", "state": "degraded",
    }  # fmt: skip
    return {
        "verdict": {"state": "degraded", "reasons": [reason], "judged": []},
        "outcome": "completed",
        "message": "",
        "events": {"planned": count, "applied": count, "lag": lag},
        "exits": [failed],
        "failures": [failed],
        **({"expectations": EXPECTATIONS} if shape.expected else {}),
        "links": [
            {**dict(zip(LINK_COLUMNS, row, strict=True)), "link": link_names[row[0]]}
            for row in links
        ],
        "pairs": [
            {
                **dict(zip(PAIR_COLUMNS, row, strict=True)),
                "src": names[row[0]],
                "dst": names[row[1]],
            }
            for row in pairs
        ],
    }


def certificate(shape: Shape) -> dict[str, Any]:
    half = (shape.seconds // 2 + 2) * SECOND
    rows = []
    for src, dst in _ends(shape):
        for begin, end, delay in ((0, half, 2), (half, shape.seconds * SECOND, 6)):
            planned = {
                "delay_ns": delay * 10**6, "jitter_ns": 0, "loss_ppb": 0, "rate_bps": RATE_BPS,
            }  # fmt: skip
            measured = {
                "probes": 30, "lost": 0, "delay_p50_ns": delay * 10**6,
                "delay_p99_ns": delay * 10**6, "mean_ns": delay * 10**6, "deviation_ns": 0,
                "rate_bps": None,
            }  # fmt: skip
            span = {"from_ns": begin, "to_ns": end}
            rows.append({
                "from": src, "to": dst, "epoch": span, "planned": planned, "measured": measured,
            })  # fmt: skip
    return {"format": "tstorm-certificate", "version": 1, "pairs": rows, "not_measured": []}


def write_logs(directory: Path, shape: Shape) -> None:
    logs = directory / "logs"
    logs.mkdir()
    grown = []
    every = max(shape.seconds // 200, 1)
    for name in shape.names():
        told = [f"{at} s: {name} is at work\n" for at in range(0, shape.seconds, every)]
        (logs / f"{name}.log").write_text("".join(told))
    size = 0
    for at in range(0, shape.seconds, every):
        size += len(f"{at} s: server.0 is at work\n")
        grown.append({
            "from_ns": at * SECOND, "elapsed_ns": at * SECOND + SECOND // 10,
            "bytes": {"server.0": size},
        })  # fmt: skip
    (directory / "logs.jsonl").write_bytes(lines(grown))


def make(directory: Path, shape: Shape) -> Path:
    """The whole of it."""
    directory.mkdir()
    links, pairs = write_samples(directory / "samples.jsonl", shape)
    write_probes(directory / "probes.jsonl", shape)
    found = events(shape)
    (directory / "events.jsonl").write_bytes(lines(found))
    count = sum("seq" in one for one in found)
    documents = {
        "manifest.json": {**MANIFEST, "run_id": "synthetic-1", "experiment": "synthetic"},
        "summary.json": summary(shape, links, pairs, count),
        "certificate.json": certificate(shape),
    }
    for name, value in documents.items():
        (directory / name).write_text(json.dumps(value, sort_keys=True) + "\n")
    write_logs(directory, shape)
    write(compile_source(source(shape), filename="exp.tdl", seed=None), directory / "plan")
    return directory
