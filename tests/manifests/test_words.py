"""How an instance runs, in Kubernetes and in Compose: users, files, setups, readiness, ends; and
what neither carries out is refused by name."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from enum import StrEnum
from typing import Any

import jinja2
import pytest
import ruamel.yaml
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compiler.plan.rules.capabilities import COMPOSE, KUBERNETES
from compiler.plan.types import Mount, PlanFile, Service
from manifests import compose, kubernetes, kubernetes_files, unsupported
from manifests.bundle import Bundle
from manifests.refusal import ManifestError
from manifests.render_options import Options
from manifests.templating import TEMPLATES, environment, serialize
from tests.manifests.kube import (
    Document,
    arguments,
    bundle_of,
    documents,
    one,
    rendered,
    seen,
    service,
    workload,
)

HELD = {"entrypoint": ("serve",)}
HOLD = ["/tstorm/tstorm-hold", "run"]
SECOND = 1_000_000_000


def pod_of(**stated: Any) -> tuple[Document, Document]:
    return workload(rendered(service("web", **stated)), "web")


def command(**stated: Any) -> list[str]:
    """What the container of a held service executes."""
    return arguments(pod_of(**{**HELD, **stated})[1])


def composed(*services: Service, **more: Any) -> dict[str, Any]:
    text = compose.render(bundle_of(*services, **more), Options())[compose.FILE]
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def entry(**stated: Any) -> dict[str, Any]:
    found: dict[str, Any] = composed(service("web", **stated))["services"]["web-0"]
    return found


def file(path: str, content: bytes, mode: int = 0o644) -> PlanFile:
    return PlanFile(path, mode, hashlib.sha256(content).hexdigest())


# -- users and folders --------------------------------------------------------------------------


def test_a_number_is_the_user_of_the_container() -> None:
    for stated in ({}, HELD):
        pod, container = pod_of(user="1000", **stated)
        assert container["securityContext"] == {"runAsUser": 1000}
        assert "runAsUser" not in pod["securityContext"]
    assert pod_of(user="70:71")[1]["securityContext"] == {"runAsUser": 70, "runAsGroup": 71}
    assert "securityContext" not in pod_of()[1]
    assert entry(user="70:71")["user"] == "70:71"


def test_a_name_is_looked_up_in_the_image_by_tstorm_hold_which_is_root_for_it() -> None:
    pod, container = pod_of(user="db:ssl", cwd="/srv/db", **HELD)
    assert container["securityContext"] == {"runAsUser": 0, "runAsGroup": 0}
    assert arguments(container) == [*HOLD, *["--user", "db:ssl", "--cwd", "/srv/db", "--", "serve"]]
    assert pod["initContainers"][0]["securityContext"]["runAsNonRoot"] is True
    assert entry(user="db", **HELD)["user"] == "0:0"
    assert entry(user="db")["user"] == "db"  # Docker looks names up itself


def test_the_working_directory() -> None:
    assert pod_of(cwd="/srv/$x")[1]["workingDir"] == "/srv/$x"
    assert entry(cwd="/srv/$x")["working_dir"] == "/srv/$$x"
    assert "workingDir" not in pod_of()[1]


# -- files ------------------------------------------------------------------------------------


def test_files_are_config_maps_and_appear_where_they_are_stated() -> None:
    conf, tool = b"listen 80\n\0", b"#!/bin/sh\n"
    stated = service(
        "web", cwd="/srv", files=(file("/etc/a.conf", conf), file("bin/b", tool, 0o755))
    )
    bundle = bundle_of(stated, service("other", files=()), contents=(conf, tool))
    found = documents(kubernetes.render(bundle, Options()))
    [carried] = [each for each in found if each["metadata"]["name"] == "tstorm-files-000"]
    contents = {base64.b64decode(text) for text in carried["binaryData"].values()}
    assert contents == {conf, tool} and carried["immutable"] is True
    assert carried["metadata"]["labels"]["app.kubernetes.io/component"] == "files"
    pod, container = workload(found, "web")
    [volume] = [each for each in pod["volumes"] if "configMap" in each]
    items = {item["path"]: (item["key"], item["mode"]) for item in volume["configMap"]["items"]}
    at = {mount["mountPath"]: items[mount["subPath"]] for mount in container["volumeMounts"]}
    assert at == {
        "/etc/a.conf": (hashlib.sha256(conf).hexdigest(), 0o644),
        "/srv/bin/b": (hashlib.sha256(tool).hexdigest(), 0o755),
    }
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert "volumeMounts" not in workload(found, "other")[1]


def test_large_files_have_config_maps_of_their_own() -> None:
    large = [bytes([number]) * 150_000 for number in range(3)]
    whole = b"x" * kubernetes_files.MAX_FILE
    stated = service("web", files=tuple(
        file(f"/{number}", content) for number, content in enumerate([*large, whole, b"small"])
    ))  # fmt: skip
    carried = kubernetes_files.carry(bundle_of(stated, contents=[*large, whole, b"small"]))
    sizes = [sum(map(len, contents.values())) for contents in carried.maps.values()]
    assert sorted(sizes)[-1] in (len(whole), len(whole) + 5)
    assert sum(sizes) == 450_000 + len(whole) + 5
    assert sum(size > 180_000 for size in sizes) == 1
    assert all(digest in carried.maps[name] for digest, name in carried.where.items())


def test_a_file_that_no_config_map_carries() -> None:
    content = b"x" * (kubernetes_files.MAX_FILE + 1)
    bundle = bundle_of(service("web", files=(file("/a", content),)), contents=[content])
    with pytest.raises(ManifestError) as caught:
        kubernetes.render(bundle, Options())
    assert "the file '/a' has 1048577 bytes, and a ConfigMap carries at most" in caught.value.what


def test_files_of_compose_lie_beside_it() -> None:
    content = b"listen\n"
    digest = hashlib.sha256(content).hexdigest()
    bundle = bundle_of(service("web", files=(file("/etc/$a", content, 0o755),)), contents=[content])
    files = compose.render(bundle, Options())
    found = yaml.safe_load(files[compose.FILE])
    assert files[f"files/{digest}"] == content
    assert found["configs"][digest] == {"file": f"./files/{digest}"}
    [config] = found["services"]["web-0"]["configs"]
    assert config == {"source": digest, "target": "/etc/$$a", "mode": 0o755}


def test_mounts_of_compose() -> None:
    stated = (Mount("/data", "/srv/data", True), Mount("/run/x", "/run/x", False))
    first, second = entry(mounts=stated)["volumes"]
    assert first == {"type": "bind", "source": "/data", "target": "/srv/data", "read_only": True}
    assert second["read_only"] is False


# -- how a program starts and ends --------------------------------------------------------------


def test_a_setup_is_tstorm_hold_s() -> None:
    assert command(setup=("initdb", "-D", "$PGDATA"), command=("-x",)) == [
        *(*HOLD, "--setup", "3", "initdb", "-D", "$PGDATA", "--", "serve", "-x")
    ]
    assert entry(setup=("a", "$b"), **HELD)["entrypoint"][2:] == ["--setup", "2", "a", "$$b", "--",
                                                                  "serve"]  # fmt: skip


def test_the_stop_signal_and_the_grace() -> None:
    pod, container = pod_of(stop="SIGINT", grace_ns=30 * SECOND, **HELD)
    assert arguments(container) == [*HOLD, "--stop", "SIGINT", "--grace", "30000", "--", "serve"]
    assert pod["terminationGracePeriodSeconds"] == 31
    assert pod_of()[0]["terminationGracePeriodSeconds"] == 6
    long = rendered(service("web", grace_ns=100 * SECOND))
    coordinator = one(long, "Job", "tstorm-coordinator")["spec"]["template"]["spec"]
    assert coordinator["terminationGracePeriodSeconds"] == 125
    assert entry(stop="SIGQUIT", grace_ns=1)["stop_signal"] == "SIGQUIT"
    assert entry(grace_ns=SECOND + 1)["stop_grace_period"] == "3s"
    assert "stop_signal" not in entry(stop="SIGQUIT", **HELD)


def test_readiness_is_asked_for_by_tstorm_hold() -> None:
    words_ = ("pg_isready", "-h", "$TSTORM_IPV4")
    timed = command(ready=words_, ready_timeout_ns=90 * SECOND)
    assert timed == [*HOLD, "--ready", "3", *words_, "--ready-timeout", "90000", "--", "serve"]
    assert "readinessProbe" not in pod_of(ready=words_, **HELD)[1]
    assert command(ready=("tcp:5432",)) == [*HOLD, "--ready-port", "5432", "--", "serve"]
    assert command(ready=("none",)) == [*HOLD, "--", "serve"]


def test_readiness_of_an_image_s_own_program_is_kubelet_s_or_docker_s() -> None:
    probe = pod_of(ready=("check", "$x"))[1]["readinessProbe"]
    assert probe["exec"] == {"command": ["check", "$x"]}
    assert pod_of(ready=("tcp:9",), ports=(80,))[1]["readinessProbe"]["tcpSocket"] == {"port": 9}
    assert "readinessProbe" not in pod_of(ready=("none",), ports=(80,))[1]
    check = entry(ready=("check", "$x"), ready_timeout_ns=9 * SECOND)["healthcheck"]
    assert check == {"test": ["CMD", "check", "$$x"], "interval": "1s", "start_period": "9s"}


def test_sysctls_are_the_pod_s_and_those_that_kubelet_has_to_allow_are_said() -> None:
    safe, unsafe = "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_congestion_control"
    found = pod_of(sysctls=((safe, "9"), (unsafe, "cubic")))[0]["securityContext"]
    assert found["sysctls"] == [{"name": safe, "value": "9"}, {"name": unsafe, "value": "cubic"}]
    bundle = bundle_of(service("web", sysctls=((safe, "9"), (unsafe, "cubic"))))
    text = kubernetes.render(bundle, Options())["60-service-web.yaml"]
    [said] = [line for line in text.splitlines() if "--allowed-unsafe-sysctls" in line]
    assert unsafe in said and safe not in said
    assert entry(sysctls=((unsafe, "cubic"),))["sysctls"] == {unsafe: "cubic"}


@pytest.mark.parametrize(("network", "family"), [("ipv4", "IPv4"), ("ipv6", "IPv6"), ("dual", "")])
def test_names_are_of_one_family_where_that_is_stated(network: str, family: str) -> None:
    found = documents(kubernetes.render(bundle_of(service("web"), network=network), Options()))
    spec = one(found, "Service", "web")["spec"]
    assert spec.get("ipFamilies", [""]) == [family]
    assert ("ipFamilyPolicy" in spec) == bool(family)


# -- the run's own variables --------------------------------------------------------------------


def test_tstorm_hold_knows_the_addresses_of_its_pod() -> None:
    _, container = pod_of(**HELD)
    assert seen(container, 3)["TSTORM_ADDRESSES"] == "10.244.1.7,fd00::7"
    assert "TSTORM_ADDRESSES" not in seen(pod_of()[1], 3)


def test_variables_in_words() -> None:
    """tstorm-hold replaces them; where it is not there, Kubernetes or the renderer."""
    written = ("a$TSTORM_INDEX-${TSTORM_SERVICE}$x$TSTORM_OTHER$",)
    assert command(command=written)[-1] == written[0]
    _, container = pod_of(command=written, replicas=4)
    assert arguments(container, 3) == ["a3-web$x$TSTORM_OTHER$"]
    assert entry(command=written)["command"] == ["a0-web$$x$$TSTORM_OTHER$$"]


# -- what is refused ----------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("k8s", {"mounts": (Mount("/a", "/b", False),)}, "mount=/a:/b is a path of this machine"),
    ("compose", {"mounts": (Mount("a", "/b", False),)}, "mount=a:/b is relative to the TDL file"),
    ("both", {"files": (file("a", b""),)}, "the file 'a' is relative to the image's own directory"),
    ("both", {"files": (file("/tstorm/x", b""),)}, "the file '/tstorm/x' is in /tstorm"),
    ("both", {"files": (file("/s/a", b""), file("a", b"")), "cwd": "/s"}, "'/s/a' is there twice"),
    ("k8s", {"files": (file("/a:b", b""),)}, "the file '/a:b' has a ':' in its path"),
    ("k8s", {"user": "postgres"}, "user=postgres is for tstorm-hold"),
    ("k8s", {"user": "1:ssl"}, "user=1:ssl is for tstorm-hold"),
    ("k8s", {"user": "3000000000"}, "user=3000000000 is more than 2147483647"),
    ("k8s", {"sysctls": (("net.Odd", "1"),)}, "sysctl=net.Odd is no name of a sysctl"),
    ("both", {"setup": ("initdb",)}, "setup= is for tstorm-hold"),
    ("both", {"command": ("$TSTORM_RUN_DIR/x",)}, "$TSTORM_RUN_DIR is a folder of a run"),
    ("both", {"command": ("$TSTORM_IPV4",)}, "$TSTORM_IPV4 is for tstorm-hold"),
    ("compose", {"command": ("$TSTORM_IPV6",), **HELD}, "$TSTORM_IPV6 is not known to a container"),
    ("both", {"ready": ("a", "$TSTORM_INDEX")}, "$TSTORM_INDEX in ready= is for tstorm-hold"),
    ("compose", {"ready": ("tcp:5432",)}, "ready=tcp:5432 is for tstorm-hold"),
]  # fmt: skip


def of(stated: dict[str, Any]) -> Bundle:
    return bundle_of(service("web", **stated), contents=[b""] if "files" in stated else [])


@pytest.mark.parametrize(("way", "stated", "said"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_not_carried_out_is_refused_by_name(
    way: str, stated: dict[str, Any], said: str
) -> None:
    for name, render in (("k8s", kubernetes.render), ("compose", compose.render)):
        if way in (name, "both"):
            with pytest.raises(ManifestError) as caught:
                render(of(stated), Options())
            assert said in caught.value.what and "service 'web'" in caught.value.what
            assert caught.value.hint
        elif "mounts" not in stated:
            assert render(of(stated), Options())


def test_every_row_of_the_table_is_tested() -> None:
    topologies = [of(stated).plan.topology for _, stated, _ in REFUSED]
    met = {
        error.what.partition(": ")[2][:500].rpartition(row.why)[1]
        for topology in topologies
        for way in (KUBERNETES, COMPOSE)
        for error in unsupported.refusals(topology, way)
        for row in unsupported.TABLE
        if error.what.endswith(row.why)
    }
    assert met == {row.why for row in unsupported.TABLE}


def test_a_private_file_system_is_what_containers_have() -> None:
    assert rendered(service("web", fs="private"))
    assert entry(fs="private").keys() == entry().keys()


# Any value through the serializer, and through templates, comes back from YAML as it was.

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
VALUES = st.recursive(
    st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)


class Word(StrEnum):
    YES = "yes"


def older(text: str) -> Any:
    """As YAML 1.1."""
    return yaml.safe_load(text)


def newer(text: str) -> Any:
    """As YAML 1.2."""
    return ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))


@settings(deadline=None)
@given(VALUES)
@example("no")
@example("1e3")
@example("12:30:45")
@example("\u2028\u2029\x85\ufeff\U0001f600\x7f")
@example({"": [], "~": {}, "<<": {"a": 1}, "=": "="})
@example({"k" * 3000: {"\U0001f600" * 200: [{"\n" * 900: 1}]}})
@example(["{{ x }}", "{% raw %}", "#", " # x", "---\n- a", "...", "*a", "&a", "!tag", "%YAML 9"])
@example(-(2**64))
def test_round_trip(value: Any) -> None:
    text = serialize(value)
    assert older(text) == value
    assert newer(text) == value
    assert text.isascii()
    assert text.isprintable()
    in_place = f"a:\n  - {text}  # comment\n  - b: {text}\n"
    assert older(in_place) == newer(in_place) == {"a": [value, {"b": value}]}


@settings(deadline=None)
@given(VALUES)
def test_types_stay(value: Any) -> None:
    """1 and True are equal in Python, and so are 1 and 1.0."""
    assert repr(older(serialize(value))) == repr(value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\0b", "a NUL character"),
        ("\ud800", r"half a surrogate pair \(U\+D800\)"),
        ("\udfff", r"half a surrogate pair \(U\+DFFF\)"),
        ("\ude00\ud83d", "half a surrogate pair"),
    ],
)
def test_what_no_manifest_can_hold_is_refused(text: str, reason: str) -> None:
    for value in (text, [text], {text: 1}, {"a": {"b": [text]}}):
        with pytest.raises(ManifestError, match=reason):
            serialize(value)


@pytest.mark.parametrize("value", [None, 1.5, b"x", {1: 2}, {"a": None}, {"a"}, object()])
def test_other_types_are_our_bug(value: object) -> None:
    with pytest.raises(TypeError):
        serialize(value)


def test_kinds_of_strings_are_strings() -> None:
    from markupsafe import Markup

    assert serialize(Word.YES) == '"yes"'
    assert serialize(Markup('<b>"')) == '"<b>\\""'
    assert serialize((1, True)) == "[1, true]"


@settings(deadline=None)
@given(TEXTS)
def test_every_expression_of_a_template_is_serialized(text: str) -> None:
    loop = "{% for y in [x] %}\nd: {{ y }}\n{% endfor %}\n"
    source = "a: {{ x }}\nb: {{ x ~ '!' }}\nc: {{ [x, 7 > 3] }}\n" + loop
    found = environment().from_string(source).render(x=text)
    wanted = {"a": text, "b": f"{text}!", "c": [text, True], "d": text}
    assert older(found) == newer(found) == wanted


def test_constants_are_serialized_too() -> None:
    assert environment().from_string("{{ 'no' }} {{ 1 }} {{ true }}").render() == '"no" 1 true'


@pytest.mark.parametrize("source", ["{{ missing }}", "{{ x.missing }}", "{{ [missing] }}"])
def test_what_is_not_defined_is_an_error(source: str) -> None:
    with pytest.raises((jinja2.UndefinedError, TypeError)):
        environment().from_string(source).render(x={})


SOURCES = sorted(TEMPLATES.rglob("*.j2"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_templates_quote_nothing_by_hand(path: Any) -> None:
    source = path.read_text(encoding="ascii")
    expressions = re.findall(r".?\{\{.*?\}\}.?", source)
    assert source
    assert [found for found in expressions if found[0] in "'\"" or found[-1] in "'\""] == []
    assert not re.search(r"\|\s*(safe|tojson|indent|e|escape|string|quote)\b", source)
    assert "{% filter" not in source
    assert "{% call" not in source


def test_there_are_templates() -> None:
    folders = {path.parent.name for path in SOURCES}
    assert folders == {"compose", "kubernetes"}
