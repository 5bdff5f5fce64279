"""The interface for programs is the one in docs; metrics are those of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.routing import Route

from runtime.page.growing_page import GrowingPage
from runtime.rundir import rundir
from tests.page.synthetic import Shape, make
from tests.ui.served import Told, served
from tstorm.reporting import openmetrics
from tstorm.reporting.openmetrics import live_text
from tstorm.reporting.run_facts import gather
from tstorm.ui import openapi
from tstorm.ui.feed import Feed
from tstorm.ui.routes import API, ServedRun, application

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "examples" / "grafana-dashboard.json"


def test_the_document_is_the_one_in_docs() -> None:
    text = (ROOT / "docs/openapi.json").read_text(encoding="utf-8")
    assert text == openapi.text(), "python -m tstorm.ui.openapi > docs/openapi.json"


def test_the_document_has_every_address_and_no_other() -> None:
    app = application(ServedRun("none", Feed(Told(), API), lambda: ""))
    served_ = {
        (route.path, method.lower())
        for route in app.routes
        if isinstance(route, Route)
        for method in set(route.methods or ()) - {"HEAD"}
    }
    written = {
        (path, method) for path, ways in openapi.document()["paths"].items() for method in ways
    }
    assert served_ - {("/", "get")} == written


def test_it_is_served() -> None:
    with served() as site:
        status, body, _ = site.ask("GET", f"{API}/openapi.json")
        assert (status, json.loads(body)) == (200, openapi.document())
        status, _, headers = site.ask("GET", "/metrics")
        assert (status, headers["content-type"]) == (200, openapi.OPENMETRICS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("metrics") / "run", Shape(seconds=20))
    (path / "certificate.json").unlink()
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "start_unix_ns": 10**18}))
    return path


def grown(path: Path) -> GrowingPage:
    page = GrowingPage(rundir.recorded(path), lambda: True)
    page.news()
    page.growth()
    return page


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def families_of(text: str) -> list[Any]:
    return list(text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


def samples(text: str) -> Samples:
    """The last of each series."""
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in families_of(text)
        for one in family.samples
    }


def test_what_is_scraped_is_what_the_file_ends_with(run: Path) -> None:
    live = samples(live_text(grown(run)))
    recorded = samples(openmetrics.render(gather(rundir.recorded(run), live=True)))
    info = {key for key in live if key[0] == "tstorm_run_info"}
    never = {key for key, value in live.items() if not value}
    assert live.keys() - recorded.keys() <= info | never
    assert live["tstorm_events_total", (("kind", "set"),)] == 2
    events = {key for key in live if key[0] == "tstorm_events_total"}  # several at one moment
    both = live.keys() & recorded.keys() - info - events
    assert len(both) > 20
    assert {key: live[key] for key in both} == {key: recorded[key] for key in both}


def info_of(text: str) -> dict[str, str]:
    (found,) = (dict(labels) for name, labels in samples(text) if name == "tstorm_run_info")
    return found


def test_of_a_run_that_has_ended_it_says_what_came_of_it(run: Path) -> None:
    page = grown(run)
    assert page.end() is not None
    recorded = openmetrics.render(gather(rundir.recorded(run), live=False))
    assert info_of(live_text(page)) == info_of(recorded)
    assert info_of(recorded)["verdict"]


def test_of_a_run_that_was_killed_it_does_not_say_that_it_goes_on(
    run: Path, tmp_path: Path
) -> None:
    place = shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((place / "manifest.json").read_text())
    del manifest["outcome"]
    (place / "manifest.json").write_text(json.dumps(manifest))
    (place / "summary.json").unlink()
    page = GrowingPage(rundir.recorded(place), lambda: False)
    assert page.end() is not None
    recorded = openmetrics.render(gather(rundir.recorded(place), live=False))
    assert info_of(live_text(page)) == info_of(recorded)
    assert info_of(recorded)["outcome"] == "unfinished"


def test_no_sample_that_is_scraped_has_a_time(run: Path) -> None:
    families = families_of(live_text(grown(run)))
    assert families
    assert all(one.timestamp is None for family in families for one in family.samples)


def expressions(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["expr"]] if "expr" in value else []
        own += [str(value["query"])] if isinstance(value.get("query"), str) else []
        return own + [found for one in value.values() for found in expressions(one)]
    return [found for one in value for found in expressions(one)] if isinstance(value, list) else []


def test_each_metric_of_the_dashboard_exists(run: Path) -> None:
    text = live_text(grown(run))
    known = {name for name, _ in samples(text)}
    known |= {f"{one.name}_total" for one in families_of(text) if one.type == "counter"}
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    named = {name for one in expressions(dashboard) for name in re.findall(r"tstorm_\w+", one)}
    assert len(named) > 6
    assert named <= known


def test_the_dashboard_shows_each_family(run: Path) -> None:
    families = {one.name for one in families_of(live_text(grown(run)))}
    words = " ".join(expressions(json.loads(DASHBOARD.read_text(encoding="utf-8"))))
    assert [name for name in sorted(families) if name not in words] == []
