"""Saved indexes: the same after loading, and refused when damaged."""

import struct

import chnsw
import numpy as np
import pytest


@pytest.fixture
def built(tree):
    layers, queries = tree([1500, 200, 12], 24)
    index = chnsw.Index(24, "l2", m=8, ef_construction=40, seed=9, dtype="int8", exact_below=50)
    index.build(layers)
    return index, queries


@pytest.mark.parametrize("mmap", [True, False])
def test_a_loaded_index_is_the_saved_one(built, tmp_path, mmap):
    index, queries = built
    path = tmp_path / "ünïcödé 索引.idx"
    index.save(path)
    loaded = chnsw.Index.load(str(path), mmap=mmap)
    assert loaded.stats()["mmap"] is mmap
    for name in ("dim", "metric", "dtype", "m", "ef_construction", "seed", "exact_below", "entries", "layers"):
        assert getattr(loaded, name) == getattr(index, name)
    for (a, da), (b, db) in zip(index.search(queries, 5), loaded.search(queries, 5), strict=True):
        assert a.tolist() == b.tolist()
        assert da.tolist() == db.tolist()
    loaded.add(0, queries)
    assert loaded.search_layer(0, queries, 1)[0][:, 0].tolist() == list(range(1500, 1540))
    loaded.save(path)  # over the file that is mapped
    assert len(chnsw.Index.load(path)) == len(index) + 40
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_damaged_files_are_refused(built, tmp_path):
    index, _ = built
    path = tmp_path / "a.idx"
    index.save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    cases = [good[:cut] for cut in (0, 5, 71, 72, 500, len(good) // 2, len(good) - 1)] + [good + b"\0", b"PAR1" * 100]
    places = [*range(72), *rng.integers(72, len(good), 100).tolist()]
    cases += [good[:at] + bytes([good[at] ^ 1 << int(rng.integers(8))]) + good[at + 1 :] for at in places]
    for number, case in enumerate(cases):
        path.write_bytes(case)
        with pytest.raises(OSError, match="index"):
            chnsw.Index.load(path, mmap=number % 2 == 0)


def test_another_version_is_named(built, tmp_path):
    built[0].save(tmp_path / "a.idx")
    data = bytearray((tmp_path / "a.idx").read_bytes())
    data[8:12] = struct.pack("<I", 99)
    (tmp_path / "a.idx").write_bytes(data)
    with pytest.raises(OSError, match="version 99"):
        chnsw.Index.load(tmp_path / "a.idx")


def test_paths_that_cannot_be(built, tmp_path):
    with pytest.raises(OSError, match="cannot open"):
        chnsw.Index.load(tmp_path / "none.idx")
    with pytest.raises(OSError, match="not a regular file"):
        chnsw.Index.load(tmp_path)
    with pytest.raises(OSError, match="cannot write"):
        built[0].save(tmp_path / "no folder" / "a.idx")
    with pytest.raises(ValueError, match="null"):
        built[0].save("a\0b")
    with pytest.raises(TypeError):
        built[0].save(7)
