"""The hierarchy of communities and their reports: levels, covers, counts, files."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.graph.communities import REPORT_SCHEMA, Hierarchy, ReportRows, Reports
from graphrag_bench.graph.graph import Graph, incidence

#          0 {a b c d e}      1 {f g}        level 0; h is in none
#         /        \
#     2 {a b c}   3 {d e}                   level 1
#      /    \
#  4 {a}   5 {b c}                          level 2
MEMBERS = {0: "abcde", 1: "fg", 2: "abc", 3: "de", 4: "a", 5: "bc"}
LEVEL, PARENT = [0, 0, 1, 1, 2, 2], [-1, -1, 0, 0, 2, 2]


def hierarchy_of(level, parent, members, nodes):
    rows = [(number, node) for number, held in enumerate(members) for node in held]
    at = np.array(rows, np.int64).reshape(-1, 2)
    return Hierarchy(
        np.array(level, np.int32), np.array(parent, np.int32), incidence(at[:, 0], at[:, 1], (len(level), nodes))
    )


@pytest.fixture
def hierarchy():
    return hierarchy_of(LEVEL, PARENT, [["abcdefgh".index(node) for node in MEMBERS[n]] for n in range(6)], 8)


def graph():
    return Graph(
        pa.table({"name": list("abcdefgh")}),
        pa.table({
            "source": pa.array([0], pa.int32()), "target": pa.array([1], pa.int32()), "kind": ["fact"], "name": ["r"],
            "weight": pa.array([1.0], pa.float32()),
        }),
        incidence(np.array([0]), np.array([0]), (8, 1)), incidence(np.array([0]), np.array([0]), (1, 1)),
        frozenset({"node.name"}),
    )  # fmt: skip


def reports(*said):
    rows = ReportRows()
    for one in said:
        rows.add(**one)
    return rows.reports()


def test_levels_children_leaves_and_members(hierarchy):
    assert len(hierarchy) == 6
    assert [hierarchy.at(level).tolist() for level in range(4)] == [[0, 1], [1, 2, 3], [1, 3, 4, 5], [1, 3, 4, 5]]
    assert [hierarchy.children(number).tolist() for number in range(6)] == [[2, 3], [], [4, 5], [], [], []]
    assert hierarchy.is_leaf.tolist() == [False, True, False, True, True, True]
    assert "".join("abcdefgh"[n] for n in hierarchy.nodes(2)) == "abc"
    assert hierarchy.nodes(1).dtype == np.int64


def test_statistics(hierarchy):
    assert hierarchy.statistics() == {
        "communities": 6, "by_level": {"0": 2, "1": 2, "2": 2}, "largest": 5, "median_size": 2.0, "nodes_without_community": 1,
    }  # fmt: skip


def test_no_communities_at_all(tmp_path):
    none = hierarchy_of([], [], [], 3)
    assert none.statistics() == {
        "communities": 0, "by_level": {}, "largest": 0, "median_size": 0.0, "nodes_without_community": 3,
    }  # fmt: skip
    assert (len(none.is_leaf), none.at(0).tolist(), none.children(0).tolist()) == (0, [], [])
    none.save(tmp_path)
    assert Hierarchy.open(tmp_path).statistics() == none.statistics()
    assert reports().statistics()["parse_rate"] == 1.0


@st.composite
def forests(draw):
    """Hierarchies made by division: every community's nodes are parted among its children."""
    nodes = draw(st.integers(1, 12))
    level, parent, members = [], [], []
    todo = [(list(range(nodes)), -1, 0)]
    while todo:
        held, above, depth = todo.pop(0)
        parts: list[list[int]] = [[] for _ in range(draw(st.integers(1, 3)))]
        for node in held:
            parts[draw(st.integers(0, len(parts) - 1))].append(node)
        for part in filter(None, parts):
            number = len(level)
            level.append(depth)
            parent.append(above)
            members.append(part)
            if len(part) > 1 and depth < 3 and draw(st.booleans()):
                todo.append((part, number, depth + 1))
    return hierarchy_of(level, parent, members, nodes)


