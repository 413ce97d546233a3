"""Measure ``subgraph.bridge`` on a big graph against NetworkX's bidirectional search, side by side in one run, on one thread.

    python scripts/bench_bridge.py --out FILE.json [--nodes 500000] [--edges 725000] [--questions 1000] [--keys 20]

The graph is that of ``bench_operators.py`` (heavy-tailed degrees, connected); each question has ``keys`` nodes drawn by
chance, so it asks for keys - 1 paths. Ours counts everything after the graph is open: the neighbours, the components, all
paths and the relationships on them. NetworkX searches each pair of a sample of the questions; its graph is made beforehand
and not counted. Both must find paths as long; ours is moreover the one with the smaller node ids. Times are CPU seconds; every
measured part is a process of its own, and its peak memory is Linux's VmHWM, libraries and graph included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from bench_operators import ONE_THREAD, as_nodes, make, peak_mb

from graphrag_bench.graph.graph import Graph
from graphrag_bench.registry import REGISTRY

BATCH = 64


def keys(options: argparse.Namespace) -> list[list[int]]:
    rng = np.random.default_rng(3)
    return [rng.choice(options.nodes, options.keys, replace=False).tolist() for _ in range(options.questions)]


def ours(options: argparse.Namespace) -> dict[str, Any]:
    bridge = REGISTRY.get("operator", "subgraph.bridge").call
    graph, rows = Graph.open(Path(options.place)), keys(options)
    before, clock, cpu = peak_mb(), time.perf_counter(), time.process_time()
    lengths: list[int] = []
    for start in range(0, len(rows), BATCH):
        found = bridge(graph, as_nodes(rows[start : start + BATCH]))
        lengths += [len(path.relationships) for row in found.rows for path in row]
    spent = time.process_time() - cpu
    return {
        "cpu_s": spent,
        "clock_s": time.perf_counter() - clock,
        "ms_a_question": 1000 * spent / len(rows),
        "paths": len(lengths),
        "mean_hops": float(np.mean(lengths)),
        "before_mb": before,
        "peak_mb": peak_mb(),
    }


def rival(options: argparse.Namespace) -> dict[str, Any]:
    import networkx as nx

    graph, rows = Graph.open(Path(options.place)), keys(options)[: options.sample]
    simple = nx.Graph()
    simple.add_nodes_from(range(graph.n_nodes))
    simple.add_edges_from(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    # as_nodes scores all keys alike, so they stand by id
    pairs = [pair for row in rows for pair in pairwise(sorted(row))]
    cpu = time.process_time()
    lengths = [len(nx.bidirectional_shortest_path(simple, *pair)) - 1 for pair in pairs]
    spent = time.process_time() - cpu
    found = REGISTRY.get("operator", "subgraph.bridge").call(graph, as_nodes(rows))
    same = [len(path.relationships) for row in found.rows for path in row] == lengths
    return {
        "questions": len(rows),
        "ms_a_question": 1000 * spent / len(rows),
        "peak_mb": peak_mb(),
        "lengths_agree": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=725_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--sample", type=int, default=20, help="questions that NetworkX is given")
    parser.add_argument("--place", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=("make", "ours", "rival"), default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        part = {"make": make, "ours": ours, "rival": rival}[options.part]
        sys.stdout.write(json.dumps(part(options)))
        return
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, __file__, "--place", place]
        for name in ("nodes", "edges", "questions", "keys", "sample"):
            command += [f"--{name}", str(getattr(options, name))]
        found = {
            part: json.loads(subprocess.check_output([*command, "--part", part], env=environment()))
            for part in ("make", "ours", "rival")
        }
    found["times_faster"] = found["rival"]["ms_a_question"] / found["ours"]["ms_a_question"]
    text = json.dumps(found, indent=1)
    sys.stdout.write(text + "\n")
    if options.out:
        options.out.write_text(text + "\n", "utf-8")


def environment() -> dict[str, str]:
    import os

    return {**os.environ, **ONE_THREAD}


if __name__ == "__main__":
    main()
