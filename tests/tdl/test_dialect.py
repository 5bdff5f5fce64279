"""The public dialect and every other spelling mean what the canonical form means."""

from __future__ import annotations

import pytest

from compiler.pipeline import compile_source
from tdl.diagnostics import TdlError
from tests.tdl.helpers import codes, meaning, unspanned

TAGGED = """\
service web img=w tags=front replicas=2
service db img=d tags=back replicas=2
service dash image=d supervisor port=8088
bridges s1 s2
link web--s1 latency=1.0 up=1Gbps symmetric
link db--s2 latency=1.0 up=1Gbps symmetric
link s1--s2 latency=9.0 up=1Gbps symmetric
"""


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        # Verb first.
        ("at 120s crash", "at 2m crash"),
        ("at 5s crash server", "at 5s server crash"),
        ("at 5s crash server 3", "at 5s server crash 3"),
        ("at 5s join tags=x y 40%", "at 5s tags=x;y join 40%"),
        ("at 5s leave s1", "at 5s s1 leave"),
        ("at 5s disconnect server.2", "at 5s server.2 disconnect"),
        ("at 5s reconnect server 1", "at 5s server reconnect 1"),
        ("at 100s set latency=200% bandwidth=50%", "at 1m40s set latency=200% rate=50%"),
        ("at 5s set a--b lat=5 j=1 drop=0.01", "at 5s a--b set latency=5 jitter=1 loss=1%"),
        ("at 5s set tags=x bw=10Mbps", "at 5s tags=x set rate=10Mb"),
        ("at 5s a--b set up=1Mb symmetric", "at 5s a--b set rate=1Mb"),
        ("at 5s background a--b 5Mb", "at 5s a--b background 5Mb"),
        ("from 0s to 100s churn 20%", "from 0s to 1m40s churn 20%"),
        ("from 0s to 9s churn server 2 replace 5%", "from 0s to 9s server churn 2 replace 5%"),
        ("from 0s to 120s server--s1 flap freq 0.5s", "from 0s to 2m server--s1 flap 500ms"),
        ("from 0s to 120s flap server--s1 freq 0.5s", "from 0s to 2m server--s1 flap 500ms"),
        # Without a time: from the beginning to the end.
        ("churn backend 3", "from 0s backend churn 3"),
        ("churn 10%", "from 0s churn 10%"),
        ("flap a--b freq 2s", "from 0s a--b flap 2s"),
        # Declarations.
        ("service a image=x:1.0", "service a img=x:1.0"),
        ("service a img=x tags=v1 v2", "service a img=x tags=v1;v2"),
        (
            "link a--b latency=5.0 up=10Mbps down=5Mbps drop=0.01",
            "link a--b latency=5 up=10Mb down=5Mb loss=1%",
        ),
        ("link a--b bandwidth=10Mb", "link a--b up=10Mb symmetric"),
        ("link a--b rate=10Mb", "link a--b up=10Mb symmetric"),
        ("link a--b up=unlimited", "link a--b"),
        ("bridges s1", "bridge s1"),
        ("bridge s1 tags=x y", "bridge s1 tags=x;y"),
    ],
)
def test_both_spellings_make_the_same_tree(written: str, canonical: str) -> None:
    assert meaning(written) == meaning(canonical)


@pytest.mark.parametrize(
    ("chained", "separate"),
    [
        ("at 5s a leave and b join 2 and quit", "at 5s a leave\nat 5s b join 2\nat 5s quit"),
        (
            "from 1s to 9s churn 2 and a--b flap 1s",
            "from 1s to 9s churn 2\nfrom 1s to 9s a--b flap 1s",
        ),
        ("at 5s a;b;s1--s2 leave", "at 5s a leave\nat 5s b leave\nat 5s s1--s2 leave"),
        ("at 5s crash a;b", "at 5s a crash\nat 5s b crash"),
        ("at 5s set latency=5 and a leave", "at 5s set latency=5\nat 5s a leave"),
        ("at 5s partition a b;c and d leave", "at 5s partition a b;c\nat 5s d leave"),
    ],
)
def test_chains_and_lists_are_several_events(chained: str, separate: str) -> None:
    assert meaning(chained) == meaning(separate)


def test_options_of_other_tools_are_kept_and_warned_about() -> None:
    text = "service dash img=d:1 supervisor port=8088\nservice a img=x share reuse\n"
    text += "link a--b latency=5 network=lan"
    assert codes(text) == ["TS0902"] * 3  # `share` has an effect
    dash, service, link = meaning(text)
    assert [(name.text, value) for name, value in dash.options] == [("supervisor", "true")]
    assert dash.ports == (8088,)
    assert [name.text for name, _ in service.options] == ["share", "reuse"]
    assert [(name.text, value) for name, value in link.options] == [("network", "lan")]


def test_partition_groups_hold_names_instances_and_tags() -> None:
    (event,) = meaning("at 5s partition frontend tags=x y;server.0 db")
    (again,) = meaning("at 5s  partition frontend tags=x y ; server.0 db # comment")
    assert event == again
    first, second = event.action.groups
    assert [type(member).__name__ for member in first] == ["Element", "Tagged", "Element"]
    assert second[0].index == 0
    assert unspanned(second[1].name).text == "db"


def test_statement_words_may_be_names() -> None:
    text = "service link\nbridge service\nlink link--service\nat 5s link leave\nat 5s seed join"
    assert codes(text) == []


def compiled(events: str) -> list[tuple[int, str, str]]:
    compilation = compile_source(TAGGED + events)
    feasibility = {"TS0914", "TS0919"}  # of a file cut down to what is tested
    assert {d.code for d in compilation.diagnostics} - feasibility == {"TS0902"}
    return [(e.at_ns, e.kind, e.target) for e in compilation.events if e.line]


