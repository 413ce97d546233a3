"""Measure C-HNSW against one HNSW a layer (faiss, hnswlib) and against exact search, in one process, at equal recall.

    python scripts/bench_chnsw.py --out results/chnsw
    python scripts/bench_chnsw.py --out results/chnsw_1024 --bottom 100000 --dim 1024
    python scripts/bench_chnsw.py --out results/chnsw_single --single

A hierarchy of 11 layers, clustered (a tree of noise about parents) or random (independent directions), unit vectors and the
inner product; every query asks for the k nearest of every layer. The same m, ef_construction and ef for all. Contestants take
turns: in each round, for each ef, each of them answers all queries, their order changing with the round. C-HNSW puts the
queries of a call in an order of its own; ``--batch 1`` shows what is left without that. A point of a curve is the best of the
rounds, by the clock or by CPU seconds, with the recall of that ef.

Recall is counted a query: the share of the query's own k nearest of a layer that it was given, an id as near as the k-th
counting as one of them; averaged over queries, then over layers. Speed ratios compare whole curves at equal recall
(``chnsw_bench.curves`` states the rule); those at the same ef are given beside them only to be checked, since at the same ef
recall differs, and above 3 they would mean a wrong comparison. With ``--single`` the bottom layer alone is built and searched
(``search_layer``). Files: ``bench_chnsw.json`` and ``bench_chnsw.svg`` in the folder.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from chnsw_bench.contestants import Cache, Contestant, Settings, chnsw_index, exact_layers, faiss_layers, hnswlib_layers
from chnsw_bench.curves import AT, Curve, compare
from chnsw_bench.data import NOISE, SHRINK, SKEW, Data, exact, hierarchy, recall, sizes
from chnsw_bench.plot import Panel, draw
from threadpoolctl import threadpool_limits

EFS = [5, 8, 12, 16, 24, 32, 40, 64, 100, 160, 256, 512]
SUSPICIOUS = 3.0  # times as fast at the same ef
CLOCKS = ("wall", "cpu")


def build(data: Data, options: argparse.Namespace, said: dict[str, Any]) -> list[Contestant]:
    """Build, or read from the cache, all contestants; one after another, since building is timed too."""
    settings = Settings(options.k, options.m, options.ef_construction, options.build_threads, options.single)
    cache = Cache(options.cache, said)
    makers = {"exact": exact_layers, "faiss": faiss_layers, "hnswlib": hnswlib_layers}
    out = []
    for name in options.contestants:
        note(f"  {name} …")
        if name == "chnsw":
            out += [chnsw_index(data, settings, cache, dtype) for dtype in options.dtype]
        else:
            out.append(makers[name](data, settings, cache))
    return out


def measure(
    data: Data,
    truth: list[tuple[np.ndarray, np.ndarray]],
    contestants: list[Contestant],
    threads: int,
    options: argparse.Namespace,
) -> dict[str, list[dict[str, Any]]]:
    """Return each contestant's points by rising ef, timed in turns on so many threads."""
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    points: dict[tuple[str, int], dict[str, Any]] = {}
    each = options.batch or len(data.queries)
    batches = [data.queries[start : start + each] for start in range(0, len(data.queries), each)]
    with threadpool_limits(threads):
        for turn in range(-1, options.rounds):  # the first is a warm-up, and where recall is counted
            for ef in options.efs:
                order = contestants if turn % 2 == 0 else contestants[::-1]
                for one in order:
                    if not one.takes_ef and (ef != options.efs[0] or turn >= options.exact_rounds):
                        continue
                    wall, cpu = time.perf_counter(), time.process_time()
                    parts = [one.search(batch, ef, threads) for batch in batches]
                    spent = (time.perf_counter() - wall, time.process_time() - cpu)
                    if turn < 0:
                        found = [np.concatenate(ids) for ids in zip(*parts, strict=True)]
                        layers = recall(data, truth, found)
                        points[one.name, ef] = {"ef": ef, "recall": statistics.mean(layers), "recall_layers": layers}
                    else:
                        times.setdefault((one.name, ef), []).append(spent)
    out: dict[str, list[dict[str, Any]]] = {}
    for (name, ef), point in points.items():
        for at, clock in enumerate(CLOCKS):
            spent_all = [spent[at] for spent in times[name, ef]]
            point[f"qps_{clock}"] = len(data.queries) / min(spent_all)
            point[f"us_{clock}"] = [1e6 * seconds / len(data.queries) for seconds in sorted(spent_all)]
        out.setdefault(name, []).append(point)
    return {one.name: out[one.name] for one in contestants}


