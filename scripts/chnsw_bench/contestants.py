"""Who is measured: C-HNSW over the whole hierarchy, one HNSW a layer by faiss and by hnswlib, exact search a layer.

Each is built once (or read from the cache), then asked for the k nearest of every layer, a batch of queries a call.
"""

import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from chnsw_bench.data import Data, exact

SEED = 0  # of the graphs; the data have their own


@dataclass(frozen=True)
class Settings:
    """What all have in common."""

    k: int
    m: int
    ef_construction: int
    build_threads: int
    single: bool  # one layer alone, by chnsw's `search_layer`


@dataclass
class Contestant:
    """A built index. ``search(queries, ef, threads)`` gives each layer's ids (q, k'); ``distances`` what a query computed."""

    name: str
    search: Callable[[np.ndarray, int, int], list[np.ndarray]]
    distances: Callable[[np.ndarray, int], float | None] = lambda queries, ef: None
    built: dict[str, Any] = field(default_factory=dict)  # wall_s, cpu_s, bytes, more
    takes_ef: bool = True


class Cache:
    """Indexes kept between runs, by what they were built from; without a folder nothing is kept after the run."""

    def __init__(self, folder: Path | None, said: dict[str, Any]) -> None:
        self._temporary = None if folder else tempfile.TemporaryDirectory(prefix="bench_chnsw_")
        self.folder = folder or Path(self._temporary.name if self._temporary else "")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._said = said

    def files(self, name: str, count: int, **more: Any) -> tuple[list[Path], Path]:
        """Return where a contestant's files and the record of its building stand."""
        text = json.dumps(self._said | more | {"name": name}, sort_keys=True)
        stem = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        return [self.folder / f"{stem}.{number}" for number in range(count)], self.folder / f"{stem}.json"

    def get(self, record: Path, build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the record of the building, made now with wall and CPU seconds if there is none."""
        if not record.exists():
            wall, cpu = time.perf_counter(), time.process_time()
            more = build()
            seconds = {"wall_s": time.perf_counter() - wall - more.pop("aside_wall_s", 0.0)}
            seconds["cpu_s"] = time.process_time() - cpu - more.pop("aside_cpu_s", 0.0)
            record.write_text(json.dumps(seconds | more))
        built: dict[str, Any] = json.loads(record.read_text())
        return built


def aside(work: Callable[[], Any]) -> dict[str, float]:
    """Do what does not belong to the building, such as writing files, and return what is to be taken off."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"aside_wall_s": time.perf_counter() - wall, "aside_cpu_s": time.process_time() - cpu}


def faiss_layers(data: Data, settings: Settings, cache: Cache) -> Contestant:
    import faiss

    files, record = cache.files("faiss", len(data.layers), version=faiss.__version__)
    indexes: list[Any] = []

    def build() -> dict[str, Any]:
        faiss.omp_set_num_threads(settings.build_threads)
        for layer in data.layers:
            index = faiss.IndexHNSWFlat(layer.shape[1], settings.m, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = settings.ef_construction
            index.add(layer)
            indexes.append(index)
        sizes: list[int] = []

        def keep() -> None:
            for index, path in zip(indexes, files, strict=True):
                held = faiss.serialize_index(index)
                sizes.append(len(held))
                held.tofile(path)

        return {**aside(keep), "bytes": sum(sizes)}

    built = cache.get(record, build)
    indexes = indexes or [faiss.read_index(str(path)) for path in files]

    def search(queries: np.ndarray, ef: int, threads: int) -> list[np.ndarray]:
        faiss.omp_set_num_threads(threads)
        out = []
        for index in indexes:
            index.hnsw.efSearch = ef
            out.append(index.search(queries, min(settings.k, index.ntotal))[1])
        return out

    def distances(queries: np.ndarray, ef: int) -> float:
        faiss.cvar.hnsw_stats.reset()
        search(queries, ef, 1)
        return float(faiss.cvar.hnsw_stats.ndis) / len(queries)

    return Contestant("faiss", search, distances, built)


def hnswlib_layers(data: Data, settings: Settings, cache: Cache) -> Contestant:
    import hnswlib

    files, record = cache.files("hnswlib", len(data.layers), version=version("hnswlib"))
    indexes: list[Any] = []

    def build() -> dict[str, Any]:
        for layer in data.layers:
            index = hnswlib.Index(space="ip", dim=layer.shape[1])
            index.init_index(len(layer), M=settings.m, ef_construction=settings.ef_construction, random_seed=SEED + 100)
            index.add_items(layer, num_threads=settings.build_threads)
            indexes.append(index)
        off = aside(lambda: [index.save_index(str(path)) for index, path in zip(indexes, files, strict=True)])
        return {**off, "bytes": sum(path.stat().st_size for path in files)}

    built = cache.get(record, build)
    if not indexes:
        for layer, path in zip(data.layers, files, strict=True):
            indexes.append(hnswlib.Index(space="ip", dim=layer.shape[1]))
            indexes[-1].load_index(str(path))

    def search(queries: np.ndarray, ef: int, threads: int) -> list[np.ndarray]:
        out = []
        for index in indexes:
            index.set_ef(ef)
            labels, _ = index.knn_query(queries, k=min(settings.k, index.element_count), num_threads=threads)
            out.append(labels.astype(np.int64))
        return out

    return Contestant("hnswlib", search, built=built)


def exact_layers(data: Data, settings: Settings, cache: Cache) -> Contestant:
    def search(queries: np.ndarray, ef: int, threads: int) -> list[np.ndarray]:
        return [ids for ids, _ in exact(data.layers, queries, settings.k)]

    return Contestant("exact", search, built={"bytes": sum(layer.nbytes for layer in data.layers)}, takes_ef=False)


def chnsw_index(data: Data, settings: Settings, cache: Cache, dtype: str) -> Contestant:
    import chnsw

    name = "chnsw" if dtype == "float32" else f"chnsw-{dtype}"
    module = hashlib.sha256(Path(chnsw._core.__file__).read_bytes()).hexdigest()
    (file,), record = cache.files(name, 1, module=module)
    held: list[Any] = []

    def build() -> dict[str, Any]:
        index = chnsw.Index(
            data.queries.shape[1],
            metric="ip",
            m=settings.m,
            ef_construction=settings.ef_construction,
            seed=SEED,
            dtype=dtype,
        )
        index.build(data.layers, threads=settings.build_threads)
        held.append(index)
        return {**aside(lambda: index.save(str(file))), "bytes": file.stat().st_size}

    built = cache.get(record, build)
    index = held[0] if held else chnsw.Index.load(str(file), mmap=False)
    built["stats"] = {key: value for key, value in index.stats().items() if key != "search"}

    def search(queries: np.ndarray, ef: int, threads: int) -> list[np.ndarray]:
        if settings.single:
            return [index.search_layer(0, queries, settings.k, ef=ef, threads=threads)[0]]
        return [ids for ids, _ in index.search(queries, settings.k, ef=ef, threads=threads)]

    def distances(queries: np.ndarray, ef: int) -> float:
        search(queries, ef, 1)
        return float(index.stats()["search"]["distances_per_query"])

    return Contestant(name, search, distances, built)
