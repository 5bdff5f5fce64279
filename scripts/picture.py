"""Draws a run as an SVG: the round-trip time as planned and as measured, and the events.

    picture.py RUN FROM TO > docs/run.svg

FROM and TO are instances; FROM's program is `tprobe rtt TO --each`, and its log has the measured
times. docs/run.svg is a run of examples/quickstart.tdl, from client.0 to server.0. The same run
gives the same bytes. The colours follow the reader's theme, light or dark.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from compiler.plan.paths.path import path
from compiler.plan.reader import Plan, read_plan

WIDTH, HEIGHT = 860, 312
LEFT, RIGHT, TOP, BOTTOM = 56, 844, 84, 284
SECOND = 1e9
MILLISECOND = 1e6
LETTER = 6.7  # width of one at 12 px
STYLE = """\
.panel { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .grid { stroke: #d1d9e0 }
.gone { fill: #eef1f4 } .event { stroke: #8c959f } .plan { stroke: #0a58ca } .dot { fill: #d1480f }
.planned { fill: #0a58ca } .measured { fill: #d1480f }
@media (prefers-color-scheme: dark) {
.panel { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9ba5b0 } .grid { stroke: #2a313a }
.gone { fill: #1c2229 } .event { stroke: #768390 } .plan { stroke: #6cb0ff } .dot { fill: #ffa657 }
.planned { fill: #6cb0ff } .measured { fill: #ffa657 }
}"""


def planned(plan: Plan, src: str, dst: str) -> list[tuple[float, float, float | None]]:
    """(from s, to s, round-trip time in ms or None without a path), for the whole experiment."""
    names = [node.name for node in plan.topology.nodes]
    ends = names.index(src), names.index(dst)
    times = sorted({event.at_ns for event in plan.events} | {0})
    found = []
    for at_ns, until_ns in pairwise(times):
        rtt_ns = path(plan.state_at(at_ns), *ends).rtt_ns
        rtt_ms = None if rtt_ns is None else rtt_ns / MILLISECOND
        found.append((at_ns / SECOND, until_ns / SECOND, rtt_ms))
    return found


def measured(run: Path, src: str) -> list[tuple[float, float]]:
    """(when the probe was sent in s, round-trip time in ms) of all that were answered."""
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    start_ns = manifest["start_monotonic_ns"]
    log = (run / "logs" / f"{src}.log").read_text(encoding="utf-8")
    probes = [json.loads(line) for line in log.splitlines()]
    return [((p["t_ns"] - start_ns) / SECOND, p["rtt_us"] / 1e3) for p in probes if "rtt_us" in p]


def statements(plan: Plan) -> list[tuple[float, str]]:
    """(when it first acts in s, its text without the time) of each line with events."""
    lines = plan.source.decode().splitlines()
    first: dict[int, int] = {}
    for event in plan.events:
        if event.line:
            first.setdefault(event.line, event.at_ns)
    return [(at / SECOND, _without_time(lines[line - 1])) for line, at in first.items()]


def _without_time(statement: str) -> str:
    words = statement.partition("#")[0].split()
    return " ".join(words[2:] if words[0] == "at" else words[4:])


class Picture:
    def __init__(self, seconds: float, most_ms: float) -> None:
        self._seconds = seconds
        self._most_ms = most_ms
        self.parts: list[str] = []

    def x(self, second: float) -> float:
        return LEFT + (RIGHT - LEFT) * second / self._seconds

    def y(self, ms: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * ms / self._most_ms

    def text(
        self, x: float, y: float, text: str, kind: str = "text", anchor: str = "start"
    ) -> None:
        place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
        self.parts.append(f'<text class="{kind}" {place}>{escape(text)}</text>')

    def axes(self) -> None:
        for ms in range(0, int(self._most_ms) + 1, 20):
            y = self.y(ms)
            self.parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
            self.text(LEFT - 8, y + 4, str(ms), "quiet", "end")
        for second in range(0, int(self._seconds) + 1, 5):
            self.text(self.x(second), BOTTOM + 18, f"{second} s", "quiet", "middle")

    def outages(self, stretches: Iterable[tuple[float, float, float | None]]) -> None:
        for start, end, ms in stretches:
            if ms is None:
                size = f'width="{self.x(end) - self.x(start):.1f}" height="{BOTTOM - TOP}"'
                place = f'x="{self.x(start):.1f}" y="{TOP}"'
                self.parts.append(f'<rect class="gone" {place} {size}/>')

    def line(self, stretches: Iterable[tuple[float, float, float | None]]) -> None:
        strokes, at = [], None
        for start, end, ms in stretches:
            if ms is not None:
                sign = "M" if at != start else "L"
                strokes.append(f"{sign}{self.x(start):.1f} {self.y(ms):.1f}H{self.x(end):.1f}")
                at = end
        self.parts.append(
            f'<path class="plan" fill="none" stroke-width="5" d="{"".join(strokes)}"/>'
        )

    def dots(self, points: Iterable[tuple[float, float]]) -> None:
        for second, ms in points:
            place = f'cx="{self.x(second):.1f}" cy="{self.y(ms):.1f}"'
            self.parts.append(f'<circle class="dot" {place} r="1.6"/>')

    def events(self, found: Iterable[tuple[float, str]]) -> None:
        """A mark for each, with its text in the first of two rows that has room."""
        ends = [0.0, 0.0]
        for second, text in found:
            x, width = self.x(second), LETTER * len(text)
            start = min(x, RIGHT - width)
            row = 0 if ends[0] <= start else 1
            ends[row] = start + width + 10
            y = TOP - 10 - 18 * (1 - row)
            self.parts.append(f'<path class="event" d="M{x:.1f} {y + 4:.1f}V{BOTTOM}"/>')
            self.text(start, y, text)

    def svg(self, title: str, digest: str) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="ui-sans-serif, Helvetica, Arial, sans-serif" font-size="12">\n'
            f"<title>{escape(title)}</title>\n<desc>plan {digest}</desc>\n"
            f"<style>\n{STYLE}\n</style>\n"
            f'<rect class="panel" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        )
        return "\n".join([head, *self.parts, "</svg>\n"])


def draw(run: Path, src: str, dst: str) -> str:
    """The SVG. Raises OSError, PlanError or ValueError for a run that has not got what it takes."""
    plan = read_plan(run / "plan")
    stretches, points = planned(plan, src, dst), measured(run, src)
    highest = max([ms for _, _, ms in stretches if ms is not None] + [ms for _, ms in points])
    picture = Picture(stretches[-1][1], 20 * (highest // 20 + 1))
    title = f"Round-trip time from {src} to {dst}, in ms"
    picture.outages(stretches)
    picture.axes()
    picture.events(statements(plan))
    picture.line(stretches)
    picture.dots(points)
    picture.text(LEFT - 8 - 3 * LETTER, 24, title)
    picture.text(RIGHT, 24, "grey: no path", "quiet", "end")
    picture.text(RIGHT - 90, 24, f"dots: {len(points)} measured", "measured", "end")
    picture.text(RIGHT - 220, 24, "line: planned", "planned", "end")
    return picture.svg(title, plan.digest)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.stdout.write(draw(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
