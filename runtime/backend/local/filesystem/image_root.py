"""An unpacked image, as the instances of a service run it on this machine."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runtime.backend.local.nursery import Operation
from runtime.errors import RunError
from runtime.system.inroot import inside


@dataclass(frozen=True, slots=True)
class ImageRoot:
    """What the image and the service say together, where both do."""

    lower: str  # the unpacked root file system: an absolute directory, which nothing writes to
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]  # without the service's own
    user: str = ""  # as written; '' is root
    cwd: str = "/"  # in it, absolute; made where it is missing
    stop: str = ""  # 'SIGQUIT'; '' = SIGTERM
    volumes: tuple[str, ...] = ()  # absolute paths
    ready: tuple[str, ...] = ()  # argv of its check; () = none


# /dev of an instance that runs an image: what every container has there, and no other device.
#
# The links are in the instance's layer, which hides what the image has in /dev; the devices are
# those of the machine, each mounted over a file of its own. The layer is mounted without devices,
# so one that a program makes is of no use to it.

_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_FOLDERS = ("pts", "shm", "mqueue")
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_DEV = Path("/dev")


def make_dev(upper: Path, attribute: str) -> None:
    """What is in an instance's layer, before anything else is. `attribute`: whose value `y` hides
    a directory of the layers below (overlayfs: trusted or user). OSError."""
    place = upper / "dev"
    place.mkdir(mode=0o755)
    with suppress(OSError):  # then it is seen through to the image's own
        os.setxattr(place, attribute, b"y")
    for name, target in _LINKS.items():
        (place / name).symlink_to(target)
    for name in _NODES:
        (place / name).touch(mode=0o666)
    for name in _FOLDERS:
        (place / name).mkdir(mode=0o755)


def dev_operations() -> list[Operation]:
    """How the devices get there, for tstorm-ns: those that the machine has."""
    wanted = (_DEV / name for name in (*_NODES, *_FOLDERS))
    return [("bind", str(path), str(path), "rw") for path in wanted if path.exists()]


# The volumes of an image (VOLUME): each is a directory of the instance's own, not on its overlay.
#
# As Docker does: at the first start it has what the image has at that path, owners and modes too,
# and a rejoin finds it as it was left. The directories are where no program reaches them by
# another way: it could put a link in their place, which the run would follow at the next start.

VOLUMES = "volumes"


def volume_operations(image: ImageRoot, own: Path) -> list[Operation]:
    """How an instance gets them, for tstorm-ns. `own`: its directory beside its files, which no
    program sees. RunError, OSError."""
    done: list[Operation] = []
    names: set[str] = set()
    for path in image.volumes:
        name = path.strip("/").replace("/", "-")
        while name in names:  # of /a-b, where there is /a/b
            name += "-"
        names.add(name)
        place = own / VOLUMES / name
        if not place.exists():
            _make_volume(place, image, path)
        done.append(("bind", str(place), path, "rw"))
    return done


def _make_volume(place: Path, image: ImageRoot, path: str) -> None:
    """cp(1) keeps owners, links and holes; the image's own links lead nowhere else."""
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    content = inside(Path(image.lower), path)
    if content is None or not content.is_dir():
        place.mkdir(mode=0o755)
        return
    argv = ["cp", "-a", "--no-target-directory", "--", str(content), str(place)]
    made = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if made.returncode != 0:
        words = made.stderr.decode(errors="replace").strip().splitlines()
        reason = words[-1] if words else f"cp ended with {made.returncode}"
        raise RunError(f"cannot make the volume {path}: {reason}")
