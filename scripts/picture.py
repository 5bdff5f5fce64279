"""Photographs the page of a run: the pictures of the README, of the tutorial, of live.md, nodes.md.

    python -m scripts.picture NAME RUN

Draws docs/NAME, one of PICTURES: the page of RUN, a run of the picture's experiment, is made anew
as `tstorm report` makes it, opened in Chromium, and photographed down to what is named,
with the cursor at a moment and one pair chosen. The plan's digest and the verdict stand in the
picture (text chunks of PNG), so that a test can tell when the experiment has become another one. Of
a run that was changed while it went on it is the plan that the run began with.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from compiler.pipeline import compile_source
from compiler.plan.reader import read_plan
from compiler.sources import SourceFolder
from runtime.page.page_file import render
from runtime.rundir import rundir
from runtime.rundir.runfiles import PLAN as FORCE
from runtime.rundir.runfiles import PLANNED
from tests.page.browser import Browser, program

DOCS = Path(__file__).resolve().parent.parent / "docs"
WIDTH, SCALE = 1200, 2  # CSS pixels, and what each has of the picture's
MARGIN = 8
COLOURS = 128  # a photograph of a page has few; a palette takes a third of the bytes
PLAN, VERDICT = "plan", "verdict"  # keywords of text chunks


@dataclass(frozen=True, slots=True)
class Shot:
    experiment: str  # from the root of the tree
    at_s: float
    pair: str
    last: str  # the title of the lowest chart that is seen, or of a section


PICTURES = {
    "run.png": Shot("examples/quickstart.tdl", 20.5, "client.0 -> server.0", "Delay of probes"),
    "tutorial.png": Shot(
        "examples/lostwrites.tdl", 15.7, "redis1.0 -> redis2.0", "Delay of probes"
    ),
    "live.png": Shot(
        "examples/reactions/failovers.tdl", 24.4, "redis.0 -> redis.1", "Delay of probes"
    ),
    "nodes.png": Shot("examples/satellites/satellites.tdl", 30, "station.0 -> sat.6", "Network"),
}


def digest(shot: Shot) -> str:
    """Of the plan of its experiment as it is now."""
    path = DOCS.parent / shot.experiment
    sources = SourceFolder(path.parent)
    return compile_source(path.read_text(encoding="utf-8"), sources=sources).plan.digest


def photograph(page: Path, shot: Shot) -> bytes:
    argv = program()
    if argv is None:
        sys.exit("there is no Chromium (Debian: chromium)")
    with Browser(argv) as browser:
        browser.open(page, WIDTH, 900, scale=SCALE)
        browser.run(f"({_CHOOSE})({json.dumps(shot.pair)})")
        browser.run(f"thunderstorm.view.move({shot.at_s * 1e9}, true)")
        browser.settle()
        for _ in range(3):  # what comes into sight is drawn then, and may be higher
            bottom = browser.run(f"({_BOTTOM})({json.dumps(shot.last)})")
            browser.resize(WIDTH, round(bottom) + MARGIN, SCALE)
            browser.settle()
            browser.settle()
        return browser.photograph()


_CHOOSE = """(wanted) => {
  const name = (chip) => chip.innerText.replace(/ ×$/, "");
  const chips = [...document.querySelectorAll("#pairs .chips button")];
  for (const chip of chips.filter((one) => name(one) !== wanted)) chip.click();
  if (chips.some((one) => name(one) === wanted)) return;
  document.querySelector("#pairs .choose").open = true;
  const search = document.querySelector("#pairs .choose input");
  search.value = wanted;
  search.dispatchEvent(new Event("input"));
  document.querySelector("#pairs .offers input").click();
  document.querySelector("#pairs .choose").open = false;
}"""
_BOTTOM = """(title) => {
  const charts = [...document.querySelectorAll(".chart, section")];
  const last = charts.find((one) => one.innerText.startsWith(title));
  return last.getBoundingClientRect().bottom + scrollY;
}"""


def main(name: str, run: str) -> None:
    shot, directory = PICTURES[name], rundir.recorded(run)
    manifest, summary = directory.manifest(), directory.summary()
    begun = Path(run) / (PLANNED if directory.has(PLANNED) else FORCE)
    planned = read_plan(begun, lazy=True).digest
    if planned != digest(shot):
        sys.exit(f"{run} is not a run of {shot.experiment} as it is now")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_bytes(rundir.encode(render(directory, manifest, summary)))
        png = photograph(page, shot)
    said = PngInfo()
    said.add_text(PLAN, planned)
    said.add_text(VERDICT, summary["verdict"]["state"])
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(DOCS / name, optimize=True, pnginfo=said)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in PICTURES:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