def ratios(curves: dict[str, list[dict[str, Any]]], asked: int) -> dict[str, Any]:
    """Return, for each dtype of chnsw and each rival, the speed ratios by both clocks, at equal recall and at the same ef."""
    out: dict[str, Any] = {}
    for ours in (name for name in curves if name.startswith("chnsw")):
        for theirs in (name for name in curves if not name.startswith("chnsw")):
            entry: dict[str, Any] = {}
            for clock in CLOCKS:
                one, two = (
                    Curve([(p["recall"], p[f"qps_{clock}"]) for p in curves[name]], asked) for name in (ours, theirs)
                )
                entry[clock] = compare(one, two)
                pairs = {point["ef"]: point for point in curves[theirs]} if theirs != "exact" else {}
                entry[clock]["same_ef"] = {
                    point["ef"]: point[f"qps_{clock}"] / pairs[point["ef"]][f"qps_{clock}"]
                    for point in curves[ours]
                    if point["ef"] in pairs
                }
            out[f"{ours}/{theirs}"] = entry
    return out


def run(kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one kind of hierarchy."""
    counts = sizes(options.bottom, options.layers, options.ratio, options.floor)
    note(f"{kind}: layers {counts}, dimension {options.dim}")
    data = hierarchy(kind, counts, options.dim, options.queries, options.seed)
    if options.single:
        data = Data(data.layers[:1], data.queries)
    truth = exact(data.layers, data.queries, options.k)
    names = ("dim", "seed", "m", "ef_construction", "build_threads", "single")
    said = {"kind": kind, "counts": counts, "noise": [NOISE, SHRINK, SKEW]} | {
        name: getattr(options, name) for name in names
    }
    contestants = build(data, options, said)
    asked = options.queries * sum(products.shape[1] for _, products in truth)
    found: dict[str, Any] = {"layers": [len(layer) for layer in data.layers], "asked": asked, "threads": {}}
    found["built"] = {one.name: one.built for one in contestants}
    found["distances_per_query"] = {
        one.name: {ef: one.distances(data.queries, ef) for ef in options.efs}
        for one in contestants
        if one.distances(data.queries[:1], options.efs[0]) is not None
    }
    for threads in options.threads:
        note(f"  searching, {threads} thread{'s' * (threads > 1)} …")
        curves = measure(data, truth, contestants, threads, options)
        found["threads"][threads] = {"curves": curves, "ratios": ratios(curves, asked)}
    found["warnings"] = warnings(found)
    return found


def warnings(found: dict[str, Any]) -> list[str]:
    """Say, once a pair, where a contestant is suspiciously faster at the same ef, and what the distances explain of it."""
    said = []
    counted = found["distances_per_query"]
    for threads, part in found["threads"].items():
        for pair, entry in part["ratios"].items():
            ef, ratio = max(entry["cpu"]["same_ef"].items(), key=lambda item: item[1], default=(0, 0.0))
            if ratio <= SUSPICIOUS:
                continue
            ours, theirs = (counted.get(name, {}).get(int(ef)) for name in pair.split("/"))
            saved = f"{theirs / ours:.1f} times the distances" if ours and theirs else "no count of its distances"
            said.append(
                f"{pair} is up to {ratio:.2f} times as fast at the same ef (CPU, {threads} threads, ef {ef}), where "
                f"{pair.split('/')[1]} has {saved}: look whether that explains it"
            )
    return said


def table(kind: str, found: dict[str, Any]) -> str:
    lines = [f"\n{kind}, {sum(found['layers']):,} vectors in {len(found['layers'])} layers"]
    for name, built in found["built"].items():
        seconds = f"built in {built['wall_s']:.1f} s ({built['cpu_s']:.1f} CPU s), " if "wall_s" in built else ""
        lines.append(f"  {name:<14}{seconds}{built['bytes'] / 2**20:,.0f} MiB")
    for threads, part in found["threads"].items():
        lines.append(
            f"  {threads} thread{'s' * (int(threads) > 1)}: ef, recall, microseconds a query wall / CPU, distances"
        )
        for name, points in part["curves"].items():
            for point in points:
                distances = found["distances_per_query"].get(name, {}).get(point["ef"])
                lines.append(
                    f"    {name:<14}{point['ef']:>5}  {point['recall']:.5f}  {1e6 / point['qps_wall']:9.1f} "
                    f"{1e6 / point['qps_cpu']:9.1f}  {'' if distances is None else f'{distances:9.0f}'}"
                )
        for pair, entry in part["ratios"].items():
            for clock in CLOCKS:
                at = ", ".join(f"{r:g}: {times(entry[clock]['at_recall'][f'{r:g}'])}" for r in AT)
                mean = entry[clock]["mean"]
                span = f" over {mean['from_recall']:.4f}–{mean['to_recall']:.5f}" if mean else ""
                lines.append(f"    {pair} ({clock}) at {at}; mean {times(mean and mean['geometric_mean'])}{span}")
    return "\n".join(lines + [f"  WARNING: {warning}" for warning in found["warnings"]]) + "\n"


def times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def picture(found: dict[str, Any], single: bool) -> str:
    panels = [
        Panel(
            f"{kind}{', one layer' if single else ''}, {threads} thread{'s' * (int(threads) > 1)}",
            {name: [(p["recall"], p["qps_wall"]) for p in points] for name, points in part["curves"].items()},
            0.5 / entry["asked"],
        )
        for kind, entry in found.items()
        for threads, part in entry["threads"].items()
    ]
    return draw(panels, columns=max(len(entry["threads"]) for entry in found.values()))


def machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    load = [round(value, 2) for value in os.getloadavg()]
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
        "load": load,
    }


def note(said: str) -> None:
    sys.stderr.write(said + "\n")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path, help="folder of the JSON and the SVG")
    parser.add_argument("--hierarchy", nargs="+", choices=["clustered", "random"], default=["clustered", "random"])
    parser.add_argument("--bottom", type=int, default=200_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--layers", type=int, default=11)
    parser.add_argument(
        "--ratio", type=float, default=3.0, help="how many times as small each layer is as the one below"
    )
    parser.add_argument("--floor", type=int, default=5, help="least size of a layer")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=0, help="queries a call; 0: all at once")
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--m", type=int, default=32)
    parser.add_argument("--ef-construction", type=int, default=100)
    parser.add_argument("--efs", type=int, nargs="+", default=EFS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--build-threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--exact-rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", nargs="+", choices=["float32", "float16", "int8"], default=["float32", "int8"])
    parser.add_argument("--contestants", nargs="+", default=["chnsw", "faiss", "hnswlib", "exact"])
    parser.add_argument("--single", action="store_true", help="the bottom layer alone")
    parser.add_argument("--cache", type=Path, help="folder where built indexes are kept, to time searches again")
    return parser


def main() -> None:
    options = arguments().parse_args()
    options.efs = sorted(set(options.efs))
    if options.single and options.hierarchy == ["clustered", "random"]:
        note("one layer of either hierarchy is measured alone")
    found = {kind: run(kind, options) for kind in options.hierarchy}
    said = {name: str(value) if isinstance(value, Path) else value for name, value in vars(options).items()}
    versions = {name: version(name) for name in ("numpy", "faiss-cpu", "hnswlib", "graphrag-bench")}
    report = {
        "settings": said,
        "noise": [NOISE, SHRINK, SKEW],
        "machine": machine(),
        "versions": versions,
        "hierarchies": found,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "bench_chnsw.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.out / "bench_chnsw.svg").write_text(picture(found, options.single))
    for kind, entry in found.items():
        sys.stdout.write(table(kind, entry))


if __name__ == "__main__":
    main()
