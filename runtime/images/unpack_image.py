"""Unpacks an image's layers into a root file system, with umoci (rootless where there is one id).

umoci applies whiteouts, and keeps the paths and links of layers within the root. It works in the
namespaces of a run's sandbox, with the user ids that a run has, and ends with this process.
Devices of a layer are removed: programs see those that an instance has in /dev.
"""

from __future__ import annotations

from pathlib import Path

from runtime.errors import RunError
from runtime.images import ids, image_config, image_tools


def unpack(layout: Path, root: Path, available: str, called: str) -> int:
    """Makes `root` out of the OCI layout, whose image is tagged `image`; its size in bytes.
    RunError that names the image as it is `called`."""
    rootless = ["--rootless"] if available == ids.ONE else []
    argv = [image_tools.find("umoci"), "raw", "unpack", *rootless, "--image", f"{layout}:image"]
    what, place = f"cannot unpack the image {called}", layout.parent
    inner = place / "unpacking" / "root"  # umoci follows a whiteout of `..` out of it
    inner.parent.mkdir()
    try:
        image_tools.run(what, ids.with_all(*argv, str(inner)), place)
    except RunError:
        if inner.parent.is_dir():
            raise
    if not inner.parent.is_dir():
        raise RunError(f"{what}: a layer removes what is outside of its root", image_config.REMEDY)
    if not inner.is_dir() or inner.is_symlink():
        raise RunError(f"{what}: it has no files", image_config.REMEDY)
    image_tools.run(what, ids.with_all("mv", str(inner), str(root)), place)
    devices = ("find", str(root), "-xdev", "(", "-type", "b", "-o", "-type", "c", ")", "-delete")
    image_tools.run(what, ids.with_all(*devices), place)
    said = image_tools.run(what, ids.with_all("du", "-sxB1", str(root)), place)
    return int(said.split()[0])
