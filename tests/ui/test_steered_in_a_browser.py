"""A run is watched and steered in Chromium, recorded, and carried out again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.options import RunOptions
from tests.cli.process import DEADLINE_SECONDS, begun, tstorm
from tests.page.browser import Browser, program
from tests.ui.served import TOKEN, served
from tests.waiting import wait_until
from tstorm.live import steer

pytestmark = pytest.mark.e2e

TDL = """\
seed 4
service server exec="tprobe serve"
service client exec="sh -c 'echo \\"<img src=x onerror=x()>\\"; tprobe rtt server.0 --count 9999'"
bridges s1 s2
link server--s1 latency=1ms
link client--s2 latency=1ms
link s1--s2 latency=10ms
at 600s quit
"""
# In the middle of where the page says that this link is.
UNDER = """(() => {
  const canvas = document.querySelector(".drawing canvas");
  canvas.scrollIntoView({ block: "center" });
  const box = canvas.getBoundingClientRect();
  const found = [];
  for (let y = 4; y < box.height; y += 4) for (let x = 4; x < box.width; x += 4) {
    const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true };
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    const said = document.querySelector(".tip:not([hidden]) b")?.innerText;
    if (said === "NAME") found.push([at.clientX, at.clientY]);
  }
  return found[Math.floor(found.length / 2)] ?? null;
})()"""
DELAY = """(() => {
  const probe = thunderstorm.model.pairs.get("client.0 -> server.0")?.probe?.mean;
  const values = probe?.values(thunderstorm.model.time.grid.count).filter((one) => one !== null);
  return values?.length ? values[values.length - 1] : 0;
})()"""


def do(browser: Browser, text: str) -> str:
    """Types it into the page's line; the answer."""
    words = json.dumps(text)
    browser.run(
        "(() => { document.querySelector('#steering .answer').textContent = '';"
        f" document.querySelector('#steering input').value = {words};"
        " document.querySelector('#steering form').requestSubmit(); })()"
    )
    browser.wait("document.querySelector('#steering .answer').textContent")
    return str(browser.run("document.querySelector('#steering .answer').textContent"))


def press(browser: Browser, name: str) -> str:
    """A button of the steering part; the answer."""
    browser.run("document.querySelector('#steering .answer').textContent = ''")
    browser.run(
        "[...document.querySelectorAll('#steering button')]"
        f".find((one) => one.innerText === {json.dumps(name)}).click()"
    )
    browser.wait("document.querySelector('#steering .answer').textContent")
    return str(browser.run("document.querySelector('#steering .answer').textContent"))


def happened(kind: str, target: str) -> str:
    return (
        "thunderstorm.model.events.some((one) =>"
        f" one.kind === {json.dumps(kind)} && one.target === {json.dumps(target)})"
    )


@pytest.fixture
def going_on(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "exp.tdl").write_text(TDL, encoding="utf-8")
    with begun(tmp_path, "run", "exp.tdl", "--out", "run", "--ui") as process:
        yield process
    tstorm(tmp_path, "destroy", "--all")


def link_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"its page: (\S+)", line):
            return found[1]
    raise AssertionError(process.communicate())


def test_it_is_seen_steered_recorded_and_carried_out_again(
    tmp_path: Path, going_on: subprocess.Popen[str]
) -> None:
    found = program()
    if found is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    link = link_of(going_on)
    with Browser(found) as browser:
        browser.open_served(link.partition("#")[0])  # somebody without the secret
        browser.wait("document.querySelector('#steering .note')?.innerText.includes('secret')")
        assert browser.run("thunderstorm.model.run.id") == ""
        browser.open_served("about:blank")
        browser.open_served(link)
        browser.wait(f"thunderstorm.model.going && {DELAY} > 0")
        assert "#" not in browser.run("location.href"), "the secret is not in sight"
        assert browser.run("document.querySelector('header .chip').innerText") == "▶ RUNNING"
        _is_text(browser)
        _is_slowed(browser)
        _is_cut_and_healed(browser)
        assert "action" in press(browser, "hold")
        browser.wait("document.querySelector('#steering .next').innerText.startsWith('held')")
        assert "action" in press(browser, "go")
        browser.wait("thunderstorm.model.coming.some(([, kind]) => kind === 'quit')")
        assert "action" in press(browser, "skip to next")
        browser.wait("!thunderstorm.model.going")
        browser.wait("!document.querySelector('#steering')")
        assert browser.run("thunderstorm.model.run.outcome") == "completed"
        refused = [one for one in browser.problems if "409" not in one]
        assert (refused, len(browser.problems)) == ([], 1)  # the action of _is_slowed
    wait_until(lambda: going_on.poll() is not None, "the command ends", DEADLINE_SECONDS)
    assert going_on.returncode == 0
    _is_the_same_again(tmp_path)


