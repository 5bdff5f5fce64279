"""Packs images for tests: OCI layouts and docker archives of any layers and configuration.

Nothing of the machine but tarfile: what a layer holds may be hostile.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_OCI = "application/vnd.oci.image"


@dataclass(frozen=True)
class Entry:
    """One member of a layer. `kind` as tarfile has it."""

    path: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""
    mode: int = 0o755
    uid: int = 0
    gid: int = 0
    device: tuple[int, int] = (0, 0)


def layer_of(entries: Iterable[Entry]) -> bytes:
    """In just this order, with just these paths."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry.path)
            info.type, info.linkname, info.mode = entry.kind, entry.link, entry.mode
            info.uid, info.gid, info.size = entry.uid, entry.gid, len(entry.data)
            info.devmajor, info.devminor = entry.device
            tar.addfile(info, io.BytesIO(entry.data))
    return packed.getvalue()


def layer_of_folder(root: Path, owners: Mapping[str, int] | None = None) -> bytes:
    """A folder's files, owned by root, or by the number that `owners` has for the path."""

    def owned(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = (owners or {}).get(info.name.removeprefix("./"), 0)
        info.uname = info.gname = ""
        info.mtime = 0
        return info

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(root, arcname=".", filter=owned)
    return packed.getvalue()


@dataclass(frozen=True)
class Packed:
    """An image of tests. `config`: Entrypoint, Cmd, Env … as Docker names them."""

    layers: tuple[bytes, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    architecture: str = ARCHITECTURES.get(platform.machine(), platform.machine())

    @property
    def settings(self) -> bytes:
        return _json(
            {
                "architecture": self.architecture,
                "os": "linux",
                "config": dict(self.config),
                "rootfs": {"type": "layers", "diff_ids": [_digest(one) for one in self.layers]},
            }
        )


def write_layout(folder: Path, image: Packed, tag: str = "latest", *, docker: bool = False) -> str:
    """An OCI layout; with `docker` its manifest is Docker's. Returns the manifest's digest."""
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)
    kinds = (
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    )
    if not docker:
        kinds = (f"{_OCI}.manifest.v1+json", f"{_OCI}.config.v1+json", f"{_OCI}.layer.v1.tar+gzip")

    def add(kind: str, data: bytes) -> dict[str, Any]:
        (blobs / _digest(data).partition(":")[2]).write_bytes(data)
        return {"mediaType": kind, "digest": _digest(data), "size": len(data)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": kinds[0],
        "config": add(kinds[1], image.settings),
        "layers": [add(kinds[2], gzip.compress(one, 1, mtime=0)) for one in image.layers],
    }
    named = add(kinds[0], _json(manifest))
    named["annotations"] = {"org.opencontainers.image.ref.name": tag}
    (folder / "index.json").write_bytes(_json({"schemaVersion": 2, "manifests": [named]}))
    (folder / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))
    return str(named["digest"])


def write_docker_archive(out: Path, image: Packed, name: str) -> None:
    """What `docker save` writes."""
    settings = f"{_digest(image.settings).partition(':')[2]}.json"
    listed = [
        {
            "Config": settings,
            "RepoTags": [name],
            "Layers": [f"{number}/layer.tar" for number, _ in enumerate(image.layers)],
        }
    ]
    files = {f"{number}/layer.tar": data for number, data in enumerate(image.layers)}
    files |= {settings: image.settings, "manifest.json": _json(listed)}
    with tarfile.open(out, "w") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()
