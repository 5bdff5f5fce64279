"""`node`: the plan of a file with machines beside that of the file that writes each part out."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.pipeline import Compilation, compile_source
from compiler.plan.encoding import topology_from_json
from compiler.plan.format import Place, PlanError
from compiler.plan.rules import capabilities, consistency
from compiler.plan.rules.datapath_fit import misfit
from compiler.plan.types import PlannedLan, PlannedLanEnd, PlannedMachine
from tdl.diagnostics import TdlError
from tdl.text_layout import format_text

SECOND = 10**9
PARTS = ("app", "bus", "ctl")
# What happens to a machine or to parts, one after the other, so that all are up again.
ACTS = (
    ("crash", "join"),
    ("leave", "join"),
    ("kill", "crash", "join"),
    ("pause", "resume"),
    ("disconnect", "reconnect"),
    ("restart",),
)
# What that does to the bridges of a machine, and to the links that leave it.
OF_BRIDGES = {"crash": ("leave",), "leave": ("leave",), "join": ("join",),
              "restart": ("leave", "join")}  # fmt: skip
OF_LINKS = {"disconnect": "leave", "reconnect": "join"}


def _by_hand(sizes: list[int], machines: int, *, mesh: bool) -> list[str]:
    """The declarations, with names of one word."""
    lines = []
    for at in range(machines):
        for part, size in zip(PARTS, sizes, strict=False):
            lines.append(f'service sat-{at}-{part} exec="sleep 9" replicas={size}')
        lines.append(f"bridge sat-{at}-inner")
        for part, _ in zip(PARTS, sizes, strict=False):
            lines.append(f"link sat-{at}-{part}--sat-{at}-inner latency=1ms")
    lines += ["bridge air", *(f"link sat-{at}-app--air latency=5ms" for at in range(machines))]
    if mesh:
        pairs = combinations(range(machines), 2)
        lines += [f"link sat-{a}-app--sat-{b}-app latency=7ms" for a, b in pairs]
    return lines


def _nodes(sizes: list[int], machines: int, *, mesh: bool) -> list[str]:
    parts = list(zip(PARTS, sizes, strict=False))
    lines = [f"node sat replicas={machines} {{"]
    lines += [f'service {part} exec="sleep 9" replicas={size}' for part, size in parts]
    lines += ["bridge inner", *(f"link {part}--inner latency=1ms" for part, _ in parts), "}"]
    lines += ["bridge air", "link sat.app--air latency=5ms"]
    return [*lines, "link sat.app--sat.app latency=7ms"] if mesh else lines


def _essence(found: Compilation) -> list[tuple[int, str, str]]:
    def plain(name: str) -> str:
        for at in range(9):
            name = name.replace(f"sat.{at}.", f"sat-{at}-")
        return name

    return [(one.at_ns, one.kind, plain(one.target)) for one in found.events]


_sizes = st.lists(st.integers(1, 3), min_size=1, max_size=3)
_acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 5)), max_size=4)


def _leaving(at: int, machines: int, *, mesh: bool) -> str:
    """The links that leave a machine."""
    ends = [f"sat-{at}-app--air"]
    others = (one for one in range(machines) if one != at and mesh)
    ends += [f"sat-{min(at, one)}-app--sat-{max(at, one)}-app" for one in others]
    return ";".join(ends)


@given(_sizes, st.integers(1, 3), st.booleans(), _acts)
def test_machines_are_their_parts_written_out(
    sizes: list[int], machines: int, mesh: bool, acts: list[tuple[tuple[str, ...], int]]
) -> None:
    mesh = mesh and machines > 1
    nodes = _nodes(sizes, machines, mesh=mesh)
    hand = _by_hand(sizes, machines, mesh=mesh)
    parts = PARTS[: len(sizes)]
    steps = [(verb, number) for verbs, number in acts for verb in verbs]
    for second, (verb, number) in enumerate(steps, 1):
        at = number % machines
        if number % 2:  # a part of each machine
            mine = ";".join(f"sat-{one}-{parts[-1]}" for one in range(machines))
            nodes.append(f"at {second}s sat.{parts[-1]} {verb}")
            hand.append(f"at {second}s {mine} {verb}")
            continue
        nodes.append(f"at {second}s sat.{at} {verb}")
        mine = ";".join(f"sat-{at}-{part}" for part in parts)
        bridges = [f"and sat-{at}-inner {word}" for word in OF_BRIDGES.get(verb, ())]
        words = " ".join([mine, verb, *bridges])
        if verb in OF_LINKS:
            words = f"{_leaving(at, machines, mesh=mesh)} {OF_LINKS[verb]}"
        hand.append(f"at {second}s {words}")
    found, written = compile_source("\n".join(nodes)), compile_source("\n".join(hand))
    assert sorted(_essence(found)) == sorted(_essence(written))
    assert [one.nodes for one in found.plan.epochs] == [one.nodes for one in written.plan.epochs]
    assert [one.links for one in found.plan.epochs] == [one.links for one in written.plan.epochs]
    assert len(found.topology.machines) == machines
    assert not written.topology.machines


def _of_machine(found: Compilation) -> dict[tuple[int, str], list[tuple[str, str]]]:
    """What happens to a machine at a moment, after 0 s."""
    done: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for one in found.events:
        if one.at_ns and one.target:
            machine = one.target.rpartition(".inner")[0] or ".".join(one.target.split(".")[:2])
            done.setdefault((one.at_ns, machine), []).append((one.kind, one.target))
    return done


@given(
    _sizes,
    st.integers(1, 4),
    st.sampled_from(("crash", "leave", "kill", "restart", "pause", "churn", "leave sometime")),
    st.integers(0, 2**32),
    st.booleans(),
    st.data(),
)
def test_machines_are_drawn_as_a_whole(
    sizes: list[int], machines: int, verb: str, seed: int, spread: bool, data: st.DataObject
) -> None:
    """What is drawn of machines happens to each as if its name stood there."""
    count = data.draw(st.integers(1, machines))
    first, *rest = verb.split()
    when = "from 1s to 9s" if spread or first == "churn" or rest else "at 1s"
    if when.startswith("from") and verb in ("leave", "restart", "pause"):
        when = "at 1s"
    nodes = _nodes(sizes, machines, mesh=False)
    drawn = _of_machine(
        compile_source(
            "\n".join([*nodes, f"{when} sat {first} {count} {''.join(rest)}"]), seed=seed
        )
    )
    assert len(drawn) == count
    named = "crash" if first == "churn" else first
    moments = [(at_ns, machine) for at_ns, machine in drawn]
    acts = [f"at {at_ns}ns {machine} {named}" for at_ns, machine in moments]
    assert _of_machine(compile_source("\n".join([*nodes, *acts]), seed=seed)) == drawn


def _cut(lines: list[str], at_s: int) -> set[tuple[str, str]]:
    """What happens to links at that moment."""
    found = compile_source("\n".join(lines)).events
    return {(one.kind, one.target) for one in found if one.at_ns == at_s * SECOND}


@given(_sizes, st.integers(1, 4), st.booleans(), st.data())
def test_what_cuts_off_some_machines_takes_the_links_of_each(
    sizes: list[int], machines: int, mesh: bool, data: st.DataObject
) -> None:
    """As if those that were drawn stood there, and back at the end."""
    nodes = _nodes(sizes, machines, mesh=mesh and machines > 1)
    count = data.draw(st.integers(1, machines))
    drawn = [*nodes, f"at 1s sat disconnect {count} for 2s"]
    down = _cut(drawn, 1)
    of_air = [name.partition("->")[0] for _, name in down if name.endswith("->air")]
    hit = sorted({".".join(name.split(".")[:2]) for name in of_air})
    assert len(hit) == count
    each = [f"at 1s {machine} disconnect" for machine in hit]
    assert _cut([*nodes, *each], 1) == down
    assert _cut(drawn, 3) == {("link_up", name) for _, name in down}


def test_machines_that_are_gone_are_not_cut_off() -> None:
    lines = [*_nodes([2], 3, mesh=False), "at 1s sat.1 crash", "at 2s sat disconnect 2"]
    assert {name.split(".")[1] for _, name in _cut(lines, 2) if name.startswith("sat")} == {
        "0",
        "2",
    }
    back = _cut([*lines, "at 3s sat reconnect 1"], 3)
    assert {kind for kind, _ in back} == {"link_up"}
    assert len(back) == 4
    text = "only 2 of 3 machines of 'sat' are joined and connected at 2s; 3 are"
    with pytest.raises(TdlError, match=text):
        compile_source("\n".join([*lines[:-1], "at 2s sat disconnect 3"]))


def test_of_machines_those_join_that_are_not_whole() -> None:
    lines = [*_nodes([1, 2], 3, mesh=False), "at 1s sat crash 2", "at 2s sat join 1"]
    done = _of_machine(compile_source("\n".join([*lines, "at 3s sat join 50%"])))
    assert [at_ns // SECOND for at_ns, _ in done] == [1, 1, 2, 3]
    assert len({machine for _, machine in done}) == 2
    with pytest.raises(TdlError, match="only 1 of 3 machines of 'sat' are joined at 2s; 2 are"):
        compile_source("\n".join([*lines[:-1], "at 2s sat crash 2"]))


NODE = """\
node sat replicas=2 cpu=1.5 mem=64MiB tags=space {
    service app replicas=2 exec="sleep 9"
    service ctl exec="sleep 9" after=app
    bridge inner
    link app--inner name=bus
    link ctl--inner
}
start when ready
service host exec="sleep 9"
bridge air
link sat.app--air
link host--air
"""


def test_the_plan_has_machines_and_reads_them_back() -> None:
    found = compile_source(NODE)
    assert found.topology.machines == (
        PlannedMachine("sat.0", (0, 1, 2), (7,), 1500, 64 << 20, "", 1),
        PlannedMachine("sat.1", (3, 4, 5), (8,), 1500, 64 << 20, "", 1),
    )
    assert found.plan.topology == found.topology
    services = {one.name: one for one in found.topology.services}
    assert dict(services["sat.1.ctl"].options)["after"] == "sat.1.app"
    assert services["sat.1.app"].tags == ("space",)
    assert "sat.1.bus:sat.1.app.0->sat.1.inner" in [one.name for one in found.topology.links]


def test_a_plan_without_machines_has_no_word_of_them() -> None:
    found = compile_source("service a\nbridge s\nlink a--s\n")
    assert b"machines" not in found.files["topology.json"]


def test_names_stand_for_several() -> None:
    text = NODE + 'expect no log sat.ctl;sat.1.app.1 "x"\n'
    text += "at 1s partition sat.0;sat.1 host\nat 2s heal\nat 3s sat.app.1 pause\n"
    text += "when exit sat {\n    it restart\n    sat.1 crash\n}\n"
    found = compile_source(text)
    assert [one.nodes for one in found.plan.expectations] == [(2, 4, 5)]
    paused = [one.target for one in found.events if one.kind == "pause"]
    assert paused == ["sat.0.app.1", "sat.1.app.1"]
    assert found.reactions[0].nodes == (0, 1, 2, 3, 4, 5)


def _downs(words: str) -> set[str]:
    """The links that are down after an event of these words, as they are printed."""
    found = compile_source(f"{NODE}link sat.app--sat.app name=mesh\nat 1s {words}\nat 2s quit\n")
    return {one.target for one in found.events if one.kind == "link_down"}


def test_links_of_machines_have_names() -> None:
    """In the block one for each machine, behind it one for all that the statement stands for."""
    bus = [
        {
            f"sat.{at}.bus:{a}->{b}"
            for k in range(2)
            for a, b in ((f"sat.{at}.app.{k}", inner), (inner, f"sat.{at}.app.{k}"))
        }
        for at, inner in enumerate(("sat.0.inner", "sat.1.inner"))
    ]
    assert _downs("sat.1.bus leave") == bus[1]
    assert _downs("sat.bus leave") == _downs("sat.bus:sat.app--sat.inner leave") == bus[0] | bus[1]
    assert _downs("sat.1.bus:sat.1.app--sat.1.inner leave") == bus[1]
    for name in bus[1]:  # as events print it
        assert _downs(f"{name} leave") == {name}
    assert len(_downs("mesh leave")) == 8
    assert len(_downs("mesh:sat.0.app.1--sat.1.app leave")) == 4
    assert format_text(f"at 1s {min(bus[0])}  leave\n") == f"at 1s {min(bus[0])} leave\n"


def test_a_variable_may_stand_in_the_name_of_a_link() -> None:
    found = compile_source(
        NODE
        + "for i in 0..1 { at ${i+1}s sat.$i.bus:sat.$i.app.0->sat.$i.inner leave }\nat 3s quit\n"
    )
    down = [one.target for one in found.events if one.kind == "link_down"]
    assert down == [f"sat.{at}.bus:sat.{at}.app.0->sat.{at}.inner" for at in range(2)]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("sat", "sat.0.app;sat.0.ctl;sat.1.app;sat.1.ctl"),
        ("sat.1", "sat.1.app;sat.1.ctl"),
        ("sat.app:start", "sat.0.app:start;sat.1.app:start"),
        ("sat.1.ctl:exit;sat.0.app", "sat.1.ctl:exit;sat.0.app"),
    ],
)
def test_services_start_after_parts(said: str, wanted: str) -> None:
    text = NODE.replace("service host", f"service host after={said}")
    services = {one.name: one for one in compile_source(text).topology.services}
    assert dict(services["host"].options)["after"] == wanted
    inside = "start when ready\nnode car {\n    service x after=SAID\n}\nlink car.x--air\n"
    services = {
        one.name: one
        for one in compile_source(
            NODE.replace("start when ready\n", "") + inside.replace("SAID", said)
        ).topology.services
    }
    assert dict(services["car.0.x"].options)["after"] == wanted


def test_fmt_prints_a_node_and_its_block() -> None:
    text = "node  sat replicas=2   cpu=2 {\nservice a\n bridge b\nlink a--b\n}\n"
    wanted = "node sat replicas=2 cpu=2 {\n    service a\n    bridge b\n    link a--b\n}\n"
    assert format_text(text) == wanted
    assert format_text(wanted) == wanted


def test_hosts_and_clusters_refuse_with_the_line() -> None:
    plan = compile_source("service a\nbridge s\nlink a--s\n" + NODE).plan
    refused = misfit(plan, "user")
    assert refused is not None
    assert (refused.line, str(refused)) == (
        4,
        "a machine with parts (node) such as sat.0 is not possible",
    )
    assert misfit(plan, "hop-exact") is None
    for way in (capabilities.KUBERNETES, capabilities.COMPOSE):
        assert "machine with parts" in capabilities.refusal(plan, way)


def test_events_of_a_machine_are_its_parts_at_one_moment() -> None:
    found = compile_source(NODE + "at 1s sat.1 crash\nfrom 2s to 4s sat.0 disconnect\nat 5s quit\n")
    at = {second: [(one.kind, one.target) for one in found.events if one.at_ns == second * SECOND]
          for second in (1, 2, 4)}  # fmt: skip
    assert at[1] == [
        ("crash", "sat.1.app.0"),
        ("crash", "sat.1.app.1"),
        ("crash", "sat.1.ctl.0"),
        ("bridge_down", "sat.1.inner"),
    ]
    cut = [f"sat.0.app.{at}->air" for at in range(2)] + [f"air->sat.0.app.{at}" for at in range(2)]
    assert sorted(at[2]) == sorted(("link_down", one) for one in cut)
    assert sorted(at[4]) == sorted(("link_up", one) for one in cut)


def test_lans_in_machines_have_the_same_addresses() -> None:
    """Outside of them each end has its own."""
    found = compile_source(
        "node sat replicas=2 {\n    service gnab router\n"
        "    service iphy replicas=2\n    lan inner\n"
        "    link gnab--inner address=192.168.0.1/24\n"
        "    link iphy--inner address=192.168.0.11/24+\n}\n"
        "lan air\nlink sat.gnab--air address=10.0.0.11/24+\n"
    )
    addresses = {one.name: one.ipv4 for one in found.plan.topology.nodes}
    for machine in range(2):
        assert addresses[f"sat.{machine}.gnab.0"] == "192.168.0.1"
        assert addresses[f"sat.{machine}.gnab.0.eth1"] == f"10.0.0.{11 + machine}"
        for at in range(2):
            assert addresses[f"sat.{machine}.iphy.{at}"] == f"192.168.0.{11 + at}"


KERNEL = """\
node sat replicas=2 {
    service gw exec="sleep 9"
    service radio exec="sleep 9" replicas=2
    lan inner kernel
    link gw--inner address=192.168.0.1/24,fd00::1/64
    link inner--radio address=192.168.0.11/24+
}
bridge air
service host exec="sleep 9"
link sat.gw--air
link host--air
"""


def test_a_lan_of_the_kernel_is_no_part_of_the_network() -> None:
    """It is in the plan's machines, and neither a node nor a link; its parts need no other link."""
    found = compile_source(KERNEL)
    assert not [one for one in found.diagnostics if one.code != "TS0901"]
    first, second = (one.lans for one in found.topology.machines)
    assert first == (
        PlannedLan(
            "sat.0.inner",
            (
                PlannedLanEnd(0, "192.168.0.1/24", "fd00::1/64"),
                PlannedLanEnd(1, "192.168.0.11/24", ""),
                PlannedLanEnd(2, "192.168.0.12/24", ""),
            ),
            "",
            4,
        ),
    )
    assert [end.node for end in second[0].ends] == [3, 4, 5]
    assert second[0].ends[2][1:] == first[0].ends[2][1:]  # the same addresses in every machine
    assert found.plan.topology == found.topology
    assert not [one for one in found.topology.nodes if "inner" in one.name]
    assert {one.name.partition("->")[0] for one in found.topology.links} == {
        *("sat.0.gw.0", "sat.1.gw.0", "host.0", "air"),
    }
    assert format_text(KERNEL) == KERNEL


def test_a_plan_with_a_lan_that_is_not_of_its_machine_is_refused() -> None:
    found = compile_source(KERNEL)
    wrong = found.files["topology.json"].replace(b'"sat.1.inner"', b'"sat.0.other"')
    value = json.loads(wrong)
    planned = topology_from_json(value, Place("topology.json", 1, ""))
    with pytest.raises(PlanError, match=r"is not one of machine 'sat\.1'"):
        consistency.topology(planned)
