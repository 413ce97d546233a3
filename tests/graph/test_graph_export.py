"""Export read back by other programs' readers, and by our own importer."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.errors import UserError
from graphrag_bench.graph.claims import CLAIM_SCHEMA
from graphrag_bench.graph.communities import Hierarchy, ReportRows
from graphrag_bench.graph.exporters import FORMATS, export
from graphrag_bench.graph.graph import KINDS, Graph, incidence
from graphrag_bench.registry import REGISTRY

NASTY = "a \"b\", c; <d> & 'e'\nf\r\ng\th\\ 日本 𝄞 é"
CHUNKS = (
    Chunk(0, NASTY, "T, 1", ("p1", "p;2"), 5),
    Chunk(1, "two", "", ("p3",), 1),
    Chunk(2, "three", "", (), 0),
)


def matrix(rows, columns, pairs):
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return incidence(array[:, 0], array[:, 1], (rows, columns))


def sample(communities=True):
    graph = Graph(
        pa.table({"name": [NASTY, "B", ""], "type": ["X", None, ""], "layer": pa.array([0, 1, None], pa.int32())}),
        pa.table(
            {
                "source": pa.array([0, 0, 1, 2], pa.int32()), "target": pa.array([1, 1, 0, 2], pa.int32()),
                "kind": ["fact", "synonym", "fact", "is_a"], "name": ["r", "r", NASTY, ""],
                "weight": pa.array([1.5, 0.25, 3, 1e-7], pa.float32()), "description": [None, "", "d", NASTY],
            }
        ),
        matrix(3, 3, [(0, 0), (0, 1), (1, 0)]),
        matrix(4, 3, [(0, 0), (2, 1), (2, 0)]),
        frozenset({"node.name", "node.type", "relationship.weight"}),
    )  # fmt: skip
    if not communities:
        return graph
    level, parent = np.array([0, 1], np.int32), np.array([-1, 0], np.int32)
    reports = ReportRows()
    reports.add("Title", NASTY, NASTY, rating=7.25, rating_reason="so")
    reports.add(failed="refused: no")
    return graph.with_communities(Hierarchy(level, parent, matrix(2, 3, [(0, 0), (0, 1), (1, 1)])), reports.reports())


def same(one, other):
    assert one.nodes.equals(other.nodes) and one.relationships.equals(other.relationships)
    assert one.attributes == other.attributes
    for name in ("node_chunk", "relationship_chunk"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.shape == b.shape and (a != b).nnz == 0 and a.dtype == b.dtype
    assert (one.hierarchy is None) == (other.hierarchy is None) and (one.reports is None) == (other.reports is None)
    if one.hierarchy is not None:
        assert one.hierarchy.level.tolist() == other.hierarchy.level.tolist()
        assert one.hierarchy.parent.tolist() == other.hierarchy.parent.tolist()
        assert (one.hierarchy.members != other.hierarchy.members).nnz == 0
    if one.reports is not None:
        assert one.reports.table.equals(other.reports.table)


def imported(folder, chunks=CHUNKS):
    return REGISTRY.get("builder", "imported").call(chunks, path=str(folder))


def test_networkx_reads_the_graphml(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = sample()
    (path,) = export(graph, CHUNKS, tmp_path / "out", "graphml")
    read = nx.read_graphml(path, force_multigraph=True)
    assert read.is_directed() and read.is_multigraph()
    assert list(read.nodes) == ["n0", "n1", "n2"] and read.number_of_edges() == 4
    assert read.nodes["n0"] == {"name": NASTY, "type": "X", "layer": 0, "chunks": "0 1", "communities": "0"}
    assert read.nodes["n1"] == {"name": "B", "layer": 1, "chunks": "0", "communities": "0 1"}
    assert read.nodes["n2"] == {}
    assert set(read["n0"]["n1"]) == {"r0", "r1"}
    assert read["n1"]["n0"]["r2"] == {"kind": "fact", "name": NASTY, "weight": 3.0, "description": "d", "chunks": "0 1"}
    assert read["n2"]["n2"]["r3"]["weight"] == np.float32(1e-7)


def test_igraph_reads_the_graphml(tmp_path):
    igraph = pytest.importorskip("igraph")
    (path,) = export(sample(), CHUNKS, tmp_path, "graphml")
    read = igraph.Graph.Read_GraphML(str(path))
    assert read.is_directed() and read.get_edgelist() == [(0, 1), (0, 1), (1, 0), (2, 2)]
    assert read.vs["name"] == [NASTY, "B", ""]
    assert read.es["weight"][:3] == [1.5, 0.25, 3.0] and read.es["kind"] == ["fact", "synonym", "fact", "is_a"]


def test_what_xml_cannot_hold_is_replaced(tmp_path):
    nx = pytest.importorskip("networkx")
    graph = sample(False)
    names = pa.array(["a\x00b\x1fc\ufffed", "B", "C"])
    graph = replace(graph, nodes=graph.nodes.set_column(0, "name", names))
    (path,) = export(graph, CHUNKS, tmp_path, "graphml")
    assert nx.read_graphml(path).nodes["n0"]["name"] == "a\ufffdb\ufffdc\ufffdd"


def test_neo4j_files_have_typed_headers_and_quoted_texts(tmp_path):
    graph = sample()
    files = {path.name: path for path in export(graph, CHUNKS, tmp_path / "neo", "neo4j")}
    assert sorted(files) == [
        "chunks.csv", "communities.csv", "members.csv", "mentions.csv", "nodes.csv", "parents.csv", "relationships.csv",
    ]  # fmt: skip

    def read(name):
        with files[f"{name}.csv"].open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    assert read("nodes") == [
        [":ID(Node)", "name", "type", "layer:long", ":LABEL"],
        ["0", NASTY, "X", "0", "Node"], ["1", "B", "", "1", "Node"], ["2", "", "", "", "Node"],
    ]  # fmt: skip
    header, *rows = read("relationships")
    assert header == [
        ":START_ID(Node)", ":END_ID(Node)", ":TYPE", "name", "weight:double", "description", "chunks:long[]",
    ]  # fmt: skip
    assert rows[2] == ["1", "0", "FACT", NASTY, "3.0", "d", "0;1"] and rows[3][2] == "IS_A" and rows[3][5] == NASTY
    assert read("chunks")[1] == ["0", "T, 1", NASTY, json.dumps(["p1", "p;2"]), "Chunk"]
    assert [row[:2] for row in read("mentions")[1:]] == [["0", "0"], ["0", "1"], ["1", "0"]]
    header, first, second = read("communities")
    assert header[:3] == [":ID(Community)", "level:int", "title"] and "rating:double" in header
    assert first[header.index("rating:double")] == "7.25" and second[header.index("failed")] == "refused: no"
    assert read("parents")[1:] == [["1", "0", "CHILD_OF"]]
    assert [row[:2] for row in read("members")[1:]] == [["0", "0"], ["1", "0"], ["1", "1"]]
    raw = files["nodes.csv"].read_text("utf-8").split("\n")
    assert raw[-3:] == ['1,"B",,1,"Node"', '2,"","",,"Node"', ""]  # the empty text is quoted, null is not there


@pytest.mark.parametrize("communities", [True, False])
def test_the_tables_are_read_back_as_the_same_graph(tmp_path, communities):
    graph = sample(communities)
    files = export(graph, CHUNKS, tmp_path / "flat", "parquet")
    assert all(path.is_file() for path in files)
    built = imported(tmp_path / "flat")
    same(graph, built.graph)
    assert built.facts["import"] == {"format": "parquet", "chunks_of_the_graph": 3, "chunks_not_found": 0}
    component = REGISTRY.get("builder", "imported")
    assert component.extra["attributes"]({"path": str(tmp_path / "flat")}) == graph.attributes


def test_a_saved_graph_is_read_back_as_the_same_graph(tmp_path):
    graph = sample()
    graph.save(tmp_path)
    same(graph, imported(tmp_path).graph)
    with pytest.raises(UserError, match="is of 3 chunks, and there are 2"):
        imported(tmp_path, CHUNKS[:2])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_graph_goes_there_and_back(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    n, m, c = (data.draw(st.integers(low, 6)) for low in (1, 0, 0))
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    ids = st.integers(0, n - 1)
    chunks = tuple(Chunk(k, f"{k} {data.draw(text)}", data.draw(text), (data.draw(text),), k) for k in range(c))
    some = [(a, b) for a in range(n) for b in range(c) if data.draw(st.booleans())]
    graph = Graph(
        pa.table({"name": pa.array(data.draw(st.lists(text, min_size=n, max_size=n)), pa.string())}),
        pa.table(
            {
                "source": pa.array(data.draw(st.lists(ids, min_size=m, max_size=m)), pa.int32()),
                "target": pa.array(data.draw(st.lists(ids, min_size=m, max_size=m)), pa.int32()),
                "kind": pa.array(data.draw(st.lists(st.sampled_from(KINDS), min_size=m, max_size=m)), pa.string()),
                "name": pa.array(data.draw(st.lists(text, min_size=m, max_size=m)), pa.string()),
                "weight": pa.array(np.ones(m), pa.float32()),
            }
        ),
        matrix(n, c, some),
        matrix(m, c, [(r, (r * 7) % c) for r in range(m) if c]),
        frozenset({"node.name"}),
    )
    export(graph, chunks, folder / "flat", "parquet")
    same(graph, imported(folder / "flat", chunks).graph)
    nx = pytest.importorskip("networkx")
    (path,) = export(graph, chunks, folder / "xml", "graphml")
    read = nx.read_graphml(path, force_multigraph=True)
    assert read.number_of_nodes() == n and read.number_of_edges() == m
    ends = sorted((int(s[1:]), int(t[1:])) for s, t in read.edges())
    assert ends == sorted(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))


def test_chunks_are_found_again_by_their_text(tmp_path):
    export(sample(), CHUNKS, tmp_path, "parquet")
    other = (Chunk(0, "new", "", (), 1), replace(CHUNKS[1], id=1), replace(CHUNKS[0], id=2))
    built = imported(tmp_path, other)
    assert built.graph.node_chunk.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert built.facts["import"]["chunks_not_found"] == 1
    with pytest.raises(UserError, match="None of the 3 chunks"):
        imported(tmp_path, other[:1])


def test_an_export_overwrites_nothing_and_knows_its_formats(tmp_path):
    export(sample(), CHUNKS, tmp_path / "a", "graphml")
    with pytest.raises(UserError, match="not an empty folder"):
        export(sample(), CHUNKS, tmp_path / "a", "parquet")
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="not an empty folder"):
        export(sample(), CHUNKS, tmp_path / "file", "parquet")
    with pytest.raises(UserError, match=r"export format 'graphmk'.*graphml"):
        export(sample(), CHUNKS, tmp_path / "b", "graphmk")
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_graph_gives_the_same_bytes_and_an_empty_one_is_written(tmp_path, format):
    for name in ("a", "b"):
        export(sample(), CHUNKS, tmp_path / name, format)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name
    columns = {
        "source": pa.int32(),
        "target": pa.int32(),
        "kind": pa.string(),
        "name": pa.string(),
        "weight": pa.float32(),
    }
    nodes = pa.table({"name": pa.array([], pa.string())})
    relationships = pa.table({name: pa.array([], kind) for name, kind in columns.items()})
    empty = Graph(nodes, relationships, matrix(0, 0, []), matrix(0, 0, []), frozenset({"node.name"}))
    assert all(path.is_file() for path in export(empty, (), tmp_path / "empty", format))
    if format == "parquet":
        same(empty, imported(tmp_path / "empty", ()).graph)


def rewrite(folder: Path, name: str, change):
    path = folder / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def put(column, values):
    return lambda table: table.set_column(table.column_names.index(column), column, pa.array(values))


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("nodes", lambda t: t.drop_columns(["name"]), "no column name"),
        ("nodes", put("id", [5, 6, 7]), "do not count from 0"),
        ("nodes", put("name", ["a", None, "c"]), "name, or holes"),
        ("relationships", put("target", [0, 1, 2, 9]), "target is none of the 3 nodes"),
        ("relationships", put("source", ["a", "b", "c", "d"]), "source of the relationships holds no ids"),
        ("relationships", put("kind", ["fact", "fact", "fact", "knows"]), "kind of relationship 'knows'"),
        ("relationships", put("weight", [1.0, 2.0, float("nan"), 1.0]), "no finite number"),
        ("mentions", put("chunk", [0, 1, 0, 0, 0, 7]), "not among the 3"),
        ("mentions", put("element", ["edge"] * 6), "neither node nor"),
        ("memberships", put("node", [0, 1, 44]), "not among the 3"),
        ("communities", put("parent", [-1, 8]), "parent is none"),
        ("reports", lambda t: t.slice(0, 1), "1 reports on 2"),
        ("reports", lambda t: t.drop_columns(["title"]), "no column title"),
    ],
)
def test_faulty_tables_are_refused(tmp_path, table, change, said):
    export(sample(), CHUNKS, tmp_path, "parquet")
    rewrite(tmp_path, table, change)
    with pytest.raises(UserError, match=said):
        imported(tmp_path)


def test_folders_that_hold_no_graph(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        imported(tmp_path / "none")
    with pytest.raises(UserError, match="holds no graph of ours"):
        imported(tmp_path)
    sample().save(tmp_path)
    (tmp_path / "incidence.npz").write_bytes(b"not a zip")
    with pytest.raises(UserError, match="cannot be read"):
        imported(tmp_path)
    sample().save(tmp_path)
    (tmp_path / "reports.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot be read"):
        imported(tmp_path)


def claimed():
    rows = [
        {"subject": 0, "object": -1, "chunk": 2, "type": "fraud", "status": "true", "start": "", "end": "2001",
         "description": NASTY, "source": ""},
        {"subject": 1, "object": 0, "chunk": -1, "type": "", "status": "", "start": "", "end": "", "description": "d",
         "source": "s"},
    ]  # fmt: skip
    return replace(sample(), claims=pa.Table.from_pylist(rows, schema=CLAIM_SCHEMA))


@pytest.mark.parametrize("format", ["parquet", "store"])
def test_claims_come_back_with_the_chunks_they_were_found_in(tmp_path, format):
    graph, folder = claimed(), tmp_path / "out"
    if format == "store":
        folder.mkdir()
        graph.save(folder)
        assert imported(folder).graph.claims.equals(graph.claims)
        return
    export(graph, CHUNKS, folder, "parquet")
    assert imported(folder).graph.claims.equals(graph.claims)
    moved = imported(folder, (replace_id(CHUNKS[2], 0), replace_id(CHUNKS[0], 1)))
    assert moved.graph.claims["chunk"].to_pylist() == [0, -1]
    assert moved.graph.claims.drop_columns(["chunk"]).equals(graph.claims.drop_columns(["chunk"]))


def replace_id(chunk, number):
    return chunk._replace(id=number) if hasattr(chunk, "_replace") else replace(chunk, id=number)


def test_a_graph_imported_again_with_other_claims_is_another(tmp_path):
    export(claimed(), CHUNKS, tmp_path / "out", "parquet")
    inputs = REGISTRY.get("builder", "imported").extra["inputs"]
    before = inputs({"path": str(tmp_path / "out")})
    table = pq.read_table(tmp_path / "out" / "claims.parquet")
    pq.write_table(table.slice(1), tmp_path / "out" / "claims.parquet")
    assert inputs({"path": str(tmp_path / "out")}) != before


@pytest.mark.parametrize(("name", "value"), [("subject", -1), ("subject", 9), ("object", 9), ("chunk", 9)])
def test_a_claim_about_no_node_is_a_fault(tmp_path, name, value):
    export(claimed(), CHUNKS, tmp_path / "out", "parquet")
    rows = pq.read_table(tmp_path / "out" / "claims.parquet").to_pylist()
    rows[0][name] = value
    pq.write_table(pa.Table.from_pylist(rows, schema=CLAIM_SCHEMA), tmp_path / "out" / "claims.parquet")
    with pytest.raises(UserError, match=f"column {name}"):
        imported(tmp_path / "out")
