"""Measure operators on a big graph against what one would use instead, side by side in one run, on one thread.

    python scripts/bench_operators.py --out FILE.json [--nodes 500000] [--edges 725000] [--questions 1000] [--repeat 3]

* ``node.ppr`` (``top_k=20``, the whole batch) against igraph's PRPACK, a question at a time, on a sample of the questions.
  Ours counts everything after the graph is open: the adjacency, the reduction, the solution. Igraph's own graph is made
  beforehand and not counted. Beside the speed: how many of the 20 best are among igraph's 20 best (an answer whose score
  igraph puts at or above its 20th counts), and the largest difference of any node's score from igraph's.
* aggregators, occurrence and onehop against plain loops over a NetworkX graph; both must return the same rows. Onehop is
  given the 20 best nodes of each question, occurrence what onehop makes of them, the aggregators all that has a score.
* ``Graph.open`` in a fresh process.

Times are CPU seconds (``time.process_time``), except that opening is also given by the clock. Every measured part is a
process of its own; its peak memory is Linux's VmHWM, the most that was resident, libraries and graph included.
"""

import argparse
import heapq
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.registry import REGISTRY

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
DAMPINGS = (0.5, 0.85)
TOP = 20
EXPONENT = 2.35  # of the degrees, in the limit; Hill's estimate over degrees of 10 and more is printed with the results


