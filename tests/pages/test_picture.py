"""docs/run.svg shows the README's experiment; the script draws one run always the same."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from compiler.pipeline import compile_source, write
from tests.pages.reader import ROOT

EXAMPLE = (ROOT / "examples" / "quickstart.tdl").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs" / "run.svg").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
START_NS = 5_000_000_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Of the README's experiment, as far as the script looks: one probe answered, one not."""
    write(compile_source(EXAMPLE, filename="quickstart.tdl", seed=None), tmp_path / "plan")
    manifest = {"start_monotonic_ns": START_NS}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    probes = [{"t_ns": START_NS + 1_000_000_000, "seq": 0, "rtt_us": 40_000.0}]
    probes += [{"t_ns": START_NS + 10_500_000_000, "seq": 1, "lost": True}]
    (tmp_path / "logs").mkdir()
    log = "".join(json.dumps(probe) + "\n" for probe in probes)
    (tmp_path / "logs" / "client.0.log").write_text(log, encoding="utf-8")
    return tmp_path


def draw(run: Path) -> str:
    command = [sys.executable, "scripts/picture.py", str(run), "client.0", "server.0"]
    done = subprocess.run(
        command, check=False, cwd=ROOT, env={"PYTHONPATH": "."}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_is_of_the_example_as_it_is_now(run: Path) -> None:
    made = draw(run)
    drawn, expected = ET.fromstring(PICTURE), ET.fromstring(made)
    assert drawn.findtext(f"{SVG}desc") == expected.findtext(f"{SVG}desc")
    for kind in ("plan", "event", "gone"):
        assert kinds(PICTURE, kind)
        assert kinds(PICTURE, kind) == kinds(made, kind)
    assert "server crash 1" in texts(PICTURE)
    assert len(kinds(PICTURE, "dot")) > 100


def kinds(svg: str, kind: str) -> list[dict[str, str]]:
    return [part.attrib for part in ET.fromstring(svg).iter() if part.get("class") == kind]


def test_the_same_run_gives_the_same_bytes(run: Path) -> None:
    assert draw(run) == draw(run)


def test_what_was_answered_is_a_dot_where_it_was_measured(run: Path) -> None:
    (dot,) = kinds(draw(run), "dot")
    # 1 s of 25 s between 56 and 844; 40 ms of 100 ms between 284 and 84, downwards.
    assert (dot["cx"], dot["cy"]) == ("87.5", "204.0")
