"""Shortest paths by scipy, rustworkx and networkx, and path properties composed along them.

Each library is used in the fastest way found for it (measured on the networks of
tests.plan.topologies):
- scipy: csgraph.dijkstra with predecessors, for a few hundred sources at a time;
- rustworkx: all_pairs_dijkstra_path_lengths, and the last link of each path found with numpy among
  the links that fit the lengths (asking it for the paths themselves takes more than twice as long);
- networkx: dijkstra_predecessor_and_distance from each source, composed in the order in which nodes
  were reached.
For scipy and rustworkx the composition is numpy's, level by level over all sources at once. Doubles
are good enough here: jitter and loss may differ from the exact figures in the last place, delays
and hops are exact (bench.routing.graphs).
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from bench.errors import BenchError
from bench.routing.graphs import HOP_BITS, HOP_MASK, PPB, Access, Graph

Array: TypeAlias = np.ndarray[Any, Any]

SCIPY_CHUNK = 256
RUSTWORKX_CHUNK = 1024
EXTEND_CHUNK = 256
_UNLIMITED = np.iinfo(np.int64).max


@dataclass(slots=True)
class Block:
    """From some sources (rows) to all destinations (columns), not rounded yet."""

    sources: Sequence[int]
    delay_ns: Array
    hops: Array
    jitter_square: Array
    kept: Array
    rate_bps: Array


@dataclass(slots=True)
class Figures:
    """What is asked for: rounded, 0 where there is no path."""

    sources: Sequence[int]
    delay_ns: Array
    hops: Array
    jitter_ns: Array
    loss_ppb: Array
    rate_bps: Array


Trees = Iterator[tuple[Sequence[int], Array, Array]]  # sources, weights, last node before each


MODULES = {
    "scipy": ("scipy.sparse.csgraph",),
    "rustworkx": ("rustworkx",),
    "networkx": ("networkx",),
}


def load(tool: str) -> None:
    """Imports a library, so that this is not timed. Raises BenchError when it is missing."""
    for name in MODULES[tool]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise BenchError(
                f"{error}: `make bench` installs it, as does the extra `bench`"
            ) from error


def _chunks(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (items[start : start + size] for start in range(0, len(items), size))


# --- shortest path trees ---------------------------------------------------------------------


def scipy_trees(graph: Graph, sources: Sequence[int]) -> Trees:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    weight = np.array(graph.weight, dtype=np.float64)
    matrix = csr_matrix((weight, (graph.src, graph.dst)), shape=(graph.nodes, graph.nodes))
    for chunk in _chunks(sources, SCIPY_CHUNK):
        lengths, before = dijkstra(matrix, indices=chunk, return_predecessors=True)
        yield chunk, lengths, before


def rustworkx_trees(graph: Graph, sources: Sequence[int]) -> Trees:
    import rustworkx

    edges = list(zip(graph.src, graph.dst, map(float, graph.weight), strict=True))
    built = rustworkx.PyDiGraph()
    built.add_nodes_from(range(graph.nodes))
    built.add_edges_from(edges)
    found = rustworkx.all_pairs_dijkstra_path_lengths(built, float)
    for chunk in _chunks(sources, RUSTWORKX_CHUNK):
        lengths = np.full((graph.nodes, len(chunk)), np.inf)
        for column, source in enumerate(chunk):
            row = found[source]
            reached = np.fromiter(row.keys(), np.int64, len(row))
            lengths[reached, column] = np.fromiter(row.values(), np.float64, len(row))
            lengths[source, column] = 0
        before = np.full(lengths.shape, -1, dtype=np.int32)
        for u, v, weight in edges:
            before[v][lengths[u] + weight == lengths[v]] = u
        yield chunk, lengths.T, before.T


def networkx_graph(graph: Graph) -> Any:
    import networkx as nx

    built = nx.DiGraph()
    built.add_nodes_from(range(graph.nodes))
    properties = zip(graph.jitter_ns, graph.loss_ppb, graph.rate_bps, strict=True)
    rows = zip(graph.src, graph.dst, graph.weight, properties, strict=True)
    built.add_edges_from((u, v, {"weight": w, "link": link}) for u, v, w, link in rows)
    return built


def networkx_trees(graph: Graph, sources: Sequence[int]) -> Iterator[object]:
    """The trees alone, as networkx gives them."""
    import networkx as nx

    built = networkx_graph(graph)
    for source in sources:
        yield nx.dijkstra_predecessor_and_distance(built, source)


# --- composition -----------------------------------------------------------------------------


class Composer:
    """The links of a graph as arrays, found by their two ends."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        self._index = np.zeros((graph.nodes, graph.nodes), dtype=np.int32)
        self._index[graph.src, graph.dst] = np.arange(len(graph.src), dtype=np.int32)
        self._jitter_square = np.array(graph.jitter_ns, dtype=np.int64) ** 2
        self._kept = 1 - np.array(graph.loss_ppb) / PPB
        rate = np.array(graph.rate_bps, dtype=np.int64)
        self._rate = np.where(rate == 0, _UNLIMITED, rate)

    def compose(self, sources: Sequence[int], lengths: Array, before: Array) -> Block:
        """All nodes one hop from their source first, then those two hops away, …"""
        length = np.where(np.isfinite(lengths), lengths, 0).astype(np.int64).ravel()
        hops = (length & HOP_MASK).astype(np.uint16)
        square = np.zeros(length.size, dtype=np.int64)
        kept = np.ones(length.size)
        rate = np.full(length.size, _UNLIMITED)
        order = np.argsort(hops, kind="stable")
        ends = np.cumsum(np.bincount(hops))
        flat = np.ascontiguousarray(before).ravel()
        for low, high in itertools.pairwise(ends):
            here = order[low:high]
            last, node = flat[here], here % self.nodes
            start = here - node + last
            link = self._index[last, node]
            square[here] = square[start] + self._jitter_square[link]
            kept[here] = kept[start] * self._kept[link]
            rate[here] = np.minimum(rate[start], self._rate[link])
        shape = (len(sources), self.nodes)
        parts = (length >> HOP_BITS, hops.astype(np.int64), square, kept, rate)
        return Block(sources, *(part.reshape(shape) for part in parts))


