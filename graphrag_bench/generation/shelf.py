"""The shelf: where the texts of retrieved elements are looked up, once, when a context is assembled."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.method import Section
from graphrag_bench.pipeline.texts import Texts
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import Path, Subgraphs

PASSAGES, REPORTS = "Passages", "Reports"
NUMBERED = (PASSAGES, REPORTS)  # shown as numbered blocks; everything else as lines


@dataclass(frozen=True)
class Element:
    """One element of a section, ready to be shown: its text, the chunks that text is, its hierarchy layer.

    Layers count up from the entities: 0 for everything but communities, 1 for the finest communities.
    """

    text: str
    chunks: tuple[int, ...] = ()
    layer: int = 0


@dataclass(frozen=True)
class Shelf:
    """The corpus and the graph of a method."""

    chunks: ChunkTable
    graph: Graph | None = None

    def heading(self, kind: type) -> str:
        """Return what stands above elements of a kind."""
        if kind is Nodes:
            return PASSAGES if self._passages else "Entities"
        named = {Chunks: PASSAGES, Communities: REPORTS, Relationships: "Relationships", Subgraphs: "Paths", Texts: "Notes"}
        return named[kind]

    def elements(self, section: Section, values: Mapping[str, Any], number: int) -> Iterator[Element]:
        """Yield what a section shows for one question: its sources one after the other, each element once, top_k at most."""
        seen: set[Any] = set()
        for source in section.sources:
            for key in self._keys(section.kind, values[source], number):
                if section.top_k is not None and len(seen) >= section.top_k:
                    return
                element = None if key in seen else self.element(section.kind, key)
                if element is not None:
                    seen.add(key)
                    yield element

    def element(self, kind: type, key: Any) -> Element | None:
        """Return one element; None where it has nothing to show (a community without a report, an empty note)."""
        if kind is Chunks:
            return Element(self.chunks[key].text, (key,))
        if kind is Texts:
            return Element(key) if key.strip() else None
        graph = self._graph
        if kind is Nodes:
            return self._node(graph, key)
        if kind is Relationships:
            return Element(triple(graph, key))
        if kind is Subgraphs:
            return Element(path_line(graph, key))
        text = self._reports["text"][key]
        return Element(text, layer=int(self._layers[key])) if text else None

    def listed(self, section: Section, values: Mapping[str, Any], number: int, most: int) -> list[dict[str, Any]]:
        """Return what a section's sources hold for one question, best first: ids, scores, and what a person calls them."""
        found: dict[Any, dict[str, Any]] = {}
        for source in section.sources:
            row = values[source].row(number)
            keys = self._keys(section.kind, values[source], number)
            scores = row.scores if hasattr(row, "scores") else [getattr(item, "score", None) for item in row]
            for key, score in islice(zip(keys, scores, strict=True), most):
                if len(found) >= most:
                    break
                identity = {"id": key} if isinstance(key, int) else {}
                rated = {} if score is None else {"score": round(float(score), 6)}
                found.setdefault(key, {**identity, **rated, "label": self.label(section.kind, key)})
        return list(found.values())

    def label(self, kind: type, key: Any) -> str:
        """Return what a person calls an element: a name, a title, a triple; of a passage its documents, never its text."""
        if kind is Chunks:
            return ", ".join(self.chunks[key].documents)
        if kind is Texts:
            return str(key)
        if kind is Nodes:
            return self._graph.column("nodes", "name")[int(key)]
        if kind is Relationships:
            return arrow(self._graph, key)
        if kind is Subgraphs:
            return path_line(self._graph, key)
        return self._reports["title"][int(key)]

    def documents(self, sections: tuple[Section, ...], values: Mapping[str, Any], number: int) -> Iterator[str] | None:
        """Return the documents a question's retrieved elements stand for, best first; None where they stand for none.

        Where a method retrieves passages, those count; otherwise its relationships, paths and entities stand for the
        chunks they were found in. Summaries and reports stand for no passage: a root would cover the corpus.
        """
        whole = [s for s in sections if s.kind is Chunks or (s.kind is Nodes and self._passages)]
        # a relationship says where it was found more exactly than its ends do
        parts = [s for kinds in ((Relationships, Subgraphs), (Nodes,)) for s in sections if s.kind in kinds]
        counting = whole or parts
        return self._documents(counting, values, number) if counting else None

    def _documents(self, sections: list[Section], values: Mapping[str, Any], number: int) -> Iterator[str]:
        for section in sections:
            for source in section.sources:
                for key in self._keys(section.kind, values[source], number):
                    for chunk in self._chunks_of(section.kind, key):
                        yield from self.chunks[chunk].documents

    def _chunks_of(self, kind: type, key: Any) -> Iterator[int]:
        if kind is Chunks:
            yield key
        elif kind is Nodes:
            yield from map(int, _row(self._graph.node_chunk, key))
        else:
            for relationship in key.relationships if isinstance(key, Path) else (key,):
                yield from map(int, _row(self._graph.relationship_chunk, relationship))

    def _keys(self, kind: type, value: Any, number: int) -> Iterator[Any]:
        """Yield what names the elements of one question, best first; few of a long ranking are ever looked at."""
        row = value.row(number)
        if kind is Subgraphs:
            return iter(row)
        return (text.text for text in row) if kind is Texts else map(int, row.ids)

    def _node(self, graph: Graph, node: int) -> Element:
        if self._passages:
            return Element(graph.column("nodes", "text")[node], tuple(map(int, _row(graph.node_chunk, node))))
        name, described = graph.column("nodes", "name")[node], graph.column("nodes", "description")[node]
        kind = graph.column("nodes", "type")[node]
        return Element(f"{name}{f' ({kind})' if kind else ''}{f': {described}' if described else ''}")

    @cached_property
    def _reports(self) -> dict[str, list[str]]:
        """Titles and texts of the communities' reports, read once: contexts of many questions share the same strings."""
        reports = self._graph.reports
        none = [""] * self._graph.n_communities
        if reports is None:
            return {"title": none, "text": none}
        return {name: [text or "" for text in reports.table[name].to_pylist()] for name in ("title", "text")}

    @cached_property
    def _layers(self) -> NDArray[np.int64]:
        """The hierarchy layer of each community, 1 for those of the finest level."""
        levels = self._graph.communities.level.astype(np.int64)
        return np.asarray(1 + levels.max(initial=0) - levels)

    @property
    def _graph(self) -> Graph:
        if self.graph is None:
            raise ValueError("nodes are shown, and there is no graph")
        return self.graph

    @property
    def _passages(self) -> bool:
        """Say whether the graph's nodes are passages and summaries, not entities."""
        return self.graph is not None and "node.text" in self.graph.attributes


