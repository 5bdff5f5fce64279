"""A name stands for one thing: no two modules of the product share a name, and no two of its public
classes. Who guesses the file from the name finds it; and no folder has more than one looks through.
"""

import ast
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("tdl", "compiler", "manifests", "runtime", "tstorm")
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
MOST_FILES = 20  # of Python in a folder; a room that needs more has rooms inside
OF_EVERY_PACKAGE = ("__init__", "__main__")


def _twice(named: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in named.items() if len(places) > 1}


def test_no_two_modules_have_one_name() -> None:
    named: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        if path.stem not in OF_EVERY_PACKAGE:
            named[path.stem].append(str(path.relative_to(ROOT)))
    assert len(named) > 300
    assert not _twice(named)


def test_no_two_public_classes_have_one_name() -> None:
    named: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(named) > 500
    assert not _twice(named)


def test_no_folder_has_more_files_than_one_looks_through() -> None:
    files = Counter(str(path.parent.relative_to(ROOT)) for path in SOURCES)
    assert len(files) > 50
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}
