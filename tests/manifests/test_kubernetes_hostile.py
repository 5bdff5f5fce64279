"""Hostile and unlucky texts come out of the YAML as they went into the plan.

Two readers of YAML: PyYAML for YAML 1.1, which kubectl's parser follows where they differ, and
ruamel.yaml for YAML 1.2.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
import ruamel.yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.plan.types import Service
from manifests import kubernetes
from manifests.render_options import Options
from tests.manifests.kube import (
    ROOT,
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

HOSTILE = [
    *("", " ", "  leading", "trailing  ", "\n", "a\nb\n", "\r\n", "a\rb", "\t", "tab\there"),
    *('"', "'", "\"'", "\\", "\\n", "\\\\", '\\"', "''", '""', "it's", '"}', '"]', "},{"),
    *("a: b", ": ", ":", "a:", "- a", "-", "--", "---", "--- a", "...", "\n---\nkind: Pod\n"),
    *("\n...\n", "#", " # comment", "a #b", "{{ 7 * 7 }}", "{% raw %}", "{#", "}}", "${HOME}"),
    *("*a", "&a", "!tag", "!!python/object:os.system", "|", "|-", ">", "%YAML 1.2", "@", "`"),
    *("[", "]", "{", "}", ",", "?", "? a", "<<", "=", "~", "yes", "no", "on", "off", "y", "N"),
    *("true", "False", "null", "Null", "~", "None", "0", "1", "-1", "+1", "007", "0o17", "0x10"),
    *("1e3", "1.", ".5", "1_000", ".inf", "-.INF", ".nan", "12:30:45", "2026-01-01", "190:20:30"),
    *("$", "$$", "$$$", "$(HOME)", "$$(HOME)", "$(TSTORM_SERVICE)", "$(", "$()", "$(A)$(B)", "a$"),
    *("é", "日本語", "😀", "\U0010ffff", "\u2028", "\u2029", "\ue000", "\xa0", "\ufeff", "\ufffd"),
    *("\x01", "\x07", "\x08", "\x1b[31m", "\x0b", "\x1f", "\ud7ff", "e\u0301", "\u202e", "\u200b"),
    *("x" * 10_000, "\n" * 1000, "😀" * 2000, '"' * 3000, "a b " * 2500),
    *("; rm -rf /", "`id`", "$(id)", "<script>", "&amp;", "\x00"[:0] + "end"),
]
ENV_NAMES = ["A", "a.b", "x-y", "_", "yes", "null", "N", "TRUE", "e3", "-", "on", "O", "_0x10"]


def modern(text: str) -> list[Document]:
    """The documents as YAML 1.2."""
    return list(ruamel.yaml.YAML(typ="safe", pure=True).load_all(io.StringIO(text)))


def check(wanted: Service, found: list[Document], name: str) -> None:
    """The pod of `wanted` runs what the plan says, with the variables that the plan says."""
    _, container = workload(found, name)
    words = arguments(container)
    if wanted.entrypoint:
        assert words[:2] == ["/tstorm/tstorm-hold", "run"]
        words = words[words.index("--") + 1 :]  # what it is told before that: test_words.py
    assert words == [*wanted.entrypoint, *wanted.command]
    variables = seen(container, 0)
    assert {key: variables[key] for key, _ in wanted.env} == dict(wanted.env)
    assert len(variables) == 5 + bool(wanted.entrypoint) + len(wanted.env)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_a_hostile_text_stays_what_it_is(text: str) -> None:
    wanted = service(
        "a",
        entrypoint=(text or "x", text),
        command=(text, f"-{text}", f"{text} "),
        env=(("V", text), ("W", f"{text}{text}")),
    )
    files = kubernetes.render(bundle_of(wanted), Options())
    check(wanted, documents(files), "a")
    found = files["60-service-a.yaml"]
    assert found.isascii() and found.count("\n---\n") == 1
    newer = modern(found)
    assert newer == documents({"a": found})
    check(wanted, newer, "a")


def test_all_of_them_at_once() -> None:
    short = [text for text in HOSTILE if len(text) < 100]
    env = tuple((f"V{index}", text) for index, text in enumerate(short))
    wanted = service("a", command=tuple(short), env=env)
    files = kubernetes.render(bundle_of(wanted), Options())
    check(wanted, documents(files), "a")
    check(wanted, modern(files["60-service-a.yaml"]), "a")


def test_names_of_variables_that_yaml_would_read_as_something_else() -> None:
    wanted = service("a", env=tuple((name, name) for name in ENV_NAMES))
    check(wanted, rendered(wanted), "a")


@pytest.mark.parametrize("name", ["yes", "null", "n", "true", "_", "__", "_9lives", "E3", "No"])
def test_names_of_services_that_yaml_would_read_as_something_else(name: str) -> None:
    files = kubernetes.render(bundle_of(service(name, tags=(name,))), Options())
    [sts] = [d for d in documents(files) if d["kind"] == "StatefulSet"]
    assert sts["metadata"]["annotations"]["thunderstorm.dev/service"] == name
    new = sts["metadata"]["name"]
    # A headless Service needs an RFC 1035 label: it begins with a letter.
    assert isinstance(new, str) and "a" <= new[0] <= "z"
    assert all(character.isalnum() or character == "-" for character in new)
    assert one(modern(files[f"60-service-{new}.yaml"]), "Service", new)


def test_both_yamls_read_every_file_alike() -> None:
    wanted = service("a", entrypoint=("x",), ports=(80,), cpu_millis=1, tags=("t",))
    packed = bundle_of(wanted, service("b"))
    for name, text in kubernetes.render(packed, Options(kustomize=True)).items():
        assert modern(text) == documents({name.replace("kustomization", "k"): text}), name


LOST = "\0\x7f\ufffe\uffff" + "".join(map(chr, range(0x80, 0xA0)))  # refused
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=LOST), max_size=30)
NASTY = TEXT | st.sampled_from([text for text in HOSTILE if len(text) < 100])
WORDS = st.lists(NASTY, max_size=4).map(tuple)
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}(-[A-Za-z0-9_]{1,20}){0,2}", fullmatch=True)
ENV = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,12}", fullmatch=True).filter(
        lambda name: not name.startswith("TSTORM_")
    ),
    NASTY,
    max_size=4,
).map(lambda found: tuple(found.items()))
SERVICES = st.lists(
    st.builds(
        service,
        NAME,
        entrypoint=WORDS.filter(lambda words: words[:1] != ("",)),
        command=WORDS,
        env=ENV,
        tags=st.lists(NAME, max_size=3, unique=True).map(tuple),
        ports=st.lists(st.integers(1, 65535), max_size=3).map(tuple),
        replicas=st.integers(0, 3),
        cpu_millis=st.integers(0, 10_000),
        mem_bytes=st.integers(0, 1 << 40),
    ),
    max_size=4,
    unique_by=lambda item: item.name,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SERVICES)
def test_random_services_come_back(services: list[Service]) -> None:
    files = kubernetes.render(bundle_of(*services), Options())
    found = documents({name: text for name, text in files.items() if name.startswith("60-")})
    sets = [d for d in found if d["kind"] == "StatefulSet"]
    assert len(sets) == len({d["metadata"]["name"] for d in sets}) == len(services)
    by_service = {d["metadata"]["annotations"]["thunderstorm.dev/service"]: d for d in sets}
    for wanted in services:
        name = by_service[wanted.name]["metadata"]["name"]
        check(wanted, found, name)
        pod, container = workload(found, name)
        assert container["image"] == wanted.image
        assert by_service[wanted.name]["spec"]["replicas"] == wanted.replicas
        ports = [port["containerPort"] for port in container.get("ports", ())]
        assert ports == list(dict.fromkeys(wanted.ports))
        assert pod["initContainers"][-1]["name"] == (
            "tstorm-install" if wanted.entrypoint else "tstorm-gate"
        )


PROGRAM = """
import hashlib
from manifests import kubernetes
from manifests.render_options import Options
from tests.manifests.kube import EXAMPLES, bundle_of, example, service

odd = service("a", tags=("x", "y", "z"), env=(("B", "1"), ("A", "2")), ports=(2, 1))
bundles = [example(path) for path in EXAMPLES] + [bundle_of(odd)]
files = [kubernetes.render(packed, Options(kustomize=True)) for packed in bundles]
print(hashlib.sha256(repr([list(found.items()) for found in files]).encode()).hexdigest())
"""


def test_the_bytes_do_not_depend_on_the_process() -> None:
    """Nor on the order of hashes, the locale or the time zone."""
    digests = set()
    for seed, zone, locale in (("0", "UTC", "C"), ("4711", "Asia/Tokyo", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1
