"""Import of a finished index of Microsoft GraphRAG: entities, relationships, claims, communities and their reports."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.errors import UserError
from graphrag_bench.graph.built import Built
from graphrag_bench.graph.graph import Graph, incidence_of
from graphrag_bench.graph.graphrag_tables import UNITS, Entities, read_claims, read_hierarchy, read_reports
from graphrag_bench.graph.importing import Tally, existing, files_digest, unquoted
from graphrag_bench.graph.tables import find_table, identifier, labels, number, read_rows
from graphrag_bench.graph.units import TextUnits
from graphrag_bench.registry import register

# table -> its names from version 2 on, and before; `nodes` said until version 1 who is in which community
_TABLES = {
    "entities": ("entities", "create_final_entities"),
    "relationships": ("relationships", "create_final_relationships"),
    "communities": ("communities", "create_final_communities"),
    "reports": ("community_reports", "create_final_community_reports"),
    "nodes": ("create_final_nodes",),
    "units": ("text_units", "create_final_text_units"),
    "claims": ("covariates", "claims", "create_final_covariates"),
}
_COLUMNS = (
    "id", "title", "name", "type", "description", "source", "target", "weight", "community", "level", "parent",
    "entity_ids", "summary", "full_content", "rank", "rating_explanation", "rank_explanation", "text",
    "subject_id", "object_id", "status", "start_date", "end_date", "source_text",
    "text_unit_id", "passage_id", *UNITS,
)  # fmt: skip
_ATTRIBUTES = frozenset(
    {"node.name", "node.type", "node.description", "relationship.description", "relationship.weight"}
)


def _files(path: str) -> dict[str, Path]:
    """Return the index's tables, from the folder itself or its ``output``."""
    folder = existing(path, "graph.path")
    for place in (folder, folder / "output"):
        found = {table: file for table, names in _TABLES.items() if (file := find_table(place, *names))}
        if "entities" in found and "relationships" in found:
            return found
    raise UserError(
        f"{folder} holds no index of GraphRAG.",
        "Give the folder with its entities and relationships (.parquet, .jsonl or .jsonl.gz).",
    )


def _inputs(settings: Mapping[str, Any]) -> str:
    return files_digest(_files(str(settings["path"])).values())


def _provided(settings: Mapping[str, Any]) -> frozenset[str]:
    files = _files(str(settings["path"]))
    communities = {"community": {"communities"}, "community.report": {"communities", "reports"}}
    return _ATTRIBUTES | {name for name, wanted in communities.items() if wanted <= files.keys()}


@register(
    "builder",
    "graphrag",
    provides=(*sorted(_ATTRIBUTES), "community", "community.report"),
    inputs=_inputs,
    attributes=_provided,
)
def build(chunks: ChunkTable, *, path: str) -> Built:
    """Read the index that GraphRAG wrote, with its communities, reports and claims (covariates) where it has them.

    A text unit is one of our chunks by its text, by its id (that of a document), or by overlap of text. A relationship
    with an end that is no entity is left out; what is left out is counted in the graph's facts. Levels are GraphRAG's own:
    0 is the coarsest.

    Args:
        chunks: the corpus.
        path: the folder of its tables: Parquet, of any version, or JSON lines.

    Raises:
        UserError: A table is missing or faulty, or no text unit is one of the chunks.
    """
    files = _files(path)
    rows = {table: read_rows(file, _COLUMNS) for table, file in files.items()}
    tally = Tally()
    texts = {identifier(row, "id"): row.text("text", default="") for row in rows.get("units", ())}
    units = TextUnits(chunks, texts)
    entities = Entities(rows["entities"], tally)
    within = [(node, chunk) for node, unit in entities.units for chunk in units.chunks(unit, entities.names[node])]
    stated: list[tuple[int, int]] = []
    columns: dict[str, list[Any]] = {name: [] for name in ("source", "target", "description", "weight")}
    for row in rows["relationships"]:
        ends = [entities.by_name.get(unquoted(row.text(end))) for end in ("source", "target")]
        if ends[0] is None or ends[1] is None:
            tally.add("relationships with an end that is no entity, left out")
            continue
        names = entities.names[ends[0]], entities.names[ends[1]]
        place = len(columns["source"])
        stated.extend((place, chunk) for unit in labels(row, *UNITS) for chunk in units.chunks(unit, *names))
        weight = number(row, "weight")
        values = (*ends, row.text("description", default="").strip(), 1.0 if weight is None else weight)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    units.check(files["entities"].parent, "text_units.parquet beside the other tables gives their texts.")
    count = len(columns["source"])
    graph = Graph(
        nodes=pa.table(
            {"name": entities.names, "type": entities.types, "description": entities.descriptions},
            schema=pa.schema([(name, pa.string()) for name in ("name", "type", "description")]),
        ),
        relationships=pa.table(
            {
                "source": pa.array(columns["source"], pa.int32()),
                "target": pa.array(columns["target"], pa.int32()),
                "kind": pa.array(["fact"] * count, pa.string()),
                "name": pa.array([""] * count, pa.string()),
                "weight": pa.array(columns["weight"], pa.float32()),
                "description": pa.array(columns["description"], pa.string()),
            }
        ),
        node_chunk=incidence_of(within, (len(entities.names), len(chunks))),
        relationship_chunk=incidence_of(stated, (count, len(chunks))),
        attributes=_ATTRIBUTES,
    )
    if "claims" in rows:
        graph = replace(graph, claims=read_claims(rows["claims"], entities, units, tally))
    if "communities" in rows:
        hierarchy, order = read_hierarchy(rows["communities"], rows.get("nodes", ()), entities, tally)
        reports = read_reports(rows["reports"], order, tally) if "reports" in rows else None
        graph = graph.with_communities(hierarchy, reports)
    return Built(graph, {"import": {"format": "graphrag", **units.account(), "counted": tally.counts}})
