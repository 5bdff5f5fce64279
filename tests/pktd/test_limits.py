"""Where pktd refuses a value: exactly beyond the table (compiler/plan/rules/property_limits.py)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping

import pytest

from compiler.plan.properties import BY_FIELD
from compiler.plan.rules.property_limits import HOP_EXACT, LINK, PATHS, jitter_limit
from tdl import aqm
from tests.datapath.client import Client, RefusedError
from tests.pktd.harness import PKTD

NODES = ("node 0 ip=10.0.0.1", "node 1 ip=10.0.0.2")
LINK_LINE = "link 0 0 1 rate=0 delay=0 jitter=0 loss=0 queue=0 dist=normal seed=1 up=1"
PATH_LINE = "path 0 1 rate=0 delay=0 jitter=0 loss=0 queue=0 up=1"


@pytest.fixture
def pktd() -> Iterator[Client]:
    with subprocess.Popen([PKTD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        engine = Client(process)
        engine("hello 1")
        for line in NODES:
            engine(line)
        yield engine
        assert engine.close() == 0


def make_last_trace(pktd: Client) -> None:
    """There has to be one to be followed."""
    pktd(f"trace {LINK['trace']} begin=0 period=1000000")
    pktd(f"steps {LINK['trace']} 1 end")


@pytest.mark.parametrize("declared", [LINK_LINE, PATH_LINE], ids=["link", "path"])
def test_pktd_takes_the_limit_and_no_more(pktd: Client, declared: str) -> None:
    pktd(declared)
    if declared is LINK_LINE:
        make_last_trace(pktd)
    change = "set 0" if declared is LINK_LINE else "path 0 1"
    limits = PATHS[HOP_EXACT if declared is LINK_LINE else "user"]
    for key, limit in figures(limits):
        pktd(f"{change} {key}={limit}")
        with pytest.raises(RefusedError) as refused:
            pktd(f"{change} {key}={limit + 1}")
        assert refused.value.code == "range"
        assert str(limit) in refused.value.text
    for dist in ("normal", "uniform", "pareto", "paretonormal"):
        pktd(f"{change} jitter={jitter_limit('user', dist)} dist={dist}")
    pktd.commit()


def test_a_link_of_a_plan_is_within_it(pktd: Client) -> None:
    everything = " ".join(f"{key}={limit}" for key, limit in figures(LINK))
    make_last_trace(pktd)
    pktd(f"link 0 0 1 {everything} dist=pareto seed=1 up=1")
    pktd.commit()


def figures(limits: Mapping[str, int]) -> list[tuple[str, int]]:
    rows = [(BY_FIELD[field], limit) for field, limit in limits.items()]
    return [(row.word, limit) for row, limit in rows if row.told and not row.form]


def test_pktd_takes_each_discipline_as_the_language_has_it(pktd: Client) -> None:
    pktd(LINK_LINE)
    for name, discipline in aqm.DISCIPLINES.items():
        for ends in ("least", "most"):
            words = [
                f"{row.name}:{row.write(getattr(row, ends))}"
                for row in discipline.parameters
                if row.name not in ("min", "max", "target", "interval")
            ]
            pktd(f"set 0 aqm={aqm.canonical([name, *words])}")
        pktd(f"set 0 aqm={aqm.canonical([name])}")
    pktd("set 0 aqm=")
    pktd("set 0 aqm=0")
    pktd.commit()
