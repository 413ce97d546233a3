"""community.hierarchical against a loop over every entity and community."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, Reports
from graphrag_bench.index.hierarchy import HierarchyIndex, build_layers, community_layers, open_layers
from graphrag_bench.index.vectors import CommunityVectors, NodeVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.registry import REGISTRY
from operators.community.hierarchical import hierarchical

TEXTS = {"t0": [1, 0, 0], "t1": [0, 1, 0], "t2": [1, 1, 1], "a": [1, 2, 0], "b": [0, -1, 1], "c": [-1, 0, 0]}
LEVELS = [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]


def scene(small, seed, failed=()):
    """A graph of three layers of communities over it; vectors few enough to come twice."""
    rng = np.random.default_rng(seed)
    graph, count = small.random_graph(seed), len(LEVELS)
    columns = {name: [""] * count for name in ("title", "summary", "text", "rating_reason")}
    columns |= {"rating": [None] * count, "failed": ["parse: no" if n in failed else None for n in range(count)]}
    members = sparse.csr_array(np.ones((count, graph.n_nodes), np.float32))
    graph = graph.with_communities(
        Hierarchy(np.array(LEVELS, np.int32), np.full(count, -1, np.int32), members),
        Reports(pa.table(columns, schema=REPORT_SCHEMA)),
    )

    def unit(n):
        made = rng.integers(-1, 2, (n, 3)) + np.array((0.5, 0.25, 0.1))
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    table = small.Table(TEXTS)
    nodes, communities = NodeVectors(unit(graph.n_nodes), table), CommunityVectors(unit(count), table)
    return graph, HierarchyIndex(nodes, communities, community_layers(graph))


def questions(entities=None, failed=None):
    return Questions(("q0", "q1", "q2"), ("t0", "t1", "t2"), entities, failed=failed or {})


def loop(index, texts, failed, top_k, max_layer, pooled, least):
    """What one question finds: {(0 or 1 for entity or community, id): its best cosine}."""
    best = {}
    for text in texts:
        query = index.nodes.embedder.embed([text], "query")[0].astype(np.float64)
        layers = {0: [(0, n) for n in range(len(index.nodes))]}
        for community, level in enumerate(LEVELS):
            if community not in failed:
                layers.setdefault(3 - level, []).append((1, community))
        found = []
        for layer in (number for number in sorted(layers) if max_layer is None or number <= max_layer):
            scored = []
            for above, number in layers[layer]:
                matrix = index.communities.matrix if above else index.nodes.matrix
                scored.append((round(float((matrix[number].astype(np.float64) * query).sum()), 6), above, number))
            found += sorted(scored, key=lambda hit: (-hit[0], hit[2]))[:top_k]
        if pooled and found:
            cut = sorted((hit[0] for hit in found), reverse=True)[:top_k][-1]
            found = [hit for hit in found if hit[0] >= cut]
        for score, above, number in found:
            if score >= least:
                best[above, number] = max(score, best.get((above, number), score))
    return best


def as_dicts(hits, row):
    return {
        (above, number): score
        for above, value in enumerate(hits)
        for number, score in zip(value.row(row).ids.tolist(), value.row(row).scores.tolist(), strict=True)
    }


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    failed=st.sets(st.integers(0, 11), max_size=3),
    top_k=st.sampled_from([1, 2, 3, 50]),
    max_layer=st.sampled_from([None, 0, 1, 2, 3, 9]),
    pooled=st.booleans(),
    least=st.sampled_from([-1.0, 0.3]),
    by=st.sampled_from(["question", "entities"]),
)
def test_it_equals_a_loop(small, seed, failed, top_k, max_layer, pooled, least, by):
    graph, index = scene(small, seed, failed)
    asked = questions((("a", "b"), (), ("c", "c")))
    found = hierarchical(
        graph, asked, index, by=by, top_k=top_k, max_layer=max_layer, pooled=pooled, min_similarity=least
    )
    for row, texts in enumerate(asked.read(by)):
        wanted = loop(index, texts, failed, top_k, max_layer, pooled, least)
        got = as_dicts(found, row)
        assert got.keys() == wanted.keys()
        assert [got[key] for key in sorted(got)] == pytest.approx([wanted[key] for key in sorted(wanted)], abs=1e-9)
        for value in found:
            ranked = small.pairs(value.row(row))
            assert ranked == sorted(ranked, key=lambda pair: (-pair[1], pair[0]))


def test_the_entities_alone(small):
    graph, index = scene(small, 3)
    found = hierarchical(graph, questions(), index, max_layer=0)
    assert all(len(row.ids) for row in found.nodes) and not any(len(row.ids) for row in found.communities)


def test_layers_are_counted_where_one_has_no_report_at_all(small):
    """All reports of level 1 failed: layer 2 is then not there, and what is above keeps its number."""
    graph, index = scene(small, 3, {2, 3, 4, 5})
    found = hierarchical(graph, questions(), index, top_k=9, max_layer=2)
    assert {LEVELS[c] for row in found.communities for c in row.ids.tolist()} == {2}


def test_no_report_at_all(small):
    graph, index = scene(small, 3, set(range(12)))
    for pooled in (False, True):
        found = hierarchical(graph, questions(), index, top_k=2, pooled=pooled)
        assert all(len(row.ids) for row in found.nodes) and not any(len(row.ids) for row in found.communities)


def test_a_failed_question_is_empty_and_so_is_a_batch_without_questions(small):
    graph, index = scene(small, 5)
    found, whole = (
        hierarchical(graph, questions(failed={1: "timeout: 60 s"}), index),
        hierarchical(graph, questions(), index),
    )
    assert as_dicts(found, 1) == {}
    assert [as_dicts(found, row) for row in (0, 2)] == [as_dicts(whole, row) for row in (0, 2)]
    nothing = hierarchical(graph, questions().take([]), index)
    assert nothing.nodes.size == nothing.communities.size == 0


def test_an_engine_gives_the_same(small, tmp_path):
    pytest.importorskip("chnsw")
    graph, index = scene(small, 8)
    backend = REGISTRY.get("index", "chnsw").call()
    build_layers(backend, index.matrices, tmp_path)
    again = HierarchyIndex(index.nodes, index.communities, index.layers, open_layers(backend, tmp_path))
    for pooled in (False, True):
        one, other = (hierarchical(graph, questions(), which, top_k=2, pooled=pooled) for which in (index, again))
        assert [as_dicts(one, row) for row in range(3)] == [as_dicts(other, row) for row in range(3)]
