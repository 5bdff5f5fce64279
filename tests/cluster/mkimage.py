#!/usr/bin/env python3
"""mkimage.py REF ROOTFS OUT.tar [ENTRYPOINT [ARG ...]]

Packs the directory ROOTFS as a one-layer container image named REF (for example tsc.local/agent:1)
in the archive OUT.tar, which `cluster load OUT.tar`, `ctr images import` and `docker load` accept.
Needs no daemon and no registry. Files keep mode and links, but belong to root and have no time
stamp: the same directory always gives the same image. As a module it packs several images, which
may share a directory, into one archive.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEVER = "1970-01-01T00:00:00Z"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    references: tuple[str, ...]  # with host and tag, as a container runtime resolves them
    rootfs: Path
    entrypoint: tuple[str, ...]
    env: tuple[str, ...] = ()  # NAME=VALUE


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def _pack(rootfs: Path, layer: IO[bytes]) -> str:
    """Writes the directory as a layer; its SHA-256."""
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(rootfs, arcname=".", filter=_plain)
    layer.seek(0)
    digest = hashlib.sha256()
    while chunk := layer.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _config(image: Image, layer: str) -> bytes:
    machine = platform.machine()
    config = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "created": NEVER,
        "config": {"Env": [f"PATH={PATH}", *image.env], "Entrypoint": list(image.entrypoint)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": NEVER, "created_by": "mkimage.py"}],
    }
    return json.dumps(config).encode()


def _add(archive: tarfile.TarFile, name: str, data: IO[bytes]) -> None:
    info = tarfile.TarInfo(name)
    info.size = data.seek(0, io.SEEK_END)
    data.seek(0)
    archive.addfile(info, data)


def write_archive(out: Path, images: Iterable[Image]) -> None:
    """Writes beside `out` and renames, so that `out` is never half an archive."""
    partial = out.with_name(f"{out.name}.partial")
    layers: dict[Path, str] = {}
    manifest = []
    with tarfile.open(partial, "w") as archive:
        for image in images:
            if image.rootfs not in layers:
                with tempfile.TemporaryFile(dir=out.parent) as layer:
                    layers[image.rootfs] = _pack(image.rootfs, layer)
                    _add(archive, f"{layers[image.rootfs]}/layer.tar", layer)
            config = _config(image, layers[image.rootfs])
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, name, io.BytesIO(config))
            manifest.append(
                {
                    "Config": name,
                    "RepoTags": list(image.references),
                    "Layers": [f"{layers[image.rootfs]}/layer.tar"],
                }
            )
        _add(archive, "manifest.json", io.BytesIO(json.dumps(manifest).encode()))
    partial.replace(out)


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    reference, rootfs, out, *entrypoint = sys.argv[1:]
    if not Path(rootfs).is_dir():
        sys.exit(f"mkimage.py: {rootfs} is not a directory")
    if ":" not in reference.rsplit("/", 1)[-1]:
        sys.exit(f"mkimage.py: {reference} has no tag; write for example {reference}:1")
    image = Image((reference,), Path(rootfs), tuple(entrypoint) or ("/bin/sh",))
    write_archive(Path(out), [image])
    print(f"{reference} -> {out}")


if __name__ == "__main__":
    main()
