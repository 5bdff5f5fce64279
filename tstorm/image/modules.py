"""Which Python modules some modules need: all that any of their `import` statements names.

Input: folders in which modules are searched, in order, and the names to begin with. Every statement
counts, also inside functions and under conditions, so nothing that a program may import later is
missed but what it names at run time; that has to be among the names to begin with. Names that
no folder has are built into the interpreter, belong to other systems or are optional: the tests run
the programs in the image. The technique is that of the standard library's modulefinder, on syntax
trees, which are then compiled: one pass over each file.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.plan.collector import collector_paused

_UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: nobody looks whether the source has changed


@dataclass(frozen=True, slots=True)
class ModuleFolder:
    """A folder of modules here, and where it is in the image."""

    here: Path
    there: str


@dataclass(frozen=True, slots=True)
class Module:
    place: Path
    path: str  # in the image
    data: bytes
    compiled: bytes  # as a .pyc file has it; b"" of a module in C


def find(
    folders: Iterable[ModuleFolder], names: Iterable[str], left_out: Collection[str]
) -> dict[str, Module]:
    """The modules by their full names, packages included. `left_out`: with all below them."""
    search = list(folders)
    found: dict[str, Module] = {}
    seen: set[str] = set()
    waiting = list(names)
    with collector_paused():
        while waiting:
            for name in _with_parents(waiting.pop()):
                if name in left_out:
                    break
                if name in seen:
                    continue
                seen.add(name)
                if (where := _locate(search, name)) is not None:
                    found[name], needed = _read(*where, name)
                    waiting += needed
    return found


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _locate(search: Iterable[ModuleFolder], name: str) -> tuple[Path, str] | None:
    below = name.replace(".", "/")
    for folder in search:
        for relative in (f"{below}/__init__.py", f"{below}.py"):
            if (place := folder.here / relative).is_file():
                return place, f"{folder.there}/{relative}"
        above = (folder.here / below).parent
        for place in sorted(above.glob(f"{below.rpartition('/')[2]}.*so")):
            return place, f"{folder.there}/{place.relative_to(folder.here)}"
    return None


def _read(place: Path, path: str, name: str) -> tuple[Module, list[str]]:
    data = place.read_bytes()
    if place.suffix == ".so":
        return Module(place, path, data, b""), []
    tree = ast.parse(data, path)
    package = name if place.name == "__init__.py" else name.rpartition(".")[0]
    code = compile(tree, path, "exec", dont_inherit=True)
    # Version 2 has no references, of which later versions write different ones for equal code.
    checked = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(data)
    return Module(place, path, data, checked + marshal.dumps(code, 2)), list(_named(tree, package))


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    """Every name that an import statement may mean as a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [node.module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
