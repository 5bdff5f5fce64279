"""What `img=` names: `[docker://]nginx:1.27`, `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]`,
`docker-archive:FILE[:NAME]`, `containers-storage:NAME` (podman), `docker-daemon:NAME`.

A registry's reference is completed as container runtimes do it: host, `library/`, tag. Relative
paths start at the folder of the TDL file. The grammar of transports is skopeo's
(containers-transports(5)).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError

_FILES = ("oci", "oci-archive", "docker-archive")
_STORES = ("containers-storage", "docker-daemon")
_HOST = re.compile(r"[.:]|\Alocalhost\Z")  # else the part before the first slash is no host
_WORD = re.compile(r"[!-~]+")  # nothing that a terminal or skopeo would take for something else
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class Reference:
    """`name` is what skopeo calls it. `kept`: it stays what it was until `tstorm image pull`; what
    is on this machine is looked at each time. `place`: its file or folder, '' if it has none."""

    written: str
    name: str
    kept: bool
    place: str = ""

    def at(self, digest: str) -> str:
        """The name of just this content, where a registry has it."""
        if not self.kept or _DIGEST.search(self.name):
            return self.name
        repository, _, _ = self.name.rpartition(":")
        return f"{repository}@{digest}"

    @property
    def digest(self) -> str:
        """`sha256:…` if it is part of the name, else ''."""
        found = _DIGEST.search(self.name)
        return found[0][1:] if found else ""

    @property
    def plain_http(self) -> bool:
        """Whether it is at a registry of this machine, which needs no certificate."""
        host = self.name.removeprefix("docker://").partition("/")[0]
        return self.kept and _is_loopback(host)


def parse(written: str, folder: str) -> Reference:
    """RunError if it names no image. `folder`: where relative paths start."""
    transport, colon, rest = written.partition(":")
    if not _WORD.fullmatch(written):
        raise _no_image(written)
    if colon and transport in _FILES:
        path, _, more = rest.partition(":")
        if not path:
            raise _no_image(written)
        place = str(Path(folder) / path)
        name = f"{transport}:{place}{f':{more}' if more else ''}"
        return Reference(written, name, False, place)
    if colon and transport in _STORES:
        if not rest or rest.startswith("-"):
            raise _no_image(written)
        tagged = transport == "containers-storage" or ":" in rest.rpartition("/")[2]
        return Reference(written, f"{transport}:{rest}{'' if tagged else ':latest'}", False)
    bare = written.removeprefix("docker://")
    if "//" in bare or bare.startswith(("-", "/")) or bare.endswith(("/", ":", "@")):
        raise _no_image(written)
    return Reference(written, f"docker://{_completed(bare)}", True)


def _completed(image: str) -> str:
    host, slash, _ = image.partition("/")
    if not slash or not _HOST.search(host):
        image = f"docker.io/{image}" if slash else f"docker.io/library/{image}"
    if "@" in image:  # skopeo takes a tag or a digest, and the digest says more
        repository, _, digest = image.partition("@")
        head, _, last = repository.rpartition("/")
        return f"{head}/{last.partition(':')[0]}@{digest}"
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def _is_loopback(host: str) -> bool:
    name = host.rpartition(":")[0] if re.search(r":[0-9]+\Z", host) else host
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def _no_image(written: str) -> RunError:
    known = ", ".join(f"{name}:…" for name in (*_FILES, *_STORES))
    return RunError(
        f"{written!r:.200} names no image",
        f"it must be such as nginx:1.27 or registry.example/team/app:2, or one of {known}",
    )
