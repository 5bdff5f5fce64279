"""From a reference to a digest, and from a digest to an unpacked image that is kept.

    digest    of the manifest at the reference (skopeo inspect --raw): a list's, where it is a list
    fetched   skopeo copy into a folder that keeps manifest and configuration as they are (dir:),
              then into OCI's layout, which is what umoci reads
    unpacked  umoci raw unpack, with all user ids that a run has

A registry is asked once for a reference; from then on it stays what it was, until it is pulled.
What is on this machine (archives, podman, docker) is looked at each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from runtime.errors import RunError, unwritten
from runtime.images import ids, image_cache, image_config, image_tools
from runtime.images.image_cache import Image, remove
from runtime.images.image_config import ImageConfig
from runtime.images.image_tools import Steps
from runtime.images.references import Reference
from runtime.json_schema import (
    TEXT,
    Shape,
    check,
    parse,
)
from runtime.system import locks

_ELSEWHERE = (
    "correct img=, log in, or have it from elsewhere (oci-archive:FILE, docker-archive:FILE); state"
    " exec= for a program of this machine; with --programs services without exec= are idle"
)
_DOCKER = "docker-daemon:"
_BUILT = (
    "run 'docker compose build' if a Compose file builds it, and 'docker image ls' to see what is "
    "there; one that podman has is containers-storage:NAME, as img: of x-tstorm"
)
_MANIFEST_SHAPE = Shape({"config": {"digest": TEXT}})
_POLICY = {"default": [{"type": "insecureAcceptAnything"}]}  # as skopeo's own default
_POLICIES = ("$HOME/.config/containers/policy.json", "/etc/containers/policy.json")


def get(reference: Reference, available: str, steps: Steps, *, pull: bool = False) -> Image:
    """The unpacked image. `available`: the ids that a run has; `pull`: ask the registry again.
    RunError that names the reference, MachineError if a tool is missing."""
    digest = reference.digest or ("" if pull else _remembered(reference))
    found = fetched(reference, digest or digest_of(reference, steps), available, steps)
    if reference.kept and not reference.digest:
        image_cache.note_reference(reference.name, found.digest)
    return found


def fetched(reference: Reference, digest: str, available: str, steps: Steps) -> Image:
    """The unpacked image with just this content, from the cache or from where it is. RunError."""
    found = image_cache.find(digest, available)
    if found is None:
        with making(digest, available) as made:
            found = image_cache.find(digest, available)  # made by another run while we waited
            if found is None:
                found = _make(made, reference, digest, available, steps)
    return found


def _remembered(reference: Reference) -> str:
    return image_cache.known_digest(reference.name) if reference.kept else ""


def digest_of(reference: Reference, steps: Steps) -> str:
    """What the reference is now: `sha256:…` of its manifest. RunError."""
    steps(f"looking for the image {reference.written}")
    _look(reference)
    image_cache.root().mkdir(mode=0o700, parents=True, exist_ok=True)
    argv = _skopeo("inspect", reference, "--raw")
    what = f"cannot find the image {reference.written}"
    try:
        manifest = image_tools.run(what, [*argv, reference.name], image_cache.root())
    except RunError as error:
        of_docker = reference.name.startswith(_DOCKER)
        remedy = error.remedy or (_BUILT if of_docker else _ELSEWHERE)
        raise RunError(error.message, remedy) from error
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _look(reference: Reference) -> None:
    """RunError if something there is neither file nor folder: skopeo waits for the other end of a
    pipe. What is not there it tells itself."""
    for folder, _, names in os.walk(reference.place) if reference.place else ():
        for name in names:
            _look_at(reference, Path(folder, name))
    _look_at(reference, Path(reference.place or "/"))


def _look_at(reference: Reference, path: Path) -> None:
    if path.exists() and not path.is_file() and not path.is_dir():
        raise RunError(f"the image {reference.written}: {path} is not a file", _ELSEWHERE)


def _make(made: _Making, reference: Reference, digest: str, available: str, steps: Steps) -> Image:
    steps(f"fetching the image {reference.written}")
    plain, layout = made.folder / "plain", made.folder / "layout"
    what = f"cannot fetch the image {reference.written}"
    name = reference.at(digest)
    argv = _skopeo("copy", reference, "--quiet", policy=made.folder)
    image_tools.run(what, [*argv, name, f"dir:{plain}"], made.folder, [made.lock])
    if not reference.kept:
        _expect(reference, digest, plain)
    found = _config(reference, plain)
    argv = _skopeo("copy", None, "--quiet", policy=made.folder)
    image_tools.run(what, [*argv, f"dir:{plain}", f"oci:{layout}:image"], made.folder, [made.lock])
    steps(f"unpacking the image {reference.written}")
    size = _unpack(layout, made.folder / image_cache.ROOT, available, reference.written)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    image = Image(made.folder, digest, (reference.written,), available, size, now, found)
    return image_cache.keep(image)


def _expect(reference: Reference, digest: str, plain: Path) -> None:
    """An archive may have changed since it was looked at; a list in it is another matter."""
    manifest = (plain / "manifest.json").read_bytes()
    got = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    if got != digest and digest_of(reference, lambda _text: None) != digest:
        raise RunError(
            f"the image {reference.written} has changed: it is {got}, and {digest} is wanted",
            "put the old one back, or run the experiment anew instead of replaying it",
        )


def _config(reference: Reference, plain: Path) -> ImageConfig:
    """The image's configuration, before skopeo writes it in OCI's way and leaves some out."""
    place = f"the image {reference.written}"
    manifest = parse(_bounded(plain / "manifest.json", place), place)
    try:
        check(manifest, _MANIFEST_SHAPE, place)
    except RunError as error:
        raise RunError(
            f"{place} is none that can be run: {error.message}", image_config.REMEDY
        ) from None
    name = str(manifest["config"]["digest"]).partition(":")[2]
    if not name.isalnum():
        raise RunError(f"{place} has a damaged manifest", image_config.REMEDY)
    return image_config.read(_bounded(plain / name, place), place)


def _bounded(path: Path, place: str) -> bytes:
    with path.open("rb") as file:
        data = file.read(image_config.MAX_BYTES + 1)
    if len(data) > image_config.MAX_BYTES:
        raise RunError(
            f"{place}: its configuration is larger than {image_config.MAX_BYTES:,} bytes"
        )
    return data


def _skopeo(
    verb: str, reference: Reference | None, *options: str, policy: Path | None = None
) -> list[str]:
    """Its command line so far. `policy`: a folder for the policy that it needs where the machine
    has none."""
    argv = [image_tools.find("skopeo")]
    if policy is not None and not _any(_POLICIES):
        file = policy / "policy.json"
        file.write_text(json.dumps(_POLICY), encoding="utf-8")
        argv += ["--policy", str(file)]
    argv += [verb, *options]
    if reference is not None and reference.plain_http:
        argv.append("--tls-verify=false" if verb == "inspect" else "--src-tls-verify=false")
    return argv


def _any(paths: Sequence[str]) -> bool:
    return any(Path(os.path.expandvars(path)).exists() for path in paths)


@dataclass(frozen=True, slots=True)
class _Making:
    """`lock` shows that somebody is at it: tools inherit it, so that it outlives a kill of us."""

    folder: Path
    lock: int


@contextmanager
def making(digest: str, available: str) -> Iterator[_Making]:
    """Waits until nobody else makes the same image, then yields a folder, which is removed at the
    end. RunError."""
    try:
        with image_cache.gate(image_cache.folder_of(digest, available).name):
            for folder in image_cache.left_over():  # of those who were killed
                remove(folder)
            with _new() as made:
                yield made
    except OSError as error:
        raise unwritten(error) from error


@contextmanager
def _new() -> Iterator[_Making]:
    with image_cache.gate(image_cache.NEW):
        folder = Path(tempfile.mkdtemp(prefix=image_cache.NEW, dir=image_cache.root()))
        lock = image_cache.opened(folder / image_cache.LOCK)
        locks.take(lock)
    try:
        yield _Making(folder, lock)
    finally:
        os.close(lock)
        remove(folder)


def _unpack(layout: Path, root: Path, available: str, called: str) -> int:
    """Makes `root` out of the OCI layout, whose image is tagged `image`; its size in bytes.
    RunError that names the image as it is `called`.

    umoci applies whiteouts, and keeps the paths and links of layers within the root. It works in
    the namespaces of a run's sandbox, with the user ids that a run has, and ends with this process.
    Devices of a layer are removed: programs see those that an instance has in /dev."""
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
