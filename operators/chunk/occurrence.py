"""Occurrence: the chunks in which what was found occurs together."""

from typing import Literal

import numpy as np
from scipy import sparse

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather, neighbours
from graphrag_bench.pipeline.rows import Array, Firsts, by_place, merge, stack
from graphrag_bench.pipeline.values import Chunks, Nodes, Relationships
from graphrag_bench.registry import operator


@operator("chunk.occurrence", needs=("relationship.name|relationship.description",))
def occurrence(
    graph: Graph,
    relationships: Relationships | None = None,
    nodes: Nodes | None = None,
    *,
    rank: Literal["relationships", "nodes"] = "relationships",
    top_k: int | None = None,
) -> Chunks:
    """Rank chunks by how much of what was found occurs in them.

    By ``relationships`` (the unified paper's rule) a chunk scores the number of the question's relationships whose two ends
    both occur in it. By ``nodes`` (GraphRAG's and LightRAG's code) the chunks of the first node come first, then those of
    the second; among one node's chunks, those first that hold more of its neighbours. Its score is one over its place.

    Args:
        graph: which node occurs in which chunk; neighbours are those over facts.
        relationships: what is counted by ``rank: relationships``.
        nodes: whose chunks are ranked by ``rank: nodes``.
        rank: the rule.
        top_k: chunks to keep.
    """
    given = relationships if rank == "relationships" else nodes
    if given is None:
        raise OperatorFailure(
            f"rank: {rank} needs {rank}, and the step is given none; write {rank}: <step> in the page"
        )
    if isinstance(given, Relationships):
        return _by_relationships(graph, given, top_k)
    return _by_nodes(graph, given, top_k)


def _by_relationships(graph: Graph, relationships: Relationships, top_k: int | None) -> Chunks:
    used, column = np.unique(relationships.ids, return_inverse=True)
    ones = np.ones(len(column))
    given = sparse.csr_array((ones, column, relationships.indptr), shape=(relationships.size, len(used)))
    return Chunks.of_csr(given @ _holding_both(graph, used), top_k)


def _holding_both(graph: Graph, relationships: Array) -> sparse.csr_array:
    """Return (relationships, chunks) with 1 where both ends occur: the chunks of the rarer end that the other has too."""
    held = graph.node_chunk
    counts = np.diff(held.indptr)
    one, other = graph.sources[relationships], graph.targets[relationships]
    swap = counts[one] > counts[other]
    rare, often = np.where(swap, other, one), np.where(swap, one, other)
    origin, at = gather(held.indptr, rare)
    chunks = held.indices[at]
    both = _occurs(graph, often[origin], chunks)
    shape = (len(relationships), graph.n_chunks)
    return sparse.coo_array((np.ones(int(both.sum())), (origin[both], chunks[both])), shape=shape).tocsr()


def _occurs(graph: Graph, nodes: Array, chunks: Array) -> Array:
    """Say of pairs whether the node occurs in the chunk."""
    cache: dict[str, Array] = graph.__dict__.setdefault("_pairs", {})
    if "node_chunk" not in cache:
        owner = np.repeat(np.arange(graph.n_nodes), np.diff(graph.node_chunk.indptr))
        cache["node_chunk"] = np.sort(owner * graph.n_chunks + graph.node_chunk.indices)
    known = cache["node_chunk"]
    wanted = nodes * graph.n_chunks + chunks
    at = np.searchsorted(known, wanted)
    inside = at < len(known)
    inside[inside] = known[at[inside]] == wanted[inside]
    return inside


def _by_nodes(graph: Graph, nodes: Nodes, top_k: int | None) -> Chunks:
    held, around = graph.node_chunk, neighbours(graph)
    firsts = Firsts(graph.n_chunks)
    holder = np.full(
        graph.n_chunks, -1
    )  # the place of the node that first brought the chunk, while its question is done
    beside = np.zeros(graph.n_chunks)
    rows = []
    for row in nodes:
        origin, at = gather(held.indptr, row.ids)
        chunks, origin = merge(held.indices[at], firsts, origin)
        holder[chunks] = origin
        bringing = np.unique(origin)
        one, at = gather(around.indptr, row.ids[bringing])
        two, at = gather(held.indptr, around.nodes[at])
        seen = held.indices[at]
        seen = seen[holder[seen] == bringing[one[two]]]
        np.add.at(beside, seen, 1.0)
        rows.append(by_place(chunks, (origin, -beside[chunks]), top_k))
        holder[chunks], beside[chunks] = -1, 0.0
    return stack(Chunks, rows)