@given(forests())
def test_every_level_covers_every_node_once(hierarchy):
    for level in range(int(hierarchy.level.max()) + 2):
        cover = hierarchy.at(level)
        assert np.asarray(hierarchy.members[cover].sum(axis=0)).ravel().tolist() == [1.0] * hierarchy.members.shape[1]
    for number in range(len(hierarchy)):
        below = hierarchy.children(number)
        assert hierarchy.is_leaf[number] == (len(below) == 0)
        assert (hierarchy.level[below] == hierarchy.level[number] + 1).all()
        if len(below):
            assert sorted(np.concatenate([hierarchy.nodes(c) for c in below])) == hierarchy.nodes(number).tolist()
    assert sum(hierarchy.statistics()["by_level"].values()) == len(hierarchy)
    assert hierarchy.statistics()["nodes_without_community"] == 0


def test_a_saved_hierarchy_is_the_same_and_its_bytes_as_well(hierarchy, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        hierarchy.save(tmp_path / name)
    assert (tmp_path / "one/hierarchy.npz").read_bytes() == (tmp_path / "two/hierarchy.npz").read_bytes()
    opened = Hierarchy.open(tmp_path / "one")
    assert (opened.level.tolist(), opened.parent.tolist()) == (LEVEL, PARENT)
    assert (opened.members.toarray() == hierarchy.members.toarray()).all()
    assert (opened.at(1).tolist(), opened.children(2).tolist()) == ([1, 2, 3], [4, 5])


SAID = (
    {"title": "Tøwn", "summary": "s", "text": "# Tøwn\ns", "rating": 7.5, "rating_reason": "many facts"},
    {"failed": "timeout: 60 s"},
    {"title": "No rating", "text": "t"},
    {"failed": "schema: no title"},
    {"failed": "timeout: 61 s"},
)


def test_reports_are_counted_by_what_became_of_them():
    made = reports(*SAID)
    assert len(made) == 5
    np.testing.assert_array_equal(made.ratings, [7.5, np.nan, np.nan, np.nan, np.nan])
    assert made.failed == {1: "timeout: 60 s", 3: "schema: no title", 4: "timeout: 61 s"}
    assert made.statistics() == {
        "reports": 5, "failed": {"timeout": 2, "schema": 1}, "without_rating": 1, "cut": 0, "parse_rate": 0.4,
    }  # fmt: skip
    rows = ReportRows()
    rows.add("a")
    assert rows.reports(cut=1).statistics()["cut"] == 1


def test_saved_reports_are_the_same(tmp_path):
    made = reports(*SAID)
    made.save(tmp_path)
    opened = Reports.open(tmp_path)
    assert opened.table.schema.equals(REPORT_SCHEMA)
    assert opened.table.to_pylist() == made.table.to_pylist()
    assert opened.failed == made.failed
    # a table of another width of numbers is written as the schema has it
    (tmp_path / "more").mkdir()
    narrow = made.table.set_column(3, "rating", pa.array([1.0, None, None, None, None], pa.float32()))
    Reports(narrow).save(tmp_path / "more")
    assert Reports.open(tmp_path / "more").table.schema.equals(REPORT_SCHEMA)


def test_a_graph_with_communities_says_so_and_is_saved_with_them(hierarchy, tmp_path):
    plain = graph()
    assert plain.n_communities == 0
    with pytest.raises(ValueError, match="no communities"):
        _ = plain.communities
    bare = plain.with_communities(hierarchy, None)
    assert bare.attributes == {"node.name", "community"}
    whole = bare.with_communities(hierarchy, reports(*SAID, {"title": "t"}))
    assert whole.attributes == {"node.name", "community", "community.report"}
    assert plain.attributes == {"node.name"}
    for number, made in enumerate((plain, bare, whole)):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.save(folder)
        opened = Graph.open(folder)
        assert opened.attributes == made.attributes
        assert opened.n_communities == made.n_communities
        assert opened.statistics() == made.statistics()
        assert (opened.reports is None) == (made.reports is None)
    assert opened.reports.table.to_pylist() == whole.reports.table.to_pylist()
    assert opened.communities.nodes(5).tolist() == [1, 2]


def test_looking_for_communities_again_drops_the_reports_on_the_old_ones(hierarchy):
    whole = graph().with_communities(hierarchy, reports(*SAID, {"title": "t"}))
    again = whole.with_communities(hierarchy_of([0], [-1], [[0, 1]], 8), None)
    assert again.reports is None
    assert "community.report" not in again.attributes
