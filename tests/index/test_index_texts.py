"""What of nodes, relationships and communities is embedded, by what the graph carries and what the page asks for."""

import numpy as np
import pyarrow as pa
import pytest

from graphrag_bench.graph.communities import Hierarchy, ReportRows
from graphrag_bench.graph.graph import Graph, incidence
from graphrag_bench.index.texts import community_texts, node_texts, relationship_texts


def graph(nodes=None, relationships=None, attributes=()):
    names = ["Ada", "Ulm", "Köln"]
    return Graph(
        pa.table({"name": names, **(nodes or {})}),
        pa.table({
            "source": pa.array([0, 2], pa.int32()), "target": pa.array([1, 2], pa.int32()), "kind": ["fact"] * 2,
            "weight": pa.array([1.0] * 2, pa.float32()), **({"name": ["lived in", ""]} | (relationships or {})),
        }),
        incidence(np.empty(0), np.empty(0), (3, 1)), incidence(np.empty(0), np.empty(0), (2, 1)), frozenset(attributes),
    )  # fmt: skip


DESCRIBED = {"description": ["She builds.", None, ""]}


@pytest.mark.parametrize(("how", "texts"), [
    ("auto", ["Ada: She builds.", "Ulm", "Köln"]),
    ("name", ["Ada", "Ulm", "Köln"]),
    ("description", ["She builds.", "Ulm", "Köln"]),
    ("name+description", ["Ada: She builds.", "Ulm", "Köln"]),
])  # fmt: skip
def test_texts_of_described_nodes(how, texts):
    assert node_texts(graph(DESCRIBED, attributes={"node.name", "node.description"}), how) == texts


@pytest.mark.parametrize("how", ["auto", "name", "description", "name+description"])
def test_nodes_without_descriptions_are_their_names(how):
    assert node_texts(graph(attributes={"node.name"}), how) == ["Ada", "Ulm", "Köln"]


@pytest.mark.parametrize("how", ["auto", "name", "description", "name+description"])
@pytest.mark.parametrize("attributes", [{"node.text"}, {"node.text", "node.layer"}])
def test_nodes_of_passage_graphs_and_trees_are_their_texts_however_asked(how, attributes):
    assert node_texts(graph({"text": ["a", "b", "c"]}, attributes=attributes), how) == ["a", "b", "c"]


@pytest.mark.parametrize(("how", "texts"), [
    ("auto", ["life, town\nAda lived in Ulm: For years.", "Köln Köln: It is."]),
    ("triple", ["Ada lived in Ulm: For years.", "Köln Köln: It is."]),
    ("name", ["lived in", "It is."]),
    ("description", ["For years.", "It is."]),
])  # fmt: skip
def test_texts_of_relationships(how, texts):
    found = graph(relationships={"description": ["For years.", "It is."], "keywords": ["life, town", None]})
    assert relationship_texts(found, how) == texts


def test_relationships_with_names_alone():
    assert (
        relationship_texts(graph(), "auto")
        == relationship_texts(graph(), "triple")
        == ["Ada lived in Ulm", "Köln Köln"]
    )
    assert relationship_texts(graph(), "name") == relationship_texts(graph(), "description") == ["lived in", ""]


def reported():
    rows = ReportRows()
    rows.add("Town", "On the river.", "# Town\nOn the river.", rating=2.0)
    rows.add("Bridge", "", "# Bridge")
    rows.add("", "No title.", "")
    rows.add(failed="timeout: 60 s")
    members = incidence(np.zeros(4), np.zeros(4), (4, 3))
    hierarchy = Hierarchy(np.zeros(4, np.int32), np.full(4, -1, np.int32), members)
    return graph().with_communities(hierarchy, rows.reports())


def test_texts_of_communities_are_empty_where_there_is_no_report():
    assert community_texts(reported(), "summary") == ["Town: On the river.", "Bridge", "No title.", ""]
    assert community_texts(reported(), "report") == ["# Town\nOn the river.", "# Bridge", "", ""]


def test_communities_without_reports_have_no_texts():
    bare = graph().with_communities(reported().communities, None)
    for found in (bare, graph()):
        with pytest.raises(ValueError, match="no reports"):
            community_texts(found, "summary")
