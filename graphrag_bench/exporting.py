"""Write the graph of a run, as the store holds it, in a format that other tools read; nothing is built and nothing spent."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.errors import UserError
from graphrag_bench.graph.exporters import export
from graphrag_bench.pipeline.stages import Stages
from graphrag_bench.session import Session


def export_graph(format: str, folder: Path, overrides: Sequence[str]) -> str:
    """Export the graph that a run with these overrides has built; return what was written, a line a file.

    Raises:
        UserError: the overrides make more than one cell, or one without a graph; or the graph has not been built yet.
    """
    checked, _ = cells([*overrides, "until=graph"])
    if len(checked) != 1:
        raise UserError(f"The overrides make {len(checked)} cells.", "Name one method and one dataset.")
    cell = checked[0]
    run = CellRun(Session(), cell)
    stages = run.stages
    if stages.builder() is None:
        raise UserError(f"The method {cell.method} builds no graph.", "Name one with a graph, or write graph=kg.")
    if not _built(stages):
        said = " ".join(overrides)
        raise UserError(
            "This graph is not in the store.", f"Build it first: graphrag-bench run {said} until=graph; or correct the overrides."
        )

    async def written() -> list[Path]:
        return export(await stages.graph(mend=False), await stages.chunks(), folder, format)

    files = asyncio.run(written())
    return "\n".join(f"{file}  {file.stat().st_size:,} bytes" for file in files)


def _built(stages: Stages) -> bool:
    specs = [stages.chunk_spec(), stages.graph_spec()]
    specs += [stages.hierarchy_spec()] if stages.clusterer() else []
    specs += [stages.reports_spec()] if stages.reporter() else []
    return all(stages.store.find(spec) is not None for spec in specs)
