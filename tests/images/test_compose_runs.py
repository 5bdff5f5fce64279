"""Compose files that run: from images, in the order of their start, under other names, and with a
TDL file beside them; in real and in virtual time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.images import programs
from tests.images.support import tstorm
from tests.packing.layout import Packed, layer_of_folder, write_layout
from tests.packing.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("tools")]

# A database, a migration that has to end first, and an application that finds it by another name.
STACK = """\
x-image: &image
  image: IMAGE
services:
  db:
    <<: *image
    command:
      - sh
      - -c
      - mkdir -p /data; echo $$WORD >/data/index.html; exec httpd -f -p 80 -h /data
    environment: {WORD: "${WORD:-kept}"}
    volumes: [data:/data]
    networks: {default: {aliases: [database.internal]}}
    healthcheck: {test: "wget -qO- http://127.0.0.1/ | grep -q .", interval: 1s, retries: 20}
  migrate:
    <<: *image
    entrypoint: sh -c
    command: ["wget -qO- http://db/ && echo migrated"]
    depends_on: {db: {condition: service_healthy}}
  app:
    <<: *image
    command: [sh, /srv/app.sh]
    working_dir: /srv
    user: web
    ports: ["8080:80"]
    volumes: ["./app.sh:/srv/app.sh:ro"]
    depends_on:
      migrate: {condition: service_completed_successfully}
volumes: {data: }
"""
APP = """\
id -un; pwd
for i in 1 2 3 4 5 6 7 8; do
  timeout 1 wget -qO- http://database.internal/ || echo nothing
  sleep 0.5
done
"""
STORM = """\
at 1s partition app;db
at 3s heal
at 3s app--default set latency=20ms
at 5s quit
expect unreachable app db within 500ms after 1s
expect log app "nothing"
expect rtt app db > 30ms from 3500ms to 5s
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    (tmp_path / "app.sh").write_text(APP)
    (tmp_path / "storm.tdl").write_text(STORM)
    return tmp_path


def image(place: Path) -> Packed:
    root = programs.busybox(place / "root")
    return Packed((layer_of_folder(root),), {"Cmd": ["false"]})


def ran(place: Path, *options: str) -> Path:
    out = place / f"run{len(list(place.glob('run*')))}"
    done = tstorm("run", "docker-compose.yml", *options, "--out", out, cwd=place)
    logs = [path.read_text() for path in sorted(out.glob("logs/*.log"))]
    assert done.returncode == 0, (done.stderr, logs)
    return out


def log(run: Path, instance: str) -> list[str]:
    lines = (run / f"logs/{instance}.log").read_text().splitlines()
    return [line for line in lines if not line.startswith("[tstorm]")]


def events(run: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


def check(run: Path, word: str) -> None:
    """What each service did, and in which order."""
    assert log(run, "migrate.0") == [word, "migrated"]
    assert log(run, "app.0")[:3] == ["web", "/srv", word]
    assert "nothing" in log(run, "app.0")[3:]
    noted = {(one["kind"], one["target"]): one for one in events(run) if "target" in one}
    ready, ended = noted["ready", "db.0"]["ready_ns"], noted["exit", "migrate.0"]["applied_ns"]
    begun = noted["join", "app.0"]["started_ns"]
    assert ready <= noted["join", "migrate.0"]["started_ns"] <= ended <= begun


@pytest.mark.ordinary
def test_a_stack_of_three_from_a_registry(place: Path, served: Registry) -> None:
    served.push(image(place), "stack/app:1")
    text = STACK.replace("IMAGE", f"{served.host}/stack/app:1")
    (place / "docker-compose.yml").write_text(text)
    (place / ".env").write_text("WORD=from-dotenv\n")
    check(ran(place, "--tdl", "storm.tdl"), "from-dotenv")


@pytest.mark.virtual
def test_the_same_in_virtual_time_and_again(place: Path) -> None:
    write_layout(place / "app", image(place))
    text = STACK.replace("image: IMAGE", "x-tstorm: {img: oci:app}")
    (place / "docker-compose.yml").write_text(text)
    run = ran(place, "--tdl", "storm.tdl", "--time", "virtual", "--param", "WORD=given")
    check(run, "given")
    (place / "docker-compose.yml").unlink()
    done = tstorm("replay", run, "--check", "--out", place / "again", cwd=place)
    assert done.returncode == 0, done.stderr


def test_what_docker_has_not_built_is_refused_with_the_command(place: Path) -> None:
    text = "services: {web: {build: ., image: nobody-has-built-this}}\n"
    (place / "docker-compose.yml").write_text(text)
    done = tstorm("run", "docker-compose.yml", "--out", place / "run", cwd=place)
    assert done.returncode in (1, 3)
    assert "docker-daemon:nobody-has-built-this" in done.stderr
    assert "docker compose build" in done.stderr


def test_a_job_that_fails_ends_the_run(place: Path) -> None:
    write_layout(place / "app", image(place))
    (place / "docker-compose.yml").write_text(
        "services:\n"
        "  job: {x-tstorm: {img: oci:app}, command: [sh, -c, exit 3]}\n"
        "  app:\n"
        "    x-tstorm: {img: oci:app}\n"
        "    command: [sleep, '9']\n"
        "    depends_on: {job: {condition: service_completed_successfully}}\n"
    )
    done = tstorm("run", "docker-compose.yml", "--out", place / "run", cwd=place)
    assert done.returncode == 5
    assert "job.0 ended with status 3, and others start after it" in done.stderr
