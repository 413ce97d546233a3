"""Import of a finished graph of LightRAG (or of nano-graphrag, which writes the same without keywords): its GraphML."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.graph import Graph, incidence_of
from graphrag_bench.graph.graphml import Element, read_graphml
from graphrag_bench.graph.importing import Tally, existing, files_digest, unquoted
from graphrag_bench.graph.summaries import joined
from graphrag_bench.graph.units import TextUnits
from graphrag_bench.registry import register

_SEPARATOR = "<SEP>"
_GRAPH = "graph_chunk_entity_relation.graphml"
_TEXTS = "kv_store_text_chunks.json"
_ATTRIBUTES = (
    "node.name", "node.type", "node.description",
    "relationship.description", "relationship.keywords", "relationship.weight",
)  # fmt: skip


def _file(path: str) -> Path:
    place = existing(path, "graph.path")
    if place.is_file():
        return place
    if (place / _GRAPH).is_file():
        return place / _GRAPH
    raise UserError(f"The folder {place} holds no {_GRAPH}.", "Give LightRAG's working folder, or the GraphML file.")


def _inputs(settings: Mapping[str, Any]) -> str:
    file = _file(str(settings["path"]))
    return files_digest(part for part in (file, file.with_name(_TEXTS)) if part.is_file())


@register("builder", "lightrag", provides=_ATTRIBUTES, inputs=_inputs)
def build(chunks: ChunkTable, *, path: str) -> Built:
    """Read the graph that LightRAG wrote.

    Its chunks are found among ours by the MD5 in their ids, by the texts in ``kv_store_text_chunks.json`` where that lies
    beside the graph, or by the ids of documents. Its edges have no direction; the order of their ends is the file's.

    Args:
        chunks: the corpus.
        path: the GraphML file, or the working folder that holds it.

    Raises:
        UserError: The file is missing or faulty, or none of its chunks is one of ours.
    """
    file = _file(path)
    nodes, edges = read_graphml(file)
    units = TextUnits(chunks, _texts(file.with_name(_TEXTS)))
    tally = Tally()
    ids: dict[str, int] = {}
    columns: dict[str, list[str]] = {"name": [], "type": [], "description": []}
    within: list[tuple[int, int]] = []
    for node in nodes:
        if node.tag["id"] in ids:
            raise UserError(f"{file}:{node.line}: the node {node.tag['id']} is given twice.", "Export the graph again.")
        place = ids[node.tag["id"]] = len(ids)
        columns["name"].append(unquoted(node.data.get("entity_id") or node.tag["id"]))
        columns["type"].append(unquoted(node.data.get("entity_type", "")))
        columns["description"].append(joined(_parts(node, "description")))
        within += [(place, c) for unit in _parts(node, "source_id") for c in units.chunks(unit, columns["name"][-1])]
    rows: dict[str, list[Any]] = {name: [] for name in ("source", "target", "weight", "description", "keywords")}
    stated: list[tuple[int, int]] = []
    for edge in edges:
        ends = [ids.get(edge.tag[end]) for end in ("source", "target")]
        if ends[0] is None or ends[1] is None:
            tally.add("edges with an end that is no node, left out")
            continue
        names = columns["name"][ends[0]], columns["name"][ends[1]]
        place = len(rows["source"])
        stated += [(place, c) for unit in _parts(edge, "source_id") for c in units.chunks(unit, *names)]
        words = (word.strip() for part in _parts(edge, "keywords") for word in part.replace("，", ",").split(","))
        keywords = ", ".join(dict.fromkeys(word for word in words if word))
        values = (*ends, _weight(edge, file), joined(_parts(edge, "description")), keywords)
        for column, value in zip(rows.values(), values, strict=True):
            column.append(value)
    units.check(file, f"{_TEXTS} beside it gives their texts.")
    count = len(rows["source"])
    keyed = any("keywords" in edge.data for edge in edges)
    graph = Graph(
        nodes=pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()}),
        relationships=pa.table(
            {
                "source": pa.array(rows["source"], pa.int32()),
                "target": pa.array(rows["target"], pa.int32()),
                "kind": pa.array(["fact"] * count, pa.string()),
                "name": pa.array([""] * count, pa.string()),
                "weight": pa.array(rows["weight"], pa.float32()),
                "description": pa.array(rows["description"], pa.string()),
                "keywords": pa.array(rows["keywords"], pa.string()),
            }
        ),
        node_chunk=incidence_of(within, (len(ids), len(chunks))),
        relationship_chunk=incidence_of(stated, (count, len(chunks))),
        attributes=frozenset(_ATTRIBUTES) - (set() if keyed else {"relationship.keywords"}),
    )
    return Built(graph, {"import": {"format": "lightrag", **units.account(), "counted": tally.counts}})


def _parts(element: Element, name: str) -> list[str]:
    """Return the parts of a field that merging has joined, each once."""
    parts = (part.strip() for part in element.data.get(name, "").split(_SEPARATOR))
    bare = (part[1:-1].strip() if len(part) > 1 and part[0] == part[-1] == '"' else part for part in parts)
    return list(dict.fromkeys(part for part in bare if part))


def _weight(edge: Element, file: Path) -> float:
    text = edge.data.get("weight", "").strip() or "1"
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise UserError(f"{file}:{edge.line}: the edge's weight is {text!r}, not a number.", "Export the graph again.")
    return weight


def _texts(path: Path) -> dict[str, str]:
    """Return the texts of LightRAG's chunks by id; none where the file is not there."""
    if not path.is_file():
        return {}
    try:
        rows = json.loads(path.read_text("utf-8"))
        return {str(unit): str(row["content"]) for unit, row in rows.items()}
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: not valid JSON: {error.msg}.", "Mend the file, or remove it."
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise UserError(
            f"{path} does not map chunk ids to objects with a content ({type(error).__name__}).",
            "Mend the file, or remove it.",
        ) from None
