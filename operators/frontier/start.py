"""Start: the frontier of a walk that begins at the given nodes."""

from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import Frontier, Reach
from graphrag_bench.registry import operator


@operator("frontier.start")
def start(nodes: Nodes, *, top_k: int | None = None) -> Frontier:
    """Stand at the given nodes, with their scores; no relationship has been walked yet.

    Args:
        nodes: where walks begin (ToG's topic entities).
        top_k: nodes a question, the best; null for all.
    """
    return Frontier(
        [
            [
                Reach(node, score=score)
                for node, score in zip(row.ids[:top_k].tolist(), row.scores.tolist(), strict=False)
            ]
            for row in nodes
        ],
        nodes.failed,
    )
