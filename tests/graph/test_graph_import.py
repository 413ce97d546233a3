"""Import of GraphRAG's, LightRAG's and HippoRAG's files: small ones written here, whose graphs one can count by hand."""

import asyncio
import gzip
import hashlib
import inspect
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.errors import UserError
from graphrag_bench.graph.units import TextUnits
from graphrag_bench.registry import REGISTRY

CHUNKS = (
    Chunk(0, "Brask\nBrask lies on the Isken.", "Brask", ("p1",), 5),
    Chunk(1, "The Isken flows to Dunmere.", "", ("p2", "p3"), 5),
    Chunk(2, "Nothing else is known.", "", ("p4",), 4),
)
ENTITIES = [
    {"id": "e1", "title": "BRASK", "type": "PLACE", "description": "A town.", "text_unit_ids": ["p1"]},
    {"id": "e2", "title": "ISKEN", "type": "RIVER", "description": 'The "long" river.', "text_unit_ids": ["p1", "p2"]},
    {"id": "e3", "title": "DUNMERE", "type": None, "description": None, "text_unit_ids": ["p2", "gone"]},
]
RELATIONSHIPS = [
    {"id": "r1", "source": "BRASK", "target": "ISKEN", "description": "on it", "weight": 8.0, "text_unit_ids": ["p1"]},
    {
        "id": "r2",
        "source": "ISKEN",
        "target": "DUNMERE",
        "description": "ends in",
        "weight": 2,
        "text_unit_ids": ["p3"],
    },
    {
        "id": "r3",
        "source": "ISKEN",
        "target": "THE SEA",
        "description": "nowhere",
        "weight": 1,
        "text_unit_ids": ["p2"],
    },
    {"id": "r4", "source": "BRASK", "target": "ISKEN", "description": "named for it", "text_unit_ids": []},
]
COMMUNITIES = [
    {"community": 1, "level": 0, "parent": -1, "entity_ids": ["e1", "e2", "x9"]},
    {"community": 4, "level": 1, "parent": 1, "entity_ids": ["e2"]},
    {"community": 0, "level": 0, "parent": -1, "entity_ids": ["e3"]},
]
REPORTS = [
    {"community": 4, "title": "River", "summary": "Water.", "full_content": "# River\n\nWater.", "rank": 7.5,
     "rating_explanation": "wet"},
    {"community": 1, "title": "Town", "summary": "Houses.", "full_content": "# Town", "rank": None},
    {"community": 77, "title": "Nobody", "full_content": "…"},
]  # fmt: skip
TABLES = {
    "entities": ENTITIES, "relationships": RELATIONSHIPS, "communities": COMMUNITIES, "community_reports": REPORTS,
}  # fmt: skip


def put(folder, tables, ending="jsonl"):
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
        else:
            raw = "".join(json.dumps(row) + "\n" for row in rows).encode()
            (folder / f"{name}.{ending}").write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    return folder


def run(name, folder, chunks=CHUNKS, kind="builder"):
    made = REGISTRY.get(kind, name).call(chunks, path=str(folder))
    return asyncio.run(made) if inspect.iscoroutine(made) else made


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "parquet"])
def test_graphrag_by_hand(tmp_path, ending):
    built = run("graphrag", put(tmp_path / "index", TABLES, ending))
    graph = built.graph
    assert graph.nodes.to_pydict() == {
        "name": ["BRASK", "ISKEN", "DUNMERE"], "type": ["PLACE", "RIVER", ""],
        "description": ["A town.", 'The "long" river.', ""],
    }  # fmt: skip
    assert graph.sources.tolist() == [0, 1, 0] and graph.targets.tolist() == [1, 2, 1]
    assert graph.weights.tolist() == [8, 2, 1] and graph.kinds.tolist() == [0, 0, 0]
    assert [graph.label(r) for r in range(3)] == ["on it", "ends in", "named for it"]
    assert graph.node_chunk.toarray().tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert graph.relationship_chunk.toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert graph.communities.level.tolist() == [0, 0, 1] and graph.communities.parent.tolist() == [-1, -1, 1]
    assert graph.communities.members.toarray().tolist() == [[0, 0, 1], [1, 1, 0], [0, 1, 0]]
    assert graph.reports.table["title"].to_pylist() == ["", "Town", "River"]
    assert graph.reports.table["text"].to_pylist() == ["", "# Town", "# River\n\nWater."]
    assert np.isnan(graph.reports.ratings[:2]).all() and graph.reports.ratings[2] == 7.5
    assert dict(graph.reports.failed) == {0: "missing: the index holds no report on it"}
    assert {"community", "community.report", "node.type", "relationship.description"} <= graph.attributes
    assert built.facts["import"] == {
        "format": "graphrag", "text_units": 4, "text_units_without_chunk": 1,
        "counted": {
            "relationships with an end that is no entity, left out": 1,
            "members of a community that are no entity, left out": 1,
            "reports on a community that is not there, left out": 1,
        },
    }  # fmt: skip
    assert json.dumps(built.facts)


