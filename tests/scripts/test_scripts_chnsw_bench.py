import math
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def curve(*points, asked=10_000):
    from chnsw_bench.curves import Curve

    return Curve(points, asked)


def test_sizes_shrink_to_the_floor():
    from chnsw_bench.data import sizes

    assert sizes(200_000, 11, 3.0, 5) == [200_000, 66_667, 22_222, 7407, 2469, 823, 274, 91, 30, 10, 5]
    assert sizes(30, 5, 3.0, 5) == [30, 10, 5, 5, 5]
    assert sizes(3, 3, 3.0, 5) == [3, 3, 3]


@pytest.mark.parametrize("kind", ["clustered", "random"])
def test_hierarchy_is_of_unit_vectors_and_the_same_each_time(kind):
    from chnsw_bench.data import hierarchy

    one, two = (hierarchy(kind, [90, 30, 10, 5], 24, 7, 3) for _ in range(2))
    assert [layer.shape for layer in one.layers] == [(90, 24), (30, 24), (10, 24), (5, 24)]
    for first, second in zip([*one.layers, one.queries], [*two.layers, two.queries], strict=True):
        assert first.dtype == np.float32
        assert first.flags.c_contiguous
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)
    assert hierarchy(kind, [5], 8, 2, 0).queries.shape == (2, 8)


def test_clustered_children_are_near_the_layer_above_and_random_ones_are_not():
    from chnsw_bench.data import hierarchy

    near = {kind: hierarchy(kind, [300, 30], 128, 20, 0) for kind in ("clustered", "random")}
    best = {kind: (data.layers[0] @ data.layers[1].T).max(1).mean() for kind, data in near.items()}
    assert best["clustered"] > 0.8
    assert best["random"] < 0.4


def test_exact_is_what_sorting_says():
    from chnsw_bench.data import exact, hierarchy

    data = hierarchy("random", [700, 40, 3], 16, 300, 1)
    for layer, (ids, products) in zip(data.layers, exact(data.layers, data.queries, 5), strict=True):
        whole = data.queries @ layer.T
        np.testing.assert_allclose(products, -np.sort(-whole, axis=1)[:, :5], rtol=1e-6)
        np.testing.assert_allclose(np.take_along_axis(whole, ids, 1), products, rtol=1e-6)


def test_recall_counts_each_query_its_own_answers_once_and_ties_as_right():
    from chnsw_bench.data import Data, exact, recall

    layer = np.eye(4, dtype=np.float32)
    layer[3] = layer[2]  # 2 and 3 are the same vector
    queries = np.array([[0.8, 0.6, 0, 0], [0, 0.6, 0.8, 0]], np.float32)
    data = Data([layer], queries)
    truth = exact(data.layers, queries, 2)
    given = [
        ([[0, 1], [2, 3]], 1.0),
        ([[1, 0], [3, 2]], 1.0),
        ([[2, 3], [0, 1]], 0.0),  # each query given the other's answers: pooled over the batch this would be 1
        ([[0, 0], [3, 3]], 0.5),
        ([[0, -1], [-1, -1]], 0.25),
        ([[0, 2], [2, 1]], 0.5),
    ]
    for ids, wanted in given:
        assert recall(data, truth, [np.array(ids)]) == [wanted]
    one = exact(data.layers, queries, 1)  # of equals, whichever
    assert recall(data, one, [np.array([[0], [3]])]) == recall(data, one, [np.array([[0], [2]])]) == [1.0]


def test_curve_is_straight_between_points_in_the_logarithms():
    one = curve((0.9, 1000.0), (0.99, 100.0))
    assert one.qps(0.9) == pytest.approx(1000)
    assert one.qps(0.99) == pytest.approx(100)
    assert one.qps(1 - math.sqrt(0.1 * 0.01)) == pytest.approx(math.sqrt(1000 * 100))
    assert one.qps(0.5) == pytest.approx(1000)  # what answers better answers that too
    assert one.qps(0.995) is None


def test_beaten_points_do_not_count():
    one = curve((0.9, 1000.0), (0.95, 400.0), (0.97, 500.0), (0.97, 450.0), (0.99, 100.0), (0.89, 900.0))
    assert one.recalls == [0.9, 0.97, 0.99]
    assert one.qps(0.97) == pytest.approx(500)


def test_recall_of_one_is_half_a_miss():
    one = curve((0.9, 1000.0), (1.0, 10.0), asked=500)
    assert one.qps(0.999) == pytest.approx(10)
    assert one.qps(0.9999) == pytest.approx(10)
    assert one.qps(1 - math.sqrt(0.1 * 0.001)) == pytest.approx(100)


def test_ratio_and_its_mean_over_the_recalls_that_both_have():
    from chnsw_bench.curves import compare

    one, two = (
        curve((0.9, 4000.0), (0.999, 400.0)),
        curve((0.8, 3000.0), (0.9, 2000.0), (0.99, 632.4555), (0.999, 200.0)),
    )
    found = compare(one, two)
    assert found["at_recall"]["0.99"] == pytest.approx(4000 / 10 ** (1 / 2) / 632.4555)
    assert found["at_recall"]["0.999"] == pytest.approx(2)
    assert found["mean"]["geometric_mean"] == pytest.approx(2, rel=1e-5)
    assert found["mean"]["from_recall"] == pytest.approx(0.9)
    assert found["mean"]["to_recall"] == pytest.approx(0.999)
    short = compare(one, curve((0.5, 1e5), (0.8, 1e4)))
    assert short["at_recall"]["0.99"] is None
    assert short["mean"] is None


def test_exact_search_is_level_at_every_recall():
    one, exact = curve((0.9, 4000.0), (0.99, 400.0)), curve((1.0, 100.0))
    assert one.ratio_to(exact, 0.99) == pytest.approx(4)
    assert one.ratio_to(exact, 0.9) == pytest.approx(40)
    found = one.mean_ratio_to(exact)
    assert found["geometric_mean"] == pytest.approx(math.sqrt(40 * 4))
    assert (found["from_recall"], found["to_recall"]) == pytest.approx((0.9, 0.99))


def test_picture_is_one_svg_with_a_curve_a_contestant():
    import xml.etree.ElementTree as ElementTree

    from chnsw_bench.plot import Panel, draw

    curves = {"chnsw": [(0.99, 2000.0), (0.9, 5000.0)], "faiss": [(1.0, 30.0)]}
    said = draw([Panel("clustered, 1 thread", curves, 1e-5), Panel("random & more", curves, 1e-5)], 2)
    root = ElementTree.fromstring(said)
    space = {"s": "http://www.w3.org/2000/svg"}
    assert len(root.findall(".//s:path[@class='curve']", space)) == 4
    assert said == draw([Panel("clustered, 1 thread", curves, 1e-5), Panel("random & more", curves, 1e-5)], 2)
