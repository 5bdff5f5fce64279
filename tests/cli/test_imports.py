"""What the two packages that others build on may import: an allow-list, read from the source.

import-linter (pyproject.toml) holds the direction between the project's packages; this holds what
comes from outside it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ALLOWED = {
    "tdl/formats": {"tdl", "yaml"},
    "tdl": {"tdl", "lark"},
    "compiler/plan": {"compiler.plan"},
    "compiler": {"compiler", "tdl"},
    "manifests": {"manifests", "compiler.plan", "jinja2"},
    "runtime": {"runtime", "compiler.plan", "pyroute2"},
}

# Nothing below the command looks at the network or draws unseeded randomness while compiling.
FORBIDDEN_WHEN_COMPILING = {"random", "secrets", "socket", "subprocess", "time", "uuid"}


def imported(file: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import in `file`, lazy ones included."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports here are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def allowed(name: str, packages: set[str]) -> bool:
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def files(package: str) -> list[Path]:
    """Without those that have a rule of their own."""
    own = [ROOT / name for name in ALLOWED if name.startswith(f"{package}/")]
    every = sorted((ROOT / package).rglob("*.py"))
    found = [path for path in every if not any(path.is_relative_to(one) for one in own)]
    assert found, f"no sources under {package}"
    return found


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_only_what_it_may(package: str) -> None:
    strays = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files(package)
        for line, name in imported(file)
        if not allowed(name, ALLOWED[package])
    ]
    assert strays == []


@pytest.mark.parametrize("package", ["tdl", "compiler", "manifests"])
def test_compiling_never_looks_at_the_machine(package: str) -> None:
    strays = [
        f"{file.relative_to(ROOT)}:{line}: {name}"
        for file in files(package)
        for line, name in imported(file)
        if name.partition(".")[0] in FORBIDDEN_WHEN_COMPILING
    ]
    assert strays == []


def test_nothing_imports_the_command() -> None:
    strays = [
        f"{file.relative_to(ROOT)}:{line}"
        for package in ("tdl", "compiler", "manifests", "runtime")
        for file in files(package)
        for line, name in imported(file)
        if name.partition(".")[0] == "tstorm"
    ]
    assert strays == []