def test_the_versions_before_2_say_it_with_other_names_and_the_oldest_without_parents(tmp_path):
    nodes = [
        {"title": "BRASK", "level": 0, "community": "1"}, {"title": "ISKEN", "level": 0, "community": "1"},
        {"title": "DUNMERE", "level": 0, "community": "0"}, {"title": "ISKEN", "level": 1, "community": "4"},
        {"title": "BRASK", "level": 1, "community": None},
    ]  # fmt: skip
    old = {
        "create_final_entities": [{"name" if k == "title" else k: v for k, v in row.items()} for row in ENTITIES],
        "create_final_relationships": RELATIONSHIPS,
        "create_final_nodes": nodes,
        "create_final_communities": [{"id": str(row["community"]), "level": row["level"]} for row in COMMUNITIES],
        "create_final_community_reports": [
            {**row, "community": str(row["community"]), "rank_explanation": row.get("rating_explanation")}
            for row in REPORTS
        ],
    }
    for row in old["create_final_community_reports"]:
        row.pop("rating_explanation", None)
    graph = run("graphrag", put(tmp_path / "output", old, "parquet").parent).graph
    new = run("graphrag", put(tmp_path / "new", TABLES)).graph
    assert graph.communities.parent.tolist() == [-1, -1, 1]
    assert graph.communities.members.toarray().tolist() == new.communities.members.toarray().tolist()
    assert graph.reports.table.equals(new.reports.table) and graph.nodes.equals(new.nodes)


def test_without_communities_there_are_none_and_it_says_so_before_anything_is_read(tmp_path):
    bare = put(tmp_path / "bare", {"entities": ENTITIES, "relationships": RELATIONSHIPS})
    full = put(tmp_path / "full", TABLES)
    graph = run("graphrag", bare).graph
    assert graph.hierarchy is None and graph.reports is None
    attributes = REGISTRY.get("builder", "graphrag").extra["attributes"]
    assert attributes({"path": str(bare)}) == graph.attributes
    assert attributes({"path": str(full)}) == run("graphrag", full).graph.attributes


def test_a_community_holds_its_childrens_nodes(tmp_path):
    rows = [*COMMUNITIES[:1], {"community": 4, "level": 1, "parent": 1, "entity_ids": ["e2", "e3"]}]
    built = run("graphrag", put(tmp_path, {**TABLES, "communities": rows}))
    assert built.graph.communities.nodes(0).tolist() == [0, 1, 2]
    assert built.facts["import"]["counted"]["members of a community that its parent lacked, added to it"] == 1


@pytest.mark.parametrize(
    ("table", "rows", "said"),
    [
        (
            "communities",
            [{"community": 1, "level": 1, "parent": 7, "entity_ids": []}],
            r"communities\.jsonl:1.*parent 7",
        ),
        ("communities", [{"community": 1, "level": 1, "parent": -1, "entity_ids": []}], "not right above"),
        ("communities", [{"community": 1, "parent": -1, "entity_ids": []}], "no level"),
        ("communities", [COMMUNITIES[0], COMMUNITIES[0]], r"communities\.jsonl:2.*twice"),
        ("relationships", [{"source": "BRASK"}], r"relationships\.jsonl:1.*target"),
        ("relationships", [{**RELATIONSHIPS[0], "weight": "much"}], r"relationships\.jsonl:1.*weight"),
        ("entities", [{"id": "e1"}], r"entities\.jsonl:1.*title"),
        ("entities", [{**ENTITIES[0], "text_unit_ids": "p1"}], r"text_unit_ids.*a list"),
    ],
)
def test_faults_name_their_line(tmp_path, table, rows, said):
    with pytest.raises(UserError, match=said):
        run("graphrag", put(tmp_path, {**TABLES, table: rows}))


