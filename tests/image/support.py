"""Where the compiled programs are, and how an archive is unpacked."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "tcal_c/build"


def unpack(archive: Path, folder: Path) -> Path:
    """The files of the image's only layer, in `folder`."""
    with tarfile.open(archive) as tar:
        (listed,) = json.loads(tar.extractfile("manifest.json").read())
        (layer,) = listed["Layers"]
        data = tar.extractfile(layer).read()
    subprocess.run(["tar", "-x", "-p", "-C", folder], input=data, check=True)
    return folder
