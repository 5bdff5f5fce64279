"""Runs that never took place, with files as a run leaves them: a plan, probes that met it or did
not, samples of traffic, and what is judged of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.pipeline import compile_source
from compiler.plan.reader import Plan
from compiler.sources import SourceFolder
from runtime.certify import certificate
from runtime.certify.expected_delay import expected, ways
from runtime.certify.planned_paths import Planned, find
from runtime.datapath.sampler import LINK_COLUMNS, PAIR_COLUMNS
from runtime.judge.lateness import smallest_delay
from runtime.judge.verdict import Judge
from runtime.launch.conclude import until_its_end
from runtime.options import DEFAULTS, VIRTUAL, RunOptions
from runtime.probing.probe_record import LOST_AT_END_NS
from runtime.rundir.held_directory import HeldDirectory
from runtime.schedule import Schedule

MS = 1_000_000
SECOND = 1000 * MS
INTERVAL_NS = 100 * MS
FAR = 60.0  # seconds that a scene lasts

# When it was sent, and the delay that a perfect network gives it (None: lost); what it got.
Fault = Callable[[int, int | None], int | None]
TDL = """service a img=x
service b img=x
bridges s
link a--s latency=5ms up=100Mb symmetric
link b--s latency=5ms up=100Mb symmetric
at 60s quit
"""


def as_planned(_sent_ns: int, delay_ns: int | None) -> int | None:
    return delay_ns


@dataclass
class Scene:
    """Writes into `place`. `late_ns`: how late a good machine is."""

    place: Path
    text: str = TDL
    seed: int = 1
    pairs: tuple[tuple[str, str], ...] = (("a.0", "b.0"), ("b.0", "a.0"))
    not_probed: tuple[tuple[str, str], ...] = ()
    measure: str = "one-way"
    interval_ns: int = INTERVAL_NS
    options: RunOptions = DEFAULTS
    late_ns: int = 100_000
    facts: dict[str, Any] = field(default_factory=lambda: {"machine": {}})  # it ended as it should
    reports_at_end: bool = True  # what was under way then is told as open

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        self.plan: Plan = compile_source(self.text, sources=SourceFolder(self.place)).plan
        self.timeline = Schedule(self.plan, self.options)
        self.numbers = {node.name: n for n, node in enumerate(self.plan.topology.nodes)}
        self._random = random.Random(self.seed)
        self._events()

    def _write(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.place / name).write_text(text, encoding="utf-8")

    def _events(self) -> None:
        lines: list[dict[str, Any]] = [
            {
                "kind": "header",
                "format": "tstorm-events",
                "version": 1,
                "start_monotonic_ns": 0,
                "start_unix_ns": 0,
            }
        ]
        for step in self.timeline.steps:
            for event in step.events:
                due = step.due_ns
                record = {"seq": event.seq, "kind": event.kind, "target": event.target}
                record |= {"args": dict(event.args), "line": event.line, "planned_ns": event.at_ns}
                record |= {"due_ns": due, "applied_ns": due, "lag_ns": 0, "network_ns": due}
                lines.append(record)
        self._write("events.jsonl", lines)

    def probe(self, fault: Fault = as_planned, plan: Plan | None = None) -> None:
        """Probes at every interval, over the network of this plan or of another one."""
        plan = plan or self.plan
        numbered = [(self.numbers[a], self.numbers[b]) for a, b in self.pairs]
        planned = Planned(plan, Schedule(plan, self.options), numbered, {})
        found = []
        for sent in range(0, self.timeline.end_due_ns, self.interval_ns):
            for number, pair in enumerate(numbered):
                stretches = planned.stretches[pair]
                at = find(stretches, sent)
                crossed = ways(stretches[at], both=self.measure == "round-trip")
                delay = self._drawn(crossed) if crossed else None
                found.append([number, sent, fault(sent, delay)])
        header = {
            "kind": "header",
            "format": "tstorm-probes",
            "version": 1,
            "start_monotonic_ns": 0,
            "clock": "one",
            "measure": self.measure,
            "pairs": [list(pair) for pair in self.pairs],
            "interval_ns": self.interval_ns,
            "intervals_ns": [self.interval_ns] * len(self.pairs),
            "of": len(self.pairs) + len(self.not_probed),
            "not_probed": [list(pair) for pair in self.not_probed],
        }
        found.sort(key=lambda row: (row[1] or 0, row[0] or 0))
        report: dict[str, Any] = {"at_ns": self.timeline.end_due_ns, "probes": found}
        if self.measure == "one-way":
            open_ns = self.timeline.end_due_ns - LOST_AT_END_NS
            lately = [row for row in found if row[2] is None and (row[1] or 0) > open_ns]
            report["probes"] = [row for row in found if row not in lately]
            report |= {"open": [row[:2] for row in lately], "last": self.reports_at_end}
        self._write("probes.jsonl", [header, report])

    def forget(self, unknown: Callable[[int, int | None], bool]) -> None:
        """Takes probes out of the file, by when they were sent and what they got."""
        self.change(lambda row: None if unknown(*row[1:]) else row)

    def change(self, row: Callable[[list[Any]], list[Any] | None]) -> None:
        """Replaces probes in the file (None: it goes)."""
        header, report = map(json.loads, (self.place / "probes.jsonl").read_text().splitlines())
        report["probes"] = [new for old in report["probes"] if (new := row(old)) is not None]
        self._write("probes.jsonl", [header, report])

    def enlarge(self, fault: Fault = as_planned) -> None:
        """Every fifth probe was there as a large one, too, with this fault."""
        header, report = map(json.loads, (self.place / "probes.jsonl").read_text().splitlines())
        header["large"] = list(range(len(self.pairs)))
        rows = report["probes"][::5]
        report["large"] = [[pair, sent, fault(sent, delay)] for pair, sent, delay in rows]
        self._write("probes.jsonl", [header, report])

    def _drawn(self, crossed: Any) -> int | None:
        planned, delay = expected(crossed), 0.0
        for way in crossed:
            for state in way.states:
                if self._random.random() * 1e9 < state.loss_ppb:
                    return None
                delay += max(self._random.gauss(state.delay_ns, state.jitter_ns or 0), 0)
        assert planned.delay_ns >= 0
        return int(delay) + int(self._random.expovariate(1 / self.late_ns))

    def sample(self, rows: Iterable[Mapping[str, Any]], *, links: bool = True) -> None:
        """`rows`: lines of samples.jsonl after the columns."""
        columns = {"links": list(LINK_COLUMNS) if links else [], "pairs": list(PAIR_COLUMNS)}
        self._write("samples.jsonl", [{"columns": columns, "interval_ns": 100 * MS}, *rows])

    def flow(self, src: str, dst: str, bps: int, begin_s: float = 1, end_s: float = FAR) -> None:
        """One flow of packets of 1,000 bytes, delivered as it is offered."""
        names = {link.name: n for n, link in enumerate(self.plan.topology.links)}
        found = [n for name, n in names.items() if name in (f"{src}->s", f"s->{dst}")]
        rows = []
        for tick in range(int(begin_s * 10), int(end_s * 10)):
            at = (tick + 1) * 100 * MS
            count = int(bps / 8 * (at / SECOND - begin_s))
            packets = count // 1000
            pair = [self.numbers[src], self.numbers[dst], packets, count, packets, count]
            rest = [0] * (len(LINK_COLUMNS) - 5)
            links = [[link, packets, count, packets, count, *rest] for link in found]
            line = {"at_ns": at, "elapsed_ns": at, "links": links, "pairs": [[*pair, 0, 0, 0, 0]]}
            rows.append(line)
        self.sample(rows)

    def judged(self, plan: Plan | None = None) -> dict[str, Any]:
        """The verdict, with the certificate's evidence under `evidence`."""
        judge = Judge(
            smallest_delay(self.timeline),
            virtual=self.options.time == VIRTUAL,
            thresholds=self.options.thresholds,
        )
        plan, held = plan or self.plan, HeldDirectory.hold(self.place.resolve())
        timeline = until_its_end(held, plan, Schedule(plan, self.options))
        evidence = certificate.gather(held, plan, timeline, self.facts, judge)
        return {**judge.verdict(), "evidence": evidence}


def whats(found: Mapping[str, Any]) -> list[str]:
    return sorted({reason["what"] for reason in found["reasons"]})
