"""Contexts of every kind: what an element looks like, what stands above it, what gives way, which documents it stands for.

A token is a word here. The graph: Ada -built-> Bridge, Bridge -spans-> Ulm, Ulm -in-> Norhaven, Ada -> Ada.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.generation.context import assemble, headings
from graphrag_bench.generation.shelf import Element, Shelf, path_line, triple
from graphrag_bench.graph.communities import Hierarchy, ReportRows
from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.pipeline.answering import retrieved_documents
from graphrag_bench.pipeline.method import Plan, Section
from graphrag_bench.pipeline.texts import Text, Texts
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Path, Subgraphs

CHUNKS = tuple(Chunk(n, f"text {n}", "", (f"d{n}",), 2) for n in range(4))
KINDS = (Nodes, Relationships, Subgraphs, Communities, Chunks, Texts)


def count(text):
    return len(text.split())


def entities(**columns):
    """Ada (0), Bridge (1), Ulm (2), Norhaven (3), found in chunks 0, 0 1, 1 2, 2; chunk 3 holds nothing."""
    nodes = pa.table({"name": ["Ada", "Bridge", "Ulm", "Norhaven"], **columns.get("nodes", {})})
    relationships = pa.table(
        {
            "source": pa.array([0, 1, 2, 0], pa.int32()),
            "target": pa.array([1, 2, 3, 0], pa.int32()),
            "kind": ["fact"] * 4,
            "name": ["built", "spans", "in", ""],
            "weight": pa.array([1.0] * 4, pa.float32()),
            **columns.get("relationships", {}),
        }
    )
    node_chunk = incidence(np.array([0, 1, 1, 2, 2, 3]), np.array([0, 0, 1, 1, 2, 2]), (4, 4))
    relationship_chunk = incidence(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 0]), (4, 4))
    return Graph(nodes, relationships, node_chunk, relationship_chunk, frozenset({"node.name", "relationship.name"}))


def tree(*, layer=True):
    """Passages 0 and 1 under summary 2; or the passages of a passage graph."""
    nodes = pa.table({"name": ["passage 0", "passage 1", "summary"], "text": ["text 0", "text 1", "Both say."]})
    attributes = {"node.text", *(["node.layer"] if layer else [])}
    links = pa.table({
        "source": pa.array([2, 2], pa.int32()), "target": pa.array([0, 1], pa.int32()), "kind": ["member"] * 2,
        "name": ["", ""], "weight": pa.array([1.0] * 2, pa.float32()),
    })  # fmt: skip
    own = incidence(np.arange(2), np.arange(2), (3, 4))
    return Graph(nodes, links, own, incidence(np.array([0]), np.array([3]), (2, 4)), frozenset(attributes))


def reported(graph):
    """A root (rated), below it a leaf without a report and one with."""
    hierarchy = Hierarchy(
        np.array([0, 1, 1], np.int32), np.array([-1, 0, 0], np.int32),
        incidence(np.array([0, 0, 0, 0, 1, 1, 2, 2]), np.array([0, 1, 2, 3, 0, 1, 2, 3]), (3, 4)),
    )  # fmt: skip
    rows = ReportRows()
    rows.add("All", "All of it.", "# All\nAll of it.", rating=3.0)
    rows.add(failed="timeout: 60 s")
    rows.add("River", "The river.", "# River\nThe river.")
    return graph.with_communities(hierarchy, rows.reports())


def one(kind, *ids):
    return kind.of_rows([(ids, range(len(ids), 0, -1))])


def section(name, kind, *, top_k=None, tokens=None, sources=None):
    return Section(name, sources or (name,), kind, top_k, tokens)


def shown(graph, values, *sections, room=10**6, cut=()):
    return assemble(sections, values, 0, Shelf(CHUNKS, graph), room, count, cut)


def text_of(graph, kind, value, **more):
    return shown(graph, {"x": value}, section("x", kind, **more)).text


# -- what an element looks like --


def test_entities_are_lines_with_what_is_known_of_them():
    assert text_of(entities(), Nodes, one(Nodes, 2, 0)) == "Entities:\n- Ulm\n- Ada"
    more = {"type": ["person", "", "river", None], "description": ["She builds.", "It spans.", "", None]}
    graph = entities(nodes=more)
    assert text_of(graph, Nodes, one(Nodes, 0, 1, 2, 3)) == (
        "Entities:\n- Ada (person): She builds.\n- Bridge: It spans.\n- Ulm (river)\n- Norhaven"
    )


def test_relationships_are_lines_with_their_ends():
    assert (
        text_of(entities(), Relationships, one(Relationships, 1, 3))
        == "Relationships:\n- Bridge -> spans -> Ulm\n- Ada -> Ada"
    )
    described = entities(relationships={"description": ["", "From bank to bank.", None, "She is."]})
    assert triple(described, 1) == "Bridge -> spans -> Ulm: From bank to bank."
    assert triple(described, 3) == "Ada -> Ada: She is."
    assert triple(described, 2) == "Ulm -> in -> Norhaven"


PATHS = {
    "forward": (Path((0, 1, 2), (0, 1), (FORWARD, FORWARD)), "Ada -> built -> Bridge -> spans -> Ulm"),
    "backward": (Path((2, 1, 0), (1, 0), (BACKWARD, BACKWARD)), "Ulm <- spans <- Bridge <- built <- Ada"),
    "mixed": (Path((1, 2, 1), (1, 1), (FORWARD, BACKWARD)), "Bridge -> spans -> Ulm <- spans <- Bridge"),
    "loop": (Path((0, 0, 1), (3, 0), (FORWARD, FORWARD)), "Ada -> Ada -> built -> Bridge"),
    "a node by itself": (Path((3,)), "Norhaven"),
    "nodes": (Path((3, 0)), "Norhaven; Ada"),
    "tree": (Path((1, 0, 2), (0, 1), (1, 1)), "Ada -> built -> Bridge; Bridge -> spans -> Ulm"),
    "circle": (Path((0, 1), (0, 3), (1, 1)), "Ada -> built -> Bridge; Ada -> Ada"),
    # a tree's directions are all 1 and say nothing; visited from its end it is a chain as well, and Ulm spans no bridge
    "tree that is a chain": (Path((2, 1), (1,), (1,)), "Ulm <- spans <- Bridge"),
    "longer tree that is a chain": (Path((2, 1, 0), (1, 0), (1, 1)), "Ulm <- spans <- Bridge <- built <- Ada"),
}


@pytest.mark.parametrize("kind", list(PATHS))
def test_paths_run_the_way_the_facts_do(kind):
    path, line = PATHS[kind]
    assert path_line(entities(), path) == line
    assert text_of(entities(), Subgraphs, Subgraphs([[path]])) == f"Paths:\n- {line}"


def test_a_fact_is_called_by_its_description_where_it_has_no_name_on_a_path():
    graph = entities(relationships={"name": [""] * 4, "description": ["She built it.", "It spans it.", "", ""]})
    assert path_line(graph, Path((0, 1, 2), (0, 1), (1, 1))) == "Ada -> She built it. -> Bridge -> It spans it. -> Ulm"


def test_communities_are_numbered_reports_and_one_without_a_report_shows_nothing():
    graph = reported(entities())
    context = shown(graph, {"x": one(Communities, 1, 2, 0)}, section("x", Communities))
    assert context.text == "Reports:\n[1] # River\nThe river.\n\n[2] # All\nAll of it."
    assert [item.layer for item in context.items] == [1, 2]  # layers count up from the entities
    assert (context.chunks, context.cut) == ((), 0)
    one_only = shown(graph, {"x": one(Communities, 1, 2, 0)}, section("x", Communities, top_k=1))
    assert one_only.text == "Reports:\n[1] # River\nThe river."  # what shows nothing takes no place among the top_k
    bare = Graph(
        graph.nodes, graph.relationships, graph.node_chunk, graph.relationship_chunk, graph.attributes, graph.hierarchy
    )
    assert text_of(bare, Communities, one(Communities, 0)) == ""


@pytest.mark.parametrize("layer", [True, False])
def test_nodes_of_trees_and_passage_graphs_are_passages(layer):
    context = shown(tree(layer=layer), {"x": one(Nodes, 2, 1)}, section("x", Nodes))
    assert context.text == "Passages:\n[1] Both say.\n\n[2] text 1"
    assert context.chunks == (1,)  # a summary is no chunk


def test_notes_are_lines_each_once():
    notes = Texts([(Text("Ada lived."), Text(" "), Text("Ulm flows.", 2), Text("Ada lived.", 0), Text(""))])
    assert text_of(None, Texts, notes) == "Notes:\n- Ada lived.\n- Ulm flows."
    assert text_of(None, Texts, notes, top_k=1) == "Notes:\n- Ada lived."


def test_nodes_cannot_be_shown_without_a_graph():
    with pytest.raises(ValueError, match="no graph"):
        text_of(None, Nodes, one(Nodes, 0))


def test_an_element_is_its_text_its_chunks_and_its_layer():
    shelf = Shelf(CHUNKS, reported(entities()))
    assert shelf.element(Chunks, 2) == Element("text 2", (2,))
    assert shelf.element(Nodes, 1) == Element("Bridge")
    assert shelf.element(Communities, 1) is None
    assert shelf.element(Texts, "a note") == Element("a note")


# -- headings and numbers --


VALUES = {
    "nodes": one(Nodes, 0), "relationships": one(Relationships, 0), "communities": one(Communities, 0, 2),
    "chunks": one(Chunks, 0, 1), "more": one(Chunks, 2), "notes": Texts([(Text("Note."),)]),
    "paths": Subgraphs([[Path((0, 1), (0,), (1,))]]),
}  # fmt: skip


def test_sections_stand_in_the_pages_order_under_their_headings_and_numbers_begin_anew_under_each():
    graph = reported(entities())
    context = shown(
        graph, VALUES, section("communities", Communities), section("nodes", Nodes), section("relationships", Relationships),
        section("chunks", Chunks), section("notes", Texts), section("more", Chunks),
    )  # fmt: skip
    assert context.text == (
        "Reports:\n[1] # All\nAll of it.\n\n[2] # River\nThe river.\n\nEntities:\n- Ada\n\nRelationships:\n"
        "- Ada -> built -> Bridge\n\nPassages:\n[1] text 0\n\n[2] text 1\n\nNotes:\n- Note.\n\nPassages:\n[1] text 2"
    )
    assert [item.section for item in context.items] == [
        "communities", "communities", "nodes", "relationships", "chunks", "chunks", "notes", "more",
    ]  # fmt: skip


def test_sections_of_one_heading_go_on_below_each_other():
    assert shown(entities(), VALUES, section("chunks", Chunks), section("more", Chunks)).text == (
        "Passages:\n[1] text 0\n\n[2] text 1\n\n[3] text 2"
    )
    values = {"a": one(Nodes, 0), "b": one(Nodes, 3)}
    assert shown(entities(), values, section("a", Nodes), section("b", Nodes)).text == "Entities:\n- Ada\n- Norhaven"
    mixed = {"nodes": one(Nodes, 2), "chunks": one(Chunks, 0)}  # a tree's nodes are passages like the chunks
    assert (
        shown(tree(), mixed, section("nodes", Nodes), section("chunks", Chunks)).text
        == "Passages:\n[1] Both say.\n\n[2] text 0"
    )


def test_an_empty_section_has_no_heading_and_parts_nothing():
    values = {**VALUES, "empty": Nodes.empty(1)}
    context = shown(entities(), values, section("chunks", Chunks), section("empty", Nodes), section("more", Chunks))
    assert context.text == "Passages:\n[1] text 0\n\n[2] text 1\n\n[3] text 2"
    assert shown(entities(), values, section("empty", Nodes), section("more", Chunks)).text == "Passages:\n[1] text 2"


def test_the_headings_whose_room_is_kept():
    shelf = Shelf(CHUNKS, entities())
    sections = [
        section(n, k) for n, k in (("a", Chunks), ("b", Chunks), ("c", Nodes), ("d", Communities), ("e", Chunks))
    ]
    assert headings(sections, shelf) == ["Passages:\n", "", "Entities:\n", "Reports:\n", "Passages:\n"]
    assert [Shelf(CHUNKS, tree()).heading(kind) for kind in KINDS] == [
        "Passages", "Relationships", "Paths", "Reports", "Passages", "Notes",
    ]  # fmt: skip
    assert shelf.heading(Nodes) == "Entities"


# -- what gives way --


LONG = tuple(Chunk(n, " ".join([f"w{n}"] * 40), "", (f"d{n}",), 40) for n in range(4))


def kept(cut, room, **tokens):
    """How many words of sections a (chunk 0), b (chunk 1) and c (chunk 2) are shown."""
    sections = [section(name, Chunks, tokens=tokens.get(name)) for name in "abc"]
    values = {name: one(Chunks, n) for n, name in enumerate("abc")}
    context = assemble(sections, values, 0, Shelf(LONG), room, count, cut)
    return [sum(item.text.split().count(f"w{n}") for item in context.items) for n in range(3)], context.cut


def test_what_gives_way_last_is_filled_first():
    assert kept((), 82) == ([40, 40, 0], 1)  # by default the last section gives way first
    assert kept(("c", "b", "a"), 82) == ([40, 40, 0], 1)
    assert kept(("a", "b", "c"), 82) == ([0, 40, 40], 1)
    assert kept(("b", "a", "c"), 82) == ([40, 0, 40], 1)
    assert kept(("a", "c", "b"), 41) == ([0, 40, 0], 2)
    assert kept(("a", "b", "c"), 123) == ([40, 40, 40], 0)
    assert kept(("a", "b", "c"), 41 + 40) == ([0, 39, 40], 2)  # one is left out, one shortened; both are said
    assert kept(("a", "b", "c"), 41 + 31) == ([0, 0, 40], 2)  # a rest below 32 tokens is not worth an element


def test_sections_keep_to_their_own_tokens_whatever_the_order():
    assert kept(("a", "b", "c"), 200, c=41, b=10) == ([40, 0, 40], 1)
    assert kept(("c", "b", "a"), 200, a=35) == ([34, 40, 40], 1)
    assert kept((), 70, a=35) == ([34, 34, 0], 3)  # what a leaves of the room is b's


def test_sections_stand_in_the_pages_order_whatever_gives_way():
    values = {name: one(Chunks, n) for n, name in enumerate("abc")}
    context = assemble([section(name, Chunks) for name in "abc"], values, 0, Shelf(LONG), 82, count, ("b", "a", "c"))
    assert context.chunks == (0, 2)
    assert context.text.index("w0") < context.text.index("w2")


@given(
    st.permutations(["communities", "nodes", "relationships", "chunks", "notes"]), st.integers(0, 80),
    st.dictionaries(st.sampled_from(["communities", "nodes", "chunks"]), st.integers(1, 50)),
)  # fmt: skip
def test_the_room_is_kept_in_every_order_and_what_is_cut_is_said(cut, room, tokens):
    kinds = {
        "communities": Communities,
        "nodes": Nodes,
        "relationships": Relationships,
        "chunks": Chunks,
        "notes": Texts,
    }
    sections = [section(name, kind, tokens=tokens.get(name)) for name, kind in kinds.items()]
    graph = reported(entities())
    values = {**VALUES, "chunks": one(Chunks, 0, 1, 2, 3)}
    context = assemble(sections, values, 0, Shelf(LONG, graph), room, count, cut)
    # headings apart: their room is taken off before
    titles = sum(
        context.text.count(f"{title}:\n") for title in ("Reports", "Entities", "Relationships", "Passages", "Notes")
    )
    assert count(context.text) - titles <= room
    whole = assemble(sections, values, 0, Shelf(LONG, graph), 10**6, count, cut)
    untouched = sum(item in whole.items for item in context.items)
    if not tokens:
        assert context.cut == len(whole.items) - untouched
    assert [item.section for item in context.items] == sorted((i.section for i in context.items), key=list(kinds).index)


# -- which documents count as retrieved --


def documents(graph, values, *sections, depth=20):
    plan = Plan("X", (), (), sections, tuple(s.name for s in reversed(sections)), None)
    return retrieved_documents(plan, values, 0, Shelf(CHUNKS, graph), depth)


def test_relationships_and_paths_stand_for_the_chunks_they_were_found_in():
    graph = entities()
    values = {"r": one(Relationships, 2, 0), "p": Subgraphs([[Path((2, 1, 0), (1, 0), (-1, -1))]])}
    assert documents(graph, values, section("r", Relationships)) == ("d2", "d0")
    assert documents(graph, values, section("p", Subgraphs)) == ("d1", "d0")
    assert documents(graph, values, section("p", Subgraphs), section("r", Relationships)) == ("d1", "d0", "d2")
    assert documents(graph, values, section("r", Relationships), depth=1) == ("d2",)
    assert documents(graph, {"p": Subgraphs([[Path((3,))]])}, section("p", Subgraphs)) == ()


def test_entities_stand_for_their_chunks_after_what_relationships_say():
    graph = entities()
    values = {"n": one(Nodes, 3, 1), "r": one(Relationships, 0)}
    assert documents(graph, values, section("n", Nodes)) == ("d2", "d0", "d1")
    assert documents(graph, values, section("n", Nodes), section("r", Relationships)) == ("d0", "d2", "d1")


def test_where_there_are_passages_they_alone_count():
    graph = reported(entities())
    values = {"n": one(Nodes, 3), "r": one(Relationships, 1), "c": one(Chunks, 3, 0), "x": one(Communities, 0)}
    everything = (section("x", Communities), section("n", Nodes), section("r", Relationships), section("c", Chunks))
    assert documents(graph, values, *everything) == ("d3", "d0")
    assert documents(graph, {**values, "c": Chunks.empty(1)}, *everything) == ()
    assert documents(graph, values, section("c", Chunks, top_k=1)) == ("d3", "d0")  # recall reads beyond what is shown


def test_reports_and_notes_stand_for_no_passage():
    graph = reported(entities())
    values = {"x": one(Communities, 0), "t": Texts([(Text("a", 0),)])}
    assert documents(graph, values, section("x", Communities)) is None
    assert documents(graph, values, section("x", Communities), section("t", Texts)) is None


@pytest.mark.parametrize("layer", [True, False])
def test_of_trees_and_passage_graphs_passages_count_and_summaries_do_not(layer):
    graph = tree(layer=layer)
    values = {"n": one(Nodes, 2, 1, 0), "r": one(Relationships, 0)}
    assert documents(graph, values, section("n", Nodes)) == ("d1", "d0")
    assert documents(graph, values, section("n", Nodes), section("r", Relationships)) == ("d1", "d0")
    assert (
        documents(graph, {"n": one(Nodes, 2)}, section("n", Nodes)) == ()
    )  # passages were looked for, and none was found


def test_parts_of_values_are_shown_by_their_names():
    """The context may name `walk.nodes`: it is looked up like any wire."""
    graph = entities()
    walk = Subgraphs([[Path((0, 1), (0,), (1,), 2.0), Path((2, 3), (2,), (1,), 1.0)]])
    nodes = Section("n", ("walk.nodes",), Nodes, None, None)
    plan = Plan("X", (), (), (nodes,), ("n",), None)
    assert retrieved_documents(plan, {"walk": walk}, 0, Shelf(CHUNKS, graph), 20) == ("d0", "d1", "d2")
