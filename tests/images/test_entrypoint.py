"""What a service starts in its image."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compiler.plan.types import Service
from runtime.errors import RunError
from runtime.images.entrypoint import PATH, home_of, start
from runtime.images.image_config import ImageConfig

CONFIG = ImageConfig(
    entrypoint=("/entry", "--flag"),
    command=("serve",),
    env=(("LANG", "C.UTF-8"), ("PATH", "/opt/bin:/bin")),
    directory="srv/app",
    user="web",
    stop="SIGQUIT",
    volumes=("/data", "var/../log", "/"),
    health=("check",),
)


def service(**fields: Any) -> Service:
    return replace(Service("a", "x", (), (), (), 1, (), (), (), 0, 0, ()), **fields)


@pytest.mark.parametrize(
    ("entrypoint", "command", "argv"),
    [
        ((), (), ("/entry", "--flag", "serve")),
        ((), ("test",), ("/entry", "--flag", "test")),
        (("/own",), (), ("/own",)),
        (("/own",), ("a", "b"), ("/own", "a", "b")),
    ],
)
def test_program_is_that_of_kubernetes(
    entrypoint: tuple[str, ...], command: tuple[str, ...], argv: tuple[str, ...]
) -> None:
    found = start(CONFIG, service(entrypoint=entrypoint, command=command), "/")
    assert found.argv == argv


def test_image_decides_what_the_service_does_not() -> None:
    found = start(CONFIG, service(), "/home/web")
    assert dict(found.env) == {"PATH": "/opt/bin:/bin", "HOME": "/home/web", "LANG": "C.UTF-8"}
    assert found.directory == "/srv/app"
    assert found.user == "web"
    assert found.stop == "SIGQUIT"
    assert found.volumes == ("/data", "/log")
    assert found.ready == ("check",)


def test_service_decides_what_it_states() -> None:
    words = service(user="7:8", cwd="/other", stop="SIGINT", ready=("none",))
    found = start(CONFIG, words, "/")
    assert (found.user, found.directory, found.stop) == ("7:8", "/other", "SIGINT")
    assert found.ready == ("none",)


def test_nothing_stated_is_root_in_the_root() -> None:
    found = start(ImageConfig(command=("sh",)), service(), "/")
    assert found.env == (("PATH", PATH), ("HOME", "/"))
    assert (found.directory, found.user, found.stop, found.ready) == ("/", "", "", ())


def test_image_without_a_program_is_refused() -> None:
    with pytest.raises(RunError, match="service a says not what to start") as caught:
        start(ImageConfig(), service(), "/")
    assert "entrypoint= or command=" in caught.value.remedy


@pytest.mark.parametrize(
    ("stated", "signal"),
    [
        ("SIGINT", "SIGINT"),
        ("quit", "SIGQUIT"),
        ("15", "SIGTERM"),
        ("37", "SIGRTMIN+3"),
        ("SIGRTMIN+3", "SIGRTMIN+3"),
    ],
)
def test_stop_signal_is_named(stated: str, signal: str) -> None:
    assert start(replace(CONFIG, stop=stated), service(), "/").stop == signal


@pytest.mark.parametrize("stated", ["SIGNONE", "99", "-1", "SIGRTMIN+x", "SIGRTMIN+31"])
def test_signal_that_is_none_is_refused(stated: str) -> None:
    with pytest.raises(RunError, match="is no signal"):
        start(replace(CONFIG, stop=stated), service(), "/")


def test_home_is_that_of_the_image(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n33:x:7:7::/odd:\nweb:x:33:33:web:/var/www:\nbad\nx:::::\n"
    )
    homes = {"": "/root", "root": "/root", "web": "/var/www", "web:adm": "/var/www", "0:0": "/root"}
    homes |= {"33": "/odd", "99": "/", "nobody": "/", "x": "/"}
    assert {user: home_of(tmp_path, user) for user in homes} == homes
    assert home_of(tmp_path / "none", "web") == "/"
