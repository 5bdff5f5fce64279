"""Every example is rendered to what it was rendered to before; `make golden` after a change."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
import ruamel.yaml
import yaml

from manifests.render_options import Options
from tests.manifests.kube import example
from tests.manifests.recorded import FORMS, GOLDEN, SOURCES, WHOLE, documents, everything, parts


def test_examples_are_as_recorded() -> None:
    found = documents()
    recorded = {path.name: path.read_text(encoding="ascii") for path in GOLDEN.iterdir()}
    assert recorded.keys() == found.keys(), "run `make golden`"
    differing = [name for name, text in found.items() if recorded[name] != text]
    assert differing == [], "run `make golden` and read the difference"


# What `expect run` needs of a cluster, and what stands there without it.
RUNS_COMMANDS = (
    (", and run commands in them\n# (expect run). It", ". It"),
    ('  - apiGroups: [""]\n    resources: [pods/exec]\n    verbs: [get, create]\n', ""),
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_only_services_differ_between_examples(path: Path, form: str) -> None:
    """So it is enough to record the rest once."""

    def rest(which: Path) -> str:
        image = Options().resolve(example(which)).agent_image
        text = parts(which, form)[0].replace(f'"{image}"', '"IMAGE"')
        text = re.sub(r"activeDeadlineSeconds: \d+", "activeDeadlineSeconds: ITS-LENGTH", text)
        text = re.sub(r"(PeriodSeconds:) \d+(  # it ends)", r"\1 ITS-GRACE\2", text)
        for commands in RUNS_COMMANDS:  # tests/manifests/test_kubernetes_doc.py has them
            text = text.replace(*commands)
        return re.sub(r'  - "60-service-.*\n', "", text)

    (whole,) = (one for one in SOURCES if one.stem == WHOLE)
    assert rest(path) == rest(whole)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_old_and_new_yaml_read_the_same(path: Path, form: str) -> None:
    """As octal numbers, for one, would not be: 0444 is 292 in YAML 1.1 and 444 in YAML 1.2."""
    text = everything(path, form)
    modern = ruamel.yaml.YAML(typ="safe", pure=True)
    separated = re.sub(r"^# [0-9a-z-]+\.yaml$", "---", text, flags=re.MULTILINE)
    old: list[Any] = list(yaml.safe_load_all(separated))
    new: list[Any] = list(modern.load_all(io.StringIO(separated)))
    assert old
    assert old == new
