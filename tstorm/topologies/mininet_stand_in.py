"""Stands for Mininet's package while a file with a topology is loaded, and tells what it describes.

Run as a program, confined (load_topology.py), with the path of the file and which of its
topologies is meant (`NAME,ARG,KEY=VALUE`, as Mininet's --topo has it; '' for the one there is).
Output, on the descriptor that was standard output: JSON, an object with `nodes` ([name, kind, line,
options]) and `links` ([one end, the other, line, options]), or with `error`, `line` and `hint`.
Options are words; `line` is the line of the file that led to it. What the file prints goes to
standard error.

Only classes of topologies do anything; all other names of the package can be imported, and refuse
to be used. Source: the API documentation of Mininet 2.3 and its "Introduction to Mininet".
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_WORD = 200
MODULES_HINT = "it can import Python's library, mininet and the files beside it"
NO_NETWORK = "only topologies are loaded: hosts, switches and links of a class Topo"
_LOG = ("info", "output", "debug", "warn", "warning", "error", "critical", "setLogLevel", "lg")


class UnusableError(Exception):
    """The file asks for what a topology does not need."""


class _Lines:
    """Of the file that is loaded."""

    file = ""

    @classmethod
    def now(cls) -> int:
        """The line that is being carried out, 1 before any."""
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == cls.file:
                return frame.f_lineno
            frame = frame.f_back
        return 1

    @classmethod
    def of(cls, error: BaseException) -> int:
        """Where it came from."""
        if isinstance(error, SyntaxError) and error.filename == cls.file:
            return error.lineno or 1
        found, trace = 1, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == cls.file:
                found = trace.tb_lineno
            trace = trace.tb_next
        return found


# --- mininet.topo ---


class Topo:
    """Nodes and links, in the order in which they are added."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self._nodes: dict[str, tuple[str, int, dict[str, Any]]] = {}
        self._links: list[tuple[str, str, int, dict[str, Any]]] = []
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """A topology adds its nodes and links here."""

    def addNode(self, name: Any, **opts: Any) -> Any:  # noqa: N802
        return self._add(name, "switch" if opts.pop("isSwitch", False) else "host", opts)

    def addHost(self, name: Any, **opts: Any) -> Any:  # noqa: N802
        return self._add(name, "host", opts or dict(self.hopts))

    def addSwitch(self, name: Any, **opts: Any) -> Any:  # noqa: N802
        return self._add(name, "switch", opts or dict(self.sopts))

    def _add(self, name: Any, kind: str, opts: dict[str, Any]) -> Any:
        self._nodes[str(name)] = (kind, _Lines.now(), opts)
        return name

    def addLink(self, node1: Any, node2: Any, port1: Any = None, port2: Any = None,  # noqa: N802
                key: Any = None, **opts: Any) -> int:  # fmt: skip
        opts = opts or dict(self.lopts)
        ports = {"port1": port1, "port2": port2}
        opts.update({name: port for name, port in ports.items() if port is not None})
        self._links.append((str(node1), str(node2), _Lines.now(), opts))
        return len(self._links) - 1 if key is None else int(key)

    def nodes(self, sort: bool = True) -> list[str]:
        return self.sorted(self._nodes) if sort else list(self._nodes)

    def hosts(self, sort: bool = True) -> list[str]:
        return [one for one in self.nodes(sort) if not self.isSwitch(one)]

    def switches(self, sort: bool = True) -> list[str]:
        return [one for one in self.nodes(sort) if self.isSwitch(one)]

    def isSwitch(self, name: str) -> bool:  # noqa: N802
        return self._nodes[name][0] == "switch"

    def nodeInfo(self, name: str) -> dict[str, Any]:  # noqa: N802
        return self._nodes[name][2]

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:  # noqa: N802
        kind, line, _ = self._nodes[name]
        self._nodes[name] = (kind, line, info)

    def iterLinks(self, withKeys: bool = False, withInfo: bool = False) -> Iterator[Any]:  # noqa: N802, N803
        for key, (one, other, _, opts) in enumerate(self._links):
            yield (one, other, *([key] if withKeys else []), *([opts] if withInfo else []))

    def links(self, sort: bool = False, withKeys: bool = False,  # noqa: N803
              withInfo: bool = False) -> list[Any]:  # noqa: N803  # fmt: skip
        found = list(self.iterLinks(withKeys, withInfo))
        return self.sorted(found) if sort else found

    def linkInfo(self, src: str, dst: str, key: int | None = None) -> dict[str, Any]:  # noqa: N802
        for number, (one, other, _, opts) in enumerate(self._links):
            if {one, other} == {src, dst} and key in (None, number):
                return opts
        raise KeyError((src, dst))

    @staticmethod
    def sorted(items: Any) -> list[Any]:
        """In the order in which people count: h2 before h10."""

        def parts(item: Any) -> list[Any]:
            word, found = str(item), [""]
            for letter in word:
                if found[-1] and letter.isdigit() != found[-1][-1].isdigit():
                    found.append("")
                found[-1] += letter
            return [(not one.isdigit(), int(one) if one.isdigit() else 0, one) for one in found]

        return sorted(items, key=parts)


