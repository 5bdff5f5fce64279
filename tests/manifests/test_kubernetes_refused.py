"""What Kubernetes would refuse, or accept and never start, is an error while rendering."""

from __future__ import annotations

from typing import Any

import pytest

from compiler.plan.types import Service
from manifests import images, kubernetes
from manifests.refusal import ManifestError
from manifests.render_options import Options
from tests.manifests.kube import bundle_of, rendered, service


def error(*services: Service, **options: Any) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        kubernetes.render(bundle_of(*services), Options(**options))
    return caught.value


def test_a_service_without_an_image() -> None:
    found = error(service("web", image=""))
    assert found.what == "service 'web' has no image, and a container needs one"
    assert found.hint == "add img=IMAGE"


@pytest.mark.parametrize(
    "image",
    ["Nginx", "a b", "nginx:", ":1", "nginx@sha256:1", "-a", "a//b", "a:b:c", "x" * 256, "a\n"],
)
def test_an_image_that_no_node_could_pull(image: str) -> None:
    found = error(service("web", image=image))
    assert found.what == f"service 'web': {image!r:.80} is not an image"
    assert found.hint
    assert error(service("web"), agent_image=image).hint


@pytest.mark.parametrize(
    "image",
    [
        *("nginx", "nginx:1.27", "library/nginx", "docker.io/library/nginx:latest", "a__b/c-d.e"),
        *("localhost:5000/x", "registry.example/team/app:2", "[::1]:5000/a", "a/b/c/d:V_1.2-x"),
        *(f"a@sha256:{'0' * 64}", f"a:1@sha256:{'f' * 64}", "x" * 255, "Host.Example/a"),
    ],
)
def test_an_image_that_a_node_could_pull(image: str) -> None:
    assert images.problem(image) == ""
    assert rendered(service("web", image=image), agent_image=image)


def test_capitals_are_pointed_out() -> None:
    assert images.problem("team/Nginx:X") == "a repository's name has no capitals: 'team/nginx:X'?"


@pytest.mark.parametrize(
    "name", ["1A", "a b", "a=b", "", "é", "a$", "..", ".", "..a", "a\n", "A/B"]
)
def test_a_variable_s_name(name: str) -> None:
    found = error(service("web", env=((name, "x"),)))
    assert found.what == f"service 'web': Kubernetes takes no variable called {name!r}"
    suggestion = found.hint.rsplit("'", 2)[1]
    assert rendered(service("web", env=((suggestion, "x"),)))


def test_a_variable_that_is_set_twice() -> None:
    found = error(service("web", env=(("A", "1"), ("A", "2"))))
    assert "'A' is set twice" in found.what


def test_what_is_longer_than_linux_takes() -> None:
    assert "longer than 131071 bytes" in error(service("a", command=("x" * 131_072,))).what
    assert "longer than 131071 bytes" in error(service("a", env=(("AB", "é" * 65_535),))).what
    assert rendered(service("a", env=(("AB", "é" * 20_000),)))


@pytest.mark.parametrize("text", ["x" * 100_000, "<" * 15_000])
def test_what_kubectl_apply_could_not_carry(text: str) -> None:
    found = error(service("a", command=(text, text, text)))
    assert "too long for a Kubernetes object" in found.what
    assert "put them into the image" in found.hint


def test_a_nul_character() -> None:
    for odd in (service("a", command=("a\0b",)), service("a", env=(("A", "\0"),))):
        assert "NUL" in error(odd).what


@pytest.mark.parametrize("text", ["\x7f", "\x80", "a\x85b", "\x9f", "\ufffe", "\uffff"])
def test_a_character_that_kubectl_loses(text: str) -> None:
    for odd in (service("a", command=(text,)), service("a", env=(("A", text),))):
        found = error(odd)
        code = next(ord(character) for character in text if character > "~")
        assert f"has the character U+{code:04X}, which kubectl cannot carry" in found.what
    assert error(service("a", entrypoint=(text,))).hint


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-anything"])
def test_a_namespace_of_the_cluster(name: str) -> None:
    found = error(service(), namespace=name)
    assert "belongs to the cluster" in found.what and "--namespace" in found.hint


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a-", "x" * 64, "a.b", "a\n"])
def test_what_is_no_namespace(name: str) -> None:
    assert "namespace" in error(service(), namespace=name).what


def test_everything_is_said_at_once() -> None:
    found = error(service("a", image=""), service("b", env=(("1", "x"),)), service("c", image="X"))
    lines = str(found).splitlines()
    assert lines[0] == "3 things cannot be rendered:"
    assert [line.split()[1] for line in lines[1:]] == ["'a'", "'b':", "'c':"]
    assert all(";" in line for line in lines[1:])
