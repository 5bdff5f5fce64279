"""What a datapath knows after the lines it was told, by the rules of docs/tcal.md."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

FIRST = {"rate", "delay", "jitter", "loss", "queue", "up"}
KEYS = {*FIRST, "dist", "seed"}
NUMBERS = KEYS - {"dist"}

Pair = tuple[int, int]


@dataclass
class Told:
    """`paths` has every path that was ever declared, with all its values."""

    nodes: dict[int, dict[str, str]] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)  # node -> port
    paths: dict[Pair, dict[str, int | str]] = field(default_factory=dict)

    def take(self, lines: Iterable[str]) -> None:
        for line in lines:
            verb, *words = line.split(" ")
            getattr(self, f"_{verb}")(words)

    def _node(self, words: list[str]) -> None:
        self.nodes[int(words[0])] = dict(word.split("=", 1) for word in words[1:])

    def _bind(self, words: list[str]) -> None:
        node, port = map(int, words)
        assert node in self.nodes
        self.ports[node] = port

    def _unbind(self, words: list[str]) -> None:
        self.ports.pop(int(words[0]), None)

    def _path(self, words: list[str]) -> None:
        src, dst = int(words[0]), int(words[1])
        assert src != dst
        assert src in self.nodes
        assert dst in self.nodes
        said = dict(word.split("=", 1) for word in words[2:])
        assert said
        assert said.keys() <= KEYS
        path = self.paths.get((src, dst))
        if path is None:
            assert said.keys() >= FIRST, words
            path = self.paths[src, dst] = {"dist": "normal", "seed": 0}
        for key, value in said.items():
            path[key] = int(value) if key in NUMBERS else value

    def open_paths(self) -> dict[Pair, dict[str, int | str]]:
        return {pair: path for pair, path in self.paths.items() if path["up"]}
