"""The chunk table on disk."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_bench.chunking.types import Chunk, ChunkTable


def save_chunks(chunks: ChunkTable, folder: Path) -> None:
    """Write the chunks into an existing folder."""
    table = pa.table(
        {
            "text": pa.array([chunk.text for chunk in chunks], pa.string()),
            "title": pa.array([chunk.title for chunk in chunks], pa.string()),
            "documents": pa.array([list(chunk.documents) for chunk in chunks], pa.list_(pa.string())),
            "tokens": pa.array([chunk.tokens for chunk in chunks], pa.int32()),
        }
    )
    pq.write_table(table, folder / "chunks.parquet", compression="zstd")


def open_chunks(folder: Path) -> ChunkTable:
    """Open saved chunks."""
    rows = pq.read_table(folder / "chunks.parquet", memory_map=True).to_pylist()
    return tuple(
        Chunk(number, row["text"], row["title"], tuple(row["documents"]), row["tokens"])
        for number, row in enumerate(rows)
    )
