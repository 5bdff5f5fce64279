"""What a packet costs: the driver, and the table (bench/engine/packet_cost.py)."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from bench import ROOT
from bench.engine.packet_cost import DRIVER, by_world, sources


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_driver_fits_the_sim() -> None:
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'tcal_c'}"]
    subprocess.run(["cc", "-fsyntax-only", *flags, DRIVER], check=True)


def test_it_is_made_of_what_decides_about_packets() -> None:
    names = [path.name for path in sources(ROOT)]
    assert {"link.c", "draw.c", "heap.c", "proto.c", "sim.c", "frames.c"} <= set(names)
    assert "main.c" not in names
    assert not [name for name in names if name.startswith(("test_", "fuzz_"))]


def test_versions_stand_beside_each_other() -> None:
    rows = [
        {"world": world, "of": of, "instructions": instructions, "ns": 0.5}
        for world, of, instructions in (
            ("delay", "before", 1427),
            ("delay", "this tree", 1467),
            ("rate", "before", 1797),
            ("rate", "this tree", 1578),
        )
    ]
    assert by_world(rows).splitlines() == [
        "| Two links each with | before: instructions | ns | this tree: instructions | ns |",
        "| --- | --- | --- | --- | --- |",
        "| delay | 1,427 | 0.5 | 1,467 | 0.5 |",
        "| rate | 1,797 | 0.5 | 1,578 | 0.5 |",
    ]