@pytest.mark.parametrize(
    ("bare", "tagged"),
    [
        ("at 5s crash back", "at 5s tags=back crash"),
        ("at 5s partition front;back", "at 5s partition tags=front;tags=back"),
        ("at 9s quit\nchurn back 1", "at 9s quit\nchurn tags=back 1"),
    ],
)
def test_a_bare_tag_selects_what_the_tag_selects(bare: str, tagged: str) -> None:
    first, second = compiled(bare), compiled(tagged)
    assert [kind for _, kind, _ in first] == [kind for _, kind, _ in second]
    assert first
    # Which of its instances churns may differ: the two texts draw from different streams.
    assert {t.partition(".")[0] for *_, t in first} == {t.partition(".")[0] for *_, t in second}


def test_a_tool_of_the_other_system_needs_no_link() -> None:
    assert compiled("at 5s web leave") == [(5 * 10**9, "leave", f"web.{i}") for i in (0, 1)]


def test_a_link_with_one_hyphen_is_recognised_in_events() -> None:
    with pytest.raises(TdlError) as caught:
        compile_source(TAGGED + "at 5s web-s1 leave")
    assert [d.hint for d in caught.value.diagnostics if d.code == "TS0201"] == [
        "a link has two hyphens: `web--s1`"
    ]


SHARED = """\
service server replicas=3 share
service client
bridges s1 s2
link s2--server latency=5ms rate=10Mb
link s1--s2 latency=10ms
link client--s1
"""


def test_instances_that_share_stand_behind_one_link() -> None:
    """Each had a link of its own, so that together they had three times the capacity."""
    compilation = compile_source(SHARED + "at 5s server--s2 set up=1Mb\nat 6s s2--server leave\n")
    assert compilation.diagnostics[0].code == "TS0914"
    names = {link.name: link.state.rate_bps for link in compilation.topology.links}
    assert names["s2->server-share"] == names["server-share->s2"] == 10**7
    assert [names[f"server-share->server.{i}"] for i in range(3)] == [0] * 3
    assert not any("->s2" in name and name.startswith("server.") for name in names)
    told = [(e.kind, e.target, dict(e.args)) for e in compilation.events if e.line]
    assert told[0][:2] == ("set", "server-share->s2")
    assert told[0][2]["rate_bps"] == 10**6
    assert [target for _, target, _ in told[1:]] == ["s2->server-share", "server-share->s2"]


def test_instances_that_share_have_no_links_among_themselves() -> None:
    with pytest.raises(TdlError) as caught:
        compile_source(SHARED + "link server--server\n")
    (told,) = (one for one in caught.value.diagnostics if one.code == "TS0107")
    assert told.message == "all instances of 'server' share one link already"


def test_a_link_of_one_instance_is_not_shared() -> None:
    text = SHARED.replace("s2--server ", "s2--server.0 ").replace("replicas=3", "replicas=1")
    names = [link.name for link in compile_source(text).topology.links]
    assert not any("share" in name for name in names)


def test_what_has_no_selector_spares_a_supervisor() -> None:
    text = TAGGED + "link dash--s1\nat 5s set latency=5\nat 6s crash\nat 9s quit\n"
    found = [e.target for e in compile_source(text).events if e.line]
    assert "web.0->s1" in found
    assert "web.0" in found
    assert not any("dash" in target for target in found)


KOLLAPS = "dialect kollaps\n"
LIMITED = (
    "service web img=w replicas=3\nservice db img=d\nbridge s1\nlink web--s1 latency=5 up=10Mb\n"
)
PLAIN = LIMITED.replace("up=10Mb", "up=10Mb symmetric") + "routing hops\n"
OTHER = "link db--s1 latency=1 up=10Mb down=unlimited\n"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("at 5s crash web", "at 5s web crash 1"),
        ("at 5s disconnect", "at 5s disconnect 1"),
        ("from 1s to 9s leave web", "from 1s to 9s web leave 1"),
        ("at 5s web.1 leave", "at 5s web.1 leave"),
        ("at 5s s1 leave", "at 5s s1 leave"),
        ("at 5s web--s1 leave", "at 5s web--s1 leave"),
        ("at 5s crash web 2", "at 5s web crash 2"),
    ],
)
def test_the_statement_gives_words_the_other_meaning(theirs: str, ours: str) -> None:
    read = compile_source(KOLLAPS + LIMITED + OTHER + theirs + "\nat 9s quit\n")
    plain = compile_source(PLAIN + OTHER + ours + "\nat 9s quit\n")
    told = [[(e.at_ns, e.kind, e.target) for e in one.events] for one in (read, plain)]
    assert [kind for _, kind, _ in told[0]] == [kind for _, kind, _ in told[1]]
    assert [len(told[0]), told[0][-1]] == [len(told[1]), told[1][-1]]
    assert read.topology.links == plain.topology.links
    assert read.topology.routing == "hops"
    assert "TS0926" not in {one.code for one in read.diagnostics}


def test_what_else_is_said_of_routes_wins_over_the_dialect() -> None:
    text = KOLLAPS + LIMITED + "link db--s1\nrouting delay\n"
    assert compile_source(text).topology.routing == "delay"


def test_a_dialect_comes_before_the_links_that_it_reads_otherwise() -> None:
    """One that says both of its rates means the same in each."""
    both = "link a--b up=unlimited down=5Mb"
    assert meaning(f"{both}\ndialect kollaps") == (*meaning(both), *meaning("dialect kollaps"))
    with pytest.raises(TdlError) as refused:
        meaning("link a--b up=5Mb\ndialect kollaps")
    assert "TS0034" in [one.code for one in refused.value.diagnostics]
    assert meaning("dialect kollaps\nlink a--b up=5Mb")[1:] == meaning("link a--b rate=5Mb")
