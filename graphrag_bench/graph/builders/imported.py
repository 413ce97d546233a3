"""Import of a graph of our own: a folder of the store, or one exported as Parquet tables."""

import struct
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.flat import MARK, check_graph, read_tables, rechunked
from graphrag_bench.graph.graph import ATTRIBUTES, Graph
from graphrag_bench.graph.importing import existing, files_digest
from graphrag_bench.registry import register

_SAVED = (
    "nodes.parquet",
    "relationships.parquet",
    "incidence.npz",
    "hierarchy.npz",
    "reports.parquet",
    "claims.parquet",
)
_FLAT = (
    "nodes.parquet", "relationships.parquet", "chunks.parquet", MARK, "communities.parquet", "memberships.parquet",
    "reports.parquet", "claims.parquet",
)  # fmt: skip


def _files(path: str) -> list[Path]:
    folder = existing(path, "graph.path")
    for names in (_FLAT, _SAVED):
        needed = names[:4] if names is _FLAT else names[:3]
        if all((folder / name).is_file() for name in needed):
            return [folder / name for name in names if (folder / name).is_file()]
    raise UserError(
        f"{folder} holds no graph of ours.",
        "Give a graph's folder in the store, or the folder of an export as Parquet.",
    )


def _inputs(settings: Mapping[str, Any]) -> str:
    return files_digest(_files(str(settings["path"])))


def _provided(settings: Mapping[str, Any]) -> frozenset[str]:
    return _open(_files(str(settings["path"])))[0].attributes


@register("builder", "imported", provides=ATTRIBUTES, inputs=_inputs, attributes=_provided)
def build(chunks: ChunkTable, *, path: str) -> Built:
    """Read a graph that this program made, with its communities and reports where it has them.

    An export holds its chunks, which are found among the given ones by their text; a folder of the store does not, so there
    the number of chunks must agree.

    Args:
        chunks: the corpus the graph is of.
        path: the folder.

    Raises:
        UserError: A file is missing or faulty, or the graph is of another corpus.
    """
    graph, own = _open(_files(path))
    facts: dict[str, Any] = {"format": "store" if own is None else "parquet"}
    if own is None:
        if graph.n_chunks != len(chunks):
            raise UserError(
                f"The graph in {path} is of {graph.n_chunks:,} chunks, and there are {len(chunks):,}.",
                "Take the dataset and the chunking it was made of, or an export as Parquet, which holds its chunks.",
            )
        return Built(graph, {"import": facts})
    ids: dict[str, int] = {}
    for chunk in chunks:
        ids.setdefault(chunk.text, chunk.id)
    place = np.array([ids.get(chunk.text, -1) for chunk in own], dtype=np.int64)
    if len(own) and not (place >= 0).any():
        raise UserError(
            f"None of the {len(own):,} chunks of the graph in {path} is one of the {len(chunks):,} chunks.",
            "Take the dataset and the chunking it was made of.",
        )
    facts |= {"chunks_of_the_graph": len(own), "chunks_not_found": int((place < 0).sum())}
    moved = replace(
        graph,
        node_chunk=rechunked(graph.node_chunk, place, len(chunks)),
        relationship_chunk=rechunked(graph.relationship_chunk, place, len(chunks)),
        claims=None if graph.claims is None else _moved(graph.claims, place),
    )
    return Built(moved, {"import": facts})


def _moved(claims: pa.Table, place: NDArray[np.int64]) -> pa.Table:
    """Return claims whose chunk ``c`` is ``place[c]``; a place of -1, and no chunk, is none."""
    at = claims.schema.get_field_index("chunk")
    chunk = np.append(place, -1)[claims["chunk"].to_numpy()]
    return claims.set_column(at, claims.schema.field(at), pa.array(chunk, pa.int32()))


def _open(files: list[Path]) -> tuple[Graph, ChunkTable | None]:
    """Return a checked graph, and its own chunks where they are with it."""
    folder = files[0].parent
    if any(file.name == MARK for file in files):
        graph, chunks = read_tables(folder)
        check_graph(graph, folder)
        return graph, chunks
    try:
        graph = Graph.open(folder)
        check_graph(graph, folder)
    except (OSError, ValueError, KeyError, struct.error, zipfile.BadZipFile, pa.ArrowException) as error:
        said = str(error).split("\n")[0].rstrip(".")
        raise UserError(f"The graph in {folder} cannot be read: {said}.", "Copy or build it again.") from None
    return graph, None
