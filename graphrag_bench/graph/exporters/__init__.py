"""Export of a graph in formats that other tools read."""

from collections.abc import Callable
from pathlib import Path

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.exporters import graphml, neo4j
from graphrag_bench.graph.flat import write_tables
from graphrag_bench.graph.graph import Graph
from graphrag_bench.registry import nearest
from graphrag_bench.store.faults import disk_faults

Write = Callable[[Graph, ChunkTable, Path], list[Path]]
FORMATS: dict[str, Write] = {"graphml": graphml.write, "parquet": write_tables, "neo4j": neo4j.write}


def export(graph: Graph, chunks: ChunkTable, folder: Path, format: str) -> list[Path]:
    """Write a graph into a new or empty folder, and return the files.

    Args:
        graph: the graph, with its communities and reports where it has them.
        chunks: the chunks its incidences speak of.
        folder: where to; made where it is not there.
        format: ``graphml`` (one file), ``parquet`` (flat tables, which the builder ``imported`` reads) or ``neo4j`` (CSV
            files for ``neo4j-admin database import full``).

    Raises:
        UserError: There is no such format, the folder holds something, or the disk fails.
    """
    if format not in FORMATS:
        raise UserError(f"There is no export format {format!r}.", nearest(format, FORMATS))
    if len(chunks) != graph.n_chunks:
        raise ValueError(f"the graph speaks of {graph.n_chunks} chunks, and {len(chunks)} are given")
    with disk_faults("write the export", folder):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is there and not an empty folder.", "Name a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        return FORMATS[format](graph, chunks, folder)
