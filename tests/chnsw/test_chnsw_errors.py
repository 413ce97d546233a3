"""Mistakes are exceptions with a sentence."""

import threading

import chnsw
import numpy as np
import pytest

ROWS = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)


@pytest.fixture
def index() -> chnsw.Index:
    made = chnsw.Index(8, "cosine")
    made.build([ROWS, ROWS[:5]])
    return made


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dim": 0}, "dim must be"),
        ({"dim": -3}, "dim must be"),
        ({"dim": 1 << 20}, "dim must be"),
        ({"dim": 8, "metric": "hamming"}, "no metric 'hamming'"),
        ({"dim": 8, "dtype": "int4"}, "no dtype 'int4'"),
        ({"dim": 8, "m": 1}, "m must be"),
        ({"dim": 8, "m": -1}, "m must be"),
        ({"dim": 8, "m": 10**30}, "m must be"),
        ({"dim": 8, "ef_construction": 0}, "ef_construction must be"),
        ({"dim": 8, "seed": -1}, "seed must be"),
        ({"dim": 8, "entries": 0}, "entries must be"),
        ({"dim": 8, "exact_below": -1}, "exact_below must be"),
    ],
)
def test_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        chnsw.Index(**settings)


def test_settings_of_a_wrong_type():
    with pytest.raises(TypeError, match="m must be an integer"):
        chnsw.Index(8, m=2.5)
    with pytest.raises(TypeError):
        chnsw.Index("8")
    assert chnsw.Index(8, seed=2**64 - 1).seed == 2**64 - 1


@pytest.mark.parametrize(
    ("layers", "sentence"),
    [
        ([], "no layer"),
        ([ROWS, ROWS[:0]], "layer 1 has no vector"),
        ([ROWS[:, :7]], "length 8, not 7"),
        ([ROWS[0]], "2 dimensions"),
        ([np.where(np.arange(50)[:, None] == 3, np.nan, ROWS)], "row 3 of layer 0 holds NaN"),
        ([ROWS, np.where(np.arange(50)[:, None] == 4, np.inf, ROWS)], "row 4 of layer 1 holds"),
        ([ROWS.astype(np.float64) * 1e300], "infinity"),
        ([ROWS * np.float32(1e20)], "beyond 1e16"),
        ([np.zeros((2, 8), np.float32)], "no direction"),
    ],
)
def test_layers(layers, sentence):
    index = chnsw.Index(8, "cosine")
    with pytest.raises(ValueError, match=sentence):
        index.build(layers)
    assert len(index) == 0


@pytest.mark.parametrize("layers", [ROWS, "layers", 7, [ROWS.tolist()], [ROWS.astype(int)], [ROWS > 0], [ROWS + 0j]])
def test_layers_of_a_wrong_type(layers):
    with pytest.raises(TypeError):
        chnsw.Index(8).build(layers)


def test_other_floats_and_strides_are_converted():
    want = chnsw.Index(8)
    want.build([ROWS])
    for rows in (ROWS.astype(np.float64), np.asfortranarray(ROWS), np.repeat(ROWS, 2, axis=0)[::2], ROWS.astype(">f4")):
        index = chnsw.Index(8)
        index.build([rows])
        assert index.search(ROWS, 3)[0][1].tolist() == want.search(ROWS, 3)[0][1].tolist()


def test_float16_has_a_range():
    with pytest.raises(ValueError, match="65504"):
        chnsw.Index(8, dtype="float16").build([ROWS * 1e6])


def test_searches(index):
    for wrong in (ROWS[:, :3], ROWS[None], np.full((1, 8), np.nan, np.float32), np.zeros((1, 8), np.float32)):
        with pytest.raises(ValueError):
            index.search(wrong, 3)
    for wrong in (ROWS.astype(int), ROWS.tolist(), None):
        with pytest.raises(TypeError, match="queries must"):
            index.search(wrong, 3)
    for k in (0, -1, 1 << 40):
        with pytest.raises(ValueError, match="k must be"):
            index.search(ROWS, k)
    with pytest.raises(ValueError, match="ef must be"):
        index.search(ROWS, 3, ef=0)
    with pytest.raises(TypeError, match="k must be an integer"):
        index.search(ROWS, 2.0)
    with pytest.raises(ValueError, match="threads"):
        index.search(ROWS, 2, threads=-1)
    with pytest.raises(ValueError, match="no layer 2"):
        index.search(ROWS, 2, layers=[2])
    with pytest.raises(ValueError, match="asked for twice"):
        index.search(ROWS, 2, layers=[0, 0])
    with pytest.raises(TypeError, match="list of layer numbers"):
        index.search(ROWS, 2, layers=1)
    with pytest.raises(ValueError, match="k is 6, but layer 1 has only 5"):
        index.search_layer(1, ROWS, 6)
    with pytest.raises(ValueError, match="no layer 9"):
        index.search_layer(9, ROWS, 1)


def test_before_building(tmp_path):
    index = chnsw.Index(8)
    for call in (
        lambda: index.search(ROWS, 1),
        lambda: index.search_layer(0, ROWS, 1),
        lambda: index.add(0, ROWS),
        lambda: index.save(tmp_path / "a"),
        lambda: index.neighbors(0, 0),
        lambda: index.links(0, 0),
        lambda: index.entry(0),
    ):
        with pytest.raises(ValueError, match="index is empty"):
            call()
    assert index.stats()["vectors"] == 0
    assert index.layers == []


def test_inspection(index):
    for layer, vector in ((0, 50), (0, -1), (1, 5), (2, 0)):
        with pytest.raises(ValueError):
            index.neighbors(layer, vector)
        with pytest.raises(ValueError):
            index.links(layer, vector)
    assert repr(index) == "Index(dim=8, metric='cosine', dtype='float32', layers=2, vectors=55)"


def test_additions(index):
    with pytest.raises(ValueError, match="no layer 2"):
        index.add(2, ROWS)
    with pytest.raises(ValueError, match="holds NaN"):
        index.add(0, np.full((1, 8), np.nan, np.float32))
    with pytest.raises(TypeError):
        index.add(0, [1.0])
    assert len(index) == 55


def test_an_unknown_simd_kind():
    with pytest.raises(ValueError, match="no SIMD kind 'sse9'"):
        chnsw.simd("sse9")
    with pytest.raises(TypeError):
        chnsw.simd(3)
    assert chnsw.simd() == chnsw.simd("auto")


def test_searching_while_adding(index):
    errors: list[BaseException] = []

    def search() -> None:
        try:
            for _ in range(50):
                found = index.search(ROWS, 3)
                assert (found[0][0] >= 0).all()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for step in range(20):
        index.add(step % 2, ROWS[step : step + 2])
    for thread in threads:
        thread.join()
    assert not errors
    assert index.layers == [70, 25]
