"""The real docker-compose accepts what is rendered, and reads in it what the plan says."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from compiler.plan.types import Service
from manifests import compose
from manifests.bundle import Bundle
from manifests.render_options import Options
from manifests.write import write
from tests.manifests.kube import EXAMPLES, bundle_of, example, service
from tests.manifests.test_kubernetes_hostile import ENV_NAMES, HOSTILE

# docker-compose 1 prints with PyYAML, which loses U+0085 at the ends of lines. What such texts are
# as input, test_compose.py shows.
TEXTS = [text for text in HOSTILE if yaml.safe_load(yaml.dump(text, allow_unicode=True)) == text]

pytestmark = pytest.mark.skipif(
    shutil.which("docker-compose") is None, reason="docker-compose is not installed"
)


def answer(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["docker-compose", *words],
        cwd=folder,
        # What a hostile text would expand to if it was not kept from it.
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/pwned", "A": "pwned"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8")


def normalised(bundle: Bundle, folder: Path) -> dict[str, dict[str, Any]]:
    """The services as `docker-compose config` prints them. It writes each `$` twice again."""
    write(folder / "out", compose.render(bundle, Options()))
    command = ["--file", compose.FILE, "config"]
    found: dict[str, Any]
    if answer(folder, "version", "--short").startswith("1."):
        found = yaml.safe_load(answer(folder / "out", *command))
    else:
        found = json.loads(answer(folder / "out", *command, "--format", "json"))
    services: dict[str, dict[str, Any]] = found["services"]
    return services


def single(value: Any) -> Any:
    """With every `$` once."""
    if isinstance(value, str):
        assert "$" not in value.replace("$$", ""), value
        return value.replace("$$", "$")
    if isinstance(value, list):
        return [single(item) for item in value]
    if isinstance(value, dict):
        return {single(key): single(item) for key, item in value.items()}
    return value


def check(wanted: Service, index: int, entry: dict[str, Any]) -> None:
    assert single(entry["image"]) == wanted.image
    assert single(entry.get("command") or []) == list(wanted.command)
    held = ["/tstorm/tstorm-hold", "run", "--", *wanted.entrypoint] if wanted.entrypoint else None
    assert single(entry.get("entrypoint")) == held
    told = single(entry["environment"])
    own = {name for name in told if name.startswith("TSTORM_")}
    assert len(own) == 5
    assert told["TSTORM_INSTANCE"] == f"{wanted.name}.{index}"
    assert {name: told[name] for name in told.keys() - own} == dict(wanted.env)
    aliases = entry["networks"]["default"]["aliases"]
    assert aliases == [f"{wanted.name}.{index}", wanted.name]
    assert entry["restart"] == "always"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path, tmp_path: Path) -> None:
    bundle = example(path)
    found = normalised(bundle, tmp_path)
    assert found["tstorm-agent"]["pid"] == "host"
    count = 0
    for wanted in bundle.plan.topology.services:
        for index in range(wanted.replicas):
            check(wanted, index, found[f"{wanted.name}-{index}"])
            count += 1
    assert len(found) == count + 2


def test_hostile_texts(tmp_path: Path) -> None:
    """Every text as an argument, as a part of the program, and as a variable, all in one file."""
    assert len(TEXTS) > len(HOSTILE) - 5
    services = [
        service("words", command=tuple(TEXTS)),
        service("program", entrypoint=("$A", *TEXTS), command=tuple(reversed(TEXTS))),
        service("values", env=tuple((f"V{i}", text) for i, text in enumerate(TEXTS))),
        service("variables", env=tuple((name, f"${name}") for name in [*ENV_NAMES, "$A", "${A}"])),
    ]
    found = normalised(bundle_of(*services), tmp_path)
    for wanted in services:
        check(wanted, 0, found[f"{wanted.name}-0"])


def test_what_a_service_states(tmp_path: Path) -> None:
    stated = service(
        "web", ports=(80, 53), cpu_millis=250, mem_bytes=64 << 20, tags=("a", "-b", "c.d")
    )
    entry = normalised(bundle_of(stated), tmp_path)["web-0"]
    check(stated, 0, entry)
    assert sorted(entry["expose"]) == ["53", "80"]
    for amounts in entry["deploy"]["resources"].values():
        assert float(amounts["cpus"]) == 0.25
        assert amounts["memory"].rstrip("b") == "67108864"
    assert entry["deploy"]["resources"].keys() == {"limits", "reservations"}
    tags = sorted(key for key in entry["labels"] if key.startswith("tag.thunderstorm.dev/"))
    assert len(tags) == 3
    assert {entry["labels"][key] for key in tags} == {"true"}
    assert entry["stop_grace_period"] == "6s"
