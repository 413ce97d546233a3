"""TF-IDF over nodes: lexical search among all of them, or among the neighbours of where texts are anchored (KGP)."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.graph.graph import Graph
from graphrag_bench.graph.incident import Kinds, Neighbours, neighbours
from graphrag_bench.index.tfidf import Fit, TfidfIndex
from graphrag_bench.llm.estimate import Scale
from graphrag_bench.pipeline.texts import By, Questions, Texts
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import operator
from operators._asking import rows_to_do

Search = tuple[int, int, str, NDArray[np.int64] | None]  # row, anchor, text, where to look


def found(settings: Mapping[str, Any], scale: Scale) -> int:
    """Return how many nodes are taken at most: so many a text, and with pairs the text's anchor."""
    pairs = settings["anchored"] == "pairs" and "texts" in scale.inputs
    return scale.inputs.get("texts", 1) * (int(settings["top_k"]) + pairs)


@operator("node.tfidf", yields=found)
def tfidf(
    graph: Graph,
    questions: Questions,
    index: TfidfIndex,
    texts: Texts | None = None,
    candidates: Nodes | None = None,
    *,
    by: By = "question",
    top_k: int = 10,
    fit: Fit = "candidates",
    anchored: Literal["neighbours", "pairs"] = "neighbours",
    kinds: Kinds = ("passage",),
) -> Nodes:
    """Take the nodes whose texts share the rare words of the question, or of each given text.

    A text that is anchored at a node is looked for among that node's neighbours. What shares no word is never taken.

    Args:
        graph: whose neighbourhoods are searched.
        questions: the batch.
        index: the TF-IDF index over the nodes' texts.
        texts: what to look for instead of the question.
        candidates: look among these only.
        by: what of the question is looked for where no texts are wired.
        top_k: nodes a text.
        fit: idf of the nodes looked among, as KGP's authors fit it, or of the whole corpus.
        anchored: ``neighbours`` gives the nodes found, each with its best cosine; ``pairs`` gives every anchor followed by
            what was found beside it, anchors in the order of the texts, scored 1, 1/2, 1/3, … (KGP's items, a passage with
            a neighbour; one without a neighbour stays alone).
        kinds: the kinds of relationship that make neighbours.
    """
    near = neighbours(graph, kinds) if texts is not None else None
    searches: list[Search] = []
    for row in rows_to_do(len(questions), questions, texts, candidates):
        among = None if candidates is None else candidates.row(row).ids
        wanted = questions.read(by)[row] if texts is None else ()
        searches += [(row, -1, text, among) for text in wanted]
        for text, anchor in () if texts is None else texts.row(row):
            place = among if near is None or anchor < 0 else _beside(near, anchor, among)
            searches.append((row, anchor, text, place))
    hits = _search(index, searches, top_k, fit)
    rows: list[tuple[list[int], list[float]]] = [([], []) for _ in range(len(questions))]
    for (row, anchor, _, _), (ids, scores) in zip(searches, hits, strict=True):
        if anchored == "pairs" and anchor >= 0:
            rows[row][0].append(anchor)
        rows[row][0].extend(ids.tolist())
        rows[row][1].extend(scores.tolist())
    if anchored == "pairs" and texts is not None:
        return Nodes.of_rows(
            [(ids, 1.0 / np.arange(1, len(ids) + 1)) for ids in (list(dict.fromkeys(r[0])) for r in rows)]
        )
    return Nodes.of_rows(rows)


def _search(
    index: TfidfIndex, searches: list[Search], top_k: int, fit: Fit
) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Search everywhere and in places, each kind in one go, and return the hits in the order of the searches."""
    everywhere = iter(index.search([text for *_, text, place in searches if place is None], top_k))
    placed = [(text, place) for *_, text, place in searches if place is not None]
    somewhere = iter(index.search([text for text, _ in placed], top_k, [place for _, place in placed], fit))
    return [next(everywhere if place is None else somewhere) for *_, place in searches]


def _beside(near: Neighbours, anchor: int, among: NDArray[np.int64] | None) -> NDArray[np.int64]:
    found: NDArray[np.int64] = near.nodes[near.indptr[anchor] : near.indptr[anchor + 1]].astype(np.int64)
    return found if among is None else found[np.isin(found, among)]
