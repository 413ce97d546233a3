"""KET-RAG's index: central chunks against networkx, what is extracted from them alone, keywords by hand."""

import asyncio
import json
from zlib import crc32

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.api import compare
from graphrag_bench.chunking.types import Chunk
from graphrag_bench.data.types import GivenTriples
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.builders import ket, tkg
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.graph.extractors import skeleton
from graphrag_bench.graph.graph import incidence
from graphrag_bench.graph.keywords import keywords_of
from graphrag_bench.graph.skeleton import central_chunks, distinct_words, pagerank

WORDS = ["river", "mill", "bridge", "opera", "singer", "stage", "planet", "star", "orbit", "comet", "flour", "grain"]


def corpus(seed, count=14):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, 5).tolist()) + f" number{n}." for n in range(count)]
    return tuple(Chunk(n, text, "", (f"d{n}",), 6) for n, text in enumerate(texts))


class Table:
    """An embedder of random unit vectors, the same for the same text."""

    dim, identity = 6, {"backend": "table"}

    def embed(self, texts, role="passage"):
        rows = [np.random.default_rng(crc32(text.encode())).normal(size=self.dim) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], np.float32)


def expected(chunks, embedder, share, nearest):
    """The most central chunks by plain loops and networkx."""
    n = len(chunks)
    vectors = embedder.embed([chunk.text for chunk in chunks]).astype(np.float64)
    words = [set(chunk.text.strip(".").split()) - {f"number{k}" for k in range(n)} for chunk in chunks]
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    for a in range(n):
        others = [b for b in range(n) if b != a]
        near = sorted(others, key=lambda b: (-round(float(np.float32(vectors[a]) @ np.float32(vectors[b])), 6), b))
        graph.add_edges_from((a, b) for b in near[:nearest] if vectors[a] @ vectors[b] > 0)
        alike = sorted(others, key=lambda b: (-len(words[a] & words[b]), b))
        graph.add_edges_from((a, b) for b in alike[:nearest] if words[a] & words[b])
    rank = nx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=1000)
    best = sorted(range(n), key=lambda node: (-round(rank[node], 9), node))
    return sorted(best[: int(np.ceil(round(share * n, 9)))])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("nearest", [1, 3])
def test_central_chunks_are_those_of_networkx(seed, nearest):
    chunks = corpus(seed)
    share = (0.2, 0.5, 0.8)[seed % 3]
    # the words of numbers hold digits, and are none
    assert distinct_words([chunk.text for chunk in chunks]).shape[1] <= len(WORDS)
    found = central_chunks(chunks, Table(), share, nearest)
    assert found.tolist() == expected(chunks, Table(), share, nearest)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30))
))  # fmt: skip
def test_pagerank_is_networkx_pagerank(case):
    n, edges = case
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(edge for edge in edges if edge[0] != edge[1])
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    wanted = nx.pagerank(graph, tol=1e-13, max_iter=2000)
    assert pagerank(incidence(pairs[:, 0], pairs[:, 1], (n, n))) == pytest.approx(
        [wanted[k] for k in range(n)], abs=1e-9
    )


def test_all_or_nothing_asked_for():
    chunks = corpus(0)
    assert central_chunks(chunks, Table(), 1.0, 1).tolist() == list(range(14))
    assert len(central_chunks(chunks, Table(), 0.01, 1)) == 1
    for share, nearest in ((0.0, 1), (1.1, 1), (0.5, 0)):
        with pytest.raises(UserError, match=r"graph\.(share|nearest_chunks)"):
            central_chunks(chunks, Table(), share, nearest)


def test_only_chosen_chunks_have_given_triples():
    chunks = corpus(3)
    given_rows = tuple(GivenTriples(f"d{n}", (f"E{n}", "X"), ((f"E{n}", "is", "X"),)) for n in range(14))
    found = asyncio.run(skeleton.read(chunks, Table(), given_rows, share=0.5))
    chosen = central_chunks(chunks, Table(), 0.5, 1).tolist()
    assert [n for n, row in enumerate(found.triples) if row] == chosen
    assert [n for n, row in enumerate(found.entities) if row] == chosen
    assert not found.failed


