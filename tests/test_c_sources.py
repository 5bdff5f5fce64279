"""How the C side is laid out: which folder knows which, and braces around every body."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1] / "tcal_c"
# Folder -> the folders (and single headers) that its sources may include: the engine in pktd/core
# knows no device, and neither it nor libtcal a protocol or a program.
KNOWS = {
    "common": [],
    "common/netlink": ["common"],
    "pktd/core/structures": ["common"],
    "pktd/record": ["common"],
    "pktd/core/draws": ["common"],
    "pktd/core/packets": ["common", "pktd/core/structures", "probe/wire.h"],
    "pktd/core/aqm": [
        "common",
        "pktd/core/draws",
        "pktd/core/packets",
    ],
    "pktd/core": [
        "common",
        "pktd/core/aqm",
        "pktd/core/draws",
        "pktd/core/packets",
        "pktd/core/structures",
        "pktd/record",
    ],
    "pktd/capture": ["pktd/record", "pktd/core/packets/packet.h"],
    "pktd/ports": ["common", "common/netlink"],
    "pktd/io_threads": ["common", "pktd/core", "pktd/core/structures", "pktd/ports"],
    "pktd/steer": ["common", "pktd/core/structures"],
    "pktd/protocol": [
        *("common", "pktd/core", "pktd/core/structures/array.h", "pktd/ports"),
        "pktd/record/capture_request.h",
    ],
    "pktd/loop": [
        *("common", "pktd/core", "pktd/core/structures"),
        *("pktd/capture", "pktd/io_threads", "pktd/ports", "pktd/steer"),
    ],
    "pktd": ["common", "pktd/core", "pktd/loop", "pktd/ports", "pktd/protocol"],
    "tcal/tree": ["common", "common/netlink", "tcal/tcal.h"],
    "tcal": ["common", "common/netlink", "tcal/tree"],
    "tcald": ["common", "tcal", "tcal/tree/dist.h"],
    "keep": ["common"],
    "ns": ["common", "keep"],
    "hold": ["common", "keep"],
    "probe": ["common"],
    "probe/active": ["common", "common/netlink", "probe/wire.h"],
    "routes": [],
    "share": [],
}
SOURCES = sorted(path for path in ROOT.rglob("*.[ch]") if "build" not in path.parts)
PRODUCT = [path for path in SOURCES if "tests" not in path.parts]


def test_every_folder_is_in_the_table() -> None:
    assert {str(path.parent.relative_to(ROOT)) for path in PRODUCT} == set(KNOWS)


@pytest.mark.parametrize("folder", sorted(KNOWS))
def test_folders_know_only_what_is_below_them(folder: str) -> None:
    for path in (path for path in PRODUCT if path.parent == ROOT / folder):
        for name in re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8")):
            beside = (path.parent / name).exists()
            assert beside or {name, str(Path(name).parent)} & {*KNOWS[folder]}, f"{path}: {name}"
            assert beside or (ROOT / name).exists(), f"{path}: {name}"


@pytest.mark.parametrize("folder", sorted({path.parent for path in SOURCES}))
def test_no_folder_has_too_many_sources(folder: Path) -> None:
    assert len(list(folder.glob("*.[ch]"))) <= 20


def bodies(text: str) -> list[str]:
    """What follows each `if (…)`, `for (…)`, `while (…)` and `else`."""
    found = []
    for match in re.finditer(
        r"^ *(?:(?:} else if|else if|if|for|while) \(|(?:} )?else\b(?! if))", text, re.M
    ):
        end, depth = match.end(), int(match[0].endswith("("))
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[end:].lstrip())
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_bodies_have_braces(path: Path) -> None:
    for body in bodies(path.read_text(encoding="utf-8")):
        assert body.startswith(("{", ";")), body[:60]
