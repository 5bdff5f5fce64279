"""Builds the image of agent and coordinator: what `tstorm image build` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compiler.plan.format import TOOL_VERSION
from tstorm.exit_codes import CANNOT, CommandError
from tstorm.image import archive, image_source, rootfs

CONFIG = {
    "Entrypoint": ["/usr/bin/tstorm-agent"],
    "Env": [f"{key}={value}" for key, value in sorted(rootfs.ENVIRONMENT.items())],
    "Labels": {
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": "thunderstorm",
        "org.opencontainers.image.version": TOOL_VERSION,
    },
}


@dataclass(frozen=True, slots=True)
class Built:
    architecture: str
    digest: str  # of the image's manifest; '' of files without an archive
    files: int
    size_bytes: int  # unpacked


def build(out: Path, name: str, architecture: str, root: Path | None, unpacked: bool) -> Built:
    """Writes the archive `out`, or the files into the folder `out`. `architecture`: '' for the one
    that is found; `root`: None for this machine. Raises CommandError, OSError."""
    found = image_source.this_machine() if root is None else image_source.other_root(root)
    if architecture and architecture != found.architecture:
        raise _other_architecture(architecture, found.architecture, root)
    contents = rootfs.gather(found)
    digest = ""
    if unpacked:
        contents.write(out)
    else:
        digest = archive.write(out, name, found.architecture, contents, CONFIG)
    return Built(found.architecture, digest, len(contents.listed()), contents.size_bytes)


def _other_architecture(asked: str, found: str, root: Path | None) -> CommandError:
    whose = "this machine's programs are" if root is None else f"the programs in {root} are"
    return CommandError(
        f"error: {whose} for {found}, not {asked}: nothing is compiled for another architecture\n"
        f"hint: run this command on a machine with {asked}, or give a root file system of one, "
        f"with Python and Thunderstorm installed in it: --arch {asked} --root DIR",
        CANNOT,
    )