class SingleSwitchTopo(Topo):
    """Hosts on one switch."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), switch)


class SingleSwitchReversedTopo(SingleSwitchTopo):
    """The same; its ports count downwards, and ports are not carried over."""


class MinimalTopo(SingleSwitchTopo):
    """Two hosts on one switch."""

    def build(self) -> None:  # type: ignore[override]
        super().build(k=2)


class LinearTopo(Topo):
    """A row of switches, each with `n` hosts."""

    def build(self, k: int = 2, n: int = 1, **_opts: Any) -> None:
        before = None
        for number in range(1, k + 1):
            switch = self.addSwitch(f"s{number}")
            for host in range(1, n + 1):
                name = f"h{number}" if n == 1 else f"h{host}s{number}"
                self.addLink(self.addHost(name), switch)
            if before:
                self.addLink(switch, before)
            before = switch


# --- mininet.topolib ---


class TreeTopo(Topo):
    """A tree with switches above and hosts as its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        self._numbers = {"s": 0, "h": 0}
        self._grow(depth, fanout)

    def _grow(self, depth: int, fanout: int) -> str:
        letter = "s" if depth > 0 else "h"
        self._numbers[letter] += 1
        name = f"{letter}{self._numbers[letter]}"
        if depth <= 0:
            return str(self.addHost(name))
        self.addSwitch(name)
        for _ in range(fanout):
            self.addLink(name, self._grow(depth - 1, fanout))
        return name


class TorusTopo(Topo):
    """A grid of switches whose ends are joined, each with `n` hosts."""

    def build(self, x: int, y: int, n: int = 1) -> None:
        if x < 3 or y < 3:
            raise ValueError("a torus has 3 or more switches each way")
        places = [(i, j) for i in range(x) for j in range(y)]
        names = {(i, j): f"{i + 1}x{j + 1}" for i, j in places}
        for place in places:
            switch = self.addSwitch(f"s{names[place]}")
            for host in range(1, n + 1):
                name = f"h{names[place]}" + ("" if n == 1 else f"x{host}")
                self.addLink(self.addHost(name), switch)
        for i, j in places:
            self.addLink(f"s{names[i, j]}", f"s{names[i, (j + 1) % y]}")
            self.addLink(f"s{names[i, j]}", f"s{names[(i + 1) % x, j]}")


# --- the rest of the package ---


def irange(start: int, end: int) -> range:
    return range(start, end + 1)


class _Silent:
    """Of mininet.log: a function, and a logger with all of its methods."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        """Nobody reads it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _unusable(name: str) -> Any:
    """What can be imported, and not be used."""

    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise UnusableError(f"{name} is used, and there is no network here")

    return type(name, (), {"__init__": refuse}) if name[:1].isupper() else refuse


_KNOWN = (Topo, SingleSwitchTopo, SingleSwitchReversedTopo, MinimalTopo, LinearTopo, TreeTopo,
          TorusTopo, irange)  # fmt: skip


