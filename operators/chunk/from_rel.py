"""FromRel: the chunks that relationships were found in."""

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import gather
from graphrag_bench.pipeline.rows import Firsts, by_place, merge, stack
from graphrag_bench.pipeline.values import Chunks, Relationships
from graphrag_bench.registry import operator


@operator("chunk.from_rel", needs=("relationship.name|relationship.description",))
def from_rel(graph: Graph, relationships: Relationships, *, top_k: int | None = None) -> Chunks:
    """Take the source chunks of the relationships, in the order of the relationships; one's chunks stand by id.

    A chunk's score is one over its place; the chunks that one relationship brings share theirs.

    Args:
        graph: which relationship was found in which chunk.
        relationships: in order.
        top_k: chunks to keep.
    """
    found_in = graph.relationship_chunk
    firsts = Firsts(graph.n_chunks)
    rows = []
    for row in relationships:
        origin, at = gather(found_in.indptr, row.ids)
        chunks, place = merge(found_in.indices[at], firsts, origin)
        rows.append(by_place(chunks, (place,), top_k))
    return stack(Chunks, rows)
