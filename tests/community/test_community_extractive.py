"""Reports without a model, by hand."""

import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.community.reporters.extractive import extractive
from graphrag_bench.community.sentences import Sentences
from graphrag_bench.errors import UserError


def chunk(number, text, title=""):
    return Chunk(number, text, title, (str(number),), len(text.split()))


@pytest.fixture
def mill(small):
    """Within {0, 1, 2, 3}: Mill weighs 6, Ada 4, Bob 3, Dog 1; {4, 5} weighs 2."""
    graph = small.graph_of(
        6,
        [
            (1, 0, 4.0, "built"),
            (2, 0, 2.0, "runs"),
            (2, 3, 1.0, "owns"),
            (3, 4, 50.0, "saw"),
            (4, 5, 2.0, "joins"),
            (0, 3, 1.0, "synonym of", "", "synonym"),
        ],
        names=["Mill", "Ada", "Bob", "Dog", "Sea", "Bay"],
        node_chunk=[(0, 0), (1, 0), (0, 1), (2, 1), (3, 1), (4, 2), (5, 2)],
        chunks=3,
    )
    return graph.with_communities(small.hierarchy_of(6, (0, -1, [0, 1, 2, 3]), (0, -1, [4, 5])), None)


CHUNKS = (
    chunk(0, "Mill\nAda built the mill. She was rich! The millers came.", "Mill"),
    chunk(1, "A dog barked. Bob ran the MILL with Ada and his dog. Rain fell."),
    chunk(2, "The Bay is part of the sea."),
)


def test_the_lines_of_the_graph_best_connected_first(mill):
    rows = extractive(mill).table.to_pylist()
    assert rows[0] == {
        "title": "Mill, Ada, Bob",
        "summary": "Ada — built → Mill; Bob — runs → Mill",
        "text": "# Mill, Ada, Bob\n\nEntities: Mill; Ada; Bob; Dog.\n\n"
        "Ada — built → Mill\nBob — runs → Mill\nBob — owns → Dog",
        "rating": 10.0,
        "rating_reason": "The facts within weigh 7; the rating is their share of the most at this level, out of 10.",
        "failed": None,
    }
    assert (rows[1]["title"], rows[1]["rating"]) == ("Sea, Bay", 2.86)


def test_the_sentences_of_chunks_that_name_most_members(mill):
    rows = extractive(mill, CHUNKS, sentences="chunks").table.to_pylist()
    assert rows[0]["text"] == (
        "# Mill, Ada, Bob\n\nEntities: Mill; Ada; Bob; Dog.\n\n"
        "Bob ran the MILL with Ada and his dog.\nAda built the mill.\nA dog barked."
    )
    assert rows[0]["summary"] == "Bob ran the MILL with Ada and his dog. Ada built the mill."
    assert rows[1]["summary"] == "The Bay is part of the sea."


def test_whole_sentences_up_to_the_room(mill):
    wide = extractive(mill, CHUNKS, sentences="chunks", report_tokens=40).table.to_pylist()[0]["text"]
    narrow = extractive(mill, CHUNKS, sentences="chunks", report_tokens=30).table.to_pylist()[0]["text"]
    assert wide.startswith(narrow) and len(narrow) < len(wide)
    assert narrow.endswith(".")


def test_few_members_are_named_and_looked_for(mill):
    row = extractive(mill, CHUNKS, sentences="chunks", members=1).table.to_pylist()[0]
    assert row["text"] == ("# Mill\n\nEntities: Mill.\n\nAda built the mill.\nBob ran the MILL with Ada and his dog.")


def test_descriptions_stand_before_the_facts(small):
    graph = small.graph_of(2, [(0, 1, 1.0, "", "A owns B.")], names=["A", "B"], descriptions=["A firm.", ""])
    rows = extractive(graph.with_communities(small.hierarchy_of(2, (0, -1, [0, 1])), None)).table.to_pylist()
    assert rows[0]["text"] == "# A, B\n\nEntities: A; B.\n\nA: A firm.\nA → B: A owns B."


def test_a_community_that_no_fact_joins_has_a_rating_of_nothing(small):
    graph = small.graph_of(2, [(0, 1, 1.0, "s", "", "synonym")])
    row = extractive(graph.with_communities(small.hierarchy_of(2, (0, -1, [0, 1])), None)).table.to_pylist()[0]
    assert (row["rating"], row["summary"]) == (0.0, "n0; n1")


def test_sentences_of_chunks_need_chunks(mill):
    with pytest.raises(UserError, match="need the chunks"):
        extractive(mill, sentences="chunks")


def test_sentences_end_where_they_end_and_repeats_count_once():
    found = Sentences((chunk(0, 'He said "Go." Then he left.\nA mill。磨坊很旧。旧磨坊'), chunk(1, "Then he left.")))
    assert [text for text, _ in found.of(0)] == ['He said "Go.', "Then he left.", "A mill。", "磨坊很旧。", "旧磨坊"]
    assert found.mentioning(["he left", "Mill"], [1, 0]) == ["Then he left.", "A mill。"]
