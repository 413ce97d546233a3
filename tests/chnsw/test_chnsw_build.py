"""What `chnsw.Index` builds: links, connection, the same bytes whatever the threads, additions."""

import chnsw
import numpy as np
import pytest

SIZES = [6000, 1500, 300, 40, 5]


def reached(index: chnsw.Index, layer: int) -> int:
    seen, stack = {index.entry(layer)}, [index.entry(layer)]
    while stack:
        for neighbour in index.neighbors(layer, stack.pop()).tolist():
            if neighbour not in seen:
                seen.add(neighbour)
                stack.append(neighbour)
    return len(seen)


@pytest.mark.parametrize("metric", ["ip", "l2", "cosine"])
def test_links_are_the_true_nearest_and_layers_connected(tree, distances, metric):
    layers, _ = tree([5000, 900, 60, 5], 20)
    rng = np.random.default_rng(1)
    if metric != "cosine":
        layers = [layer * rng.uniform(0.5, 2, (len(layer), 1)).astype(np.float32) for layer in layers]
    index = chnsw.Index(20, metric, m=6, ef_construction=20)
    index.build(layers)
    for number, layer in enumerate(layers):
        assert reached(index, number) == len(layer)
        if number == 0:
            assert index.links(0, 0).tolist() == []
            continue
        below = distances(metric, layer, layers[number - 1])
        links = np.array([index.links(number, i) for i in range(len(layer))])
        assert links.shape == (len(layer), 1)
        assert np.allclose(np.take_along_axis(below, links, 1)[:, 0], below.min(1), atol=1e-6)


def test_links_of_random_vectors_are_the_true_nearest(distances):
    rng = np.random.default_rng(3)
    layers = [rng.standard_normal((n, 24)).astype(np.float32) + 5 for n in (9000, 500)]
    for metric in ("ip", "l2", "cosine"):
        index = chnsw.Index(24, metric, m=8, ef_construction=16)
        index.build(layers)
        below = distances(metric, layers[1], layers[0]) if metric != "l2" else _squares(layers[1], layers[0])
        links = np.array([index.links(1, i)[0] for i in range(500)])
        assert np.allclose(below[np.arange(500), links], below.min(1), rtol=1e-5, atol=1e-5)


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_the_same_bytes_whatever_the_threads(tree, tmp_path, dtype):
    layers, _ = tree(SIZES, 16)
    layers[0][100:160] = layers[0][7]
    for threads in (1, 2, 4):
        index = chnsw.Index(16, "cosine", seed=5, dtype=dtype)
        index.build(layers, threads=threads)
        index.add(0, layers[1][:50], threads=threads)
        index.save(tmp_path / f"{threads}.idx")
    first = (tmp_path / "1.idx").read_bytes()
    assert first == (tmp_path / "2.idx").read_bytes() == (tmp_path / "4.idx").read_bytes()
    index = chnsw.Index(16, "cosine", seed=6, dtype=dtype)
    index.build(layers)
    index.save(tmp_path / "other.idx")
    assert first != (tmp_path / "other.idx").read_bytes()


def test_copies_of_a_vector_neither_cut_off_nor_blow_up(tree, recall):
    layers, queries = tree([3000, 300], 16)
    rows = np.concatenate([layers[0], np.repeat(layers[0][:3], 1500, axis=0), np.zeros((500, 16), np.float32)])
    rows[-250:] = -0.0
    index = chnsw.Index(16, "l2", exact_below=0)
    index.build([rows, np.repeat(layers[1], 2, axis=0)])
    assert reached(index, 0) == len(rows)
    assert reached(index, 1) == 600
    layer = index.stats()["layers"][0]
    assert layer["max_degree"] <= 2 * 32 + 8
    ids, dists = index.search_layer(0, rows[:1], 20, ef=50)
    assert len(set(ids[0].tolist())) == 20
    assert (dists == 0).all()
    assert recall("l2", queries, rows, index.search_layer(0, queries, 5, ef=60)[0]) > 0.98


def test_nothing_but_copies():
    index = chnsw.Index(8, "ip", exact_below=0)
    index.build([np.ones((5000, 8), np.float32), np.ones((3, 8), np.float32)])
    assert reached(index, 0) == 5000
    assert len(set(index.search_layer(0, np.ones((1, 8), np.float32), 30)[0][0].tolist())) == 30


def test_layers_of_one_vector(tree):
    rows = np.eye(3, dtype=np.float32)
    index = chnsw.Index(3, exact_below=0)
    index.build([rows[:1], rows[1:2], rows[2:]])
    assert [ids.tolist() for ids, _ in index.search(rows, 1)] == [[[0]] * 3] * 3
    assert [index.links(layer, 0).tolist() for layer in range(3)] == [[], [0], [0]]
    assert len(index) == 3


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_added_vectors_are_found_linked_and_reached(tree, recall, distances, dtype):
    layers, queries = tree([4000, 800, 60], 16)
    index = chnsw.Index(16, "cosine", dtype=dtype, exact_below=0)
    index.build([layers[0][:3000], layers[1][:700], layers[2]])
    assert index.add(0, layers[0][3000:]).tolist() == list(range(3000, 4000))
    assert index.add(1, layers[1][700:]).tolist() == list(range(700, 800))
    assert index.add(1, layers[1][5]).tolist() == [800]
    assert index.add(0, layers[0][:0]).tolist() == []
    rows = [layers[0], np.concatenate([layers[1], layers[1][5:6]]), layers[2]]
    assert index.layers == [4000, 801, 60]
    for number, layer in enumerate(rows):
        assert reached(index, number) == len(layer)
        assert recall("cosine", queries, layer, index.search(queries, 5, ef=60)[number][0]) >= 0.98
        if number:
            below = distances("cosine", layer, rows[number - 1])
            links = np.array([index.links(number, i) for i in range(len(layer))])
            assert np.allclose(np.take_along_axis(below, links, 1)[:, 0], below.min(1), atol=1e-6)


def test_adding_below_a_hidden_level_moves_the_links_above(tree):
    layers, _ = tree([3000, 200, 5], 12)
    index = chnsw.Index(12)
    index.build([layers[0], layers[2][:2]])
    assert index.stats()["hidden_levels"] > 0
    index.add(0, layers[2][:2])
    assert [index.links(1, i).tolist() for i in range(2)] == [[3000], [3001]]
    index.add(1, layers[2][2:])
    below = layers[2] @ np.concatenate([layers[0], layers[2][:2]]).T
    assert [int(index.links(1, i)[0]) for i in range(5)] == below.argmax(1).tolist()


def test_lists_are_bounded_and_compact(tree):
    layers, _ = tree(SIZES, 16)
    index = chnsw.Index(16, m=4)
    index.build(layers)
    stats = index.stats()
    assert all(layer["max_degree"] <= 2 * 4 + 4 for layer in stats["layers"])
    assert stats["bytes"]["graph"] < len(index) * (4 * 8 + 8 + 4 + 4) + 1000
    assert stats["links"] == sum(layer["links"] for layer in stats["layers"])
