"""An image as an archive: the layout of OCI's image specification 1.0, in a tar file.

`ctr images import`, `kind load image-archive` and `k3s ctr images import` read it by `index.json`,
`docker load` and `podman load` by Docker's own `manifest.json` beside it. The layer is not
compressed: what a compressor writes depends on its version, and the same files are to give the same
bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

# The files of an image, by their paths in it, as bytes: nothing of where they came from.

PROGRAM = 0o755
FILE = 0o644


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """A file with `data`, or a symbolic link where `target` is not ''; a directory has neither."""

    mode: int
    data: bytes | None = None
    target: str = ""


class Contents:
    """Paths are absolute. The directories above an entry come by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, ImageEntry] = {}

    def add(self, path: str, data: bytes, mode: int = FILE) -> None:
        """Raises ValueError if another file is there."""
        self._put(path, ImageEntry(mode, data))

    def link(self, path: str, target: str) -> None:
        self._put(path, ImageEntry(0o777, target=target))

    def directory(self, path: str, mode: int = PROGRAM) -> None:
        self._put(path, ImageEntry(mode))

    def _put(self, path: str, entry: ImageEntry) -> None:
        known = self._entries.setdefault(path, entry)
        if known != entry:
            raise ValueError(f"two different files would be {path} of the image")
        for above in PurePosixPath(path).parents:
            self._entries.setdefault(str(above), ImageEntry(PROGRAM))

    def listed(self) -> list[tuple[str, ImageEntry]]:
        """All of them but `/`, in the order of their paths' parts: a directory before its files."""
        paths = sorted(self._entries, key=lambda path: path.split("/"))
        return [(path, self._entries[path]) for path in paths if path != "/"]

    @property
    def size_bytes(self) -> int:
        return sum(len(entry.data or b"") for entry in self._entries.values())

    def write(self, folder: Path) -> None:
        """The same files below the new directory `folder`. Raises OSError."""
        folder.mkdir()
        for path, entry in self.listed():
            place = folder / path.lstrip("/")
            if entry.target:
                place.symlink_to(entry.target)
            elif entry.data is None:
                place.mkdir()
                place.chmod(entry.mode)
            else:
                place.write_bytes(entry.data)
                place.chmod(entry.mode)


NEVER = "1970-01-01T00:00:00Z"
_OCI = "application/vnd.oci.image"


class Blobs:
    """The blobs of one archive by their SHA-256."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def add(self, kind: str, data: bytes) -> dict[str, Any]:
        """The descriptor by which others refer to it."""
        digest = hashlib.sha256(data).hexdigest()
        self._data[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

    def files(self) -> dict[str, bytes]:
        return dict(self._data)


def write(out: Path, name: str, architecture: str, contents: Contents, config: Any) -> str:
    """The image's digest. `config`: Env, Entrypoint, Labels … of the image. Writes beside `out` and
    renames, so that `out` is never half an archive. Raises OSError."""
    blobs = Blobs()
    layer = blobs.add("layer.v1.tar", pack(contents))
    described = {
        "architecture": architecture,
        "os": "linux",
        "created": NEVER,
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
        "history": [{"created": NEVER, "created_by": "tstorm image build"}],
    }
    settings = blobs.add("config.v1+json", _json(described))
    manifest = blobs.add(
        "manifest.v1+json",
        _json(
            {
                "schemaVersion": 2,
                "mediaType": f"{_OCI}.manifest.v1+json",
                "config": settings,
                "layers": [layer],
            }
        ),
    )
    files = blobs.files() | _indexes(name, architecture, manifest, settings, layer)
    partial = out.with_name(f".{out.name}.partial")
    try:
        with tarfile.open(partial, "w", format=tarfile.USTAR_FORMAT) as archive:
            for path in sorted(files):
                _add(archive, path, files[path])
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return str(manifest["digest"])


def _indexes(
    name: str, architecture: str, manifest: Any, settings: Any, layer: Any
) -> dict[str, bytes]:
    annotations = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rpartition(":")[2],
    }
    platform = {"architecture": architecture, "os": "linux"}
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.index.v1+json",
        "manifests": [manifest | {"platform": platform, "annotations": annotations}],
    }
    docker = {
        "Config": _path(settings),
        "RepoTags": [name],
        "Layers": [_path(layer)],
    }
    return {
        "index.json": _json(index),
        "manifest.json": _json([docker]),
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
    }


def _path(descriptor: Any) -> str:
    return "blobs/" + str(descriptor["digest"]).replace(":", "/")


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def pack(contents: Contents) -> bytes:
    """The files as a layer: owned by root, without times, in a fixed order."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, entry in contents.listed():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode = entry.mode
            if entry.target:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
                tar.addfile(info)
            elif entry.data is None:
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            else:
                _add(tar, info.name, entry.data, entry.mode)
    return layer.getvalue()


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    archive.addfile(info, io.BytesIO(data))
