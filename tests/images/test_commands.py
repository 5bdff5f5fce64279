"""`tstorm image pull`, `list` and `prune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runtime.doctor import checks
from runtime.images import ids
from tests.images.support import SMALL, tstorm
from tests.packing.layout import write_layout
from tests.packing.registry import Registry

pytestmark = pytest.mark.e2e


@pytest.mark.ordinary
@pytest.mark.usefixtures("tools")
def test_pull_list_prune(served: Registry, tmp_path: Path, own_cache: Path) -> None:
    digest = served.push(SMALL, "command:1")
    name = f"{served.host}/command:1"
    local = write_layout(tmp_path / "app", SMALL, docker=False)
    done = tstorm("image", "pull", name, f"oci:{tmp_path}/app")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [digest, local]
    assert f"fetching the image {name}" in done.stderr
    shown = json.loads(tstorm("image", "list", "--format", "json").stdout)
    assert shown["folder"] == str(own_cache)
    (row,) = shown["images"]  # the same content twice
    assert row["digest"] == digest
    assert row["references"] == [name]
    assert Path(row["path"], "hello").exists()
    table = tstorm("image", "list").stdout.splitlines()
    assert [line.split()[0] for line in table] == ["DIGEST", digest[7:19]]
    assert tstorm("image", "prune").stderr == ""
    assert f"removed {digest}" in tstorm("image", "prune", "--all").stderr
    assert json.loads(tstorm("image", "list", "--format", "json").stdout)["images"] == []


@pytest.mark.usefixtures("tools")
def test_pull_says_what_is_wrong() -> None:
    done = tstorm("image", "pull", "oci:/none")
    assert done.returncode == 1
    assert "error: cannot find the image oci:/none: " in done.stderr
    assert tstorm("image", "pull", "not an image").returncode == 1
    assert tstorm("image", "pull").returncode == 2


def test_pull_without_tools_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = tstorm("image", "pull", "nginx")
    assert done.returncode == 3
    assert "skopeo and umoci are not installed" in done.stderr
    assert "apt-get install skopeo umoci" in done.stderr


@pytest.mark.ordinary
@pytest.mark.usefixtures("tools")
def test_doctor_says_with_which_users_images_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "available", lambda: ids.RANGE)
    found = checks.images()
    assert (found.status, "/etc/subuid" in found.detail) == ("ok", True)
    monkeypatch.setattr(ids, "available", lambda: ids.ONE)
    found = checks.images()
    assert found.status == "warn"
    assert "one user id" in found.detail
    assert "usermod --add-subuids" in found.remedy


def test_doctor_names_missing_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = checks.images()
    assert found.status == "warn"
    assert "skopeo and umoci are not installed" in found.detail
    assert "apt-get install skopeo umoci" in found.remedy
