"""report.html in a browser: it is opened, read, driven by pointer and keys, and fetches nothing."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from runtime.page.page_data import gather
from runtime.page.page_file import page
from runtime.rundir import rundir
from tests.page.browser import Browser
from tests.page.synthetic import SECOND, Shape, make
from tests.runtime.rundir import packets_made

pytestmark = pytest.mark.e2e

HOSTILE = "<img src=//x onerror=alert(1)></script><script>alert(2)</script>\u202e\u2028\x1b[31m"


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


def test_what_failed_comes_first_then_the_verdict_and_nothing_is_fetched(
    browser: Browser, two: Path
) -> None:
    browser.open(two)
    assert browser.problems == []
    first = text(browser, "main section")
    told = [
        *("✕ FAILED", '✕ expect no log client "<b>panic</b>"', "<b>panic</b>: no server"),
        *("! client.0: status 3", "lost the server", "! DEGRADED the driver stood still"),
    ]
    places = [first.index(words) for words in told]
    assert places == sorted(places)
    assert places[0] == 0
    assert "7 of 7 events applied" in first
    assert text(browser, "header .chip") == "✕ FAILED"
    assert abs(cursor(browser) - 31 * SECOND) < 1, "at the first failure"
    said = text(browser, "#expectations")
    assert said.index("<b>panic</b>") < said.index("the run ended before 90 s")  # failed ones first
    assert browser.run("document.title") == "synthetic-1: FAILED"
    icon = browser.run("document.querySelector('link[rel=icon]').href")
    assert "b3261e" in b64decode(icon.partition(",")[2]).decode()
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


def test_all_axes_of_time_begin_and_end_at_the_same_places(browser: Browser, two: Path) -> None:
    for width in (1280, 390):
        browser.open(two, width)
        for at in ("begin", "end"):
            for selector in (".timeline", "#pairs .plot", "#links .plot", ".lanes"):
                browser.place(selector)
            browser.run(f"thunderstorm.view.move(thunderstorm.view.{at}, true)")
            browser.settle()
            places = browser.run(
                "[...document.querySelectorAll('.cursor')].map((one) =>"
                " Math.round(one.getBoundingClientRect().left))"
            )
            assert len(places) == 9
            assert len(set(places)) == 1, (width, at, places)
        edge = browser.run("document.querySelector('#spread .u-over').getBoundingClientRect().left")
        browser.run("thunderstorm.view.move(thunderstorm.view.begin, false)")
        browser.settle()
        left = browser.run("document.querySelector('.cursor').getBoundingClientRect().left")
        assert abs(edge - left) < 2


def test_an_outage_is_a_span_with_words_and_shades_all_charts(browser: Browser, two: Path) -> None:
    browser.open(two)
    browser.run("thunderstorm.view.move(30.5e9, true)")
    browser.settle()
    assert text(browser, ".said").startswith("client.0 cut off from 30.000 s to 31.000 s")
    browser.place("#links .chart:last-child .plot")
    least = """((ns) => {
      const chart = document.querySelector("#links .chart:last-child");
      const over = chart.querySelector(".u-over");
      const share = (ns - thunderstorm.view.from) / thunderstorm.view.width;
      const x = Math.round(over.offsetLeft + share * over.offsetWidth);
      const context = chart.querySelector("canvas").getContext("2d");
      const { data } = context.getImageData(x, over.offsetTop + 2, 1, over.offsetHeight - 4);
      return Math.min(...data.filter((_, at) => at % 4 === 3));
    })"""
    shaded = [browser.run(f"{least}({at}e9)") > 20 for at in (29.5, 30.5, 31.5)]
    assert shaded == [False, True, False]


def states(browser: Browser) -> dict[str, str]:
    """The last state of each instance."""
    rows = browser.run("""(() => {
      let told;
      URL.createObjectURL = (blob) => { told = blob; return "about:blank#"; };
      HTMLAnchorElement.prototype.click = () => {};
      document.querySelector("#programs > .head button.csv").click();
      return told.text();
    })()""")
    return {row.split(",")[0]: row.split(",")[3] for row in rows.splitlines()[1:]}


def test_a_program_that_has_ended_is_not_up(browser: Browser, two: Path) -> None:
    browser.open(two)
    found = states(browser)
    assert (found["client.0"], found["server.0"]) == ("failed", "up")


def test_who_was_killed_is_gone_though_the_plan_has_it_up(browser: Browser, tmp_path: Path) -> None:
    run = make(tmp_path / "run", Shape())
    killed = {"kind": "killed", "target": "server.0", "applied_ns": 50 * SECOND}
    with (run / "events.jsonl").open("a") as file:
        file.write(json.dumps(killed) + "\n")
    written = tmp_path / "report.html"
    written.write_text(page(data_of(run)))
    browser.open(written)
    assert states(browser)["server.0"] == "killed"
    assert browser.problems == []


def test_a_printer_gets_all_charts_in_light_colours(browser: Browser, two: Path) -> None:
    browser.open(two, dark=True)
    drawn = "[...document.querySelectorAll('.plot')].map((one) => one.querySelector('canvas'))"
    assert None in browser.run(f"{drawn}.map((one) => one && one.width)"), "far ones wait"
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    widths = browser.run(f"{drawn}.map((one) => one && one.getBoundingClientRect().width)")
    assert None not in widths
    assert max(widths) < 700
    assert browser.run("document.documentElement.dataset.theme") == "light"
    browser.run("window.dispatchEvent(new Event('afterprint'))")
    assert browser.run("document.documentElement.dataset.theme") is None


def test_on_a_phone_nothing_covers_the_time(browser: Browser, two: Path) -> None:
    for width in (320, 390):
        browser.open(two, width, 844)
        named = "{ run: { ...thunderstorm.model.run, experiment: 'x'.repeat(80) } }"
        browser.run(f"thunderstorm.apply({named})")
        browser.run("thunderstorm.view.move(31e9, true)")
        browser.settle()
        seen = browser.run("""(() => {
          const now = document.querySelector("button.now");
          const box = now.getBoundingClientRect();
          const [y, places] = [box.top + box.height / 2, [2, box.width / 2, box.width - 2]];
          const there = (x) => document.elementFromPoint(box.left + x, y) === now;
          return [now.scrollWidth <= now.clientWidth, ...places.map(there)];
        })()""")
        assert seen == [True] * 4, width
        ends = browser.run(
            "['.timeline .cursor', '.timeline canvas'].map((one) =>"
            " document.querySelector(one).getBoundingClientRect().bottom)"
        )
        assert ends[0] <= ends[1] - 18, "the cursor's line ends above the moments of the axis"


def test_names_do_not_lie_on_links(browser: Browser, two: Path) -> None:
    browser.open(two)
    names, points = browser.run("""(async () => {
      const [names, points] = [[], []];
      const { fillText, moveTo, lineTo } = CanvasRenderingContext2D.prototype;
      const ours = (context) => context.canvas.closest(".drawing");
      CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
        if (ours(this)) names.push([words, x, y, this.measureText(words).width]);
        return fillText.call(this, words, x, y);
      };
      for (const [name, draw] of [["moveTo", moveTo], ["lineTo", lineTo]])
        CanvasRenderingContext2D.prototype[name] = function (x, y) {
          if (ours(this)) points.push([x, y]);
          return draw.call(this, x, y);
        };
      thunderstorm.view.move(5e9, true);
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      while (!names.length) await frame();
      return [names, points];
    })()""")
    assert {name for name, *_ in names} == {"server.0", "client.0", "s1"}
    assert len(points) >= 8, "the halves of two links"
    for begin, end in zip(points[0::2], points[1::2], strict=True):
        for part in range(101):
            a, b = (one + (two - one) * part / 100 for one, two in zip(begin, end, strict=True))
            on = [name for name, x, y, wide in names if abs(a - x) < wide / 2 and abs(b - y) < 5]
            assert not on


def test_the_cursor_is_one_for_the_whole_page(browser: Browser, two: Path) -> None:
    browser.open(two)
    left, top, width, height = browser.place("#pairs .plot")
    axis, rest = 96, 18
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
    left, top, width, height = browser.place(".timeline > div")
    axis, rest = 96, 18
    for kind, share in (("mouseMoved", 0.25), ("mousePressed", 0.25), ("mouseMoved", 0.5),
                        ("mouseReleased", 0.5)):  # fmt: skip
        browser.mouse(kind, left + axis + (width - axis - rest) * share, top + height / 2)
    seen = browser.run("[thunderstorm.view.from, thunderstorm.view.to]")
    assert [round(at / SECOND) for at in seen] == [15, 30]
    browser.key("0")
    assert browser.run("thunderstorm.view.to - thunderstorm.view.from") > 59 * SECOND


def test_keys_move_the_cursor(browser: Browser, two: Path) -> None:
    browser.open(two)
    browser.run("thunderstorm.view.move(0)")
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


def test_links_between_the_same_two_lie_beside_each_other(browser: Browser, tmp_path: Path) -> None:
    """Else one of them could not be pointed at; an outage of both directions has one name."""
    data = data_of(make(tmp_path / "run", Shape()))
    network = data["network"]
    there, back = network["links"][:2]
    for link, name in enumerate((there, back)):
        network["links"][link] = f"fibre:{name}"
        network["links"].append(f"radio:{name}")
        network["ends"].append(network["ends"][link])
    for epoch in network["epochs"]:
        of_first = [one for one in epoch["links"] if one[0] < 2]
        epoch["links"] += [[one[0] + 4, *one[1:]] for one in of_first]
    data["events"]["kinds"][3] = "link_down"  # for both directions
    data["events"]["targets"][2:4] = network["links"][:2]
    written = tmp_path / "parallel.html"
    written.write_text(page(data))
    browser.open(written)
    assert browser.problems == []
    browser.place(".drawing")
    seen = browser.run("""(() => {
      const [canvas, tip] = document.querySelectorAll(".drawing canvas, .drawing .tip");
      const seen = new Set();
      const box = canvas.getBoundingClientRect();
      for (let x = 0; x < box.width; x += 3)
        for (let y = 0; y < box.height; y += 3) {
          const at = { clientX: box.left + x, clientY: box.top + y };
          canvas.dispatchEvent(new PointerEvent("pointermove", at));
          if (!tip.hidden) seen.add(tip.querySelector("b").textContent);
        }
      return [...seen];
    })()""")
    assert {f"{which}:{name}" for which in ("fibre", "radio") for name in (there, back)} <= {*seen}
    browser.run("thunderstorm.view.move(35e9, true)")
    browser.settle()
    assert text(browser, ".said").startswith(
        f"fibre:{there.replace('->', '--')} down from 32.000 s"
    )


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
        "thunderstorm.apply({ result: { state: 'valid', failures: [] },"
        " verdict: { state: 'valid', lines: ['VALID: all is well'], limits: [],"
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
    assert browser.run("document.querySelector('#figures').hidden") is True
    browser.run(
        "thunderstorm.apply({ figures: { head: ['figure', 'of', 'value', ''],"
        " rows: [['lost', 'client.0', '360', '']] } })"
    )
    assert "360" in text(browser, "#figures tbody")


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


def test_packets_are_arrows_around_the_cursor(browser: Browser, two: Path, tmp_path: Path) -> None:
    browser.open(two)
    assert browser.run("document.querySelector('#packets').hidden"), "the run has no record of any"
    written = tmp_path / "report.html"
    written.write_text(page(data_of(packets_made.make(tmp_path / "run", 10**18))))
    browser.open(written)
    browser.run("thunderstorm.view.move(8e6, true)")
    browser.run(
        "(() => { const widths = document.querySelector('#packets select');"
        " widths.value = '30000000'; widths.dispatchEvent(new Event('change')); })()"
    )
    left, top, width, height = browser.place("#packets canvas")
    browser.settle()
    assert text(browser, "#packets .at") == "at 0.008000 s \u00b1 15 ms: 2 packets, 1 lost"
    assert colours_in(browser, "#packets canvas") > 5
    wide = width - 114  # of the window's 30 ms, which begin 7 ms before time 0
    browser.mouse("mouseMoved", left + 96 + wide * 9.5 / 30, top + height / 2 - 1)
    told = text(browser, "#packets .tip")
    assert "a.0 to b.0" in told
    assert "sent at 0.001000 s" in told and "arrived at 0.004000 s, after 3 ms" in told
    browser.mouse("mouseMoved", left + 96 + wide * 18.8 / 30, top + height / 2 + 5)
    assert "lost at 0.012000 s on s1->a.0: lost by the draw" in text(browser, "#packets .tip")
    browser.mouse("mousePressed", left + 96 + wide / 2 + wide / 6, top + height / 2)
    browser.mouse("mouseReleased", left + 96 + wide / 2 + wide / 6, top + height / 2)
    assert abs(cursor(browser) - 13_000_000) < 200_000
    assert browser.problems == []


def test_the_moment_that_decided_is_below_the_timeline(
    browser: Browser, two: Path, tmp_path: Path
) -> None:
    """As `tstorm why -o` adds it."""
    browser.open(two)
    assert browser.run("document.querySelector('canvas.decision') === null")
    shares = [(1, 0.25, [0.1, 0.6]), (20 * SECOND, 0.5, [0.2, 0.8]), (25 * SECOND, 1, [0.8, 1])]
    course = [{"at_ns": at, "share": p, "interval": low, "whole": True} for at, p, low in shares]
    jump = {"before": course[1], "after_ns": 25 * SECOND}
    written = tmp_path / "why.html"
    data = data_of(make(tmp_path / "run", Shape()))
    written.write_text(page({**data, "decision": {"course": course, "jumps": [jump]}}))
    browser.open(written)
    browser.place("canvas.decision")
    browser.settle()
    assert colours_in(browser, "canvas.decision") > 2
    assert browser.problems == []
    assert browser.run("document.querySelectorAll('.cursor').length") == 10


def test_a_history_that_failed_is_drawn_by_process(
    browser: Browser, two: Path, tmp_path: Path
) -> None:
    browser.open(two)
    assert browser.run("document.querySelector('#histories').hidden") is True
    operations = [
        ["a.0 0", "write 1", 5 * SECOND, 10 * SECOND, True, False],
        ["a.0 0", "write 2", 11 * SECOND, None, False, False],
        ["b.0 0", "read → 1", 20 * SECOND, 30 * SECOND, True, True],
    ]
    failed = {"text": "expect linearizable", "state": "failed", "message": "no order", "log": []}
    data = data_of(make(tmp_path / "run", Shape()))
    written = tmp_path / "history.html"
    shown = [{**failed, "at_ns": 30 * SECOND, "operations": operations}]
    written.write_text(page({**data, "expectations": shown}))
    browser.open(written)
    left, top, width, _ = browser.place("#histories canvas")
    browser.settle()
    assert colours_in(browser, "#histories canvas") > 4
    seconds = browser.run("(thunderstorm.view.to - thunderstorm.view.from) / 1e9")
    wide = width - 114
    browser.mouse("mouseMoved", left + 96 + wide * 25 / seconds, top + 27)
    told = text(browser, "#histories .tip")
    assert "read → 1" in told and "b.0 0" in told
    assert browser.problems == []
