"""Figs 11 to 14 of the Thunderstorm paper, with PostgreSQL and pgbench from Debian in place of
Cassandra and YCSB, and of MariaDB and sysbench: what those networks do to a database.

The paper's absolute figures belong to its databases and machines. What is compared is what the
network decides: a commit that a far replica confirms takes the round trip to it, reads do not; when
the latency is halved and restored, updates follow; transactions a second fall with the loss and
grow with the clients.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from bench.errors import BenchError
from bench.papers.context import EXACT, HOSTS, Context, last_words, log
from bench.papers.rows import ABSOLUTE, HOLDS, TOLD, VIRTUAL, fold, goal, row
from bench.papers.said import pgbench, pgbench_progress
from bench.papers.theory import shape_falls, shape_grows, update_ms
from bench.tables import Record

# Client, Frankfurt, Sydney: the client's own link and Frankfurt's to the bridge, once there and
# back; then the way to Sydney, once there and back.
NEAR_MS = 2 * (0.2 + 0.2)
FAR_ONE_WAY_MS = 144.0
_EDGES_MS = 0.4  # the links of Frankfurt and Sydney to their bridges, one way
WITHIN_MS = 5.0
PACE = 24
LOSSES = ("0", "0.5%", "1%", "2%", "4%")
VIRTUAL_S = 2  # of each number of clients; nothing there has to be averaged
SLACK = 0.1  # between neighbours; ends must differ


def far_ms(share: float = 1.0) -> float:
    """What an update takes, with a latency between the continents of so much of the original."""
    return NEAR_MS + update_ms(FAR_ONE_WAY_MS * share + _EDGES_MS)


def figure_11(context: Context) -> list[Record]:
    """Latency of updates and reads by the number of clients, and their rate."""
    seconds, clients = (3, (2,)) if context.quick else (5, (1, 2, 4, 8, 16, 32))
    rows: list[Record] = []
    for place in context.places(EXACT, VIRTUAL):
        # In virtual time 32 clients read without waiting for a processor: 40,000 a second.
        how = " ".join(map(str, (VIRTUAL_S if place == VIRTUAL else seconds, *clients)))
        source = context.scene("geo", how=f'"{how}"')
        with context.attempt(rows, "updates and reads", place):
            run = context.run(source, place)
            said = log(run, "bench.0")
            found = pgbench(said)
            if len(found) != 2 * len(clients):
                raise BenchError(f"pgbench said: {last_words(said)}")
            for number, one in enumerate(found):
                kind = "updates" if number < len(clients) else "reads"
                rows.append(_latency(kind, one, place, context.why(run)))
    return fold(rows, EXACT)


def _latency(kind: str, one: Record, place: str, why: str) -> Record:
    wanted = far_ms() if kind == "updates" else NEAR_MS
    crowd = one["clients"] > 8  # then the machine's processors are what is waited for
    return row(
        f"{kind}, {one['clients']:.0f} clients",
        place,
        "ms",
        one["latency_ms"],
        wanted,
        goal=goal(TOLD) if crowd else goal(ABSOLUTE, WITHIN_MS),
        why=why,
        paper="curves of EC2 and emulation match",
        shown=f"{one['latency_ms']:.2f} ms, {one['tps']:.1f} a second",
    )


def figure_12(context: Context) -> list[Record]:
    """Updates each second, before, while and after the latency is half."""
    source = context.scene("geo", how='"0"')
    rows: list[Record] = []
    for place in context.places(EXACT, HOSTS, VIRTUAL):
        with context.attempt(rows, "updates over time", place):
            run = context.run(source, place, "--pace", str(PACE))
            found = phases(run, PACE)
            rows += [
                row(
                    f"updates, {name}",
                    place,
                    "ms",
                    found[name],
                    far_ms(share),
                    goal=goal(ABSOLUTE, WITHIN_MS),
                    paper="follows the latency",
                    why=context.why(run),
                )
                for name, share in (("before", 1.0), ("halved", 0.5), ("restored", 1.0))
            ]
    return fold(rows, EXACT)


def phases(run: Path, pace: int) -> dict[str, float]:
    """Median of the seconds' latencies in ms, of seconds within one phase of geo.tdl."""
    summary = json.loads((run / "manifest.json").read_bytes())
    start_s = summary["start_unix_ns"] / 1e9
    lines = [(at - start_s, ms) for at, ms in pgbench_progress(log(run, "bench.0"))]
    ends = {"before": (0, 240), "halved": (240, 480), "restored": (480, 720)}
    found: dict[str, float] = {}
    for name, (low, high) in ends.items():
        # A line is about the second before it; updates under way belong to both phases.
        inside = [ms for at, ms in lines if low / pace + 1.6 <= at <= high / pace]
        if not inside:
            raise BenchError(f"pgbench reported no second of the phase '{name}'")
        found[name] = statistics.median(inside)
    return found


def figure_13(context: Context) -> list[Record]:
    return _lossy(context, "100Mb")


def figure_14(context: Context) -> list[Record]:
    return _lossy(context, "1Gb")


def _lossy(context: Context, rate: str) -> list[Record]:
    """Transactions a second by loss and clients; then whether they fall and grow as published."""
    seconds, clients = (3, (1, 8)) if context.quick else (5, (1, 4, 16, 32))
    losses = (LOSSES[0], LOSSES[-1]) if context.quick else LOSSES
    how = " ".join(map(str, (seconds, *clients)))
    rows: list[Record] = []
    for place in context.places(EXACT):
        table: dict[str, list[float]] = {}
        for loss in losses:
            what = f"{rate}/s, loss {loss}: transactions a second by clients"
            with context.attempt(rows, what, place):
                source = context.scene("lossy", rate=rate, loss=loss, how=f'"{how}"')
                run = context.run(source, place)
                table[loss] = _transactions(log(run, "bench.0"), len(clients))
                shown = ", ".join(
                    f"{n}: {tps:.0f}" for n, tps in zip(clients, table[loss], strict=True)
                )
                most = table[loss][-1]
                rows.append(row(what, place, "", most, None, shown=shown, why=context.why(run)))
        with context.attempt(rows, f"{rate}/s: the shape", place):
            rows += _shapes(rate, table, clients, place)
    return rows


def _transactions(said: str, count: int) -> list[float]:
    """A second, of each pgbench."""
    found = [float(one["tps"]) for one in pgbench(said)]
    if len(found) != count:
        raise BenchError(f"pgbench said: {last_words(said)}")
    return found


def _shapes(
    rate: str, table: dict[str, list[float]], clients: tuple[int, ...], place: str
) -> list[Record]:
    if len(table) < 2:
        raise BenchError("too few losses could be measured")
    columns = list(zip(*table.values(), strict=True))
    falls = {n: shape_falls(col, SLACK) for n, col in zip(clients, columns, strict=True)}
    grows = {loss: shape_grows(tps, SLACK) for loss, tps in table.items()}
    made = []
    for what, found in (("fall with the loss", falls), ("grow with the clients", grows)):
        others = ", ".join(str(key) for key, right in found.items() if not right)
        made.append(
            row(
                f"{rate}/s: transactions {what}",
                place,
                "",
                float(all(found.values())),
                None,
                goal=goal(HOLDS),
                paper="they do",
                why=f"not at {others}" if others else "",
            )
        )
    return made