def test_files_that_are_none(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        run("graphrag", tmp_path / "nowhere")
    with pytest.raises(UserError, match="holds no index"):
        run("graphrag", tmp_path)
    put(tmp_path, TABLES)
    (tmp_path / "entities.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(UserError, match=r"both entities\.parquet and entities\.jsonl"):
        run("graphrag", tmp_path)
    (tmp_path / "entities.jsonl").unlink()
    with pytest.raises(UserError, match=r"entities\.parquet cannot be read as Parquet"):
        run("graphrag", tmp_path)
    lost = [{**row, "text_unit_ids": ["nowhere"]} for row in ENTITIES]
    with pytest.raises(UserError, match="None of the 1 text units"):
        run(
            "graphrag",
            put(tmp_path / "lost", {"entities": lost, "relationships": [{**RELATIONSHIPS[0], "text_unit_ids": []}]}),
        )


def test_the_digest_of_the_inputs_follows_their_bytes(tmp_path):
    digest = REGISTRY.get("builder", "graphrag").extra["inputs"]
    put(tmp_path, TABLES)
    before = digest({"path": str(tmp_path)})
    (tmp_path / "stats.json").write_text("{}")  # nothing reads it
    assert digest({"path": str(tmp_path)}) == before
    put(tmp_path, {"entities": ENTITIES[:2]})
    assert digest({"path": str(tmp_path)}) != before


def test_text_units_are_found_by_text_id_md5_and_overlap():
    words = [f"w{n}" for n in range(400)]
    chunks = tuple(Chunk(n, " ".join(words[100 * n : 100 * n + 120]), "", (f"d{n}",), 1) for n in range(4))
    plain = "chunk-" + hashlib.md5(chunks[3].text.encode()).hexdigest()
    units = TextUnits(chunks, {"same": f"{chunks[1].text} \n", "half": " ".join(words[50:250]), "other": "w1 w1 w1 w2"})
    assert units.chunks("same") == [1]
    assert units.chunks("d2") == [2]
    assert units.chunks(plain) == [3]
    assert units.chunks("half") == [0, 1, 2]
    assert units.chunks("half", "W199") == [1]
    assert units.chunks("half", "w210", "w220") == [1, 2]  # the windows overlap there
    assert units.chunks("half", "not there") == [0]
    assert units.chunks("other") == [] == units.chunks("unknown")
    assert units.account() == {"text_units": 6, "text_units_without_chunk": 2}
    titled = TextUnits(CHUNKS, {"bare": "Brask lies on the Isken.", "whole": "Brask\nBrask lies on the Isken."})
    assert titled.chunks("bare") == titled.chunks("whole") == [0]


# -- LightRAG --

KEYS = """<key id="d0" for="node" attr.name="entity_type" attr.type="string"/>
<key id="d1" for="node" attr.name="description" attr.type="string"/>
<key id="d2" for="node" attr.name="source_id" attr.type="string"/>
<key id="d3" for="edge" attr.name="weight" attr.type="double"><default>3</default></key>
<key id="d4" for="edge" attr.name="description" attr.type="string"/>
<key id="d5" for="edge" attr.name="keywords" attr.type="string"/>
<key id="d6" for="edge" attr.name="source_id" attr.type="string"/>
"""
MD5 = "chunk-" + hashlib.md5(CHUNKS[1].text.encode()).hexdigest()
LIGHT = f"""<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{KEYS}<graph edgedefault="undirected">
<node id="&quot;BRASK&quot;"><data key="d0">"PLACE"</data><data key="d1">"A town."&lt;SEP&gt;"A town."&lt;SEP&gt;Old.</data>
<data key="d2">chunk-a&lt;SEP&gt;chunk-z</data></node>
<node id="İsken Ω"><data key="d0">river</data><data key="d2">{MD5}&lt;SEP&gt;chunk-a</data></node>
<node id="Alone"/>
<edge source="İsken Ω" target="&quot;BRASK&quot;"><data key="d4">passes &amp; feeds</data>
<data key="d5">"water, trade"&lt;SEP&gt;trade</data><data key="d6">chunk-a</data></edge>
<edge source="Alone" target="Nobody"><data key="d3">1.0</data></edge>
</graph></graphml>"""


def lightrag(folder, text=LIGHT, texts=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph_chunk_entity_relation.graphml").write_text(text, "utf-8")
    if texts is not None:
        (folder / "kv_store_text_chunks.json").write_text(texts if isinstance(texts, str) else json.dumps(texts))
    return folder


def test_lightrag_by_hand(tmp_path):
    folder = lightrag(tmp_path, texts={"chunk-a": {"content": "Brask lies on the Isken.", "tokens": 5}})
    built = run("lightrag", folder)
    graph = built.graph
    assert graph.nodes.to_pydict() == {
        "name": ["BRASK", "İsken Ω", "Alone"], "type": ["PLACE", "river", ""], "description": ["A town. Old.", "", ""],
    }  # fmt: skip
    assert (graph.sources.tolist(), graph.targets.tolist(), graph.weights.tolist()) == ([1], [0], [3.0])
    assert graph.column("relationships", "keywords") == ["water, trade"]
    assert graph.column("relationships", "description") == ["passes & feeds"]
    assert graph.node_chunk.toarray().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert graph.relationship_chunk.toarray().tolist() == [[1, 0, 0]]
    assert built.facts["import"] == {
        "format": "lightrag", "text_units": 3, "text_units_without_chunk": 1,
        "counted": {"edges with an end that is no node, left out": 1},
    }  # fmt: skip
    assert "relationship.keywords" in graph.attributes
    again = run("lightrag", folder / "graph_chunk_entity_relation.graphml").graph
    assert again.nodes.equals(graph.nodes)
    digest = REGISTRY.get("builder", "lightrag").extra["inputs"]
    before = digest({"path": str(folder)})
    lightrag(folder, texts={"chunk-a": {"content": "Other."}})
    assert digest({"path": str(folder)}) != before


def test_a_graph_without_keywords_does_not_claim_them(tmp_path):
    text = LIGHT.replace('<data key="d5">"water, trade"&lt;SEP&gt;trade</data>', "")
    assert "relationship.keywords" not in run("lightrag", lightrag(tmp_path, text)).graph.attributes


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<graphml><graph><node id="&b;"/></graph></graphml>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, r"graphml:1.*document type"),
        ("<html></html>", "not GraphML"),
        (LIGHT[:-20], r"graphml:\d+.*well-formed"),
        ("", "well-formed"),
        (LIGHT.replace('id="Alone"', ""), r"graphml:\d+.*no id"),
        (LIGHT.replace('source="Alone" ', ""), "no source"),
        (LIGHT.replace('id="Alone"', 'id="İsken Ω"'), "twice"),
        (LIGHT.replace(">3<", ">high<"), r"graphml:\d+.*weight is 'high'"),
        (LIGHT.replace("chunk-a", "chunk-q").replace(MD5, "chunk-q"), "None of the 2 text units"),
    ],
)
def test_faults_of_graphml(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        run("lightrag", lightrag(tmp_path, text))


@pytest.mark.parametrize("texts", ["{", "[]", '{"chunk-a": {}}', '{"chunk-a": 3}'])
def test_faults_of_lightrags_texts(tmp_path, texts):
    with pytest.raises(UserError, match="kv_store_text_chunks"):
        run("lightrag", lightrag(tmp_path, texts=texts))


def test_a_folder_without_a_graph(tmp_path):
    with pytest.raises(UserError, match="holds no graph_chunk"):
        run("lightrag", tmp_path)


# -- HippoRAG's OpenIE --


def openie(path, docs):
    path.write_text(json.dumps({"docs": docs, "avg_ent_chars": 1.0}))
    return path


def test_hipporags_openie_is_an_extraction(tmp_path):
    docs = [
        {"idx": 7, "passage": "Brask\nBrask lies  on the Isken.", "extracted_entities": ["Brask", "Isken", 3],
         "extracted_triples": [["Brask", "lies on", "Isken"], ["broken", "triple"]]},
        {"idx": "p3", "passage": "spelt otherwise", "extracted_entities": ["Dunmere"], "extracted_triples": []},
        {"idx": "x", "passage": "of another corpus", "extracted_entities": ["Nobody"], "extracted_triples": []},
    ]  # fmt: skip
    found = run("hipporag_openie", openie(tmp_path / "openie.json", docs), kind="extractor")
    assert found.entities == (("Brask", "Isken"), ("Dunmere",), ())
    assert found.triples == ((("Brask", "lies on", "Isken"),), (), ())
    assert dict(found.failed) == {2: "missing: the OpenIE file has no such passage"}
    assert found.statistics()["import"] == {"passages": 3, "passages_without_chunk": 1, "malformed": 2}
    digest = REGISTRY.get("extractor", "hipporag_openie").extra["inputs"]
    before = digest({"path": str(tmp_path / "openie.json")})
    openie(tmp_path / "openie.json", docs[:1])
    assert digest({"path": str(tmp_path / "openie.json")}) != before


def test_a_passage_in_several_chunks_gives_each_what_it_holds(tmp_path):
    text = " ".join(f"w{n}" for n in range(60))
    words = text.split()
    cut = tuple(Chunk(n, " ".join(words[30 * n : 30 * n + 30]), "", ("d",), 30) for n in range(2))
    triple = ("w7 w8", "r", "w40")
    docs = [{"idx": "d", "passage": text, "extracted_entities": ["w7 w8", "w40"], "extracted_triples": [triple]}]
    found = run("hipporag_openie", openie(tmp_path / "o.json", docs), cut, "extractor")
    assert found.entities == (("w7 w8",), ("w40",))
    assert found.triples == ((triple,), (triple,))


def test_faults_of_an_openie_file(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        run("hipporag_openie", tmp_path, kind="extractor")
    with pytest.raises(UserError, match="None of the 1 passages"):
        run("hipporag_openie", openie(tmp_path / "o.json", [{"idx": "z", "passage": "z"}]), kind="extractor")
    (tmp_path / "o.json").write_text('{"docs": 3}')
    with pytest.raises(UserError, match='no list under "docs"'):
        run("hipporag_openie", tmp_path / "o.json", kind="extractor")


# -- the real index --


@pytest.mark.shared
def test_the_christmas_carol():
    named = os.environ.get("GRAPHRAG_BENCH_DATA")
    data = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    folder = data / "graphrag_christmas_carol"
    if not folder.is_dir():
        pytest.skip("the real datasets are not here")
    corpus = gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()).decode()
    rows = [json.loads(line) for line in corpus.splitlines() if line]
    chunks = tuple(Chunk(n, row["text"], row["title"], (row["id"],), row["n_tokens"]) for n, row in enumerate(rows))
    built = run("graphrag", folder, chunks)
    facts = built.graph.statistics()
    assert (facts["nodes"], facts["relationships"], facts["communities"]) == (529, 978 - 84, 122)
    assert facts["by_level"] == {"0": 23, "1": 65, "2": 32, "3": 2}
    assert facts["nodes_without_community"] == 25 and facts["chunks_without_node"] == 0
    counted = {"relationships with an end that is no entity, left out": 84, "claims whose subject is no entity, left out": 71}
    assert built.facts["import"]["counted"] == counted
    claims = built.graph.claims
    assert claims.num_rows == facts["claims"] == 406 - 71
    assert set(claims["status"].to_pylist()) <= {"true", "false", "suspected"} and min(claims["chunk"].to_pylist()) >= 0
    first = claims.to_pylist()[0]
    assert built.graph.names([first["subject"]]) == ["CHARLES DICKENS"] and first["object"] == -1
    assert built.facts["import"]["text_units_without_chunk"] == 0
    hierarchy = built.graph.communities
    inner = hierarchy.parent >= 0
    assert (hierarchy.level[hierarchy.parent[inner]] == hierarchy.level[inner] - 1).all()
    assert (hierarchy.level[~inner] == 0).all()
    assert not built.graph.reports.failed and len(built.graph.reports) == 122
    assert built.graph.reports.ratings.min() >= 0 and built.graph.reports.ratings.max() <= 10