def arrow(graph: Graph, relationship: int) -> str:
    """Return a relationship's two ends and what it is called."""
    nodes, name = graph.column("nodes", "name"), graph.column("relationships", "name")[relationship]
    source, target = nodes[graph.sources[relationship]], nodes[graph.targets[relationship]]
    return f"{source} -> {name} -> {target}" if name else f"{source} -> {target}"


def triple(graph: Graph, relationship: int) -> str:
    """Return a relationship as a line: its two ends, what it is called, how it is described."""
    described = graph.column("relationships", "description")[relationship]
    return f"{arrow(graph, relationship)}: {described}" if described else arrow(graph, relationship)


def path_line(graph: Graph, path: Path) -> str:
    """Return a path as a line; a tree as its relationships one after the other."""
    if not path.relationships:
        return "; ".join(graph.names(path.nodes))
    walks = len(path.nodes) == len(path.relationships) + 1 and all(
        {int(graph.sources[r]), int(graph.targets[r])} == {a, b}
        for r, a, b in zip(path.relationships, path.nodes, path.nodes[1:], strict=False)
    )
    if not walks:
        return "; ".join(triple(graph, relationship) for relationship in path.relationships)
    names = graph.names(path.nodes)
    line = names[0]
    for relationship, start, name in zip(path.relationships, path.nodes, names[1:], strict=False):
        label = graph.label(relationship)  # which way it points is the graph's to say: a tree is not walked
        arrow = " -> " if int(graph.sources[relationship]) == start else " <- "
        line += f"{arrow}{label}{arrow}{name}" if label else f"{arrow}{name}"
    return line


def _row(matrix: Any, row: int) -> np.ndarray[Any, Any]:
    ids: np.ndarray[Any, Any] = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
    return ids