def power_law(n: int, edges: int, exponent: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the edges of a connected simple graph with heavy-tailed degrees.

    Growth by redirection (Krapivsky and Redner, Phys. Rev. E 63, 2001): each node meets an earlier one and joins it, or, with
    probability 1 / (exponent - 1), the one that it once joined. Edges beyond that tree join ends of the tree's edges.
    """
    rng = np.random.default_rng(seed)
    met = (rng.random(n) * np.arange(n)).astype(np.int64)
    redirected = rng.random(n) < 1.0 / (exponent - 1.0)
    redirected[:2] = False
    link = np.where(redirected, met, np.arange(n))
    while not np.array_equal(link[link], link):  # whom a chain of redirections ends at, by doubling
        link = link[link]
    sources, targets = np.arange(1, n), met[link][1:]
    ends = np.concatenate([sources, targets])
    keys = np.minimum(sources, targets) * n + np.maximum(sources, targets)
    while len(keys) < edges:
        one, two = rng.choice(ends, edges - len(keys)), rng.choice(ends, edges - len(keys))
        keys = np.union1d(keys, (np.minimum(one, two) * n + np.maximum(one, two))[one != two])
    shuffled = rng.permutation(n)
    return shuffled[keys // n], shuffled[keys % n]


def make(options: argparse.Namespace) -> dict[str, Any]:
    n, m, chunks = options.nodes, options.edges, options.nodes // 5
    sources, targets = power_law(n, m, EXPONENT, 0)
    where = np.random.default_rng(1).integers(0, chunks, m)
    graph = Graph(
        nodes=pa.table({"name": pa.array([f"entity {number}" for number in range(n)])}),
        relationships=pa.table(
            {
                "source": pa.array(sources, pa.int32()),
                "target": pa.array(targets, pa.int32()),
                "kind": pa.array(["fact"]).dictionary_encode().take(pa.array(np.zeros(m, np.int32))).cast(pa.string()),
                "name": pa.array([f"relation {number % 1000}" for number in range(m)]),
                "weight": pa.array(np.ones(m, np.float32)),
            }
        ),
        node_chunk=incidence(np.concatenate([sources, targets]), np.concatenate([where, where]), (n, chunks)),
        relationship_chunk=incidence(np.arange(m), where, (m, chunks)),
        attributes=frozenset({"node.name", "relationship.name", "relationship.weight"}),
    )
    graph.save(Path(options.place))
    degree = np.diff(graph.adjacency().indptr)
    tail = degree[degree >= 10]
    return {
        "nodes": n, "edges": m, "chunks": chunks, "largest_degree": int(degree.max()),
        "leaves": int((degree == 1).sum()), "exponent_found": float(1 + len(tail) / np.log(tail / 9.5).sum()),
    }


def seeds(options: argparse.Namespace, size: int) -> list[list[int]]:
    rng = np.random.default_rng(2)
    return [sorted(rng.choice(options.nodes, 3, replace=False).tolist()) for _ in range(options.questions)][:size]


def as_nodes(rows: list[list[int]]) -> Nodes:
    return Nodes.of_rows([(row, [1.0] * len(row)) for row in rows])


def opened(options: argparse.Namespace) -> dict[str, Any]:
    clock, cpu = time.perf_counter(), time.process_time()
    graph = Graph.open(Path(options.place))
    out = {"clock_s": time.perf_counter() - clock, "cpu_s": time.process_time() - cpu}
    return {**out, "relationships": graph.n_relationships}


def ours(options: argparse.Namespace) -> dict[str, Any]:
    ppr = REGISTRY.get("operator", "node.ppr").call
    wanted = as_nodes(seeds(options, options.questions))
    out: dict[str, Any] = {"before_mb": peak_mb()}
    for damping in DAMPINGS:
        graph = Graph.open(Path(options.place))
        cpu = time.process_time()
        found = ppr(graph, wanted, damping=damping, top_k=TOP)
        out[str(damping)] = (time.process_time() - cpu) / options.questions
        assert found.size == options.questions
    return {**out, "peak_mb": peak_mb()}


def rival(options: argparse.Namespace) -> dict[str, Any]:
    import igraph

    ppr = REGISTRY.get("operator", "node.ppr").call
    graph = Graph.open(Path(options.place))
    rows = seeds(options, options.sample)
    other = igraph.Graph(n=graph.n_nodes, edges=np.stack([graph.sources, graph.targets], 1))
    out: dict[str, Any] = {}
    for damping in DAMPINGS:
        cpu = time.process_time()
        exact = [
            other.personalized_pagerank(damping=damping, reset_vertices=row, directed=False, implementation="prpack")
            for row in rows
        ]
        seconds = (time.process_time() - cpu) / len(rows)
        best = ppr(graph, as_nodes(rows), damping=damping, top_k=TOP)
        whole = ppr(graph, as_nodes(rows), damping=damping, solver="reduced").dense(graph.n_nodes)
        scores = np.array(exact)
        kth = np.partition(scores, -TOP, axis=1)[:, -TOP]
        overlap = [float((scores[q, row.ids] >= kth[q] * (1 - 1e-9)).mean()) for q, row in enumerate(best)]
        out[str(damping)] = {
            "seconds": seconds, "overlap": statistics.mean(overlap), "overlap_min": min(overlap),
            "largest_difference": float(np.abs(whole - scores).max()),
        }
    return out


def peak_mb() -> float:
    """Return the most memory that was resident in this process; getrusage's would count what the parent had at the fork."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


# The loops that one would write: a NetworkX multigraph whose nodes and edges carry their chunks, and its scores as dicts.

Scores = dict[int, float]


def best(scores: Scores, k: int | None) -> list[tuple[int, float]]:
    rank = lambda item: (-item[1], item[0])  # noqa: E731
    return sorted(scores.items(), key=rank) if k is None else heapq.nsmallest(k, scores.items(), key=rank)


def loop_relationship_aggregator(net: Any, ends: Any, given: Scores) -> Scores:
    return {key: given.get(one, 0.0) + given.get(two, 0.0) for one, two, key in net.edges(keys=True)}


def loop_chunk_aggregator(net: Any, ends: Any, given: Scores) -> Scores:
    out: Scores = defaultdict(float)
    for key, score in given.items():
        for chunk in net.edges[*ends[key], key]["chunks"]:
            out[chunk] += score
    return out


def loop_chunk_occurrence(net: Any, ends: Any, given: Scores) -> Scores:
    out: Scores = defaultdict(float)
    for key in given:
        one, two = ends[key]
        for chunk in net.nodes[one]["chunks"] & net.nodes[two]["chunks"]:
            out[chunk] += 1.0
    return out


def loop_relationship_onehop(net: Any, ends: Any, given: Scores) -> Scores:
    degree, out = net.graph["degree"], {}
    for node in given:
        for one, two, key in itertools.chain(net.out_edges(node, keys=True), net.in_edges(node, keys=True)):
            out[key] = float(degree[one] + degree[two])
    return out


def loop_node_onehop(net: Any, ends: Any, given: Scores) -> Scores:
    out: Scores = {}
    for node, score in given.items():
        for other in itertools.chain(net.successors(node), net.predecessors(node)):
            if other not in given:
                out[other] = max(score, out.get(other, score))
    return out


LOOPS: dict[str, tuple[str, int | None, Callable[[Any, Any, Scores], Scores]]] = {
    "relationship.aggregator": ("all nodes", TOP, loop_relationship_aggregator),
    "chunk.aggregator": ("all relationships", TOP, loop_chunk_aggregator),
    "chunk.occurrence": ("relationships", TOP, loop_chunk_occurrence),
    "relationship.onehop": ("nodes", None, loop_relationship_onehop),
    "node.onehop": ("nodes", None, loop_node_onehop),
}


def network(graph: Graph) -> tuple[Any, list[tuple[int, int]]]:
    import networkx

    net = networkx.MultiDiGraph()
    for node, chunks in enumerate(rows_of(graph.node_chunk)):
        net.add_node(node, chunks=set(chunks))
    ends = list(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    for key, (pair, chunks) in enumerate(zip(ends, rows_of(graph.relationship_chunk), strict=True)):
        net.add_edge(*pair, key=key, chunks=chunks)
    net.graph["degree"] = dict(net.degree())
    return net, ends


def rows_of(matrix: Any) -> Iterator[list[int]]:
    indptr, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    return (indices[start:end] for start, end in itertools.pairwise(indptr))


def loops(options: argparse.Namespace) -> dict[str, Any]:
    graph = Graph.open(Path(options.place))
    ppr = REGISTRY.get("operator", "node.ppr").call
    walked = ppr(graph, as_nodes(seeds(options, options.sample)), damping=0.5, solver="exact")
    given: dict[str, Any] = {
        "all nodes": walked, "nodes": walked.top(TOP),
        "all relationships": REGISTRY.get("operator", "relationship.aggregator").call(graph, walked),
        "relationships": REGISTRY.get("operator", "relationship.onehop").call(graph, walked.top(TOP)),
    }
    for value in given.values():
        assert value.indptr is not None  # sorted now, so that no measurement pays for it
    net, ends = network(graph)
    out: dict[str, Any] = {}
    for name, (of, top_k, loop) in LOOPS.items():
        call = REGISTRY.get("operator", name).call
        rows = itertools.islice(given[of], options.looped)
        dicts = [dict(zip(row.ids.tolist(), row.scores.tolist(), strict=True)) for row in rows]
        call(graph, given[of], top_k=top_k)  # the columns that a graph makes once are there now, for all that follows
        times: dict[str, list[float]] = {"ours": [], "loop": []}
        for _ in range(options.repeat):
            cpu = time.process_time()
            found = call(graph, given[of], top_k=top_k)
            assert found.indptr[0] == 0  # a ranking sorts itself when it is asked
            times["ours"].append((time.process_time() - cpu) / options.sample)
            cpu = time.process_time()
            wanted = [best(loop(net, ends, scores), top_k) for scores in dicts]
            times["loop"].append((time.process_time() - cpu) / len(dicts))
        out[name] = {**times, "same": all(agree(row, pairs, top_k) for row, pairs in zip(found, wanted, strict=False))}
    return out


def agree(row: Any, wanted: list[tuple[int, float]], top_k: int | None) -> bool:
    """Whether two rankings are the same; sums in another order may swap near ties at the cut, so there scores decide."""
    same = len(row.ids) == len(wanted) and np.allclose(row.scores, [score for _, score in wanted], rtol=1e-9)
    return same and (top_k is not None or row.ids.tolist() == [number for number, _ in wanted])


PARTS = {"make": make, "opened": opened, "ours": ours, "rival": rival, "loops": loops}


def spread(values: Iterable[float]) -> dict[str, float]:
    held = list(values)
    return {"median": statistics.median(held), "min": min(held), "max": max(held)}


def summary(made: Any, open_runs: list[Any], ppr_runs: list[tuple[Any, Any]], looped: Any) -> dict[str, Any]:
    walks = {
        str(damping): {
            "ours_ms": spread(1e3 * one[str(damping)] for one, _ in ppr_runs),
            "igraph_ms": spread(1e3 * two[str(damping)]["seconds"] for _, two in ppr_runs),
            "times_as_fast": spread(two[str(damping)]["seconds"] / one[str(damping)] for one, two in ppr_runs),
            **{key: ppr_runs[0][1][str(damping)][key] for key in ("overlap", "overlap_min", "largest_difference")},
        }
        for damping in DAMPINGS
    }
    others = {
        name: {
            "ours_ms": spread(1e3 * value for value in entry["ours"]),
            "loop_ms": spread(1e3 * value for value in entry["loop"]),
            "times_as_fast": spread(b / a for a, b in zip(entry["ours"], entry["loop"], strict=True)),
            "same": entry["same"],
        }
        for name, entry in looped.items()
    }
    return {
        "graph": made, "open_s": spread(one["clock_s"] for one in open_runs),
        "open_cpu_s": spread(one["cpu_s"] for one in open_runs), "node.ppr": walks,
        "node.ppr_peak_mb": spread(one["peak_mb"] for one, _ in ppr_runs),
        "node.ppr_before_mb": spread(one["before_mb"] for one, _ in ppr_runs), "operators": others,
    }


def table(found: dict[str, Any], options: argparse.Namespace) -> str:
    graph = found["graph"]

    def line(name: str, one: Any, two: Any, ratio: Any) -> str:
        def cell(value: Any) -> str:
            return f"{value['median']:9.3f} [{value['min']:.3f}, {value['max']:.3f}]".ljust(30)

        return f"{name:<26}{cell(one)}{cell(two)}{ratio['median']:7.1f} [{ratio['min']:.1f}, {ratio['max']:.1f}]\n"

    out = [
        f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, largest degree {graph['largest_degree']:,}, "
        f"{graph['leaves']:,} leaves, exponent {graph['exponent_found']:.2f}; {options.repeat} runs, one thread\n",
        "CPU ms a question, median [min, max]; times as fast\n\n",
        f"{'':<26}{'     ours':<30}{'     the other':<30}  ratio\n",
    ]
    for damping, entry in found["node.ppr"].items():
        out.append(line(f"node.ppr, damping {damping}", entry["ours_ms"], entry["igraph_ms"], entry["times_as_fast"]))
    for name, entry in found["operators"].items():
        out.append(
            line(name, entry["ours_ms"], entry["loop_ms"], entry["times_as_fast"]).rstrip("\n")
            + ("\n" if entry["same"] else "   NOT THE SAME ROWS\n")
        )
    out.append("\n")
    for damping, entry in found["node.ppr"].items():
        out.append(
            f"node.ppr, damping {damping}: of the {TOP} best {entry['overlap']:.4f} in igraph's (least {entry['overlap_min']:.2f}"
            f"), largest difference of a score {entry['largest_difference']:.1e}\n"
        )
    peak, before = found["node.ppr_peak_mb"], found["node.ppr_before_mb"]
    out.append(
        f"node.ppr, {options.questions:,} questions: peak of the process {peak['max']:.0f} MiB "
        f"({before['median']:.0f} MiB before the graph was opened)\n"
    )
    out.append(f"Graph.open in a fresh process: {found['open_s']['median']:.3f} s, at most {found['open_s']['max']:.3f} s\n")
    return "".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--nodes", type=int, default=500_000)
    parser.add_argument("--edges", type=int, default=725_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--sample", type=int, default=20, help="questions given to igraph, and to our other operators")
    parser.add_argument("--looped", type=int, default=5, help="how many of the sample are given to the loops")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--place", help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        sys.stdout.write(json.dumps(PARTS[options.part](options)) + "\n")
        return
    with tempfile.TemporaryDirectory() as place:

        def part(name: str) -> Any:
            again = [sys.executable, __file__, *sys.argv[1:], "--place", place, "--part", name]
            environment = {**os.environ, **ONE_THREAD}  # read when NumPy is imported, hence a process of its own
            done = subprocess.run(again, check=True, stdout=subprocess.PIPE, text=True, env=environment)
            return json.loads(done.stdout)

        made = part("make")
        open_runs = [part("opened") for _ in range(options.repeat)]
        ppr_runs = [(part("ours"), part("rival")) for _ in range(options.repeat)]
        found = summary(made, open_runs, ppr_runs, part("loops"))
    found["settings"] = {name: getattr(options, name) for name in ("questions", "sample", "looped", "repeat")} | {"top_k": TOP}
    found["versions"] = {name: version(name) for name in ("numpy", "scipy", "igraph", "networkx", "pyarrow")}
    found["machine"] = {"python": platform.python_version(), "system": platform.system(), "processor": processor()}
    options.out.write_text(json.dumps(found, indent=2) + "\n")
    sys.stdout.write(table(found, options))


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
