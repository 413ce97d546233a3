"""Measure what the framework itself costs: building an index from given triples, and retrieval.

    python scripts/benchmark_spine.py DATASET_FOLDER [--embedder minilm] [--method hipporag] [--repeat 3]

The embedder works in a process of its own, first; the measured process looks its vectors up, so its CPU seconds and its
peak memory are the framework's own. "Retrieval" is what a question costs once the index is open and the question and its
mentions are embedded, all questions in one batch. CPU seconds are user + system of the process, all its threads.
"""

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.cached import CachedEmbedder
from graphrag_bench.session import Session
from graphrag_bench.store.artifacts import digest


class Recorder:
    """Passes texts to a real embedder and keeps what it returned."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.identity, self.dim = inner, inner.identity, inner.dim
        self.kept: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        rows = self.inner.embed(texts, role)
        self.kept.update({f"{role} {text}": row for text, row in zip(texts, rows, strict=True)})
        return rows

    def long_texts(self, texts: Sequence[str]) -> int:
        return 0


class Lookup:
    """Serves recorded vectors."""

    def __init__(self, folder: Path) -> None:
        self.matrix = np.load(folder / "vectors.npy", mmap_mode="r")
        self.rows = {digest(key): row for row, key in enumerate(json.loads((folder / "texts.json").read_text()))}
        self.identity: Mapping[str, Any] = {"backend": "lookup"}
        self.dim = self.matrix.shape[1]

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        return np.asarray(self.matrix[[self.rows[digest(f"{role} {text}")] for text in texts]])

    def long_texts(self, texts: Sequence[str]) -> int:
        return 0


def _overrides(options: argparse.Namespace, output: Path) -> list[str]:
    return [
        f"method={options.method}", "dataset=folder", f"dataset.path={options.folder}", "graph.extractor=openie",
        "method.question.entities.by=rule", f"embedder={options.embedder}", "until=retrieval", f"output={output}",
        "batch_size=100000", "logging.display=none", "execution.redo=true",
    ]


async def _cell(options: argparse.Namespace, place: Path, embedder: Any) -> CellRun:
    checked, _ = cells([text for text in _overrides(options, place / "runs") if _fits(text, options.method)])
    async with Session(place / "store") as session:
        config = checked[0].config
        session._embedders[digest(config["embedder"])] = CachedEmbedder(embedder(session, config))
        run = CellRun(session, checked[0])
        await run.run()
        return run


def _fits(text: str, method: str) -> bool:
    return "hipporag" in method or not text.startswith(("graph.", "method.question"))


def record(options: argparse.Namespace) -> None:
    place = Path(options.place)
    made: list[Recorder] = []

    def embedder(session: Session, config: Mapping[str, Any]) -> Recorder:
        made.append(Recorder(session._make("embedder", config)))
        return made[0]

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_cell(options, Path(folder), embedder))
    kept = made[0].kept
    np.save(place / "vectors.npy", np.stack(list(kept.values())))
    (place / "texts.json").write_text(json.dumps(list(kept)))


def measure(options: argparse.Namespace) -> None:
    place = Path(options.place)
    lookup = Lookup(place)
    with tempfile.TemporaryDirectory() as folder:
        cpu = time.process_time()
        run = asyncio.run(_cell(options, Path(folder), lambda session, config: lookup))
        whole = time.process_time() - cpu
        built = run.cpu["index"]
    out = {
        "passages": len(run.dataset.documents), "questions": len(run.asked), "index_cpu_s": built,
        "retrieve_cpu_s": run.cpu["retrieve"], "whole_cpu_s": whole,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(out) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--method", default="hipporag")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=["record", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        {"record": record, "measure": measure}[options.part](options)
        return
    with tempfile.TemporaryDirectory() as place:
        again = [sys.executable, __file__, options.folder, "--embedder", options.embedder, "--method", options.method,
                 "--place", place, "--part"]
        subprocess.run([*again, "record"], check=True)
        rows = [json.loads(subprocess.run([*again, "measure"], check=True, capture_output=True, text=True).stdout)
                for _ in range(options.repeat)]
    first = rows[0]

    def line(name: str, values: list[float]) -> str:
        return f"{name:<42} median {statistics.median(values):8.2f}   min {min(values):8.2f}   max {max(values):8.2f}\n"

    sys.stdout.write(f"{options.method}, {first['passages']:,} passages, {first['questions']:,} questions, {len(rows)} runs\n")
    sys.stdout.write(line("index, own CPU ms a passage", [r["index_cpu_s"] / r["passages"] * 1e3 for r in rows]))
    sys.stdout.write(line("retrieval, CPU ms a question", [r["retrieve_cpu_s"] / r["questions"] * 1e3 for r in rows]))
    sys.stdout.write(line("peak memory of the process, MiB", [r["peak_mb"] for r in rows]))


if __name__ == "__main__":
    main()
