"""The same examples, but with daemons from images that are packed from Debian's packages."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.process import ended
from tests.examples.conftest import EXAMPLES, ROOT
from tests.images import programs
from tests.images.support import has_tools
from tests.packing.debian import add_libraries, add_program, add_users
from tests.packing.layout import Packed, layer_of_folder, write_layout

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not has_tools(), reason="not installed: skopeo, umoci"),
]
BIN = "usr/lib/postgresql/15/bin"


def staged(place: Path, name: str, images: dict[str, str]) -> Path:
    """The example's folder, with images of this machine in place of those of a registry. What has
    none there is a program of this machine; '' is that."""
    place.chmod(0o755)
    folder = place / name
    shutil.copytree(EXAMPLES / name, folder)
    source = folder / f"{name}.tdl"
    text = source.read_text(encoding="utf-8")
    for before, after in images.items():
        assert f" img={before} " in text
        text = text.replace(f" img={before} ", f" img={after} " if after else " ")
    source.write_text(text, encoding="utf-8")
    return source


def ran(source: Path) -> Path:
    """The run's directory. `expect=` judges."""
    out = source.parent / "run"
    argv = [sys.executable, "-m", "tstorm", "run", str(source), "--images", "--out", str(out)]
    cache = {"TSTORM_CACHE": str(source.parent / "cache")}
    done = ended(argv, cwd=ROOT, env={**os.environ, **cache}, timeout=240)
    logs = [path.read_text()[-2000:] for path in sorted(out.glob("logs/*.log"))]
    assert done.returncode == 0, (done.stderr[-2000:], *logs)
    return out


def packed(source: Path, base: Packed, more: Path, name: str) -> None:
    """`base` with the files of a folder over it, as oci:NAME beside the TDL file."""
    image = Packed((*base.layers, layer_of_folder(more)), base.config)
    write_layout(source.parent / name, image)


def add_programs(root: Path, names: Sequence[str]) -> None:
    root.mkdir()
    (root / "bin").mkdir()
    for name in names:
        add_program(root, name, BIN)


@pytest.mark.ordinary
def test_nginx_serves_from_its_image(tmp_path: Path) -> None:
    if shutil.which("wrk") is None:
        pytest.skip("not installed: wrk")
    source = staged(tmp_path, "nginx", {"nginx:stable": "oci:served", "williamyeh/wrk": ""})
    more = tmp_path / "more"
    add_users(more, **{"www-data": 33})
    packed(source, programs.nginx(tmp_path / "root"), more, "served")
    run = ran(source)
    assert " answers, 0 failed" in (run / "logs/load.0.log").read_text()


@pytest.mark.ordinary
def test_postgres_replicates_from_its_image(tmp_path: Path) -> None:
    source = staged(tmp_path, "postgres", {"postgres:15": "oci:base"})
    base = programs.postgres(tmp_path / "root")
    more = tmp_path / "more"
    add_programs(more, ("pg_basebackup", "pgbench"))
    walreceiver = Path("/usr/lib/postgresql/15/lib/libpqwalreceiver.so")
    kept = more / walreceiver.relative_to("/")
    kept.parent.mkdir(parents=True)
    shutil.copy(walreceiver, kept)
    add_libraries(more, [walreceiver])
    packed(source, base, more, "base")
    run = ran(source)
    assert " 600 |" in (run / "logs/check.0.log").read_text()
