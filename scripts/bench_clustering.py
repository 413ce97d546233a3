"""Measure attributed clustering at scale: a synthetic graph through augmentation, division and layers of communities.

    python scripts/bench_clustering.py [--nodes 650000] [--edges 680000] [--width 384] [--layers 3] [--out FILE]

The graph is drawn with a seed: topics of about fifteen nodes in themes of about twenty topics, vectors around their topic,
four of five facts within a topic, the others to nodes drawn by Zipf's law, so there are hubs and nodes without any fact. No
report is written: a community's vector is the mean of its entities'. Phases are timed in wall and CPU seconds
(user + system, all threads); the peak is the process's largest resident memory, the graph itself included.
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from graphrag_bench.community.clusterers.attributed import attributed
from graphrag_bench.embedding.base import Role
from graphrag_bench.graph.graph import Graph
from graphrag_bench.registry import REGISTRY


class Given:
    """Serves one matrix of vectors for the list of all names."""

    def __init__(self, matrix: NDArray[np.float32]) -> None:
        self.matrix = matrix
        self.identity: Mapping[str, Any] = {"backend": "given"}
        self.dim = matrix.shape[1]

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        assert len(texts) == len(self.matrix)
        return self.matrix

    def long_texts(self, texts: Sequence[str]) -> int:
        return 0


class Clock:
    """Times calls by phase and layer."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def timed(self, phase: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return call(*args)
            finally:
                self.rows.append(
                    {
                        "phase": phase,
                        "nodes": args[0] if isinstance(args[0], int) else len(args[0]),
                        "seconds": round(time.perf_counter() - wall, 2),
                        "cpu_seconds": round(time.process_time() - cpu, 2),
                        "peak_gb": peak(),
                    }
                )

        return run


def peak() -> float:
    """Return the process's largest resident memory so far, in GB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


def synthetic(nodes: int, edges: int, width: int, seed: int) -> tuple[Graph, NDArray[np.float32]]:
    """Draw the graph and its vectors."""
    generator = np.random.default_rng(seed)

    def around(centres: NDArray[np.float32], which: NDArray[np.int64], spread: float) -> NDArray[np.float32]:
        out = centres[which]
        for start in range(0, len(out), 1 << 16):
            part = out[start : start + (1 << 16)]
            part += generator.standard_normal(part.shape, dtype=np.float32) * np.float32(spread / width**0.5)
            part /= np.linalg.norm(part, axis=1, keepdims=True)
        return out

    topics = -(-nodes // 15)
    themes = around(np.zeros((-(-topics // 20), width), np.float32), np.arange(-(-topics // 20)), 1.0)
    centres = around(themes, generator.integers(len(themes), size=topics), 0.9)
    topic = generator.integers(topics, size=nodes)
    vectors = around(centres, topic, 0.8)

    by_topic = np.argsort(topic, kind="stable")
    starts = np.searchsorted(topic[by_topic], np.arange(topics + 1))
    source = generator.integers(nodes, size=edges)
    low, high = starts[topic[source]], starts[topic[source] + 1]
    within = by_topic[low + (generator.random(edges) * (high - low)).astype(np.int64)]
    rank = np.arange(1, nodes + 1, dtype=np.float64)
    upto = np.cumsum(1 / rank)
    anywhere = generator.permutation(nodes)[np.searchsorted(upto, generator.random(edges) * upto[-1])]
    target = np.where(generator.random(edges) < 0.8, within, anywhere)
    target = np.where(target == source, (source + 1) % nodes, target)
    graph = Graph(
        nodes=pa.table({"name": pa.array([f"entity {number}" for number in range(nodes)])}),
        relationships=pa.table(
            {
                "source": pa.array(source, pa.int32()),
                "target": pa.array(target, pa.int32()),
                "kind": pa.array(["fact"] * edges),
                "name": pa.array(["r"] * edges),
                "weight": pa.array(np.ones(edges, np.float32)),
            }
        ),
        node_chunk=sparse.csr_array((nodes, 1), dtype=np.float32),
        relationship_chunk=sparse.csr_array((edges, 1), dtype=np.float32),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )
    return graph, vectors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=650_000)
    parser.add_argument("--edges", type=int, default=680_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--augment", default="knn")
    parser.add_argument("--partition", default="leiden")
    parser.add_argument("--search", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    clock = Clock()
    graph, vectors = clock.timed("drawing the graph", synthetic)(
        options.nodes, options.edges, options.width, options.seed
    )
    augmenter = REGISTRY.get("augmenter", options.augment)
    search = {"search": options.search} if "search" in augmenter.settings else {}
    augment = clock.timed("augmentation", partial(augmenter.call, **search))
    partition = clock.timed("division", REGISTRY.get("partitioner", options.partition).call)
    wall, cpu = time.perf_counter(), time.process_time()
    found = asyncio.run(
        attributed(graph, Given(vectors), augment, partition, None, max_layers=options.layers, vectors="members")
    )
    total = {"seconds": round(time.perf_counter() - wall, 2), "cpu_seconds": round(time.process_time() - cpu, 2)}
    parts = clock.rows[1:]
    rest = {key: round(total[key] - sum(row[key] for row in parts), 2) for key in total}
    sizes = np.diff(found.hierarchy.members.indptr)
    finest = sizes[found.hierarchy.level == found.hierarchy.level.max(initial=0)]
    result = {
        "settings": {key: value for key, value in vars(options).items() if key != "out"},
        "cpus": os.cpu_count(),
        "phases": clock.rows,
        "weights, isolated nodes, coarsening": rest,
        "total without drawing": total,
        "peak_gb": peak(),
        "hierarchy": {**found.hierarchy.statistics(), "finest_sizes": np.bincount(np.minimum(finest, 50)).tolist()},
        "facts": dict(found.facts),
    }
    text = json.dumps(result, indent=1)
    if options.out:
        options.out.write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
