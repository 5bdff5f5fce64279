"""Which modules are found: all that any import statement names, but for what is left out."""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path

from tstorm.image.modules import ModuleFolder, find

PACKAGE = {
    "app/__init__.py": "",
    "app/__main__.py": "from app import run\n",
    "app/run.py": "import late.part.deep as deep\nfrom . import beside\nfrom .sub import inner\n",
    "app/beside.py": "def later():\n    import lazy\n    import tests_of_it\n",
    "app/sub/__init__.py": "from ..other import *\n",
    "app/sub/inner.py": "try:\n    import native\nexcept ImportError:\n    import missing\n",
    "app/other.py": "",
    "app/unused.py": "import other_unused\n",
    "other_unused.py": "",
    "late/__init__.py": "",
    "late/part/__init__.py": "",
    "late/part/deep.py": "",
    "lazy.py": "VALUE = 1\n",
    "tests_of_it/__init__.py": "import only_of_tests\n",
    "only_of_tests.py": "",
    "native.cpython-311-x86_64-linux-gnu.so": "\x7fELF",
}


def package(folder: Path) -> ModuleFolder:
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return ModuleFolder(folder, "/lib")


def test_every_import_statement_counts(tmp_path: Path) -> None:
    found = find([package(tmp_path)], ["app.__main__"], {"tests_of_it"})
    assert sorted(found) == [
        *("app", "app.__main__", "app.beside", "app.other", "app.run", "app.sub"),
        *("app.sub.inner", "late", "late.part", "late.part.deep", "lazy", "native"),
    ]
    assert found["app.sub"].path == "/lib/app/sub/__init__.py"
    assert found["native"].path == "/lib/native.cpython-311-x86_64-linux-gnu.so"
    assert found["native"].compiled == b""


def test_the_first_folder_that_has_a_module_gives_it(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first/lazy.py").write_text("VALUE = 2\n")
    folders = [ModuleFolder(tmp_path / "first", "/first"), package(tmp_path)]
    assert find(folders, ["lazy", "app.other"], ())["lazy"].path == "/first/lazy.py"


def test_what_is_compiled_is_the_module(tmp_path: Path) -> None:
    compiled = find([package(tmp_path)], ["lazy"], ())["lazy"].compiled
    assert compiled[:4] == importlib.util.MAGIC_NUMBER
    assert compiled[4:8] == b"\x01\0\0\0"  # by hash, and nobody checks it
    assert compiled[8:16] == importlib.util.source_hash(PACKAGE["lazy.py"].encode())
    space: dict[str, int] = {}
    exec(marshal.loads(compiled[16:]), space)
    assert space["VALUE"] == 1
    assert marshal.loads(compiled[16:]).co_filename == "/lib/lazy.py"
