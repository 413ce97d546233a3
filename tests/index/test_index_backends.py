"""Backends of vector search against exact search: recall, ties, files, and what is asked of them at the edges."""

import sys

import numpy as np
import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.index.engine import Backend, DistinctRows
from graphrag_bench.index.vectors import VectorIndex
from graphrag_bench.registry import REGISTRY

pytest.importorskip("faiss")
pytest.importorskip("hnswlib")
pytest.importorskip("chnsw")

CHOICES = [
    ("faiss", {"kind": "flat"}),
    ("faiss", {"kind": "hnsw"}),
    ("faiss", {"kind": "ivf", "nlist": 40, "nprobe": 32}),
    ("hnswlib", {}),
    ("chnsw", {}),
    ("chnsw", {"dtype": "float16"}),
    ("chnsw", {"dtype": "int8"}),
]
NAMES = ["flat", "hnsw", "ivf", "hnswlib", "chnsw", "chnsw16", "chnsw8"]


def unit(rng, n, dim=64):
    made = rng.normal(size=(n, dim))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def backend(name, settings):
    return REGISTRY.get("index", name).call(**settings)


def opened(choice, matrix, folder):
    folder.mkdir(exist_ok=True, parents=True)
    backend(*choice).build(matrix, folder)
    return VectorIndex(matrix, None, backend(*choice).open(folder))


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    return unit(rng, 5000), unit(rng, 100)


@pytest.mark.parametrize("choice", CHOICES, ids=NAMES)
def test_nearly_all_of_the_exact_ten_are_found_with_their_exact_scores(choice, many, tmp_path):
    matrix, queries = many
    exact = VectorIndex(matrix, None).nearest(queries, 10)
    found = opened(choice, matrix, tmp_path).nearest(queries, 10)
    recall = np.mean([len(set(a) & set(b)) / 10 for (a, _), (b, _) in zip(exact, found, strict=True)])
    assert recall >= 0.95
    if choice[1].get("kind") == "flat":
        assert recall == 1.0
        for (a, s), (b, t) in zip(exact, found, strict=True):
            assert a.tolist() == b.tolist() and s.tolist() == t.tolist()
    for query, (ids, scores) in zip(queries, found, strict=True):
        np.testing.assert_allclose(scores, matrix[ids].astype(float) @ query.astype(float), atol=1e-6)
        assert np.all(np.diff(scores) <= 0)


@pytest.mark.parametrize("choice", CHOICES, ids=NAMES)
def test_the_same_vectors_give_the_same_files_and_a_row_does_not_hang_on_its_batch(choice, tmp_path):
    rng = np.random.default_rng(1)
    matrix, queries = unit(rng, 800, 16), unit(rng, 12, 16)
    one, other = opened(choice, matrix, tmp_path / "a"), opened(choice, matrix, tmp_path / "b")
    for file in sorted(path for path in (tmp_path / "a").rglob("*") if path.is_file()):
        name = file.relative_to(tmp_path / "a")
        assert file.read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    whole = one.nearest(queries, 7)
    one.nearest(queries, 200)  # a wide search before must not change a narrow one after
    for row, (ids, scores) in enumerate(whole):
        for index in (one, other):
            ((again, values),) = index.nearest(queries[row : row + 1], 7)
            assert (again.tolist(), values.tolist()) == (ids.tolist(), scores.tolist())


@pytest.mark.parametrize("choice", CHOICES, ids=NAMES)
def test_equal_vectors_stand_by_id_even_where_they_are_more_than_is_asked_for(choice, tmp_path):
    rng = np.random.default_rng(2)
    matrix = unit(rng, 600, 16)
    twins = np.sort(rng.choice(600, 300, replace=False))
    matrix[twins] = matrix[twins[0]]
    query = (0.1 * unit(rng, 1, 16) + matrix[twins[0]]).astype(np.float32)
    index = opened(choice, matrix, tmp_path)
    for k in (1, 2, 10, 60):
        assert index.nearest(query, k)[0][0].tolist() == twins[:k].tolist()


