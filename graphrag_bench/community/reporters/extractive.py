"""Community reports without a model: the best connected members, and the sentences that say most of them."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.community.elements import Elements
from graphrag_bench.community.packing import fitting
from graphrag_bench.community.sentences import Sentences
from graphrag_bench.errors import UserError
from graphrag_bench.graph.communities import ReportRows, Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import FACTS, Kinds
from graphrag_bench.registry import register

_TITLE = 3  # members a title names
_SUMMARY = 2  # sentences a summary repeats


@register("reporter", "extractive")
def extractive(
    graph: Graph,
    chunks: ChunkTable | None = None,
    written: Reports | None = None,
    *,
    report_tokens: int = 600,
    sentences: Literal["graph", "chunks"] = "graph",
    members: int = 10,
    tokenizer: str = "regex",
    kinds: Kinds = FACTS,
) -> Reports:
    """Put each report together from what the graph or the corpus says, in the order of what is best connected.

    Members are ranked by the weight of the facts that join them to other members, ties by id. The title names the first
    three, the text all of the first ``members`` and then as many whole sentences as ``report_tokens`` holds; the summary
    is the first two of them. The rating is 10 times the weight of the facts within the community over that of the
    community of its level that has the most: a share, not a judgement.

    Args:
        graph: with its communities.
        chunks: the corpus, for sentences of chunks.
        written: the reports on the last communities, from an earlier call: they are kept.
        report_tokens: tokens of a report at most.
        sentences: lines of the graph, facts by the combined rank of their ends with the descriptions of their ends before
            them (as a model would be shown them); or the sentences of the members' chunks that mention most of the named
            members, ties in the order of the corpus.
        members: how many members are named and looked for.
        tokenizer: counts the tokens.
        kinds: the kinds of relationship that count as facts and are told, best those the communities were made of.

    Raises:
        UserError: Sentences of chunks are asked for where there are no chunks.
    """
    if sentences == "chunks" and chunks is None:
        raise UserError("Sentences of chunks need the chunks.", "Set community.sentences=graph.")
    elements = Elements(graph, kinds=kinds, by_weight=True)
    ratings = _ratings(graph.communities.level, elements.mass)
    starts = load_tokenizer(tokenizer).starts

    def count(text: str) -> int:
        return len(starts(text))

    corpus = Sentences(chunks) if chunks is not None and sentences == "chunks" else None
    rows = ReportRows()
    kept_rows = [] if written is None else written.rows()
    for community in range(graph.n_communities - len(kept_rows)):
        nodes = elements.ranked_nodes(community).tolist()[:members]
        names = [elements.name(node) for node in nodes]
        if corpus is None:
            lines = [line.text for line in elements.lines(community)]
        else:
            lines = corpus.mentioning(names, _chunks_of(graph, community))
        title = ", ".join(names[:_TITLE])
        listed = f"Entities: {'; '.join(names)}."
        texts = [f"# {title}\n\n{listed}\n", *lines]
        kept, _, _ = fitting(((text, count(f"{text}\n")) for text in texts), report_tokens, count)
        summary = (" " if corpus else "; ").join(kept[1 : 1 + _SUMMARY]) or listed
        rating, share = float(ratings[community]), float(elements.mass[community])
        reason = f"The facts within weigh {share:g}; the rating is their share of the most at this level, out of 10."
        rows.add(title, summary, "\n".join(kept).strip(), rating=rating, rating_reason=reason)
    for row in kept_rows:
        rows.add(**row)
    return rows.reports()


def _chunks_of(graph: Graph, community: int) -> list[int]:
    """Return the chunks in which a member occurs."""
    found: list[int] = np.unique(graph.node_chunk[graph.communities.nodes(community)].indices).tolist()
    return found


def _ratings(level: NDArray[np.int32], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    most = np.zeros(int(level.max(initial=-1)) + 1)
    np.maximum.at(most, level, mass)
    found: NDArray[np.float64] = np.divide(10 * mass, most[level], out=np.zeros(len(mass)), where=most[level] > 0)
    return found.round(2)
