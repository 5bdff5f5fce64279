"""The Compose file keeps to the Compose specification, for which docker-compose 1.29 is too old.

compose-spec is a parser written for the specification: an unknown field is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compose_spec import PyCompose

from manifests import compose
from manifests.bundle import Bundle
from manifests.render_options import Options
from tests.manifests.kube import EXAMPLES, bundle_of, example, service
from tests.manifests.test_kubernetes_hostile import HOSTILE


def read(bundle: Bundle) -> dict[str, Any]:
    text = compose.render(bundle, Options())[compose.FILE]
    found: dict[str, Any] = PyCompose.from_yaml(str(text)).to_dict()
    return found


def test_the_parser_is_strict() -> None:
    with pytest.raises(Exception, match="nonsense"):
        PyCompose.from_yaml("services: {a: {image: x, nonsense: 1}}")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    bundle = example(path)
    found = read(bundle)
    instances = sum(node.service >= 0 for node in bundle.plan.topology.nodes)
    assert len(found["services"]) == instances + 2
    assert found["configs"].keys() == bundle.shards.keys()


def test_everything_that_a_service_can_state() -> None:
    stated = service(
        "web",
        ports=(80, 53),
        cpu_millis=250,
        mem_bytes=64 << 20,
        tags=("a", "c.d"),
        entrypoint=("$A", *HOSTILE),
        command=tuple(HOSTILE),
        env=tuple((f"V{i}", text) for i, text in enumerate(HOSTILE)),
        replicas=2,
    )
    entry = read(bundle_of(stated))["services"]["web-1"]
    assert entry["entrypoint"][3:] == [text.replace("$", "$$") for text in ("$A", *HOSTILE)]
    assert entry["command"] == [text.replace("$", "$$") for text in HOSTILE]
    assert entry["hostname"] == "web-1"
    assert len(entry["environment"]) == len(HOSTILE) + 5
