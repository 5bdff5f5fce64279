"""What the Compose file says: a service an instance, every value of the plan as it was."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.plan.storage.plan_shards import unpack
from compiler.plan.types import Service
from manifests import compose
from manifests.bundle import Bundle, make
from manifests.refusal import ManifestError
from manifests.render_options import DEFAULT_AGENT_IMAGE, Options
from tests.manifests.kube import EXAMPLES, bundle_of, example, service

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
OWN = {"tstorm-agent", "tstorm-coordinator"}


def text_of(bundle: Bundle, **options: Any) -> str:
    text = compose.render(bundle, Options(**options))[compose.FILE]
    assert isinstance(text, str)
    return text


def file_of(*services: Service, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text_of(bundle_of(*services), **options))
    return found


def expanded(value: str) -> str:
    """What Compose makes of a text in which every `$` is doubled."""
    assert "$" not in value.replace("$$", "")
    return value.replace("$$", "$")


def variables(entry: dict[str, Any]) -> dict[str, str]:
    pairs = (expanded(text).split("=", 1) for text in entry["environment"])
    return {name: value for name, value in pairs}  # noqa: C416 (unpacking checks that there is `=`)


def test_every_instance_is_a_service_with_its_name() -> None:
    found = file_of(service("web", replicas=3), service("My_DB"))["services"]
    changed = [name for name in found if name.startswith("my-db-")]
    assert found.keys() == OWN | {"web-0", "web-1", "web-2"} | set(changed)
    assert len(changed) == 1
    for index in range(3):
        entry = found[f"web-{index}"]
        assert entry["hostname"] == f"web-{index}"
        assert entry["networks"] == {"default": {"aliases": [f"web.{index}", "web"]}}
        told = variables(entry)
        assert (told["TSTORM_INSTANCE"], told["TSTORM_SERVICE"]) == (f"web.{index}", "web")
        assert (told["TSTORM_INDEX"], told["TSTORM_SEED"]) == (str(index), "7")
    assert found[changed[0]]["networks"]["default"]["aliases"] == ["My_DB.0", "My_DB"]


def test_a_known_program_is_held_and_an_unknown_one_is_left_alone() -> None:
    words = ("redis-server", "--port")
    found = file_of(
        service("a", entrypoint=words, command=("80",)), service("b", command=("x",)), service("c")
    )["services"]
    held = found["a-0"]
    assert held["entrypoint"] == ["/tstorm/tstorm-hold", "run", "--", *words]
    assert held["command"] == ["80"]
    (mount,) = held["volumes"]
    assert (mount["source"], mount["target"], mount["read_only"]) == ("tstorm", "/tstorm", True)
    assert mount["volume"] == {"nocopy": True}
    assert "entrypoint" not in found["b-0"]
    assert "volumes" not in found["b-0"]
    assert found["b-0"]["command"] == ["x"]
    assert "command" not in found["c-0"]


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=3), TEXTS)
def test_words_and_variables_come_back(command: list[str], more: list[str], value: str) -> None:
    entry = ["$program", *more]
    wanted = service(
        "web", command=tuple(command), entrypoint=tuple(entry), env=(("K", value), ("$X", "a=b=$"))
    )
    text = text_of(bundle_of(wanted))
    old = yaml.safe_load(text)
    assert old == ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))
    found = old["services"]["web-0"]
    assert [expanded(word) for word in found.get("command", [])] == command
    assert [expanded(word) for word in found["entrypoint"][3:]] == entry
    told = variables(found)
    assert told["K"] == value
    assert told["$X"] == "a=b=$"


def test_what_a_run_says_wins() -> None:
    found = file_of(service("web", env=(("TSTORM_INDEX", "9"), ("A", "1"))))
    told = variables(found["services"]["web-0"])
    assert (told["TSTORM_INDEX"], told["A"]) == ("0", "1")


def test_ports_resources_and_tags() -> None:
    found = file_of(
        service("a", ports=(80, 443, 80), cpu_millis=1250, mem_bytes=512 << 20, tags=("x", "y-"))
    )["services"]["a-0"]
    assert found["expose"] == ["80", "443"]
    amounts = {"cpus": "1.250", "memory": "536870912b"}
    assert found["deploy"] == {"resources": {"limits": amounts, "reservations": amounts}}
    assert found["labels"]["tag.thunderstorm.dev/x"] == "true"
    assert found["labels"]["thunderstorm.dev/service"] == "a"
    assert [key for key in found["labels"] if key.startswith("tag.")][1].endswith("/y-01bf71d1")
    plain = file_of(service("a"))["services"]["a-0"]
    assert not {"expose", "deploy"} & plain.keys()


def test_only_the_agent_has_privileges_and_never_the_engine_s_socket() -> None:
    text = text_of(bundle_of(service("web"), service("db", entrypoint=("db",))))
    found = yaml.safe_load(text)["services"]
    agent = found["tstorm-agent"]
    assert agent["cap_add"] == [
        *("NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "KILL", "SYS_NICE"),
    ]
    assert (agent["cap_drop"], agent["pid"], agent["read_only"]) == (["ALL"], "host", True)
    assert agent["deploy"]["mode"] == "global"
    assert "docker.sock" not in text
    for name, entry in found.items():
        assert not {"privileged", "network_mode", "devices", "ports"} & entry.keys()
        assert name == "tstorm-agent" or not {"cap_add", "pid"} & entry.keys()
    coordinator = found["tstorm-coordinator"]
    assert (coordinator["user"], coordinator["cap_drop"]) == ("65532:65532", ["ALL"])


def test_the_plan_is_beside_it_and_whole() -> None:
    source = bytes(range(256)) * 2000
    bundle = bundle_of(service("web"), source=source + random.Random(1).randbytes(400_000))
    files = compose.render(bundle, Options())
    found = yaml.safe_load(str(files[compose.FILE]))
    shards = {}
    for name, entry in found["configs"].items():
        assert entry == {"file": f"./plan/{name}"}
        data = files[f"plan/{name}"]
        assert isinstance(data, bytes)
        shards[name] = data
    assert len(shards) > 1
    assert unpack(shards, bundle.digest)["source.tdl"] == bundle.plan.source
    for own in OWN:
        wanted = [(name, f"/plan/{name}", 0o444) for name in shards]
        told = [(c["source"], c["target"], c["mode"]) for c in found["services"][own]["configs"]]
        assert told == wanted
        (key,) = found["services"][own]["secrets"]
        assert (key["target"], key["mode"]) == ("/auth/key", 0o400)
    assert "key" not in {name.rpartition("/")[2] for name in files}


@pytest.mark.parametrize(
    ("boot", "asked", "wanted"),
    [
        ("", "", DEFAULT_AGENT_IMAGE),
        ("mine:1", "", DEFAULT_AGENT_IMAGE),  # it is the public tool's
        (
            "mine:1",
            "registry:5000/other@sha256:" + "0" * 64,
            "registry:5000/other@sha256:" + "0" * 64,
        ),
    ],
)
def test_the_agent_image(boot: str, asked: str, wanted: str) -> None:
    found = yaml.safe_load(text_of(bundle_of(service("web"), boot=boot), agent_image=asked))
    assert {found["services"][own]["image"] for own in OWN} == {wanted}


@pytest.mark.parametrize(
    ("services", "reason"),
    [
        ([service("web", image="")], "service 'web' has no image"),
        ([service("web", image="a b")], "service 'web': its image 'a b' is not an image reference"),
        ([service("web", image="$HOME")], "is not an image reference"),
        ([service("web", env=(("", "x"),))], "'' cannot be the name of a variable"),
        ([service("web", env=(("A=B", "x"),))], "'A=B' cannot be the name of a variable"),
        ([service("web", command=("a\0b",))], "NUL"),
        ([service("a", replicas=2), service("a-1")], "'a-1' is called like an instance of 'a'"),
        ([service("a", image=""), service("b", image="")], "2 things cannot be rendered"),
    ],
)
def test_what_cannot_be_rendered(services: list[Service], reason: str) -> None:
    with pytest.raises(ManifestError, match=reason):
        file_of(*services)


def test_a_name_beside_an_instance_s_is_fine() -> None:
    found = file_of(service("a", replicas=2), service("a-2"), service("a-01"))["services"]
    assert found.keys() == OWN | {"a-0", "a-1", "a-2-0", "a-01-0"}


def test_a_service_without_instances_is_in_the_file_by_name_only() -> None:
    found = file_of(service("none", replicas=0), service("web"))["services"]
    assert found.keys() == OWN | {"web-0"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    bundle = example(path)
    found = yaml.safe_load(text_of(bundle))["services"]
    instances = [node.name for node in bundle.plan.topology.nodes if node.service >= 0]
    told = [variables(found[name])["TSTORM_INSTANCE"] for name in found.keys() - OWN]
    assert sorted(told) == sorted(instances)


def test_slim_is_smaller() -> None:
    plan = example(EXAMPLES[0]).plan
    full, slim = (compose.render(make(plan, slim=slim), Options()) for slim in (False, True))
    assert len(slim["plan/plan-000"]) < len(full["plan/plan-000"])
