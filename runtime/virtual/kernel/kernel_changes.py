"""Our changes to the kernel: what is switched on, patches and files added, and their digest.

The data lies beside this file. `config` has sections, each headed `# ---- NAME: text`: a source
tree must follow all lines of `needed`, it is told and recorded where it does not follow one of
`wanted`, and the lines of `older` are for those that know them. `patches/series` has a patch a
line, `FILE [CONDITION]`, with a condition on the version like `<6.13` or `>=6.13`. What is below
`added/` goes to the same path in the tree.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import RunError

DATA = Path(__file__).resolve().parent
RECIPE = 1  # raised when kernel_build.py makes another kernel of the same source and data
NEEDED, WANTED, OLDER = "needed", "wanted", "older"
SALT = "CONFIG_BUILD_SALT"  # a string without effect: by it a kernel tells which changes it has
_SALT_PREFIX = "tstorm-"
_DIGITS = 16
_SECTION = re.compile(r"# ---- (\w+):")
_UNSET = re.compile(r"# (CONFIG_\w+) is not set")
_CONDITION = re.compile(r"(<|>=)(\d+)\.(\d+)")

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Patch:
    path: Path
    condition: str  # on the version; '' for all

    def fits(self, version: Version) -> bool:
        if not self.condition:
            return True
        match = _CONDITION.fullmatch(self.condition)
        if match is None:
            raise RunError(f"{self.path.name}: {self.condition!r} is no condition on a version")
        bound = int(match[2]), int(match[3])
        return version < bound if match[1] == "<" else version >= bound


def config_lines(section: str) -> list[str]:
    """The lines of one section of `config`, as .config has them."""
    lines = []
    now = ""
    for line in (DATA / "config").read_text(encoding="utf-8").splitlines():
        if match := _SECTION.match(line):
            now = match[1]
        elif now == section and (line.startswith("CONFIG_") or _UNSET.fullmatch(line)):
            lines.append(line)
    return lines


def whole_config() -> str:
    """What `make allnoconfig` is given: all sections, and which changes the kernel has."""
    lines = [line for name in (NEEDED, WANTED, OLDER) for line in config_lines(name)]
    return "\n".join([*lines, f'{SALT}="{_SALT_PREFIX}{digest()}"', ""])


def not_followed(section: str, config: str) -> list[str]:
    """The lines of a section that a tree's .config does not have, by their names. An option that
    is to be off may be missing altogether."""
    followed = set(config.splitlines())
    missing = [line for line in config_lines(section) if line not in followed]
    names = [match[1] if (match := _UNSET.fullmatch(line)) else line for line in missing]
    on = {line.partition("=")[0] for line in followed}
    return [name for name in names if "=" in name or name in on]


def of_config(config: str) -> str:
    """The digest of the changes that a kernel with this .config has; '' if it is none of ours."""
    match = re.search(rf'^{SALT}="{_SALT_PREFIX}([0-9a-f]+)"$', config, re.MULTILINE)
    return match[1] if match else ""


def digest() -> str:
    """Of all that decides what comes of a source, in hexadecimal digits."""
    value = hashlib.sha256(f"recipe {RECIPE}\n".encode())
    files = [DATA / "config", DATA / "patches/series", *(p.path for p in series())]
    for path in [*files, *(DATA / "added" / name for name in added())]:
        content = path.read_bytes()
        value.update(f"{path.relative_to(DATA)} {len(content)}\n".encode() + content)
    return value.hexdigest()[:_DIGITS]


def series() -> list[Patch]:
    """All patches in their order. RunError for a line that is none."""
    found = []
    for line in (DATA / "patches/series").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        path = DATA / "patches" / words[0]
        if len(words) > 2 or not path.is_file():
            raise RunError(f"{DATA / 'patches/series'}: no such patch: {line}")
        found.append(Patch(path, words[1] if len(words) == 2 else ""))
    return found


def added() -> list[str]:
    """Paths of the files that are added, in the tree."""
    root = DATA / "added"
    paths = (path for path in root.rglob("*") if path.is_file())
    return sorted(str(p.relative_to(root)) for p in paths if p != root / "README.md")


def fitting(version: Version) -> list[Patch]:
    """Those for this version."""
    return [one for one in series() if one.fits(version)]


def apply(tree: Path, version: Version) -> None:
    """Changes an unpacked source tree. RunError if a patch does not fit this version."""
    for name in added():
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(DATA / "added" / name, target)
    for one in fitting(version):
        _patch(tree, one, version)


def _patch(tree: Path, one: Patch, version: Version) -> None:
    # A line of context may differ (versions do); with two, a change may land anywhere.
    options = (
        "-p1",
        "--fuzz=1",
        "--batch",
        "--forward",
        "--no-backup-if-mismatch",
        "--reject-file=-",
    )
    with one.path.open("rb") as diff:
        done = subprocess.run(
            ["patch", *options], cwd=tree, stdin=diff, capture_output=True, check=False
        )
    if done.returncode != 0:
        said = " ".join(done.stdout.decode(errors="replace").split())
        number = ".".join(map(str, version))
        raise RunError(
            f"our change {one.path.name} does not fit this source of Linux {number}: {said}",
            "take another version: 6.12 is the one that is tried most",
        )
