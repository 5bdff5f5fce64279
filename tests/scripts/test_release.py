"""What `python -m scripts.release` judges and packs, without building anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.plan.format import TOOL_VERSION
from scripts import release, release_image


@pytest.mark.parametrize(
    ("changes", "status", "found"),
    [
        (f"\n## [{TOOL_VERSION}] - 2026-12-01\n", "", []),
        ("\n## [Unreleased]\n", "", [f"CHANGELOG.md has no section [{TOOL_VERSION}] with a date"]),
        (
            f"\n## [{TOOL_VERSION}] - 2026-12-01\n",
            " M setup.py\n",
            ["there are changes that are in no commit"],
        ),
    ],
)
def test_what_is_no_release_is_said(
    changes: str, status: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(changes)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "asked", lambda *_: status)
    assert release.problems() == found


def test_the_sums_are_those_of_sha256sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.whl", "a.tar.gz", "SHA256SUMS"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(release, "DIST", tmp_path)
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert release.sums() == f"{nothing}  a.tar.gz\n{nothing}  b.whl\n"


def test_an_image_has_the_files_of_the_root_without_caches(tmp_path: Path) -> None:
    for folder in ("usr/bin", "var/cache/apt", "tmp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tmp").chmod(0o1777)
    (tmp_path / "bin").symlink_to("usr/bin")
    (tmp_path / "usr/bin/newuidmap").write_bytes(b"program")
    (tmp_path / "usr/bin/newuidmap").chmod(0o4755)
    (tmp_path / "var/cache/apt/packages").write_bytes(b"cache")
    found = dict(release_image.gather(tmp_path).listed())
    assert sorted(found) == [
        *("/bin", "/tmp", "/usr", "/usr/bin", "/usr/bin/newuidmap", "/var", "/var/cache", "/work")
    ]
    assert found["/bin"].target == "usr/bin"
    assert (found["/usr/bin/newuidmap"].mode, found["/tmp"].mode) == (0o4755, 0o1777)
