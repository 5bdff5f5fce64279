"""A source of a kernel that is built in a moment, and changes of ours to it, as the real ones.

The fake kernel answers the questions that a real one answers. Its tree has what a real one has and
a build does not read, too.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from runtime.virtual.kernel import kernel_cache, kernel_changes
from runtime.virtual.kernel.kernel_build import Steps

MAIN = r"""
#include <stdio.h>
#include <string.h>
static const char config[] =
#include "config.inc"
;
int main(int argc, char **argv) {
    const char *asked = argc > 1 ? argv[1] : "";
    if (!strcmp(asked, "--version")) puts(VERSION);
    if (!strcmp(asked, "--showconfig")) fputs(config, stdout);
    if (!strcmp(asked, "--help")) puts(HELP);
    return 0;
}
"""
# An option that the tree does not know is not in .config, as with the real one.
MAKEFILE = r"""# SPDX-License-Identifier: GPL-2.0
VERSION = {version[0]}
PATCHLEVEL = {version[1]}
SUBLEVEL = 7
EXTRAVERSION =
RUSTC = rustc
allnoconfig:
	grep -v UNKNOWN $(KCONFIG_ALLCONFIG) > .config
	echo CONFIG_RUSTC_VERSION=\"`$(RUSTC) --version 2>/dev/null`\" >> .config
linux:
	@echo '  CC      main.o'
	sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' .config > config.inc
	$(CC) -DVERSION='"{version[0]}.{version[1]}.7"' -DHELP='"seccomp=<auto>"' -o linux main.c
"""
CONFIG = """\
# ---- needed: this
CONFIG_ONE=y
# CONFIG_MCONSOLE is not set

# ---- wanted: that
CONFIG_TWO=y

# ---- older: names
CONFIG_UNKNOWN_OLD=y
"""
PATCH = """\
--- a/main.c
+++ b/main.c
@@ -3,6 +3,7 @@
 #include <string.h>
 static const char config[] =
 #include "config.inc"
+/* changed */
 ;
 int main(int argc, char **argv) {
     const char *asked = argc > 1 ? argv[1] : "";
"""


def write_tree(tree: Path, version: tuple[int, int] = (6, 12), makefile: str = MAKEFILE) -> Path:
    """A source tree."""
    files = {
        "Makefile": makefile.replace("{version[0]}", str(version[0])).replace(
            "{version[1]}", str(version[1])
        ),
        "main.c": MAIN,
        "arch/um/Kconfig": "config UML\n",
        "arch/arm/Kconfig": "config ARM\n",
        "arch/arm/mm.c": "int arm;\n",
        "drivers/net/tun.c": "int tun;\n",
        "drivers/net/ethernet/big.c": "int big;\n",
        "drivers/net/ethernet/Makefile": "obj-y :=\n",
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def write_archive(path: Path, tree: Path, top: str = "linux-6.12.7") -> Path:
    """The tree as an archive of kernel.org's."""
    mode: Any = f"w:{path.suffix[1:]}"
    with tarfile.open(path, mode) as archive:
        archive.add(tree, top)
    return path


def write_members(path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> Path:
    """An archive as somebody may have made it."""
    with tarfile.open(path, "w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_data(data: Path, config: str = CONFIG, series: str = "0001-change.patch\n") -> Path:
    """Changes of ours that fit the fake tree."""
    (data / "patches").mkdir(parents=True)
    (data / "added/arch/um/own").mkdir(parents=True)
    (data / "config").write_text(config)
    (data / "patches/series").write_text(series)
    (data / "patches/0001-change.patch").write_text(PATCH)
    (data / "added/arch/um/own/own.c").write_text("int own;\n")
    return data


def use(monkeypatch: pytest.MonkeyPatch, place: Path) -> Path:
    """A cache and changes of the test's own. Returns the cache's folder of kernels."""
    monkeypatch.setattr(kernel_changes, "DATA", write_data(place / "data"))
    monkeypatch.setenv("TSTORM_CACHE", str(place / "cache"))
    monkeypatch.delenv("TSTORM_KERNEL", raising=False)
    return kernel_cache.root()


def heard() -> tuple[list[str], Steps]:
    """Steps, and where their words end up."""
    words: list[str] = []
    return words, Steps(words.append, lambda _text: None)
