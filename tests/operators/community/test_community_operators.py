"""community.entity, community.layer and community.vdb against loops."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, Reports
from graphrag_bench.index.vectors import CommunityVectors
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from operators.community.entity import entity
from operators.community.layer import layer
from operators.community.vdb import vdb


def with_communities(graph, levels, parents, members, ratings, failed=()):
    count = len(levels)
    matrix = np.zeros((count, graph.n_nodes), np.float32)
    for community, nodes in enumerate(members):
        matrix[community, list(nodes)] = 1
    columns = {name: [""] * count for name in ("title", "summary", "text", "rating_reason")}
    columns |= {"rating": ratings, "failed": ["parse: no" if n in failed else None for n in range(count)]}
    return graph.with_communities(
        Hierarchy(np.array(levels, np.int32), np.array(parents, np.int32), sparse.csr_array(matrix)),
        Reports(pa.table(columns, schema=REPORT_SCHEMA)),
    )


def random_scene(small, seed):
    rng = np.random.default_rng(seed)
    graph = small.random_graph(seed)
    roots, count = int(rng.integers(1, 4)), int(rng.integers(4, 9))
    levels, parents = [0] * roots, [-1] * roots
    for _ in range(count - roots):
        parent = int(rng.integers(len(levels)))
        levels.append(levels[parent] + 1)
        parents.append(parent)
    members = [np.flatnonzero(rng.random(graph.n_nodes) < 0.4).tolist() for _ in range(count)]
    ratings = [None if rng.random() < 0.3 else float(rng.integers(0, 4)) for _ in range(count)]
    failed = set(np.flatnonzero(rng.random(count) < 0.2).tolist())
    return with_communities(graph, levels, parents, members, ratings, failed), levels, parents, members, ratings, failed


def placed(keys, top_k=None):
    """(id, one over its place), equals sharing theirs."""
    ordered = sorted(keys, key=lambda n: (keys[n], n))
    return [(n, 1 / (1 + sum(keys[o] < keys[n] for o in keys))) for n in ordered][:top_k]


def questions(size, failed=None):
    return Questions(tuple(f"q{n}" for n in range(size)), tuple(f"t{n}" for n in range(size)), failed=failed or {})


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rank=st.sampled_from(["rating", "count"]),
    max_level=st.sampled_from([None, 0, 1, 2]),
    top_k=st.sampled_from([None, 1, 3]),
)
def test_entity_equals_loops(small, seed, rank, max_level, top_k):
    graph, levels, _, members, ratings, failed = random_scene(small, seed)
    rows = small.random_rows(seed, graph.n_nodes)
    found = entity(graph, Nodes.of_rows(rows), rank=rank, max_level=max_level, top_k=top_k)
    for row, (nodes, _) in zip(found, rows, strict=True):
        keys = {}
        for n, inside in enumerate(members):
            count = len(set(inside) & set(nodes))
            rating = -np.inf if ratings[n] is None else ratings[n]
            if count and n not in failed and (max_level is None or levels[n] <= max_level):
                keys[n] = (-rating, -count) if rank == "rating" else (-count, -rating)
        assert small.pairs(row) == placed(keys, top_k)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    level=st.integers(0, 3),
    mode=st.sampled_from(["up_to", "at"]),
    least=st.sampled_from([0.0, 2.0]),
    top_k=st.sampled_from([None, 1, 3]),
)
def test_layer_equals_loops(small, seed, level, mode, least, top_k):
    graph, levels, parents, members, ratings, failed = random_scene(small, seed)
    found = layer(graph, questions(3, {1: "no"}), level=level, mode=mode, min_rating=least, top_k=top_k)
    held = graph.node_chunk.toarray()
    keys = {}
    for n, inside in enumerate(members):
        rating = ratings[n]
        undivided = n not in parents
        there = levels[n] == level or (levels[n] < level and (mode == "up_to" or undivided))
        if there and n not in failed and (rating or 0.0) >= least:
            occurrence = int((held[inside].sum(axis=0) > 0).sum()) if inside else 0
            keys[n] = (-occurrence, np.inf if rating is None else -rating)
    assert [small.pairs(row) for row in found] == [placed(keys, top_k), [], placed(keys, top_k)]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), max_level=st.sampled_from([None, 0, 1]), top_k=st.integers(1, 10))
def test_vdb_equals_loops_and_never_shows_a_failed_report(small, seed, max_level, top_k):
    graph, levels, _, _, _, failed = random_scene(small, seed)
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(len(levels), 3))
    matrix[-1] = matrix[0]
    matrix = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    texts = small.Table({f"t{n}": rng.normal(size=3) for n in range(3)})
    found = vdb(graph, questions(3, {1: "no"}), CommunityVectors(matrix, texts), max_level=max_level, top_k=top_k)
    for number, row in enumerate(found):
        cosines = {
            n: round(float(matrix[n].astype(float) @ texts.vectors[f"t{number}"].astype(float)), 6)
            for n in range(len(levels))
            if n not in failed and (max_level is None or levels[n] <= max_level) and number != 1
        }
        assert small.pairs(row) == small.ranked(cosines, top_k)


@pytest.fixture
def two_levels(small):
    """Roots 0 = {0, 1, 2} and 1 = {3}; below 0: 2 = {0, 1} and 3 = {2}. Node n is in chunk n, node 0 in chunk 3 too."""
    graph = small.graph_of(4, [], [(n, n) for n in range(4)] + [(0, 3)], chunks=4)
    return with_communities(graph, [0, 0, 1, 1], [-1, -1, 0, 0], [[0, 1, 2], [3], [0, 1], [2]], [2.0, 9.0, None, 9.0])


def test_entity_by_hand(small, two_levels):
    nodes = Nodes.of_rows([([0, 1, 2], [1.0, 1.0, 1.0])])
    assert small.pairs(entity(two_levels, nodes).row(0)) == [(3, 1.0), (0, 1 / 2), (2, 1 / 3)]
    assert entity(two_levels, nodes, rank="count").row(0).ids.tolist() == [0, 2, 3]
    assert entity(two_levels, nodes, max_level=0).row(0).ids.tolist() == [0]


def test_layer_by_hand(two_levels):
    def ids(**settings):
        return layer(two_levels, questions(1), **settings).row(0).ids.tolist()

    assert ids(level=0) == [0, 1]  # four chunks, one chunk
    assert ids(level=1) == [0, 2, 1, 3]  # 4, 3, 1 and 1 chunks; equals share their place
    assert ids(level=1, mode="at") == [2, 1, 3]  # the root 1 was not divided
    assert ids(level=1, min_rating=1.0) == [0, 1, 3]
    assert ids(level=1, top_k=1) == [0]