def test_whoever_ends_the_page_s_server_changes_nothing(
    tmp_path: Path, going_on: subprocess.Popen[str]
) -> None:
    link_of(going_on)
    children = Path(f"/proc/{going_on.pid}/task/{going_on.pid}/children").read_text().split()
    lines = {int(one): Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0") for one in children}
    [server] = [pid for pid, words in lines.items() if b"ui" in words]
    os.kill(server, signal.SIGKILL)
    tstorm(tmp_path, "do", "run", "server--s1 set latency=5ms")
    tstorm(tmp_path, "skip", "run", "--to", "600s")
    wait_until(lambda: going_on.poll() is not None, "the command ends", DEADLINE_SECONDS)
    assert going_on.returncode == 0
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    assert summary["outcome"] == "completed"


def _is_text(browser: Browser) -> None:
    """What programs write is shown, and is nothing but text."""
    shown = "[...document.querySelectorAll('.log .what')].map((one) => one.innerText).join()"
    browser.run("thunderstorm.view.move(thunderstorm.view.begin, true)")
    browser.wait(f"{shown}.includes('<img src=x onerror=x()>')")
    assert browser.run("document.querySelectorAll('img').length") == 0
    browser.run("thunderstorm.view.unpin()")


def _is_slowed(browser: Browser) -> None:
    assert "TS0201" in (said := do(browser, "client--s7 set latency=100ms"))
    assert "did you mean 's1'?" in said
    assert "nothing was changed" in said
    assert "set client.0->s2" in do(browser, "client--s2 set latency=100ms")
    browser.wait(f"{DELAY} > 100e6")
    marks = "document.querySelector('#events').innerText"
    browser.wait(f"{marks}.includes('client--s2 set latency=100ms')")


def _is_cut_and_healed(browser: Browser) -> None:
    browser.wait(UNDER.replace("NAME", "client.0->s2"))
    x, y = browser.run(UNDER.replace("NAME", "client.0->s2"))
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        browser.mouse(kind, x, y)
    assert "link_down client.0->s2" in press(browser, "leave")
    browser.wait(happened("link_down", "client.0->s2"))
    down = "document.querySelector('.tip').innerText.includes('down')"
    browser.run("thunderstorm.view.unpin()")
    browser.mouse("mouseMoved", x + 1, y)
    browser.wait(
        f"thunderstorm.view.cursor > 0 && ({UNDER.replace('NAME', 'client.0->s2')}, {down})"
    )
    assert "link_up client.0->s2" in press(browser, "join")
    browser.wait(happened("link_up", "client.0->s2"))
    before = int(browser.run("thunderstorm.model.known_ns"))
    values = "thunderstorm.model.pairs.get('client.0 -> server.0').probe.mean.values"
    grid = "thunderstorm.model.time.grid"
    later = f"Math.ceil({before} / {grid}.step_ns)"
    browser.wait(f"{values}({grid}.count).some((one, at) => at > {later} && one > 1e8)")


def _is_the_same_again(place: Path) -> None:
    tstorm(place, "record", "run", "-o", "again.tdl")
    assert "client.0 client--s2" not in (place / "again.tdl").read_text(encoding="utf-8")
    tstorm(place, "diff", "run/plan", "again.tdl")
    with begun(place, "replay", "run", "--check", "--quiet", "--out", "again") as process:
        ended = lambda: process.poll() is not None  # noqa: E731 - it takes as long as the run did
        wait_until(ended, "it is carried out again", 4 * DEADLINE_SECONDS)
        assert process.returncode == 0, process.communicate()


def test_time_is_held_by_a_button_where_a_run_has_a_time_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is asked of the run stands in for it."""
    found = program()
    if found is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    asked: list[str] = []
    held: list[int | None] = [None]

    def hold(_run: str) -> int:
        if asked[-1:] == ["hold"]:
            raise RunError("its time is held already", "tstorm go lets it go on")
        asked.append("hold")
        held[:] = [2_500_000_000]
        return 2_500_000_000

    def go(_run: str) -> bool:
        asked.append("go")
        held[:] = [None]
        return True

    monkeypatch.setattr(steer, "hold_time", hold)
    monkeypatch.setattr(steer, "let_time_go", go)
    shown = "[...document.querySelectorAll('#steering button')].map((one) => one.innerText)"
    with Browser(found) as browser:
        for options, buttons in (
            (RunOptions(), ["do", "hold", "go", "skip to next"]),
            (RunOptions(time="virtual"), ["do", "hold", "hold time", "go", "skip to next"]),
        ):
            with served(options=options, held=lambda: held[0]) as site:
                browser.open_served(f"http://127.0.0.1:{site.port}/#{TOKEN}")
                browser.wait("document.querySelector('#steering button')")
                seen = (
                    f"{shown}.filter((_, at) => document.querySelectorAll('#steering button')[at]"
                )
                assert browser.run(f"{seen}.offsetParent)") == buttons
                if "hold time" in buttons:
                    assert press(browser, "hold time") == "time is held at 2.5s\n"
                    next_ = "document.querySelector('#steering .next').innerText"
                    browser.wait(f"{next_}.startsWith('time is held at 2.5')")
                    assert "held already" in press(browser, "hold time")
                    assert press(browser, "go") == "time goes on\n"
                    browser.wait(f"!{next_}.includes('time is held')")
                    held[:] = [3_500_000_000]  # by a command
                    browser.wait(f"{next_}.startsWith('time is held at 3.5')")
    assert asked == ["hold", "go"]
