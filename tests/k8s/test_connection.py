"""Which context of which kubeconfig is used, and what is said where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.errors import RunError
from tests.doubles.api import FakeApi
from tstorm.k8s.connection import connect


def change(name: str, **values: Any) -> str:
    """The server's kubeconfig under another name, with other values; None removes one."""
    source = Path(os.environ["KUBECONFIG"])
    found = {**yaml.safe_load(source.read_text()), **values}
    path = source.with_name(name)
    path.write_text(yaml.safe_dump({k: value for k, value in found.items() if value is not None}))
    return str(path)


@pytest.mark.parametrize("current", [None, "", "gone"])
def test_a_context_is_used_whatever_the_current_one_is(
    server: FakeApi, monkeypatch: pytest.MonkeyPatch, current: str | None
) -> None:
    monkeypatch.setenv("KUBECONFIG", change("other", **{"current-context": current}))
    with connect("here") as found:
        assert found.get("/version")["major"] == "1"
    with pytest.raises(RunError) as refused:
        connect(None)
    assert ("'gone'" if current else "no current context") in refused.value.message
    assert "there are: here" in refused.value.remedy
    with pytest.raises(RunError, match="no context 'nowhere'") as refused:
        connect("nowhere")
    assert "there are: here" in refused.value.remedy


def test_contexts_of_all_files_are_known(server: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [{"name": "there", "context": {"cluster": "c", "user": "u"}}]
    files = [
        change("clusters", contexts=None, **{"current-context": None}),
        change("missing"),
        change("contexts", clusters=None, users=None, contexts=there, **{"current-context": None}),
    ]
    Path(files[1]).unlink()
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(files))
    with connect("there") as found:
        assert found.server == server.url
    with pytest.raises(RunError) as refused:
        connect("here")
    assert refused.value.remedy == "there are: there"


@pytest.mark.parametrize("text", ["", "[]", "text", "contexts: 3", "contexts: [3]", "a: ["])
def test_a_kubeconfig_that_is_none_is_said_to_be(
    server: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    odd = tmp_path / "odd"
    odd.write_text(text)
    for place in (str(odd), os.environ["KUBECONFIG"] + os.pathsep + str(odd)):
        monkeypatch.setenv("KUBECONFIG", place)
        with pytest.raises(RunError, match=r"kubeconfig .*odd cannot be used"):
            connect("here")
