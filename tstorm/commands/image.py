"""`tstorm image build`: the image that agents and coordinator run in."""

from __future__ import annotations

from pathlib import Path

import click

from tstorm import parameters


@click.group()
def command() -> None:
    """The container image of agent and coordinator, for runs on Kubernetes.

    \b
    Example:
      tstorm image build -o tstorm.tar
    """


@command.command()
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The archive.",
)
@click.option(
    "--unpacked",
    is_flag=True,
    help="Write the files of the image into the new directory FILE, as the Dockerfile does.",
)
@click.option(
    "--arch",
    type=click.Choice(["amd64", "arm64"]),
    help="Refuse to build for another architecture.  [default: that of this machine or of --root]",
)
@click.option(
    "--name",
    metavar="IMAGE",
    type=parameters.Text(),
    help="The image's name.  [default: the one that rendered manifests have]",
)
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take everything from the root file system DIR, with Python and Thunderstorm in it.",
)
def build(
    target: Path, unpacked: bool, arch: str | None, name: str | None, root: Path | None
) -> None:
    """Write the image of agent and coordinator as an OCI archive, without a container engine.

    It holds what this machine runs Thunderstorm with: the Python interpreter, the modules and
    libraries that are needed, the C programs. The same files give the same bytes. Print its digest.

    \b
    Examples:
      tstorm image build -o tstorm.tar
      kind load image-archive tstorm.tar
      k3s ctr images import tstorm.tar
      docker load --input tstorm.tar
    """
    from manifests import images
    from manifests.settings import DEFAULT_AGENT_IMAGE

    if name is not None and (reason := images.problem(name)):
        raise click.BadParameter(
            f"{name!r} is no name of an image: {reason}", param_hint="'--name'"
        )
    from tstorm.image.build import build as build_image

    called = images.resolved(name or DEFAULT_AGENT_IMAGE)
    made = build_image(target, called, arch or "", root, unpacked)
    size = f"{made.files} files, {made.size_bytes / 1e6:.1f} MB unpacked"
    shown = size if unpacked else f"{called}, {size}, {made.digest}"
    click.echo(f"{target}: {made.architecture}, {shown}")
