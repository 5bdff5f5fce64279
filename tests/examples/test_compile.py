"""Every example compiles, under any seed, and plans what its comments say."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.pipeline import Compilation, compile_source
from compiler.plan.paths.path import PathProperties, Paths, path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(example.stem for example in EXAMPLES.glob("*.tdl"))
NS = 1_000_000_000


def compiled(name: str, seed: int | None = None) -> Compilation:
    source = EXAMPLES / f"{name}.tdl"
    return compile_source(source.read_bytes(), filename=source.name, seed=seed)


def between(compilation: Compilation, src: str, dst: str, at_s: float) -> PathProperties:
    names = [node.name for node in compilation.topology.nodes]
    state = compilation.plan.state_at(round(at_s * NS))
    return path(state, names.index(src), names.index(dst))


def test_the_examples_are_all_there() -> None:
    promised = {"listing1", "quickstart", "dynamics", "dumbbell", "churn", "partition"}
    others = {"sixclients", "demo", "replicas", "lostwrites", "expect", "matrix", "drawn"}
    assert promised | others == set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "listing1"])
def test_no_example_has_a_warning_under_any_seed(name: str) -> None:
    for seed in (None, *range(8)):
        assert compiled(name, seed).diagnostics == (), f"seed {seed}"


def test_listing1_is_the_papers_with_its_one_warning() -> None:
    text = (EXAMPLES / "listing1.tdl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 26
    assert text.count("—") == 5 + 2 + 1 + 1
    (warning,) = compiled("listing1").diagnostics
    assert warning.severity.value == "warning"
    assert "'be'" in warning.message
    assert "backend" in (warning.hint or "")


def test_dynamics_takes_the_ways_its_comment_names() -> None:
    compilation = compiled("dynamics")
    found = [between(compilation, "c1.0", "sv1.0", step + 2) for step in range(0, 40, 5)]
    assert [path.totals.rate_bps for path in found] == [
        mbps * 1_000_000 for mbps in (100, 10, 1000, 10, 100, 100, 10, 100)
    ]


@pytest.mark.parametrize(
    ("at_s", "client", "rtt_ms", "rate_mbps"),
    [
        (5, "c1", 50, 50),
        (15, "c2", 40, 50),
        (25, "c3", 40, 10),
        (45, "c1", 40, 50),
        (55, "c3", 40, 50),
    ],
)
def test_dumbbell_has_the_papers_paths(at_s: int, client: str, rtt_ms: int, rate_mbps: int) -> None:
    found = between(compiled("dumbbell"), f"{client}.0", f"sv{client[1]}.0", at_s)
    assert found.rtt_ns == rtt_ms * 1_000_000
    assert found.totals.rate_bps == rate_mbps * 1_000_000


def test_dumbbell_ends_with_nobody_connected() -> None:
    compilation = compiled("dumbbell")
    reached = [
        between(compilation, f"c{n}.0", f"sv{n}.0", at_s).reachable
        for at_s in (59, 65, 75)
        for n in (1, 2, 3)
    ]
    assert reached == [True, True, True, False, True, True, False, False, False]


def test_sixclients_has_the_models_round_trips() -> None:
    compilation = compiled("sixclients")
    found = [between(compilation, f"c{n}.0", f"server.{n - 1}", 70) for n in range(1, 7)]
    assert [p.rtt_ns for p in found] == [ms * 1_000_000 for ms in (70, 60, 60, 50, 40, 40)]
    assert [p.totals.rate_bps for p in found] == [mb * 1_000_000 for mb in (50, 50, 10, 50, 50, 10)]


def test_partition_cuts_one_place_off_and_heals_it() -> None:
    compilation = compiled("partition")
    pairs = (("etcd-a.0", "etcd-b.0"), ("etcd-b.0", "etcd-c.0"), ("writer-a.0", "etcd-a.0"))
    for at_s, expected in ((10, [True] * 3), (20, [False, True, True]), (35, [True] * 3)):
        found = [between(compilation, src, dst, at_s).reachable for src, dst in pairs]
        assert found == expected, f"at {at_s} s"


def test_replicas_are_each_in_a_place_of_their_own() -> None:
    compilation = compiled("replicas")
    links = {link.name for link in compilation.topology.links if link.name.startswith("pg.")}
    assert links == {"pg.0->paris", "pg.1->frankfurt", "pg.2->oslo"}
    rtts = [between(compilation, "app.0", f"pg.{n}", 5).rtt_ns for n in range(3)]
    assert rtts == [1_000_000, 11_000_000, 39_600_000]
    cut = {
        (src, dst): between(compilation, src, dst, 25).reachable
        for src in ("app.0", "app.2")
        for dst in ("pg.0", "pg.1")
    }
    assert [pair for pair, reachable in cut.items() if reachable] == [
        ("app.0", "pg.0"),
        ("app.2", "pg.1"),
    ]
    named = {event.target for event in compilation.events if event.at_ns == 10 * NS}
    assert named == {"pg.2->oslo", "oslo->pg.2"}


def test_hosts_of_a_fat_tree_have_as_many_paths_as_there_are_cores_to_choose() -> None:
    """One below an edge switch, two in a pod, four between pods; three while a core is gone."""
    plan = compiled("networks/fattree").plan
    before, after = Paths(plan.state_at(0)), Paths(plan.state_at(4 * NS))
    ends = {1: 1, 2: 2, 4: 4, 15: 4}
    assert {end: before.equal(0, end, 9)[0] for end in ends} == ends
    assert {end: after.equal(0, end, 9)[0] for end in ends} == {1: 1, 2: 2, 4: 3, 15: 3}


def test_matrix_is_the_matrix() -> None:
    """No pair goes by way of a third region, but for the one whose link is down."""
    found = compiled("matrix")
    for at_s, by_third in (
        (0, set()),
        (6, {"client.0 server.4", "server.0 server.4"}),
        (11, set()),
    ):
        hops = {
            f"{a} {b}": len(between(found, a, b, at_s).links)
            for a in ("client.0", "server.0", "server.1", "server.2", "server.3")
            for b in ("server.4", "server.2")
            if a != b
        }
        assert {pair for pair, links in hops.items() if links > 3} == by_third
    assert between(found, "client.0", "server.4", 0).totals.delay_ns == 143_400_000
    assert between(found, "client.0", "server.4", 6).totals.delay_ns == 122_400_000
