"""`tstorm image`: images that services run, kept here; and the one of agents and coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tstorm import output
from tstorm.command_support import errors_shown
from tstorm.options import option_types
from tstorm.options.shared import table_or_json

if TYPE_CHECKING:
    from runtime.images.image_cache import Image

_DIGITS = 12  # of a digest, for people


@click.group()
def command() -> None:
    """Container images: those that services run here (img=), and the one of our own agents.

    A run fetches the images that it needs, unpacks them once, and keeps them by digest in
    ~/.cache/tstorm/images. 'build' is for runs on Kubernetes: it makes the image of agent and
    coordinator.

    \b
    Examples:
      tstorm image pull nginx:1.27
      tstorm image list
      tstorm image prune
      tstorm image build -o tstorm.tar
    """


@command.command()
@click.argument("images", metavar="IMAGE...", nargs=-1, required=True, type=option_types.TextType())
def pull(images: tuple[str, ...]) -> None:
    """Fetch and unpack images, and print the digest of each.

    IMAGE is what img= takes: a reference such as nginx:1.27 or registry.example/team/app:2, or
    oci:DIR, oci-archive:FILE, docker-archive:FILE, containers-storage:NAME (podman),
    docker-daemon:NAME. A run asks a registry only for what is not kept; 'pull' asks again, and
    later runs take what it finds.

    \b
    Examples:
      tstorm image pull docker.io/library/postgres:17
      tstorm image pull oci-archive:build/app.tar
    """
    with errors_shown():
        from runtime.images import fetching, ids, references

        here = str(Path.cwd())
        wanted = [references.parse(image, here) for image in images]
        available = ids.available()
        if available == ids.ONE:
            output.note(f"warning: {ids.WARNING}")
            output.note(f"hint: {ids.REMEDY}")
        for reference in wanted:
            found = fetching.get(reference, available, output.note, pull=True)
            output.note(f"{reference.written}: {_size(found)} unpacked")
            output.line(found.digest)


@command.command("list")
@table_or_json
def list_(form: str) -> None:
    """Show the images that are kept.

    \b
    Examples:
      tstorm image list
      tstorm image list --format json | jq -r '.images[].digest'
    """
    with errors_shown():
        from runtime.images import ids, image_cache

        found = image_cache.images()
        if form == "json":
            output.emit_json(
                {"folder": str(image_cache.root()), "images": [_row(one) for one in found]}
            )
            return
        output.emit_table(
            ("DIGEST", "SIZE", "FETCHED", "IDS", "IMAGE"),
            (
                (
                    one.digest.removeprefix("sha256:")[:_DIGITS],
                    _size(one),
                    one.fetched,
                    one.ids,
                    " ".join(one.references),
                )
                for one in found
            ),
            right=(1,),
        )
        if any(one.ids == ids.ONE for one in found):
            output.note("one: unpacked with one user id, to which all files belong")


def _size(image: Image) -> str:
    return f"{image.size_bytes / 1e6:.1f} MB"


def _row(image: Image) -> dict[str, object]:
    return {
        "digest": image.digest,
        "fetched": image.fetched,
        "ids": image.ids,
        "path": str(image.root),
        "references": list(image.references),
        "size_bytes": image.size_bytes,
    }


@command.command()
@click.option("--all", "every", is_flag=True, help="All images, not only those without a name.")
def prune(every: bool) -> None:
    """Remove images that no reference leads to any more, and what a killed run has left.

    These are images whose tag has been pulled again since, and images of archives, of podman and of
    docker, which are unpacked again when a run wants them. Images in use stay.

    \b
    Examples:
      tstorm image prune
      tstorm image prune --all
    """
    with errors_shown():
        from runtime.images import image_cache

        for image in image_cache.prune(every=every):
            output.note(f"removed {image.digest}: {' '.join(image.references)}")


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
    type=option_types.TextType(),
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
    from manifests.render_options import DEFAULT_AGENT_IMAGE

    if name is not None and (reason := images.problem(name)):
        raise click.BadParameter(
            f"{name!r} is no name of an image: {reason}", param_hint="'--name'"
        )
    from tstorm.image.rootfs import build as build_image

    called = images.resolved(name or DEFAULT_AGENT_IMAGE)
    made = build_image(target, called, arch or "", root, unpacked)
    size = f"{made.files} files, {made.size_bytes / 1e6:.1f} MB unpacked"
    shown = size if unpacked else f"{called}, {size}, {made.digest}"
    click.echo(f"{target}: {made.architecture}, {shown}")