@pytest.mark.parametrize("choice", CHOICES, ids=NAMES)
def test_more_asked_for_than_there_are_none_there_and_none_asked(choice, tmp_path):
    rng = np.random.default_rng(3)
    matrix, queries = unit(rng, 30, 8), unit(rng, 3, 8)
    index = opened(choice, matrix, tmp_path / "few")
    for k in (9, 30, 31, 500):
        exact = VectorIndex(matrix, None).nearest(queries, k)
        for (a, s), (b, t) in zip(exact, index.nearest(queries, k), strict=True):
            if k > 9:
                assert a.tolist() == b.tolist() and s.tolist() == t.tolist()
            assert len(b) == min(k, 30)
    assert [row[0].tolist() for row in index.nearest(queries, 0)] == [[], [], []]
    assert index.nearest(queries[:0], 3) == []
    assert index.engine.candidates(queries, 50).shape == (3, 50)
    assert (index.engine.candidates(queries, 50) >= 0).sum(axis=1).tolist() == [30, 30, 30] or choice[1].get(
        "kind"
    ) == "ivf"
    empty = opened(choice, np.empty((0, 8), np.float32), tmp_path / "none")
    assert [ids.tolist() for ids, _ in empty.nearest(queries, 3)] == [[], [], []]
    assert empty.engine.candidates(queries, 2).tolist() == [[-1, -1]] * 3
    single = opened(choice, np.ones((40, 1), np.float32), tmp_path / "one")
    assert single.nearest(np.ones((1, 1), np.float32), 3)[0][0].tolist() == [0, 1, 2]


def test_a_seed_changes_the_graph(tmp_path):
    matrix = unit(np.random.default_rng(4), 400, 8)
    for name in ("faiss", "hnswlib", "chnsw"):
        for seed in (0, 1):
            (tmp_path / f"{name}{seed}").mkdir()
            backend(name, {"seed": seed}).build(matrix, tmp_path / f"{name}{seed}")
        first, second = ([p.read_bytes() for p in sorted((tmp_path / f"{name}{s}").glob("index.*"))] for s in (0, 1))
        assert first != second


def test_exact_has_no_engine(tmp_path):
    exact = backend("exact", {})
    assert not exact.approximate and exact.open(tmp_path) is None
    assert exact.build(np.ones((2, 2), np.float32), tmp_path) == {"vectors": 2} and not list(tmp_path.iterdir())
    assert all(isinstance(component.call(), Backend) for component in REGISTRY.all("index"))
    assert all(backend(*choice).approximate for choice in CHOICES)


def test_facts_count_distinct_vectors(tmp_path):
    matrix = np.array([[1, 0], [0, 1], [1, 0], [-0.0, 1]], np.float32)
    for name in ("hnswlib", "chnsw"):
        (tmp_path / name).mkdir()
        assert backend(name, {}).build(matrix, tmp_path / name) == {"vectors": 4, "distinct": 2}
    groups = DistinctRows.of(matrix)
    assert groups.representatives.tolist() == [0, 1]
    assert groups.expand(np.array([[1, 0], [-1, 1]]), 3).tolist() == [[1, 3, 0], [1, 3, -1]]


@pytest.mark.parametrize(("name", "library"), [("faiss", "faiss"), ("hnswlib", "hnswlib")])
def test_a_missing_library_is_named_with_its_extra(name, library, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=r"graphrag-bench\[ann\]"):
        backend(name, {}).build(np.ones((2, 2), np.float32), tmp_path)


@pytest.mark.parametrize("settings", [{"m": 1}, {"ef_search": 0}, {"nprobe": 0}, {"nlist": 0}, {"seed": -1}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match=next(iter(settings))):
        backend("faiss", settings)


@pytest.mark.parametrize("settings", [{"m": 1}, {"ef_search": 0}, {"ef_construction": 0}, {"seed": -1}])
def test_settings_of_chnsw_out_of_range_are_refused(settings):
    with pytest.raises(UserError, match=next(iter(settings))):
        backend("chnsw", settings)
