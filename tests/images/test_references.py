"""What `img=` may name, and what skopeo is asked for."""

from __future__ import annotations

import pytest

from runtime.errors import RunError
from runtime.images.references import parse

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("nginx", "docker://docker.io/library/nginx:latest"),
        ("nginx:1.27", "docker://docker.io/library/nginx:1.27"),
        ("team/app:2", "docker://docker.io/team/app:2"),
        ("docker://nginx", "docker://docker.io/library/nginx:latest"),
        ("quay.io/a/b", "docker://quay.io/a/b:latest"),
        ("localhost:5000/a:b", "docker://localhost:5000/a:b"),
        (f"nginx:1.27@{DIGEST}", f"docker://docker.io/library/nginx@{DIGEST}"),
        (f"r.example:5000/a@{DIGEST}", f"docker://r.example:5000/a@{DIGEST}"),
        ("oci:build/app", "oci:/exp/build/app"),
        ("oci:/build/app:2", "oci:/build/app:2"),
        ("oci-archive:app.tar", "oci-archive:/exp/app.tar"),
        ("docker-archive:app.tar:app:2", "docker-archive:/exp/app.tar:app:2"),
        ("containers-storage:app", "containers-storage:app"),
        ("docker-daemon:app", "docker-daemon:app:latest"),
        ("docker-daemon:team/app:2", "docker-daemon:team/app:2"),
    ],
)
def test_reference_is_completed(written: str, name: str) -> None:
    found = parse(written, "/exp")
    assert found.name == name
    assert found.written == written
    assert found.kept == name.startswith("docker://")


@pytest.mark.parametrize(
    "written",
    ["", "a b", "-x", "oci:", "docker-daemon:-x", "a\x1b", "http://a/b", "a/", "/a", "a:"],
)
def test_what_names_no_image_is_refused(written: str) -> None:
    with pytest.raises(RunError, match="names no image"):
        parse(written, "/exp")


def test_a_digest_takes_the_place_of_the_tag() -> None:
    found = parse("localhost:5000/a:b", "/")
    assert found.at(DIGEST) == f"docker://localhost:5000/a@{DIGEST}"
    assert found.digest == ""
    pinned = parse(f"localhost:5000/a@{DIGEST}", "/")
    assert pinned.at("sha256:other") == pinned.name
    assert pinned.digest == DIGEST
    assert parse("oci:/a:b", "/").at(DIGEST) == "oci:/a:b"


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("localhost/a", True),
        ("localhost:5000/a", True),
        ("127.0.0.9:5000/a", True),
        ("[::1]:5000/a", True),
        ("192.0.2.1:5000/a", False),
        ("localhost.example/a", False),
        ("nginx", False),
    ],
)
def test_only_a_registry_of_this_machine_needs_no_certificate(written: str, plain: bool) -> None:
    assert parse(written, "/").plain_http is plain
