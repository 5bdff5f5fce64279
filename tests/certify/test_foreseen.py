"""What can never be VALID is said before it runs, by the certificate's own rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.pipeline import compile_source
from compiler.sources import SourceFolder
from runtime.certify.never_valid import why_never
from runtime.options import K8S, VIRTUAL, RunOptions
from runtime.schedule import Schedule
from tests.certify.scene import TDL, Scene

JITTER = TDL.replace("latency=5ms", "latency=5ms jitter=1ms")
LONG_TAIL = JITTER.replace("jitter=1ms", "jitter=1ms dist=pareto")
MANY = "service c img=x replicas=20\nbridge s\nlink c--s latency=1ms\nat 60s quit\n"


def foreseen(text: str, **options: object) -> str:
    plan = compile_source(text).plan
    return why_never(plan, Schedule(plan, RunOptions(**options)))  # type: ignore[arg-type]


def until(text: str, end: str) -> str:
    return text.replace("at 60s", f"at {end}")


@pytest.mark.parametrize(
    ("text", "ends"),
    [(TDL, "1s"), (TDL, "1500ms"), (TDL, "4s"), (JITTER, "2s"), (JITTER, "8s"), (LONG_TAIL, "4s")],
)
def test_what_is_said_is_what_the_certificate_finds(tmp_path: Path, text: str, ends: str) -> None:
    """Of a run with as many probes that all come, at the same distances."""
    scene = Scene(tmp_path, until(text, ends))
    scene.probe()
    found = scene.judged()
    assert bool(foreseen(scene.text)) == (found["state"] == "unknown"), found


@pytest.mark.parametrize(
    ("text", "why", "helps"),
    [
        (until(TDL, "1s"), "of 10 probes that met one network 10 arrived; it takes 12", "longer"),
        (until(MANY, "1s"), "it takes 14; make it longer", "or run it with --time virtual"),
        (TDL.replace("5ms", "40s"), "no probes that meet one network", "longer"),
        (TDL.replace("latency=5ms", "latency=5ms jitter=4ms"), "no number of", "lower jitter="),
        (
            TDL.replace("latency=5ms", "latency=5ms jitter=4ms").replace(
                "at 60s", "at 10s a--s leave\nat 50s a--s join\nat 60s"
            ),
            "no number of",
            "lower jitter=",
        ),
        (TDL.replace("100Mb", "10Kb"), "are not probed", "links of a higher rate"),
        (until(LONG_TAIL, "4s"), "of them 24 jitters apart; it takes 100 of these", "longer"),
    ],
)
def test_what_can_never_be_valid_is_said_with_what_helps(text: str, why: str, helps: str) -> None:
    found = foreseen(text)
    which = " in real time" if "virtual" in found else ""
    assert found.startswith(f"no run of this{which} can be VALID, however good the machine is: ")
    assert why in found, found
    assert helps in found, found


def test_links_that_programs_ask_for_are_not_said_to_be_judged_or_slow(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("time,node,x,y\n0,a,0,0\n0,b,2,0\n9,b,2,0\n")
    text = "service r router\nmobility m.csv nodes=r transceivers=1 allocate=program\nat 3s quit\n"
    plan = compile_source(text, sources=SourceFolder(tmp_path)).plan
    found = why_never(plan, Schedule(plan, RunOptions()))
    assert "each link is judged alone, but for those that programs ask for; let a program" in found


def test_virtual_time_helps_where_nothing_is_drawn_only() -> None:
    assert foreseen(until(TDL, "1s"), time=VIRTUAL) == ""
    assert "virtual" not in foreseen(until(JITTER, "1s"))
    assert "virtual" not in foreseen(until(TDL, "1s"), backend=K8S)


def test_the_runs_own_options_are_no_reason_to_refuse_it() -> None:
    assert "virtual" in foreseen(until(TDL, "1s"), engine_threads=2)


def test_who_is_not_there_is_not_probed() -> None:
    late = "at 59500ms b join\nat 60s quit"
    assert "of 4 probes that met one network 4 arrived" in foreseen(
        TDL.replace("at 60s quit", late)
    )


def test_nothing_is_said_of_what_can_be_valid() -> None:
    assert [foreseen(until(text, "20s")) for text in (TDL, JITTER, MANY)] == [""] * 3
    assert foreseen(until(TDL, "1s"), probes=False) == ""  # that is said in other words


def test_what_would_take_long_to_find_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    short = until(TDL, "1s")
    for name in ("LONG_NS", "MOST_PROBES", "MOST_STATES"):
        with monkeypatch.context() as patched:
            patched.setattr(f"runtime.certify.never_valid.{name}", 1)
            assert foreseen(short) == "", name
    assert foreseen(short)
