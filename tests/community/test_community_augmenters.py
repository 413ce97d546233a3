"""Augmentations: hand-made layers, and plain loops that say the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.community.augmented import common_neighbours, new_pairs, symmetric, together
from graphrag_bench.community.augmenters.codicil import codicil
from graphrag_bench.community.augmenters.knn import knn
from graphrag_bench.community.augmenters.none import none
from graphrag_bench.community.layered import Layer
from graphrag_bench.errors import UserError


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def at(*degrees):
    angle = np.radians(degrees)
    return np.column_stack([np.cos(angle), np.sin(angle)]).astype(np.float32)


def edges_of(*rows):
    rows = sorted((min(a, b), max(a, b), w) for a, b, w in rows)
    left, right, weight = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(left, np.int64), np.array(right, np.int64), np.array(weight, np.float64)


def pairs(edges):
    return list(zip(edges[0].tolist(), edges[1].tolist(), strict=True))


def random_layer(n, m, seed, width=5):
    rng = np.random.default_rng(seed)
    drawn = {tuple(sorted(pair)) for pair in rng.integers(0, n, (m, 2)).tolist() if pair[0] != pair[1]}
    return Layer(unit(rng.standard_normal((n, width))), edges_of(*((a, b, 1.0 + a) for a, b in drawn)))


layers = st.builds(random_layer, st.integers(2, 14), st.integers(0, 20), st.integers(0, 99))


def in_form(edges, n):
    left, right, weight = edges
    keys = left * n + right
    assert (left < right).all() and (np.diff(keys) > 0).all() and (weight > 0).all()


def test_none_leaves_the_edges():
    layer = random_layer(6, 6, 0)
    assert none(layer) is layer.edges


def test_knn_joins_what_is_nearer_than_the_threshold():
    """Cosines of the edges: 10° and 90°; their upper quantile is the one of 10°, which 0–2 at 5° and 3–4 at 1° pass."""
    layer = Layer(at(0, 10, 5, 100, 101, 180), edges_of((0, 1, 2.0), (1, 3, 3.0)))
    found = knn(layer, quantile=1.0)
    assert pairs(found.edges) == [(0, 1), (0, 2), (1, 2), (1, 3), (3, 4)]
    cosine = np.cos(np.radians([5, 5, 1]))
    assert found.edges[2] == pytest.approx([2.0, cosine[0], cosine[1], 3.0, cosine[2]], abs=1e-6)
    assert found.facts == {
        "neighbours": 1,
        "threshold": pytest.approx(np.cos(np.radians(10)), abs=1e-6),
        "search": "exact",
    }


def test_knn_adds_at_most_so_many_a_node_the_nearest_first():
    layer = Layer(at(0, 1, 3, 6, 10, 90), edges_of((0, 5, 1.0)))
    assert pairs(knn(layer, neighbours=1).edges) == [(0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert pairs(knn(layer, neighbours=2).edges) == [
        (0, 1), (0, 2), (0, 5), (1, 2), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5),
    ]  # fmt: skip
    assert knn(layer).facts["neighbours"] == 1


def test_knn_takes_the_mean_degree_of_nodes_that_have_edges():
    star = Layer(unit(np.random.default_rng(0).standard_normal((9, 4))), edges_of(*((0, n, 1.0) for n in range(1, 5))))
    assert knn(star).facts["neighbours"] == 1  # 8 ends, 5 nodes
    full = Layer(star.vectors, edges_of(*((a, b, 1.0) for a in range(5) for b in range(a))))
    assert knn(full).facts["neighbours"] == 4


def test_knn_of_a_layer_without_edges_joins_what_is_not_opposite():
    layer = Layer(at(0, 1, 91, 200), edges_of())
    assert pairs(knn(layer, neighbours=1).edges) == [(0, 1)]
    assert pairs(knn(Layer(at(0)[:0], edges_of())).edges) == []


@settings(max_examples=60, deadline=None)
@given(layers, st.integers(1, 4), st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_knn_is_the_plain_loop(layer, k, quantile):
    n = len(layer)
    cosine = np.round(layer.vectors.astype(float) @ layer.vectors.astype(float).T, 6)
    known = set(pairs(layer.edges))
    threshold = np.percentile([cosine[a, b] for a, b in known], 100 * quantile) if known else 0
    expected = set(known)
    for node in range(n):
        near = sorted((other for other in range(n) if other != node), key=lambda o: (-cosine[node, o], o))[: 3 * k // 2]
        fresh = [o for o in near if tuple(sorted((node, o))) not in known and cosine[node, o] > threshold + 1e-12]
        expected |= {tuple(sorted((node, o))) for o in fresh[:k]}
    found = knn(layer, neighbours=k, quantile=quantile)
    in_form(found.edges, n)
    assert pairs(found.edges) == sorted(expected)
    weight = dict(zip(pairs(found.edges), found.edges[2].tolist(), strict=True))
    assert all(weight[pair] == 1.0 + pair[0] for pair in known)


def spread(values):
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.0 for value in values]


@settings(max_examples=60, deadline=None)
@given(layers, st.integers(1, 5), st.sampled_from([0.0, 0.5, 1.0]), st.booleans())
def test_codicil_is_the_plain_loop(layer, k, alpha, prune):
    n = len(layer)
    cosine = np.round(layer.vectors.astype(float) @ layer.vectors.astype(float).T, 6)
    known = set(pairs(layer.edges))
    near = {node: {b if a == node else a for a, b in known if node in (a, b)} for node in range(n)}
    union = set(known)
    for node in range(n):
        best = sorted((other for other in range(n) if other != node), key=lambda o: (-cosine[node, o], o))[:k]
        union |= {tuple(sorted((node, other))) for other in best}
    kept = set() if prune else set(known)
    for node in range(n):
        others = sorted(b if a == node else a for a, b in union if node in (a, b))
        if not others:
            continue
        jaccard = [len(near[node] & near[o]) / max(len(near[node] | near[o]), 1) for o in others]
        worth = [
            round(alpha * t + (1 - alpha) * c, 12)
            for t, c in zip(spread(jaccard), spread([cosine[node, o] for o in others]), strict=True)
        ]
        order = sorted(range(len(others)), key=lambda at: (-worth[at], others[at]))
        kept |= {tuple(sorted((node, others[at]))) for at in order[: (len(others) + 1) // 2]}
    found = codicil(layer, content_neighbours=k, alpha=alpha, prune=prune)
    in_form(found.edges, n)
    assert pairs(found.edges) == sorted(kept)
    weight = dict(zip(pairs(found.edges), found.edges[2].tolist(), strict=True))
    assert all(weight[pair] == 1.0 + pair[0] for pair in known & kept)


@pytest.mark.parametrize("augment", [knn, codicil])
def test_who_is_called_what_does_not_matter(augment):
    layer = random_layer(30, 40, 3)
    turned = np.random.default_rng(1).permutation(30)
    back = np.argsort(turned)
    left, right, weight = layer.edges
    other = Layer(
        layer.vectors[turned], edges_of(*zip(back[left].tolist(), back[right].tolist(), weight.tolist(), strict=True))
    )
    renamed = {tuple(sorted((int(turned[a]), int(turned[b])))) for a, b in pairs(augment(other).edges)}
    assert renamed == set(pairs(augment(layer).edges))


@pytest.mark.parametrize("augment", [knn, codicil])
def test_the_same_again(augment):
    layer = random_layer(40, 50, 4)
    first, second = augment(layer, search="cells", seed=3), augment(layer, search="cells", seed=3)
    assert [a.tobytes() for a in first.edges] == [a.tobytes() for a in second.edges]
    assert first.facts["search"] == "cells"


@settings(max_examples=40, deadline=None)
@given(layers)
def test_common_neighbours_are_the_product_of_the_matrix(layer):
    n = len(layer)
    left, right = np.triu_indices(n, 1)
    ones = (*layer.edges[:2], np.ones(len(layer.edges[0])))
    dense = symmetric(ones, n).toarray()
    assert common_neighbours(layer.edges, left, right, n).tolist() == (dense @ dense)[left, right].tolist()


def test_common_neighbours_in_pieces(monkeypatch):
    layer = random_layer(14, 40, 5)
    left, right = np.triu_indices(14, 1)
    whole = common_neighbours(layer.edges, left, right, 14)
    monkeypatch.setattr("graphrag_bench.community.augmented._LOOKUPS", 3)
    assert common_neighbours(layer.edges, left, right, 14).tolist() == whole.tolist()


def test_pairs_that_come_twice_keep_their_first_weight():
    edges = edges_of((0, 2, 5.0))
    found = together(edges, np.array([2, 1, 0]), np.array([0, 0, 1]), np.array([9.0, 2.0, 3.0]), 3)
    assert [part.tolist() for part in found] == [[0, 0], [1, 2], [2.0, 5.0]]
    assert new_pairs(np.array([2, 1]), np.array([0, 0]), edges, 3).tolist() == [False, True]


@pytest.mark.parametrize(
    ("augment", "setting"),
    [
        (knn, {"neighbours": 0}),
        (knn, {"quantile": 1.5}),
        (codicil, {"content_neighbours": 0}),
        (codicil, {"alpha": -0.1}),
    ],
)
def test_settings_out_of_range_are_refused(augment, setting):
    (name,) = setting
    with pytest.raises(UserError, match=f"community.{name} is"):
        augment(random_layer(4, 4, 0), **setting)
