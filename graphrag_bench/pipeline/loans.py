"""What the run lends to components, by type: everything they read that is not a wire and not a setting."""

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.hierarchy import HierarchyIndex
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions

INDEXES: dict[type, str] = {
    NodeVectors: "node vectors",
    RelationshipVectors: "relationship vectors",
    ChunkVectors: "chunk vectors",
    CommunityVectors: "community vectors",
    HierarchyIndex: "hierarchy index",
    LexicalIndex: "lexical index",
    TfidfIndex: "TF-IDF index",
}
LOANS: dict[object, str] = {
    Graph: "the graph",
    Questions: "the questions",
    ChunkTable: "the chunks",
    ChatModel: "the chat model",
    Embedder: "the embedder",
    **{kind: f"the {name}" for kind, name in INDEXES.items()},
    GivenEntities: "the dataset's question entities",
}
GRAPH_LOANS: frozenset[object] = frozenset(
    {Graph, NodeVectors, RelationshipVectors, CommunityVectors, HierarchyIndex, TfidfIndex}
)
