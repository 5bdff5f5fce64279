"""The experiment of the THUNDERSTORM paper, as printed, and its meaning."""

from __future__ import annotations

from tdl import ast
from tdl.parser import parse
from tests.tdl.helpers import meaning, unspanned

PRINTED = """\
bootstrapper thunderstorm:2.0

service server img=nginx:latest tags=frontend;app
service api img=api:latest tags=backend;app
service client img=client:1.0 command=['80']
service db img=postgres:latest tags=backend;app

bridges s1 s2

link server—s1 latency=9.1 up=1Gb down=800Mb
link api—s1 latency=5.1 up=1Gb symmetric
link s1—s2 latency=0.11 up=1Gb symmetric
link client—s1 latency=23.4 up=50Mb down=1Gb
link db—s2 latency=8.0 up=1Gb symmetric

at 0s api join 3
at 0s db join 3
at 0s server join 5
at 30s client join
from 30m to 3h30m server churn 40% replace 50%
at 4h20m server—s1 leave
at 4h25m server—s1 join
from 10h2m to 10h6m api—s1 flap 0.93s
from 12h to 24h tags=be leave 60%
from 15h to 15h20s server disconnect 1
at 18h20m api—s1 set latency=10.2 jitter=1.2
"""
SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def test_it_parses_without_a_word() -> None:
    file, diagnostics = parse(PRINTED)
    assert diagnostics == ()
    assert len(file.statements) == 22


def test_links_are_exact_integers() -> None:
    links = [s for s in meaning(PRINTED) if isinstance(s, ast.LinkStatement)]
    assert [(link.a.text, link.b.text, link.latency_ns) for link in links] == [
        ("server", "s1", 9_100_000),
        ("api", "s1", 5_100_000),
        ("s1", "s2", 110_000),
        ("client", "s1", 23_400_000),
        ("db", "s2", 8_000_000),
    ]
    assert (links[0].up_bps, links[0].down_bps, links[0].symmetric) == (10**9, 8 * 10**8, False)
    assert (links[1].up_bps, links[1].down_bps, links[1].symmetric) == (10**9, 10**9, True)


def test_services_carry_images_tags_and_commands() -> None:
    services = [s for s in meaning(PRINTED) if isinstance(s, ast.ServiceStatement)]
    assert [s.image for s in services] == [
        "nginx:latest",
        "api:latest",
        "client:1.0",
        "postgres:latest",
    ]
    assert [t.text for t in services[0].tags] == ["frontend", "app"]
    assert services[2].command == ("80",)
    assert services[2].replicas is None


def test_events_have_times_selectors_and_actions() -> None:
    events = [s for s in meaning(PRINTED) if isinstance(s, ast.Dynamic)]
    assert [(e.start_ns, e.end_ns) for e in events[3:]] == [
        (30 * SECOND, None),
        (30 * MINUTE, 3 * HOUR + 30 * MINUTE),
        (4 * HOUR + 20 * MINUTE, None),
        (4 * HOUR + 25 * MINUTE, None),
        (10 * HOUR + 2 * MINUTE, 10 * HOUR + 6 * MINUTE),
        (12 * HOUR, 24 * HOUR),
        (15 * HOUR, 15 * HOUR + 20 * SECOND),
        (18 * HOUR + 20 * MINUTE, None),
    ]
    churn = events[4].action
    assert isinstance(churn, ast.Churn)
    assert (churn.count.unit, churn.count.value) == (ast.Unit.PERCENT, 400_000_000)
    assert churn.replace_ppb == 500_000_000
    assert isinstance(events[5].selector, ast.LinkSelector)
    flap = events[7].action
    assert isinstance(flap, ast.Flap)
    assert flap.period_ns == 930_000_000
    change = events[10].action
    assert isinstance(change, ast.Set)
    assert [(a.prop.text, a.op, a.value) for a in change.assignments] == [
        ("latency", ast.Op.ASSIGN, 10_200_000),
        ("jitter", ast.Op.ASSIGN, 1_200_000),
    ]


def test_the_dash_does_not_matter() -> None:
    assert meaning(PRINTED) == meaning(PRINTED.replace("—", "--"))
    assert meaning(PRINTED) == meaning(PRINTED.replace("—", "–"))
    assert meaning(PRINTED) == meaning(PRINTED.replace("\n", "\r\n"))
    assert meaning(PRINTED) == unspanned(parse(PRINTED.encode("utf-8"))[0].statements)
