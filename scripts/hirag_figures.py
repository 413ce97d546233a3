"""Print what HiRAG's paper draws of an index: sparsity by layer (Figure 4), clustering (Figure 5), coverage of bridges (Table 7).

    python scripts/hirag_figures.py [--out FILE.json] method=hirag dataset=… [other settings of a finished run]

The graph must be in the store: run the same settings before. Coverage is of the steps ``keys`` and ``bridge`` of the page, over
the questions of the dataset; a page without them has none. Nothing that asks a chat model is run.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.graph_quality import bridge_coverage, global_clustering, sparsity_by_layer
from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.execute import convert, retrieve
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.session import Session

KEPT = ("layers", "sparsity", "sparsity_change", "layer_nodes", "layer_clusters", "layer_passed_up", "stopped")


async def figures(overrides: list[str]) -> dict[str, Any]:
    checked, _ = cells([*overrides, "until=retrieval"])
    if len(checked) != 1:
        raise UserError(f"The settings make {len(checked)} cells.", "Name one method and one dataset.")
    run = CellRun(Session(), checked[0])
    spec = run.stages.graph_spec()
    artifact = run.session.store.find(spec)
    if artifact is None:
        raise UserError("This graph is not in the store.", f"Build it first: graphrag-bench run {' '.join(overrides)}")
    graph = await run.stages.graph(mend=False)
    found: dict[str, Any] = {
        "method": checked[0].plan.name,
        "nodes": graph.n_nodes,
        "by_kind": graph.statistics()["by_kind"],
        "clustering_of_facts": round(global_clustering(graph), 6),
        "clustering_of_facts_and_members": round(global_clustering(graph, ("fact", "member")), 6),
    }
    if "node.layer" in graph.attributes:
        found["built"] = {name: artifact.facts[name] for name in KEPT if name in artifact.facts}
        found["layers"] = [row._asdict() for row in sparsity_by_layer(graph)]
    names = {step.name for step in checked[0].plan.operators}
    if {"keys", "bridge"} <= names and not run.uses_model():
        plan = checked[0].plan
        lend: dict[Any, Any] = {
            ChunkTable: await run.stages.chunks(),
            Graph: graph,
            **await run.indexes.lend(plan.loans),
        }
        questions = Questions(tuple(q.id for q in run.asked), tuple(q.text for q in run.asked))
        values = await retrieve(plan, lend, await convert(plan, lend, questions))
        found["bridge"] = {"questions": len(questions), **bridge_coverage(values["keys"], values["bridge"]).plain()}
    return found


def told(found: dict[str, Any]) -> str:
    lines = [f"{found['method']}: {found['nodes']:,} nodes, {found['by_kind']}"]
    built = found.get("built", {})
    for at, sparsity in enumerate(built.get("sparsity", [])):
        change, nodes, clusters = (built[name][at] for name in ("sparsity_change", "layer_nodes", "layer_clusters"))
        said = "" if change is None else f", changed by {change:.2%}"
        lines.append(f"layer {at}: {nodes:,} nodes, {clusters:,} clusters, sparsity {sparsity:.4f}{said}")
    if built:
        lines.append(f"stopped by {built['stopped']}")
    lines.append(f"global clustering coefficient: {found['clustering_of_facts']:.4f} of facts,")
    lines.append(f"  {found['clustering_of_facts_and_members']:.4f} with the links of summaries")
    if bridge := found.get("bridge"):
        lines.append(
            f"bridges: {bridge['joined']:.1%} of {bridge['pairs']:,} pairs of key entities joined, {bridge['hops']:.2f} hops; "
            f"{bridge['keys']:.1%} of key entities on a path, {bridge['between']:.1f} others a question"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("overrides", nargs="+")
    options = parser.parse_args()
    try:
        found = asyncio.run(figures(options.overrides))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(told(found))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
