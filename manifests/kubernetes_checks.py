"""What a plan may say and Kubernetes refuses, found before anything is written.

All findings of a plan are reported together. The rules are those of the API server's validation
(k8s.io/apimachinery/pkg/util/validation and pkg/apis/core/validation) and of Linux.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compiler.plan.rules.capabilities import KUBERNETES
from compiler.plan.types import Service, Topology
from manifests import images, kubernetes_files, unsupported
from manifests.bundle import Bundle
from manifests.refusal import ManifestError, raise_all

# Any character is allowed since Kubernetes 1.34; this is what all versions take.
_ENV_NAME = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*", re.ASCII)
ENOUGH_CPU_MILLIS = 500  # of an agent: below, 100 ms of delay became 247 ± 243 ms (at 100)
SHOWN = 3
MAX_STRING = 131_071  # bytes of an argument or variable, `NAME=` included: MAX_ARG_STRLEN of Linux
# kubectl apply keeps a copy of an object in an annotation, and annotations end at 262,144 bytes.
MAX_OBJECT = 250_000
# Measured with Kubernetes 1.33: `kubectl apply --server-side` and `-k` refuse an object with one of
# these, and change U+0085. They write JSON, which leaves them bare, and read it as YAML,
# whose printable characters (YAML 1.1, 5.1) they are not.
_LOST = re.compile("[\x7f-\x9f\ufffe\uffff]")


def plan(bundle: Bundle) -> None:
    """Raises ManifestError, for everything that is wrong at once."""
    found = bundle.plan.topology
    raise_all(
        (
            *(error for service in found.services for error in _service(service)),
            *unsupported.refusals(found, KUBERNETES),
            *kubernetes_files.refusals(bundle),
        )
    )


def warnings(topology: Topology, agent_cpu_millis: int) -> list[str]:
    """Of what Kubernetes takes, and the user may not have meant."""
    found = []
    idle = [one for one in topology.services if one.exec and not (one.entrypoint or one.command)]
    if idle:
        names = ", ".join(f"{one.name} ({one.image})" for one in idle[:SHOWN])
        names += f" and {len(idle) - SHOWN} more" if len(idle) > SHOWN else ""
        found.append(
            f"exec= is for runs on one machine and means nothing on a cluster: {names} will run"
            " what the image starts by itself; say what is to run there with entrypoint= and"
            " command="
        )
    if agent_cpu_millis < ENOUGH_CPU_MILLIS:
        found.append(
            f"an agent that asks for {agent_cpu_millis}m of a processor runs late where processors"
            " are busy, and with it all packets of its node: ask for"
            f" {ENOUGH_CPU_MILLIS}m or more (--agent-cpu)"
        )
    return found


def namespace(name: str) -> None:
    """Raises ManifestError for a namespace that is not an experiment's to own."""
    if name == "default" or name.startswith("kube-"):
        raise ManifestError(
            f"the namespace {name!r} belongs to the cluster",
            "choose another --namespace, or leave it to tstorm",
        )


def agent_image(image: str) -> None:
    """Raises ManifestError for an agent image that no node could pull."""
    if hint := images.problem(image):
        raise ManifestError(f"the agent image {image!r:.80} is not an image", hint)


def size(service: str, text: str) -> None:
    """Raises ManifestError for the objects of a service that `kubectl apply` could not carry."""
    # As kubectl writes JSON, `<`, `>` and `&` have six characters; others have no more than here.
    found = len(text) + 5 * sum(text.count(character) for character in "<>&")
    if found > MAX_OBJECT:
        raise ManifestError(
            f"service {service!r}: its arguments, variables and tags are too long for a Kubernetes "
            f"object ({found} bytes of at most {MAX_OBJECT})",
            "put them into the image, or into a file that the program reads",
        )


def _service(service: Service) -> Iterator[ManifestError]:
    who = f"service {service.name!r}"
    yield from _image(service, who)
    yield from _variables(service, who)
    for word in (*service.entrypoint, *service.command, *service.setup, *service.ready):
        yield from _string(word, f"{who}: an argument")


def _image(service: Service, who: str) -> Iterator[ManifestError]:
    if not service.image:
        yield ManifestError(f"{who} has no image, and a container needs one", "add img=IMAGE")
    elif hint := images.problem(service.image):
        yield ManifestError(f"{who}: {service.image!r:.80} is not an image", hint)


def _variables(service: Service, who: str) -> Iterator[ManifestError]:
    seen: set[str] = set()
    for name, value in service.env:
        if name in seen:
            yield ManifestError(f"{who}: the variable {name!r:.80} is set twice", "keep one")
        seen.add(name)
        # A name of dots would be a path where kubelet makes files of variables.
        if not _ENV_NAME.fullmatch(name) or name == "." or name.startswith(".."):
            yield ManifestError(
                f"{who}: Kubernetes takes no variable called {name!r:.80}",
                f"use letters, digits, '_', '-' and '.', such as {_suggestion(name)!r}",
            )
        yield from _string(f"{name}={value}", f"{who}: the variable {name!r:.80}")


def _suggestion(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name[:60])
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def _string(text: str, what: str) -> Iterator[ManifestError]:
    if "\0" in text:
        yield ManifestError(f"{what} has a NUL character, which no program can be given")
    if lost := _LOST.search(text):
        yield ManifestError(
            f"{what} has the character U+{ord(lost[0]):04X}, which kubectl cannot carry",
            "put it into the image, or into a file that the program reads",
        )
    if len(text.encode("utf-8", "surrogatepass")) > MAX_STRING:
        yield ManifestError(
            f"{what} is longer than {MAX_STRING} bytes, the most that Linux takes",
            "put it into the image, or into a file that the program reads",
        )
