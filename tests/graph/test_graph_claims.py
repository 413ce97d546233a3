"""Claims in a graph: from an extraction to a table, to a saved graph, and to the lines of a report."""

import asyncio

import pyarrow as pa
import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.graph.builders import rkg, tkg
from graphrag_bench.graph.claims import CLAIM_SCHEMA, ClaimRecord, Claims, claim_lines, claim_of
from graphrag_bench.graph.extraction import EntityRecord, RelationRecord, RichExtraction
from graphrag_bench.graph.graph import Graph

C = ClaimRecord
ENTITIES = tuple(EntityRecord(name, "person", f"{name} is known.") for name in ("Ada Brown", "Bob", "Cy"))
RELATIONS = (RelationRecord("Ada Brown", "Bob", "", "They met.", ("meeting",)),)


def built(*claims, kind=tkg, **options):
    """Build the graph of the same records in each chunk, with a row of claims a chunk."""
    extraction = RichExtraction((ENTITIES,) * len(claims), (RELATIONS,) * len(claims), claims=tuple(claims))
    chunks = tuple(Chunk(n, "text", "", (f"d{n}",), 1) for n in range(len(claims)))
    return asyncio.run(kind.build(chunks, extraction, HashingEmbedder(), None, merge="cut", **options))


@pytest.mark.parametrize("kind", [tkg, rkg])
def test_a_claim_hangs_on_the_node_it_is_made_about_and_names_another_where_that_is_one(kind):
    first = (
        C("ada brown.", "BOB", "theft", "false", "1911", "", "She stole it."),
        C("Nobody", "", "x", "true", "", "", "No."),
    )
    second = (C("Bob", "the town", "gift", "true", "", "", "He gave.", "he gave"), C("Ada Brown", "Bob", "Theft", "false", "", "",
                                                                                    "she stole it"))  # fmt: skip
    made = built(first, second, kind=kind)
    rows = made.graph.claims.to_pylist()
    assert [(row["subject"], row["object"], row["chunk"], row["type"]) for row in rows] == [
        (0, 1, 0, "theft"),
        (1, -1, 1, "gift"),
    ]
    assert (rows[0]["status"], rows[0]["start"], rows[1]["source"]) == ("false", "1911", "he gave")
    assert made.facts["claims_without_subject"] == 1
    assert made.graph.statistics()["claims"] == 2


def test_claims_are_saved_and_opened_with_the_graph(tmp_path):
    graph = built((C("Bob", "", "gift", "true", "", "", "He gave."),)).graph
    graph.save(tmp_path)
    assert Graph.open(tmp_path).claims.equals(graph.claims) and graph.claims.schema.equals(CLAIM_SCHEMA)


def test_a_graph_for_which_none_were_looked_for_has_no_table(tmp_path):
    graph = built().graph
    assert graph.claims is None and "claims" not in graph.statistics()
    graph.save(tmp_path)
    assert Graph.open(tmp_path).claims is None


def test_claims_follow_a_name_that_is_read_as_another():
    extraction = RichExtraction(
        ((EntityRecord("Ebenezer Scrooge", "person", "A miser."), EntityRecord("Marley", "person", "His partner.")),
         (EntityRecord("Ebenezer Scrooge", "person", "A miser."), EntityRecord("Scrooge", "person", "An old man."))),
        ((), ()), claims=((), (C("Scrooge", "", "greed", "true", "", "", "He is greedy."),)),
    )  # fmt: skip
    chunks = tuple(Chunk(n, "text", "", (f"d{n}",), 1) for n in range(2))
    made = asyncio.run(
        tkg.build(chunks, extraction, HashingEmbedder(), None, merge="cut", match="soft", match_cosine=0.4)
    )
    assert made.graph.nodes["name"].to_pylist() == ["Ebenezer Scrooge", "Marley"]
    assert made.graph.nodes["description"].to_pylist() == ["A miser. An old man.", "His partner."]
    assert made.graph.claims["subject"].to_pylist() == [0]
    assert made.facts["names_read_as_another"] == 1


def test_what_stands_for_nothing_is_empty():
    assert claim_of({"subject": " A  B ", "object": "NONE", "status": "TRUE", "end": None}) == C("A B", "", "", "true")


def test_a_line_says_whom_it_is_about_and_what_is_known_of_it():
    claims = Claims()
    claims.add(C("a", "b", "Theft", "suspected", "1911", "1912", "It went."), 0, 1, 0)
    claims.add(C("a", "", "", "", "1911", "1911", "It came."), 0, None, 0)
    claims.add(C("b", "", "", "", "", "", "Bare."), 1, None)
    assert claim_lines(claims.table(), ["A", "B"]) == {
        0: ["Claim on A and B (theft, suspected, from 1911 to 1912): It went.", "Claim on A (1911): It came."],
        1: ["Claim on B: Bare."],
    }
    assert claim_lines(None, ["A"]) == {} and Claims().table().equals(
        pa.table({n: [] for n in CLAIM_SCHEMA.names}, CLAIM_SCHEMA)
    )
