"""report.html in a browser: it is opened, read, driven by pointer and keys, and fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.page.model import gather
from runtime.page.render import page
from runtime.rundir import rundir
from tests.page.browser import Browser, program
from tests.page.synthetic import SECOND, Shape, make

pytestmark = [pytest.mark.e2e, pytest.mark.once]

HOSTILE = "<img src=//x onerror=alert(1)></script><script>alert(2)</script>\u202e\u2028\x1b[31m"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = program()
    if found is None:
        pytest.skip("there is no Chromium (Debian: chromium)")
    with Browser(found) as one:
        yield one


def data_of(run: Path) -> dict[str, Any]:
    directory = rundir.recorded(run)
    return gather(directory, directory.manifest(), directory.summary())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of two pairs and a minute."""
    place = tmp_path_factory.mktemp("two")
    written = place / "report.html"
    written.write_text(page(data_of(make(place / "run", Shape()))))
    return written


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def cursor(browser: Browser) -> int:
    return int(browser.run("Math.round(thunderstorm.view.cursor)"))


def colours_in(browser: Browser, selector: str) -> int:
    """How many colours a canvas shows."""
    words = json.dumps(selector)
    return int(
        browser.run(
            f"(() => {{ const canvas = document.querySelector({words}); const {{ data }} ="
            " canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
            " const seen = new Set(); for (let at = 0; at < data.length; at += 4)"
            " if (data[at + 3] > 200) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);"
            " return seen.size; })()"
        )
    )


def test_the_verdict_comes_first_and_nothing_is_fetched(browser: Browser, two: Path) -> None:
    browser.open(two)
    assert browser.problems == []
    first = text(browser, "main section")
    assert first.startswith("! DEGRADED the driver stood still for 612 ms")
    assert "7 of 7 events applied" in first
    said = text(browser, "#expectations")
    assert said.index("<b>panic</b>") < said.index("the run ended before 90 s")  # failed ones first
    assert browser.run("document.title") == "synthetic-1: DEGRADED"
    titles = browser.run("[...document.querySelectorAll('h2')].map((one) => one.innerText)")
    assert {"Network", "Pairs", "Links", "Programs", "Distribution of delays"} <= set(titles)


def test_everything_is_drawn(browser: Browser, two: Path) -> None:
    for dark in (False, True):
        browser.open(two, dark=dark)
        for selector in (".timeline canvas", ".drawing canvas", "#pairs .plot canvas",
                         "#links .plot canvas", ".lanes canvas", "#spread canvas"):  # fmt: skip
            browser.place(selector)
            browser.settle()
            assert colours_in(browser, selector) > 2, (selector, dark)
        assert browser.problems == []


def test_the_cursor_is_one_for_the_whole_page(browser: Browser, two: Path) -> None:
    browser.open(two)
    left, top, width, height = browser.place("#pairs .plot")
    axis, rest = 74, 18
    x = left + axis + (width - axis - rest) * 0.5
    browser.mouse("mouseMoved", x, top + height / 2)
    assert abs(cursor(browser) - 30 * SECOND) < SECOND // 5
    assert "at 30." in text(browser, "#network .head") or "at 29." in text(
        browser, "#network .head"
    )
    assert "server.0 is at work" in text(browser, "#logs .log .now")
    browser.mouse("mousePressed", x, top + height / 2)
    browser.mouse("mouseReleased", x, top + height / 2)
    held = cursor(browser)
    browser.mouse("mouseMoved", x + 200, top + height / 2)
    assert cursor(browser) == held, "it was pinned"
    shown = text(browser, "#pairs .values")
    assert "server.0 -> client.0" in shown
    assert "b/s" in shown


def test_to_drag_zooms_all_charts(browser: Browser, two: Path) -> None:
    browser.open(two)
    left, top, width, height = browser.place(".timeline")
    begin = left + 74
    for kind, share in (("mouseMoved", 0.25), ("mousePressed", 0.25), ("mouseMoved", 0.5),
                        ("mouseReleased", 0.5)):  # fmt: skip
        browser.mouse(kind, begin + (width - 74) * share, top + height / 2)
    seen = browser.run("[thunderstorm.view.from, thunderstorm.view.to]")
    assert [round(at / SECOND) for at in seen] == [15, 30]
    browser.key("0")
    assert browser.run("thunderstorm.view.to - thunderstorm.view.from") > 59 * SECOND


