"""An image's configuration, as it is written by others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.errors import RunError
from runtime.images.image_config import ImageConfig, from_record, read


def config(**inner: Any) -> bytes:
    return json.dumps({"architecture": "amd64", "os": "linux", "config": inner}).encode()


WHOLE = config(
    Entrypoint=["/entry"],
    Cmd=["a", "b"],
    Env=["A=1=2", "EMPTY=", "=bad"],
    WorkingDir="/srv",
    User="web:web",
    StopSignal="SIGQUIT",
    Volumes={"/data": {}, "/b": {}},
    Healthcheck={"Test": ["CMD-SHELL", "curl localhost"], "Interval": 30, "Retries": 3},
    Labels={"a": "b"},
)


def test_every_field_is_read() -> None:
    found = read(WHOLE, "the image")
    assert found == ImageConfig(
        entrypoint=("/entry",),
        command=("a", "b"),
        env=(("A", "1=2"), ("EMPTY", "")),
        directory="/srv",
        user="web:web",
        stop="SIGQUIT",
        volumes=("/b", "/data"),
        health=("/bin/sh", "-c", "curl localhost"),
        architecture="amd64",
    )
    record = json.loads(json.dumps(found.to_record()))
    assert from_record(record, "a file") == found


@pytest.mark.parametrize(
    ("test", "argv"),
    [
        (["CMD", "check", "-x"], ("check", "-x")),
        (["CMD-SHELL", "a | b"], ("/bin/bash", "-c", "a | b")),
        (["NONE"], ()),
        ([], ()),
        (None, ()),
        (["CMD"], ()),
    ],
)
def test_health_check_is_an_argv(test: Any, argv: tuple[str, ...]) -> None:
    found = read(config(Healthcheck={"Test": test}, Shell=["/bin/bash", "-c"]), "the image")
    assert found.health == argv


def test_everything_may_be_missing_or_null() -> None:
    assert read(b"{}", "the image") == ImageConfig()
    nothing = config(Entrypoint=None, Cmd=None, Env=None, Volumes=None, Healthcheck=None)
    assert read(nothing, "the image") == ImageConfig(architecture="amd64")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]", "must be an object"),
        (b"{", "damaged"),
        (config(Cmd="sh"), "must be a list"),
        (config(Env=[1]), "must be a text"),
        (config(Cmd=["a\0b"]), "NUL"),
        (config(Volumes={"/a\0b": {}}), "NUL"),
        (config(WorkingDir="/a\0b"), "NUL"),
        (config(Healthcheck={"Test": ["CMD", "a\0b"]}), "NUL"),
        (config(Env=["A=\ud800"]), "half a character"),
        (b'{"os": "windows"}', "is for 'windows'"),
        (b"[" * 100_000, "nested too deeply|damaged"),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(RunError, match=reason) as caught:
        read(data, "the image x")
    assert caught.value.message.startswith("the image x")
