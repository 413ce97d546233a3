"""What the run lends to components, by type: everything they read that is not a wire and not a setting."""

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.texts import Questions

LOANS: dict[type, str] = {
    Graph: "the graph",
    Questions: "the questions",
    ChatModel: "the chat model",
    Embedder: "the embedder",
    NodeVectors: "the node vectors",
    ChunkVectors: "the chunk vectors",
    LexicalIndex: "the lexical index",
    GivenEntities: "the dataset's question entities",
}
GRAPH_LOANS = frozenset({Graph, NodeVectors})
