"""What a graph says of a community, element by element, in GraphRAG's order: best connected relationships first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.community.simple import Edges, simple_edges
from graphrag_bench.graph.claims import claim_lines
from graphrag_bench.graph.communities import Hierarchy
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Line:
    """One element of a community as a prompt shows it.

    Attributes:
        text: the line.
        part: the child community the element lies in, -1 where it lies in none or runs between two.
    """

    text: str
    part: int = -1


class Elements:
    """The members and facts of communities; other kinds of relationship are told where they are asked for.

    Args:
        graph: with its communities.
        kinds: the kinds of relationship that count as facts here.
        by_weight: a member's degree is the weight of what joins it to other members, instead of GraphRAG's degree, the
            number of its neighbours in the whole graph.
    """

    def __init__(self, graph: Graph, *, kinds: Sequence[str] = FACTS, by_weight: bool = False) -> None:
        self.graph = graph
        self.hierarchy: Hierarchy = graph.communities
        self._facts = graph.of_kinds(kinds)
        members = self.hierarchy.members.astype(np.float64)
        by_node = members.tocsc()
        both = by_node[:, graph.sources[self._facts]].multiply(by_node[:, graph.targets[self._facts]]).tocsr()
        both.sort_indices()
        self._within = both
        adjacency = _symmetric(simple_edges(graph, kinds), graph.n_nodes)
        if not by_weight:
            self._degree = np.diff(adjacency.indptr).astype(np.float64)
        joined = (members @ adjacency).multiply(members).tocsr()
        joined.sort_indices()
        self._joined = joined if by_weight else None
        self.mass: NDArray[np.float64] = np.asarray(joined.sum(axis=1)).ravel() / 2
        """(communities,) the weight of the facts within each, loops left out."""
        self._names = graph.column("nodes", "name")
        self._types = graph.column("nodes", "type")
        self._descriptions = graph.column("nodes", "description")
        self._relations = graph.column("relationships", "name")
        self._said = graph.column("relationships", "description")
        self._claims = claim_lines(graph.claims, self._names)

    def facts(self, community: int) -> Ids:
        """Return the facts whose both ends are in a community, by rising id."""
        start, end = self._within.indptr[community], self._within.indptr[community + 1]
        found: Ids = self._facts[self._within.indices[start:end]]
        return found

    def ranked_facts(self, community: int) -> Ids:
        """Return the facts of a community by the sum of their ends' degrees, greatest first, ties by id."""
        facts, nodes = self.facts(community), self.hierarchy.nodes(community)
        degree = self._degrees(community, nodes)
        source = degree[np.searchsorted(nodes, self.graph.sources[facts])]
        target = degree[np.searchsorted(nodes, self.graph.targets[facts])]
        return facts[np.lexsort((facts, -(source + target)))]

    def ranked_nodes(self, community: int) -> Ids:
        """Return the members of a community by degree, greatest first, ties by id."""
        nodes = self.hierarchy.nodes(community)
        return nodes[np.lexsort((nodes, -self._degrees(community, nodes)))]

    def _degrees(self, community: int, nodes: Ids) -> NDArray[np.float64]:
        if self._joined is None:
            return self._degree[nodes]
        row = slice(self._joined.indptr[community], self._joined.indptr[community + 1])
        degree = np.zeros(len(nodes))
        degree[np.searchsorted(nodes, self._joined.indices[row])] = self._joined.data[row]
        return degree

    def name(self, node: int) -> str:
        """Return a node's name."""
        return self._names[node]

    def node_line(self, node: int) -> str:
        """Return what the graph says of a node besides its relationships; nothing where it has a name alone."""
        kind, description = self._types[node], self._descriptions[node]
        if not kind and not description:
            return ""
        return f"{self._names[node]}{f' ({kind})' if kind else ''}{f': {description}' if description else ''}"

    def fact_line(self, fact: int) -> str:
        """Return a fact as a line: its ends, its name and its description, whichever it has."""
        name, description = self._relations[fact], self._said[fact]
        source, target = self._names[self.graph.sources[fact]], self._names[self.graph.targets[fact]]
        said = f": {description}" if description and description != name else ""
        return f"{source} — {name} → {target}{said}" if name else f"{source} → {target}{said}"

    def lines(self, community: int) -> list[Line]:
        """Return a community's elements in the order of the GraphRAG paper (section 3.1.4).

        Facts in decreasing combined degree of their ends; before each, the lines of its source and its target, where they
        have any and did not stand yet, and then the claims about these two. Last, which the paper leaves open, the members
        that no fact inside joins, by degree, each with its claims.
        """
        children = self.hierarchy.children(community).tolist()
        part = {node: child for child in children for node in self.hierarchy.nodes(child).tolist()}
        lines: list[Line] = []
        told: set[int] = set()

        def tell(*nodes: int, otherwise: str = "") -> None:
            new = [node for node in dict.fromkeys(nodes) if node not in told]
            told.update(new)
            lines.extend(Line(text, part.get(node, -1)) for node in new if (text := self.node_line(node) or otherwise))
            lines.extend(Line(text, part.get(node, -1)) for node in new for text in self._claims.get(node, ()))

        for fact in self.ranked_facts(community).tolist():
            source, target = int(self.graph.sources[fact]), int(self.graph.targets[fact])
            tell(source, target)
            one, other = part.get(source, -1), part.get(target, -1)
            lines.append(Line(self.fact_line(fact), one if one == other else -1))
        for node in self.ranked_nodes(community).tolist():
            tell(node, otherwise=self._names[node])
        return lines


def _symmetric(edges: Edges, n: int) -> sparse.csr_array:
    left, right, weight = edges
    half = sparse.coo_array((weight, (left, right)), shape=(n, n)).tocsr()
    return sparse.csr_array(half + half.T)
