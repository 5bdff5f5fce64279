"""The volumes of an image (VOLUME): each is a directory of the instance's own, not on its overlay.

As Docker does: at the first start it has what the image has at that path, owners and modes too, and
a rejoin finds it as it was left. The directories are where no program reaches them by another way:
it could put a link in their place, which the run would follow at the next start.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from runtime.backend.local.filesystem.image_root import ImageRoot
from runtime.backend.local.nursery import Operation
from runtime.errors import RunError
from runtime.system.inroot import inside

FOLDER = "volumes"


def operations(image: ImageRoot, own: Path) -> list[Operation]:
    """How an instance gets them, for tstorm-ns. `own`: its directory beside its files, which no
    program sees. RunError, OSError."""
    done: list[Operation] = []
    names: set[str] = set()
    for path in image.volumes:
        name = path.strip("/").replace("/", "-")
        while name in names:  # of /a-b, where there is /a/b
            name += "-"
        names.add(name)
        place = own / FOLDER / name
        if not place.exists():
            _make(place, image, path)
        done.append(("bind", str(place), path, "rw"))
    return done


def _make(place: Path, image: ImageRoot, path: str) -> None:
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