def networkx_blocks(graph: Graph, sources: Sequence[int]) -> Iterator[Block]:
    """One block of one row for each source."""
    import networkx as nx

    built = networkx_graph(graph)
    links = {(u, v): link for u, v, link in built.edges(data="link")}
    for source in sources:
        before, length = nx.dijkstra_predecessor_and_distance(built, source)
        row: list[tuple[int, int, int, float, int]] = [(0, 0, 0, 1.0, _UNLIMITED)] * graph.nodes
        for node, weight in length.items():
            if node == source:
                continue
            last = before[node][0]
            jitter, loss, rate = links[last, node]
            _, _, square, kept, narrow = row[last]
            row[node] = (
                weight >> HOP_BITS,
                weight & HOP_MASK,
                square + jitter * jitter,
                kept * (1 - loss / PPB),
                min(narrow, rate or _UNLIMITED),
            )
        columns = [np.array([column]) for column in zip(*row, strict=True)]
        yield Block([source], *columns)


def finish(block: Block) -> Figures:
    """Roots, differences and zeros."""
    reached = block.hops > 0
    rate = np.where(reached & (block.rate_bps != _UNLIMITED), block.rate_bps, 0)
    jitter = np.rint(np.sqrt(block.jitter_square)).astype(np.int64)
    loss = np.rint((1 - block.kept) * PPB).astype(np.int64)
    return Figures(block.sources, block.delay_ns, block.hops, jitter, loss, rate)


def columns(block: Block, count: int) -> Block:
    """The first `count` destinations only."""
    return Block(
        block.sources,
        block.delay_ns[:, :count],
        block.hops[:, :count],
        block.jitter_square[:, :count],
        block.kept[:, :count],
        block.rate_bps[:, :count],
    )


# --- from bridges to instances ---------------------------------------------------------------


class Extension:
    """Adds both access links to figures between bridges."""

    def __init__(self, access: Access) -> None:
        self._anchor = np.array(access.anchor)
        self._up, self._down = (self._parts(part) for part in (access.up, access.down))

    @staticmethod
    def _parts(links: list[tuple[int, int, int, int]]) -> tuple[Array, Array, Array, Array]:
        delay, jitter, loss, rate = np.array(links, dtype=np.int64).T
        return delay, jitter**2, 1 - loss / PPB, np.where(rate == 0, _UNLIMITED, rate)

    def extend(self, core: Sequence[Block], instances: int) -> Iterator[Block]:
        """`core` holds one block or several with a row for each anchor, all bridges as columns."""
        row_of = {source: row for row, source in enumerate(s for b in core for s in b.sources)}
        rows = np.array([row_of[anchor] for anchor in self._anchor.tolist()])
        # Columns first and once, so that what is left for each chunk is copying whole rows.
        delay, hops, square, kept, rate = (
            np.concatenate([getattr(block, name) for block in core])[:, self._anchor]
            for name in ("delay_ns", "hops", "jitter_square", "kept", "rate_bps")
        )
        for chunk in _chunks(range(instances), EXTEND_CHUNK):
            mine = rows[chunk[0] : chunk[-1] + 1]
            up = [part[chunk[0] : chunk[-1] + 1, None] for part in self._up]
            there = (mine[:, None] == rows[None, :]) | (hops[mine] > 0)
            there[np.arange(len(chunk)), chunk] = False
            yield Block(
                chunk,
                np.where(there, delay[mine] + up[0] + self._down[0], 0),
                np.where(there, hops[mine] + 2, 0),
                np.where(there, square[mine] + up[1] + self._down[1], 0),
                np.where(there, kept[mine] * up[2] * self._down[2], 1),
                np.minimum(np.minimum(rate[mine], up[3]), self._down[3]),
            )