def test_keys_move_the_cursor(browser: Browser, two: Path) -> None:
    browser.open(two)
    steps = [browser.key("n") or cursor(browser) for _ in range(3)]
    assert [at // SECOND for at in steps] == [0, 30, 31]
    browser.key("p")
    assert cursor(browser) // SECOND == 30
    assert browser.run("thunderstorm.view.pinned") is True
    before = cursor(browser)
    browser.key("ArrowRight")
    assert SECOND // 20 < cursor(browser) - before < SECOND
    browser.key("?")
    assert browser.run("document.querySelector('dialog').open") is True


def test_the_network_is_that_of_the_moment(browser: Browser, two: Path) -> None:
    browser.open(two)
    browser.place(".drawing")
    seen = []
    for at in (10, 30.5, 40):
        browser.run(f"thunderstorm.view.move({at}e9, true)")
        browser.settle()
        seen.append(browser.run("document.querySelector('.drawing canvas').toDataURL()"))
    assert len(set(seen)) == 3, "before, while and after a client was cut off"


def test_everything_can_be_had_as_csv(browser: Browser, two: Path) -> None:
    browser.open(two)
    told = browser.run(
        "(async () => { const given = []; let last = null;"
        " URL.createObjectURL = (blob) => { last = blob; return 'about:blank#'; };"
        " HTMLAnchorElement.prototype.click = function () { given.push([this.download, last]); };"
        " for (const one of document.querySelectorAll('button.csv')) one.click();"
        " const found = {};"
        " for (const [name, blob] of given) found[name] = await blob.text();"
        " return found; })()"
    )
    assert {"pairs.csv", "links.csv", "events.csv", "logs.csv", "network.csv", "planned.csv",
            "programs.csv", "distribution.csv", "expectations.csv"} <= told.keys()  # fmt: skip
    pairs = told["pairs.csv"].splitlines()
    assert pairs[0].startswith("src,dst,from_ns,rate_bps")
    assert len(pairs) == 1 + 2 * browser.run("thunderstorm.model.time.grid.count")
    assert "expect no log client" in told["expectations.csv"]


def test_hostile_names_stay_text(browser: Browser, two: Path, tmp_path: Path) -> None:
    data = data_of(two.parent / "run")
    spoiled = json.loads(json.dumps(data).replace("client.0", json.dumps(HOSTILE)[1:-1]))
    spoiled["run"].update(id=HOSTILE, experiment=HOSTILE, message=f"{HOSTILE}\ud800")
    spoiled["notes"] = [HOSTILE]
    spoiled["logs"][0]["lines"].append([None, None, "\udcff" + "long " * 200_000])
    written = tmp_path / "report.html"
    written.write_bytes(rundir.encode(page(spoiled)))
    browser.open(written)
    browser.place("#programs")
    browser.key("n")
    assert browser.problems == []
    assert browser.run("document.querySelectorAll('img, iframe, main script').length") == 0
    assert HOSTILE in browser.run("document.querySelector('#notes').textContent")
    assert HOSTILE in browser.run("document.querySelector('#events').textContent")


def test_news_come_in_as_the_whole_did(browser: Browser, two: Path) -> None:
    """What a page of a run that goes on needs: the same `apply`, again and again."""
    browser.open(two)
    browser.run(
        "thunderstorm.apply({ verdict: { state: 'valid', lines: ['VALID: all is well'], limits: [],"
        " marks: [] }, time: { begin_ns: 0, end_ns: 90e9, pace: 1, grid: { begin_ns: 0,"
        " step_ns: 1e8, count: 900 } }, pairs: [{ src: 'server.0', dst: 'client.0',"
        " rate: { i: [850], v: [123e6] } }], events: { columns: ['kind', 'target', 'planned_ns',"
        " 'at_ns', 'lag_ns', 'text'], kinds: ['crash'], targets: ['client.0'],"
        " rows: [[0, 0, 85e9, 85e9, 5, '']] } })"
    )
    browser.settle()
    assert text(browser, "main section").startswith("✓ VALID")
    assert browser.run("thunderstorm.view.to") == 90e9
    browser.place("#pairs .plot")
    browser.run("thunderstorm.view.move(85.05e9, true)")
    browser.settle()
    assert "123 Mb/s" in text(browser, "#pairs .values")
    assert "9 rows" in text(browser, "#events")


def test_a_thousand_pairs_on_a_phone(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("many")
    shape = Shape(clients=500, seconds=120, interval_ns=5 * SECOND, probe_ns=10 * SECOND)
    written = place / "report.html"
    whole = page(data_of(make(place / "run", shape)))
    written.write_text(whole)
    assert len(whole) < 20_000_000
    browser.open(written, 390, 844)
    assert browser.problems == []
    assert browser.run("thunderstorm.model.pairs.size") == 1000
    assert browser.run("document.documentElement.scrollWidth") == 390, "nothing is wider"
    browser.place("#pairs .choose")
    browser.run("document.querySelector('#pairs .choose').open = true")
    browser.settle()
    browser.run(
        "(() => { const search = document.querySelector('#pairs .choose input'); search.value ="
        " 'client.499'; search.dispatchEvent(new Event('input')); })()"
    )
    assert browser.run("document.querySelectorAll('#pairs .offers label').length") == 2
    browser.run("document.querySelector('#pairs .offers input').click()")
    assert "client.499" in text(browser, "#pairs .chips")
    assert colours_in(browser, ".drawing canvas") > 1