def test_only_chosen_chunks_are_asked_about(monkeypatch):
    chunks = corpus(4)
    seen = []

    async def described(given_chunks, model, **options):
        seen.extend(chunk.id for chunk in given_chunks)
        rows = tuple((EntityRecord(f"E{chunk.id}", "t", "d"),) for chunk in given_chunks)
        return RichExtraction(rows, tuple(() for _ in given_chunks), {1: "timeout: late"}, 2)

    monkeypatch.setattr(skeleton.described, "extract", described)
    found = asyncio.run(skeleton.extract(chunks, Table(), None, share=0.5))
    chosen = central_chunks(chunks, Table(), 0.5, 1).tolist()
    assert seen == chosen
    assert [row[0].name if row else None for row in found.entities] == [
        f"E{n}" if n in chosen else None for n in range(14)
    ]
    assert found.failed == {chosen[1]: "timeout: late"} and found.cut == 2


def test_keywords_stand_where_their_words_do():
    texts = ["The mill burned. The Mill was old.", "A river and a mill.", "of the"]
    names, said, held = keywords_of(texts, None, 2)
    assert names == ["burned", "mill", "old", "river"]
    assert said[1] == "The mill burned. The Mill was old."
    assert said[3] == "A river and a mill."
    assert held.toarray().tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 1, 0]]


def test_a_chunk_may_have_its_weightiest_words_alone():
    texts = ["mill mill river", "mill stone", "mill river"]
    names, _, held = keywords_of(texts, 1, 1)
    # what stands in every chunk weighs nothing; ties are by the alphabet
    assert names == ["river", "stone"]
    assert held.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert keywords_of([], None, 1)[0] == []


def test_the_graph_is_the_skeleton_and_the_keywords_behind_it():
    chunks = corpus(5, 4)
    relation = RelationRecord("Ada", "Ulm", "", "She swam.", (), 2.0)
    extraction = RichExtraction(
        ((EntityRecord("Ada", "person", "An engineer."), EntityRecord("Ulm", "river", "It runs.")), (), (), ()),
        ((relation,), (), (), ()),
    )
    flat = asyncio.run(tkg.build(chunks, extraction, HashingEmbedder(), None, merge="cut")).graph
    made = asyncio.run(ket.build(chunks, extraction, HashingEmbedder(), None, merge="cut"))
    graph, base = made.graph, flat.n_nodes
    assert graph.nodes.slice(0, base).equals(flat.nodes.select(["name", "type", "description"]))
    assert graph.relationships.equals(flat.relationships)
    kinds = graph.column("nodes", "type")
    assert set(kinds[base:]) == {"keyword"} and "keyword" not in kinds[:base]
    names, said, held = keywords_of([chunk.text for chunk in chunks], None, 3)
    assert graph.column("nodes", "name")[base:] == names and graph.column("nodes", "description")[base:] == said
    assert (graph.node_chunk[base:] != held).nnz == 0
    assert made.facts["skeleton_chunks"] == 1 and made.facts["keywords"] == len(names)
    with pytest.raises(UserError, match="keywords_per_chunk"):
        asyncio.run(ket.build(chunks, extraction, HashingEmbedder(), None, merge="cut", keywords_per_chunk=0))


def test_a_run_takes_the_skeleton_and_answers_from_both_channels(tmp_path, monkeypatch):
    """The extraction stage lends the embedder; what is chosen hangs on it, and so does the key."""
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path / "store"))
    zero = ["graph.extractor=skeleton_openie", "graph.describe=name+triples", "graph.merge=cut", "until=retrieval"]
    usual = ["dataset.subset=demo", "evaluation.bootstrap=20", *zero]
    whole, half = (
        compare(
            ["ket_rag"],
            llm="scripted",
            embedder="hashing",
            limit=6,
            output=tmp_path / str(share),
            overrides=[*usual, f"graph.share={share}"],
            show="none",
        )
        for share in (1.0, 0.5)
    )
    facts = [
        json.loads(path.read_text())["graph"]
        for share in (1.0, 0.5)
        for path in (tmp_path / str(share)).rglob("run.json")
    ]
    assert [fact["skeleton_chunks"] for fact in facts] == [16, 8]
    assert facts[0]["keywords"] == facts[1]["keywords"] > 0
    assert facts[0]["relationships"] > facts[1]["relationships"]
    assert "KET-RAG" in whole.to_markdown() and "KET-RAG" in half.to_markdown()