class _Module(types.ModuleType):
    """A module of the package: what is not known is a name and nothing more."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        for one in _KNOWN:
            setattr(self, one.__name__, one)
        for word in _LOG if name == "mininet.log" else ():
            setattr(self, word, _Silent())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self.__name__ == "mininet":  # which has modules alone: from mininet import topo
            return importlib.import_module(f"mininet.{name}")
        made = _unusable(name)
        setattr(self, name, made)
        return made


class _Package(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, *_other: Any, **_others: Any
    ) -> importlib.machinery.ModuleSpec | None:
        ours = fullname.partition(".")[0] == "mininet"
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if ours else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """It is whole as it was made."""


# --- which topology, and what it says ---


def _loaded(file: str) -> dict[str, Any]:
    name = Path(file).stem
    taken = name == "mininet" or name in sys.stdlib_module_names  # it may import that one
    module = types.ModuleType("__topology__" if taken else name)
    module.__file__ = file
    sys.modules[module.__name__] = module
    code = compile(Path(file).read_bytes(), file, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module.__dict__


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def _made(names: dict[str, Any], choice: str) -> Topo:
    name, *words = choice.split(",")
    listed = names.get("topos")
    known: dict[str, Any] = dict(listed) if isinstance(listed, dict) else {}
    own = {key: one for key, one in names.items()
           if isinstance(one, type) and issubclass(one, Topo)
           and one.__module__ == names["__name__"]}  # fmt: skip
    offered = known or own
    if not name and len(offered) != 1:
        said = f"it has {len(offered)} topologies" if offered else "it has no class Topo"
        some = ", ".join(list(offered)[:10])
        raise UnusableError(said, f"say FILE.py:NAME, one of {some}" if some else NO_NETWORK)
    make = known.get(name, own.get(name)) if name else next(iter(offered.values()))
    if make is None:
        both = ", ".join([*known, *(one for one in own if one not in known)][:10])
        raise UnusableError(f"it has no topology '{name[:40]}'", f"it has {both}" if both else "")
    args = [_number(one) for one in words if "=" not in one]
    pairs = [one.partition("=") for one in words if "=" in one]
    found = make(*args, **{key: _number(value) for key, _, value in pairs})
    if not isinstance(found, Topo):
        raise UnusableError(f"it gives {type(found).__name__}, which is no Topo", NO_NETWORK)
    return found


def _words(opts: dict[str, Any]) -> dict[str, str]:
    """What a class with settings of its own says (functools.partial) counts, too."""
    cls = opts.get("cls")
    if isinstance(cls, functools.partial):
        opts = {**cls.keywords, **opts, "cls": cls.func}
    return {str(name)[:MAX_WORD]: _word(one)[:MAX_WORD] for name, one in opts.items()
            if one is not None}  # fmt: skip


def _word(value: Any) -> str:
    return str(value.__name__) if isinstance(value, type) else str(value)


def _described(file: str, choice: str) -> dict[str, Any]:
    try:
        found = _made(_loaded(file), choice)
        nodes = [[name, kind, line, _words(opts)] for name, (kind, line, opts)
                 in found._nodes.items()]  # fmt: skip
        links = [[one, other, line, _words(opts)] for one, other, line, opts in found._links]
    except UnusableError as error:
        message, hint = (*error.args, NO_NETWORK)[:2]
        return {"error": message, "line": _Lines.of(error), "hint": hint}
    except BaseException as error:  # a file may end the program, or have no room left
        hint = MODULES_HINT if isinstance(error, ImportError) else ""
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return {"error": said[:MAX_WORD], "line": _Lines.of(error), "hint": hint}
    return {"nodes": nodes, "links": links}


def main() -> None:
    file, choice = sys.argv[1:]
    _Lines.file = file
    answer = os.dup(1)
    os.dup2(2, 1)
    sys.argv[1:] = []
    sys.path.insert(0, str(Path(file).parent))
    sys.meta_path.insert(0, _Package())
    random.seed(0)  # the same file describes the same network
    said = json.dumps(_described(file, choice))
    with os.fdopen(answer, "w") as stream:
        stream.write(said)
        stream.flush()
        os._exit(0)  # nothing that the file has left for the end is carried out


if __name__ == "__main__":
    main()
