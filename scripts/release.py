"""Builds a release and tries it: `python -m scripts.release`; CONTRIBUTING.md has the steps.

Input: the last commit, and nothing else of this folder. Output, in dist/: the sdist, the wheel
that is built from it, with `--image` the container image of the command, and SHA256SUMS. The wheel
is tried on this machine, and in each root file system of `--root`, which has Python and no
compiler: it is installed into an environment of its own, its packages from wheels only, and runs an
experiment, in a root file system as root and as an ordinary user.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compiler.plan.format import TOOL_VERSION
from scripts import release_image

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
# What pip there would take; the newest that a package of ours is published for.
_PLATFORMS = {
    "glibc": ("manylinux_2_28", "manylinux_2_17", "manylinux2014"),
    "musl": ("musllinux_1_2", "musllinux_1_1"),
}
_WHERE = "/tmp/tstorm-release"  # in a root file system, while it is tried there
_COMPILERS = "for name in cc gcc clang; do ! command -v $name; done"
_TRIAL = """\
set -eu
cd "$1"
python3 -m venv tried
tried/bin/pip --disable-pip-version-check install --quiet --no-index --find-links wheels tstorm
tried/bin/tstorm version
tried/bin/tstorm doctor
tried/bin/tstorm check quickstart.tdl
tried/bin/tstorm compile quickstart.tdl
tried/bin/tstorm run quickstart.plan --until 3s --out run
"""
_AS_ORDINARY_USER = """\
mkdir theirs
chown 1000:1000 theirs
cat >ordinary.py <<'END'
import os, sys
os.setgroups([])
os.setgid(1000)
os.setuid(1000)
os.environ["HOME"] = os.getcwd()
os.execv(sys.argv[1], sys.argv[1:])
END
cd theirs
python3 ../ordinary.py ../tried/bin/tstorm run ../quickstart.tdl --until 3s --out run
"""
_ABOUT = """\
import platform, sys
print(platform.libc_ver()[0] or "musl", "%d.%d" % sys.version_info[:2])
"""
# Not by chroot alone, in which nobody may make a namespace of users. All mounts go with the
# process: nothing stays mounted.
_INSIDE = """\
set -eu
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
: >>"$1/etc/hosts" # where a bare root has none, which a run puts its own over
mkdir "$1$2/outside"
cd "$1"
pivot_root . ".$2/outside"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$2" chroot . /bin/sh -euc '
    umount -l "$1/outside"
    exec /bin/sh "$1/trial.sh" "$1"' trial "$2"
"""


def run(*argv: str | Path, cwd: Path = ROOT) -> None:
    print("$", *argv, flush=True)
    subprocess.run(argv, cwd=cwd, check=True)


def asked(*argv: str | Path) -> str:
    return subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def build(scratch: Path) -> Path:
    """The sdist and the wheel of the last commit; gives the wheel."""
    tree = scratch / "tree"
    tree.mkdir()
    archive = scratch / "tree.tar"
    run("git", "archive", "--output", archive, "HEAD")
    run("tar", "-x", "-C", tree, "-f", archive)
    # So that the same commit gives the same files whenever they are built.
    os.environ["SOURCE_DATE_EPOCH"] = asked("git", "log", "-1", "--format=%ct").strip()
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST, tree)
    (wheel,) = DIST.glob("*.whl")
    if "musllinux" not in wheel.name or "manylinux" not in wheel.name:
        sys.exit(f"error: {wheel.name} is for this machine only: there is no static C library")
    return wheel


def problems() -> list[str]:
    """What makes this commit no release."""
    found = []
    if asked("git", "status", "--porcelain"):
        found.append("there are changes that are in no commit")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if f"\n## [{TOOL_VERSION}] - " not in changes:
        found.append(f"CHANGELOG.md has no section [{TOOL_VERSION}] with a date")
    return found


def wheels(wheel: Path, folder: Path, libc: str, version: str) -> None:
    """The wheel, and those that it needs, for a Python of this version beside this C library."""
    processor = wheel.stem.partition("musllinux_1_1_")[2]
    platforms = [f"--platform={name}_{processor}" for name in _PLATFORMS[libc]]
    chosen = (*platforms, f"--python-version={version}", "--only-binary=:all:")
    run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, *chosen, wheel)


def prepare(wheel: Path, folder: Path, python: list[str | Path]) -> None:
    """Lays out what the trial with this Python needs."""
    libc, version = asked(*python, "-c", _ABOUT).split()
    wheels(wheel, folder / "wheels", libc, version)
    shutil.copy(ROOT / "examples/quickstart.tdl", folder)


def try_here(wheel: Path, scratch: Path) -> None:
    folder = scratch / "here"
    folder.mkdir()
    prepare(wheel, folder, ["python3"])
    run("sh", "-c", _TRIAL, "trial", folder)


def try_in(root: Path, wheel: Path) -> None:
    """In a root file system without a compiler, as root and as an ordinary user."""
    folder = root / _WHERE.lstrip("/")
    folder.mkdir(parents=True)
    try:
        prepare(wheel, folder, ["chroot", root, "python3"])
        trial = f"{_COMPILERS}\n{_TRIAL}{_AS_ORDINARY_USER}"
        (folder / "trial.sh").write_text(trial, encoding="utf-8")
        run("unshare", "--mount", "sh", "-c", _INSIDE, "inside", root, _WHERE)
    finally:
        shutil.rmtree(folder)


def sums() -> str:
    files = sorted(path for path in DIST.iterdir() if path.name != "SHA256SUMS")
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Build a release into dist/ and try it.")
    parser.add_argument("--root", type=Path, action="append", default=[], metavar="DIR")
    parser.add_argument("--image", type=Path, metavar="DIR", help="of this root file system")
    parser.add_argument("--rehearse", action="store_true", help="although this is no release")
    given = parser.parse_args()
    for problem in problems():
        print(f"{'note' if given.rehearse else 'error'}: {problem}")
        if not given.rehearse:
            sys.exit(1)
    with tempfile.TemporaryDirectory(prefix="tstorm-release-") as name:
        wheel = build(Path(name))
        try_here(wheel, Path(name))
        for root in given.root:
            try_in(root.resolve(), wheel)
        if given.image:
            image = DIST / f"tstorm-{TOOL_VERSION}-oci.tar"
            release_image.build(given.image.resolve(), wheel, image)
    (DIST / "SHA256SUMS").write_text(sums(), encoding="utf-8")
    print(sums(), end="")


if __name__ == "__main__":
    main()
