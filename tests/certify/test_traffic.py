"""What flowed is summed up as if every sample were looked at by itself, whatever it tells of."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from runtime.certify import byte_buckets
from runtime.certify.byte_buckets import BUCKET_NS, ByteBuckets
from runtime.certify.traffic import Traffic
from runtime.datapath.sampler import LINK_COLUMNS, PAIR_COLUMNS

MS = 1_000_000
NODES, LINKS = 5, 4

Sums = dict[int, dict[int, int]]  # by key and bucket


def samples(source: random.Random, count: int) -> Iterator[dict[str, Any]]:
    """Of several who take them, not in order; counters begin anew, rows are there twice or have
    another width, and a node is none of the plan."""
    counters: dict[object, list[int]] = defaultdict(lambda: [0, 0, 0, 0])

    def row(*key: int) -> list[int]:
        counts = counters[key]
        if source.random() < 0.02:
            counts[:] = [source.randrange(3)] * 4
        elif source.random() < 0.7:
            counts[:] = [old + source.randrange(4) for old in counts]
        kept = len(PAIR_COLUMNS if len(key) == 2 else LINK_COLUMNS) - (source.random() < 0.02)
        return [*key, *counts, *[0] * 9][:kept]

    yield {"columns": {"links": list(LINK_COLUMNS), "pairs": list(PAIR_COLUMNS)}}
    pairs = [(a, b) for a in range(NODES) for b in range(NODES) if a != b]
    for number in range(count):
        at_ns = number * 100 * MS + source.randrange(-5, 300) * MS
        if source.random() < 0.2:
            pairs = source.sample(pairs, len(pairs))
        told = [row(*pair) for pair in pairs if source.random() < 0.95]
        told += [row(*source.choice([pairs[0], (1, 1), (0, NODES), (-1, 2)]))]
        links = [row(link) for link in range(LINKS) if source.random() < 0.98]
        host = source.choice(["a", "b"])
        yield {"elapsed_ns": at_ns, "host": host, "links": links, "pairs": told}


def expected(records: Sequence[Mapping[str, Any]]) -> dict[str, Sums]:
    """One row after the other."""
    before: dict[tuple[int, ...], Sequence[int]] = {}
    found: dict[str, Sums] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
    for record in records[1:]:
        bucket = max(record["elapsed_ns"], 0) // BUCKET_NS
        for link, *rest in record["links"]:
            if len(rest) + 1 == len(LINK_COLUMNS):
                more = rest[1] - before.get((link,), (0,))[0]
                before[(link,)] = (rest[1],)
                found["links"][link][bucket] += max(more, 0)
        for src, dst, *rest in record["pairs"]:
            if len(rest) + 2 != len(PAIR_COLUMNS) or not {src, dst} <= set(range(NODES)):
                continue
            out_packets, out, into_packets, into = rest[:4]
            counts = (out, out_packets, into, into_packets)
            old = before.get((src, dst), (0, 0, 0, 0))
            before[src, dst] = counts
            gained = [max(now - then, 0) for now, then in zip(counts, old, strict=True)]
            key = src * NODES + dst
            for name, at, more in (
                *(("offered", key, gained[0]), ("delivered", key, gained[2])),
                *(("out", src, gained[0]), ("out_packets", src, gained[1])),
                *(("into", dst, gained[2]), ("into_packets", dst, gained[3])),
            ):
                found[name][at][bucket] += more
    return found


@pytest.mark.parametrize("most", [2_000_000, 60, 400])
@pytest.mark.parametrize("seed", range(4))
def test_sums_are_those_of_single_rows(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_buckets, "MOST_ENTRIES", most)
    monkeypatch.setattr(byte_buckets, "PENDING", 30 + 70 * seed)
    records = list(samples(random.Random(seed), 120))
    traffic = Traffic(NODES)
    traffic.take(records)
    wanted = expected(records)
    assert sum(map(len, wanted["offered"].values())) > 60
    for name, sums in wanted.items():
        told: ByteBuckets = getattr(traffic, name)
        times = told.bucket_ns // BUCKET_NS
        for key, counts in sums.items():
            longer: dict[int, int] = defaultdict(int)
            for bucket, count in counts.items():
                longer[bucket // times * told.bucket_ns] += count
            moved = [(at, count) for at, count in sorted(longer.items()) if count]
            assert told.moved(key) == moved
            begin, end = 7 * BUCKET_NS, 31 * BUCKET_NS + 5
            assert told.between(key, begin, end)[1] == [n for at, n in moved if begin <= at < end]
    entries = sum(len(traffic.offered.moved(key)) for key in range(NODES * NODES))
    assert entries <= most
    assert traffic.pairs == {divmod(key, NODES) for key in wanted["offered"]}


def test_what_cannot_be_made_less_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """More keys than entries: buckets do not become longer for ever."""
    monkeypatch.setattr(byte_buckets, "MOST_ENTRIES", 10)
    told = ByteBuckets()
    keys = tuple(range(50))
    for at_ns in range(0, 8 * BUCKET_NS, BUCKET_NS):
        told.add(at_ns, keys, (1,) * 50)
    told.settle()
    assert [told.within(key, 0, 10 * BUCKET_NS) for key in keys] == [8] * 50
