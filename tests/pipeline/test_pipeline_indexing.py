"""Stages and indexes of real small cells: what is an artifact, what is shared, what opens from the store, what fails.

The corpus is the sample's short part; the model is scripted, the embedder hashes.
"""

import asyncio
import json
from contextlib import contextmanager

import numpy as np
import pytest

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.cli import main
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.estimates import Estimates
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.texts import community_texts, node_texts, relationship_texts
from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.index.vectors import ChunkVectors, CommunityVectors, NodeVectors, RelationshipVectors
from graphrag_bench.llm.backends._instances import instance, short_text
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.floors import failed_calls
from graphrag_bench.session import Session

USUAL = ("dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=none", "evaluation.bootstrap=20")
FREE = (
    "graph.extractor=noun_phrase", "graph.describe=name+triples", "graph.merge=cut", "community.reports=extractive",
)  # fmt: skip
TREE = ("method=raptor_k", "graph.summary=extractive", "graph.cluster_size=4")
LOCAL = ("method=lgraphrag", *FREE)


@contextmanager
def cell(tmp_path, *overrides, backend=None):
    """A cell on its way, with a session of its own over the test's store."""
    (checked,), _ = cells([*USUAL, f"output={tmp_path / 'out'}", *overrides])
    session = Session(tmp_path / "store")
    if backend is not None:
        session.use_backend(checked.config, backend)
    try:
        yield CellRun(session, checked)
    finally:
        asyncio.run(session.__aexit__())


def lent(run, *kinds):
    found = asyncio.run(run.indexes.lend(kinds))
    return found[kinds[0]] if len(kinds) == 1 else found


def unwanted():
    """A model that must not be asked."""

    def refuse(messages, schema):
        raise AssertionError("a model was asked")

    return Scripted.of(refuse, name="unwanted")


def built(run):
    return {name for name, artifact in run.stages.artifacts.items() if artifact.built}


# -- vectors --


def test_the_leaves_of_a_tree_share_the_chunks_vectors(tmp_path):
    with cell(tmp_path, *TREE) as run:
        graph = asyncio.run(run.stages.graph())
        vectors = lent(run, NodeVectors, ChunkVectors)
        nodes, chunks = vectors[NodeVectors].matrix, vectors[ChunkVectors].matrix
        assert 0 < len(chunks) < len(nodes) == graph.n_nodes
        np.testing.assert_array_equal(nodes[: len(chunks)], chunks)
        texts = node_texts(graph, "auto")
        np.testing.assert_array_equal(nodes, run.session.embedder(run.config).embed(texts))
        noted = run.stages.artifacts
        assert noted["node vectors"].facts["texts"] == len(nodes) - len(
            chunks
        )  # the summaries' alone are the nodes' own
        assert noted["chunk vectors"].facts["texts"] == len(chunks)
        assert noted["node vectors"].key != noted["chunk vectors"].key
        hits = vectors[NodeVectors].search([texts[0], texts[-1]], 1)
        assert [hit.tolist() for hit, _ in hits] == [[0], [len(texts) - 1]]


def test_the_nodes_of_a_passage_graph_are_the_chunks_and_nothing_is_embedded_twice(tmp_path):
    with cell(tmp_path, "method=kgp", "graph.link=tfidf") as run:
        vectors = lent(run, NodeVectors, ChunkVectors)
        np.testing.assert_array_equal(vectors[NodeVectors].matrix, vectors[ChunkVectors].matrix)
        assert len(list((tmp_path / "store/vectors").glob("*/vectors.npy"))) == 1


def test_vectors_of_relationships_communities_and_nodes_are_those_of_their_texts(tmp_path):
    with cell(tmp_path, *LOCAL) as run:
        graph = asyncio.run(run.stages.graph())
        found = lent(run, NodeVectors, RelationshipVectors, CommunityVectors)
        embed = run.session.embedder(run.config).embed
        for kind, texts in (
            (NodeVectors, node_texts(graph, "auto")),
            (RelationshipVectors, relationship_texts(graph, "auto")),
            (CommunityVectors, community_texts(graph, "summary")),
        ):
            assert len(found[kind]) == len(texts) > 0
            np.testing.assert_array_equal(found[kind].matrix, embed(texts))
        assert {"node vectors", "relationship vectors", "community vectors"} <= run.stages.artifacts.keys()


def test_what_is_embedded_follows_the_settings(tmp_path):
    said = ("index.node_text=name", "index.relationship_text=name", "index.community_text=report")
    with cell(tmp_path, *LOCAL, *said) as run:
        graph = asyncio.run(run.stages.graph())
        found = lent(run, NodeVectors, RelationshipVectors, CommunityVectors)
        embed = run.session.embedder(run.config).embed
        np.testing.assert_array_equal(found[NodeVectors].matrix, embed(graph.column("nodes", "name")))
        np.testing.assert_array_equal(found[RelationshipVectors].matrix, embed(relationship_texts(graph, "name")))
        np.testing.assert_array_equal(found[CommunityVectors].matrix, embed(community_texts(graph, "report")))


def test_the_tfidf_index_is_over_the_nodes_texts(tmp_path):
    with cell(tmp_path, "method=kgp", "graph.link=tfidf") as run:
        index = lent(run, TfidfIndex)
        texts = node_texts(asyncio.run(run.stages.graph()), "auto")
        ((ids, _),) = index.search([texts[3]], 1)
        assert ids.tolist() == [3]
        assert run.stages.artifacts["TF-IDF index"].facts["texts"] == len(texts)
    with cell(tmp_path, "method=kgp", "graph.link=tfidf") as again:
        ((ids, _),) = lent(again, TfidfIndex).search([texts[3]], 1)
        assert (ids.tolist(), built(again)) == ([3], set())


@pytest.mark.parametrize(("backend", "library"), [("faiss", "faiss"), ("hnswlib", "hnswlib")])
def test_an_engine_is_an_artifact_of_its_own_and_finds_what_exact_search_finds(tmp_path, backend, library):
    pytest.importorskip(library)
    with cell(tmp_path, "method=vanilla") as run:
        exact = lent(run, ChunkVectors)
        assert exact.engine is None
        assert "chunk vectors' search" not in run.stages.artifacts
    texts = ["Who built the bridge?", "Where does the river rise?"]
    for first in (True, False):
        with cell(tmp_path, "method=vanilla", f"index={backend}") as run:
            found = lent(run, ChunkVectors)
            assert found.engine is not None
            assert built(run) == (
                {"chunk vectors' search"} if first else set()
            )  # the vectors are those of exact search
            for (ids, scores), (same, cosines) in zip(found.search(texts, 2), exact.search(texts, 2), strict=True):
                assert (ids.tolist(), scores.tolist()) == (same.tolist(), cosines.tolist())
    with cell(tmp_path, "method=vanilla", f"index={backend}", "seed=7") as run:
        lent(run, ChunkVectors)
        assert built(run) == {"chunk vectors' search"}  # another seed, another engine; the vectors stay


def test_a_trees_engine_is_over_all_its_nodes(tmp_path):
    pytest.importorskip("hnswlib")
    with cell(tmp_path, *TREE, "index=hnswlib") as run:
        index = lent(run, NodeVectors)
        summary = node_texts(asyncio.run(run.stages.graph()), "auto")[-1]
        ((ids, _),) = index.search([summary], 1)
        assert ids.tolist() == [len(index) - 1]
        assert (index.engine is None, "node vectors' search" in run.stages.artifacts) == (False, True)


# -- the store, and no tokens --


def test_without_a_model_nothing_is_asked_and_a_second_cell_opens_all_from_the_store(tmp_path):
    first = {}
    for turn in range(2):
        with cell(tmp_path, *LOCAL, "until=retrieval", backend=unwanted()) as run:
            result = asyncio.run(run.run())
            assert result.tokens == {}
            assert not (run.folder / "ledger.jsonl").exists()
            artifacts = {name: artifact.key for name, artifact in run.stages.artifacts.items()}
            assert {"chunks", "extraction", "graph", "communities", "reports", "node vectors"} <= artifacts.keys()
            if turn:
                assert (built(run), artifacts) == (set(), first)
            else:
                assert built(run) >= artifacts.keys() - {"node vectors"}
                first = artifacts
    assert not (tmp_path / "store/replies.sqlite").exists()


def test_a_run_without_a_model_needs_none_that_can_be_made(tmp_path, monkeypatch, capsys):
    """The command line, with a recording that holds nothing: any call would be a miss, and is none."""
    recording = tmp_path / "empty.jsonl"
    recording.write_text("")
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path / "store"))
    usual = [text for text in USUAL if not text.startswith("llm=")]
    arguments = [*usual, *LOCAL, "llm=replay", f"llm.path={recording}", f"output={tmp_path / 'out'}", "until=retrieval"]
    assert main(["run", *arguments]) == 0
    folder = tmp_path / "out/lgraphrag/sample-demo"
    costs = json.loads((folder / "costs.json").read_text())
    assert costs["ledger"]["total"]["calls"] == 0
    assert costs["ledger"]["stages"] == {}
    assert "LGraphRAG" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "again"), [
    (("community.max_size=5",), {"communities", "reports"}),
    (("graph.described_triples=1",), {"graph", "communities", "reports", "node vectors"}),
    (("index.node_text=name",), {"node vectors"}),
    (("method.top_k=2",), set()),
    (("execution.concurrency=2",), set()),
])  # fmt: skip
def test_a_setting_rebuilds_what_it_changes_and_nothing_else(tmp_path, change, again):
    with cell(tmp_path, *LOCAL) as run:
        asyncio.run(run.stages.graph())
        lent(run, NodeVectors)
    with cell(tmp_path, *LOCAL, *change) as run:
        asyncio.run(run.stages.graph())
        lent(run, NodeVectors)
        assert built(run) == again


def test_methods_share_the_stages_they_have_in_common(tmp_path):
    with cell(tmp_path, *LOCAL) as run:
        asyncio.run(run.stages.graph())
    with cell(tmp_path, "method=graphrag_er", *FREE[:3]) as run:  # the same graph, without communities
        graph = asyncio.run(run.stages.graph())
        assert built(run) == set()
        assert {"communities", "reports"}.isdisjoint(run.stages.artifacts)
        assert graph.hierarchy is None
        assert "community" not in graph.attributes
    with cell(tmp_path, "method=graphrag_er", *FREE[:3], "community=leiden", "community.reports=null") as run:
        graph = asyncio.run(run.stages.graph())
        assert built(run) == set()
        assert (graph.reports, "community.report" in graph.attributes) == (None, False)
        assert graph.n_communities > 0


# -- failures --


class Model:
    """The scripted model, that fails at what ``fails`` says of a prompt's last message."""

    def __init__(self, fails, kind="schema"):
        self.fails, self.kind, self.asked = fails, kind, []

    def backend(self):
        def reply(messages, schema):
            text = messages[-1].text
            self.asked.append(text)
            if self.fails(text):
                raise CallError(self.kind, "said so", retry=False)
            return json.dumps(instance(schema, text, "0.0")) if schema else short_text(text, "0.0")

        return Scripted.of(reply, name="failing model")


REPORTED = ("method=lgraphrag", *FREE[:3])


@pytest.mark.parametrize(("kind", "again"), [("schema", ("execution.retry_failed=true",)), ("timeout", ())])
def test_a_report_that_fails_is_recorded_and_asked_again(tmp_path, kind, again):
    """What the server was to blame for is tried again by itself; the rest with execution.retry_failed."""
    model = Model(lambda text: False)
    with cell(tmp_path / "calm", *REPORTED, backend=model.backend()) as run:
        calm = asyncio.run(run.stages.graph())
    assert calm.reports.failed == {}
    lost = model.asked[0]
    failing = Model(lambda text: text == lost, kind)
    with cell(tmp_path, *REPORTED, backend=failing.backend()) as run:
        graph = asyncio.run(run.stages.graph())
        ((community, reason),) = graph.reports.failed.items()
        assert reason.startswith(f"{kind}: ")
        assert graph.reports.table["text"][community].as_py() in (None, "")
        assert run.stages.artifacts["reports"].facts["failed"] == {kind: 1}
    if kind == "schema":
        with cell(tmp_path, *REPORTED, backend=unwanted_of(failing)) as run:
            assert len(asyncio.run(run.stages.graph()).reports.failed) == 1  # not tried again unasked
            assert "reports" not in built(run)
    mended = Model(lambda text: False)
    with cell(tmp_path, *REPORTED, *again, backend=mended.backend()) as run:
        graph = asyncio.run(run.stages.graph())
        assert graph.reports.failed == {}
        assert built(run) == {"reports"}  # and not the graph, not the communities
        assert graph.reports.table.to_pylist() == calm.reports.table.to_pylist()
    assert 0 < len(mended.asked) < len(model.asked)  # finished replies are kept


def unwanted_of(model):
    """The same model to the cache, that must not be asked."""
    return Model(lambda text: pytest.fail("asked again")).backend()


def test_reports_below_the_floor_stop_the_run_and_leave_no_artifact(tmp_path):
    with (
        cell(tmp_path, *REPORTED, backend=Model(lambda text: True).backend()) as run,
        pytest.raises(UserError, match="Writing reports stopped: only 0%") as stopped,
    ):
        asyncio.run(run.stages.graph())
    assert "execution.retry_failed=true" in stopped.value.fix
    assert not list((tmp_path / "store").glob("reports/*/reports.parquet"))
    with cell(tmp_path, *REPORTED, "execution.retry_failed=true", backend=Model(lambda text: False).backend()) as run:
        assert asyncio.run(run.stages.graph()).reports.failed == {}
        assert built(run) == {"reports"}


@pytest.mark.parametrize("kind", ["schema", "timeout"])
def test_a_summary_that_a_builder_loses_is_recorded_and_asked_again(tmp_path, kind):
    tree = ("method=raptor_k", "graph.cluster_size=4")
    model = Model(lambda text: False)
    with cell(tmp_path / "calm", *tree, backend=model.backend()) as run:
        calm = asyncio.run(run.stages.graph())
    lost = model.asked[-1]
    with cell(tmp_path, *tree, backend=Model(lambda text: text == lost, kind).backend()) as run:
        asyncio.run(run.stages.graph())
        assert run.stages.artifacts["graph"].facts["failed"] == {kind: 1}
    again = ("execution.retry_failed=true",) if kind == "schema" else ()
    with cell(tmp_path, *tree, *again, backend=Model(lambda text: False).backend()) as run:
        graph = asyncio.run(run.stages.graph())
        assert "graph" in built(run)
        assert run.stages.artifacts["graph"].facts["failed"] == {}
        assert node_texts(graph, "auto") == node_texts(calm, "auto")


def test_what_stands_on_a_rebuilt_stage_is_rebuilt(tmp_path):
    """An extraction that failed in one chunk is made again, and with it the graph, its communities and their reports."""
    said = ("method=lgraphrag", "graph.describe=none", "graph.merge=cut", "community.reports=extractive")
    model = Model(lambda text: False)
    with cell(tmp_path / "calm", *said, backend=model.backend()) as run:
        calm = asyncio.run(run.stages.graph())
    lost = model.asked[0]
    with cell(tmp_path, *said, backend=Model(lambda text: text == lost, "timeout").backend()) as run:
        graph = asyncio.run(run.stages.graph())
        assert run.stages.artifacts["extraction"].facts["failed"] == {"timeout": 1}
        assert graph.n_communities > 0
    with cell(tmp_path, *said, backend=Model(lambda text: False).backend()) as run:
        graph = asyncio.run(run.stages.graph())
        assert built(run) >= {"extraction", "graph", "communities", "reports"}
        assert graph.statistics() == calm.statistics()


@pytest.mark.parametrize(("kind", "again"), [("schema", ("execution.retry_failed=true",)), ("timeout", ())])
def test_a_gleaning_round_that_fails_is_said_and_asked_again(tmp_path, kind, again):
    """It costs no chunk, and leaves one with less than it has."""
    said = ("method=lgraphrag", "graph.gleaning=1", "graph.merge=cut", "community.reports=extractive", "until=index")
    gleaning = "Some named things and relations of the passage"

    def lost(text):
        return text.startswith(gleaning)

    with cell(tmp_path, *said, backend=Model(lost, kind).backend()) as run:
        result = asyncio.run(run.run())
        facts = run.stages.artifacts["extraction"].facts
        assert facts["failed"] == {}
        assert failed_calls(facts) == {kind: facts["chunks"]}
        assert any(f"Extraction: {facts['chunks']} calls that would have added to it failed" in n for n in result.notes)
    if kind == "schema":
        with cell(tmp_path, *said, backend=unwanted_of(Model(lost, kind))) as run:
            assert run.stages.stale() == {}  # not tried again unasked
    mended = Model(lambda text: False)
    with cell(tmp_path, *said, *again, backend=mended.backend()) as run:
        assert set(run.stages.stale()) == {"extraction", "graph", "communities", "reports"}
        asyncio.run(run.stages.graph())
        assert failed_calls(run.stages.artifacts["extraction"].facts) == {}
    assert mended.asked and all(map(lost, mended.asked))  # finished replies are kept


def test_an_export_takes_the_graph_as_it_is_and_asks_nobody(tmp_path, monkeypatch):
    """A run would ask again what the server was to blame for; an export spends nothing."""
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"match": "Tolva", "fail": "timeout"}) + "\n")
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path / "store"))
    said = ["method=hipporag", *USUAL, f"llm.path={script}", f"output={tmp_path / 'out'}"]
    assert main(["run", *said, "until=graph"]) == 0
    (manifest,) = (tmp_path / "store").glob("graph/*/manifest.json")
    before = manifest.stat().st_mtime_ns, manifest.stat().st_ino
    assert main(["export", "graphml", f"--out={tmp_path / 'exported'}", *said]) == 0
    assert (manifest.stat().st_mtime_ns, manifest.stat().st_ino) == before


def test_a_plan_counts_what_a_run_will_ask_again(tmp_path):
    model = Model(lambda text: False)
    with cell(tmp_path / "calm", *REPORTED, backend=model.backend()) as run:
        asyncio.run(run.stages.graph())
    failing = Model(lambda text: text == model.asked[0], "timeout")
    with cell(tmp_path, *REPORTED, backend=failing.backend()) as run:
        asyncio.run(run.stages.graph())
    with cell(tmp_path, *REPORTED, backend=failing.backend()) as run:
        rows = {row.stage: row for row in Estimates(run).rows}
        assert rows["graph"].there and not rows["reports"].there


# -- graphs that bring their communities --


@pytest.fixture
def exported(tmp_path):
    """A folder with a graph of our own, communities and reports included."""
    with cell(tmp_path / "made", *LOCAL) as run:
        graph = asyncio.run(run.stages.graph())
    folder = tmp_path / "imported"
    folder.mkdir()
    graph.save(folder)
    return folder, graph


def test_communities_that_a_graph_brings_are_not_looked_for_again(tmp_path, exported):
    folder, graph = exported
    said = ("method=lgraphrag", "graph=imported", f"graph.path={folder}")
    with cell(tmp_path, *said, "until=retrieval", backend=unwanted()) as run:
        asyncio.run(run.run())
        assert {"communities", "reports", "extraction"}.isdisjoint(run.stages.artifacts)
        found = asyncio.run(run.stages.graph())
        assert found.reports.table.to_pylist() == graph.reports.table.to_pylist()
        np.testing.assert_array_equal(found.communities.parent, graph.communities.parent)
        assert run.config["community"] == {"clusterer": None}


def test_communities_asked_for_on_the_command_line_replace_those_that_came(tmp_path, exported):
    folder, graph = exported
    said = ("method=lgraphrag", "graph=imported", f"graph.path={folder}", "community=leiden", "community.max_size=3")
    with cell(tmp_path, *said, "community.reports=extractive") as run:
        found = asyncio.run(run.stages.graph())
        assert {"communities", "reports"} <= built(run)
        assert found.n_communities > graph.n_communities
        assert len(found.reports) == found.n_communities
    with pytest.raises(Faults) as refused, cell(tmp_path, *said, "community.reports=null"):
        pass
    (said_so,) = refused.value.faults  # the reports that came are not on the new communities
    assert "community.entity reads community.report, which the graph imported has not" in str(said_so)
    assert "community.reports=model" in said_so.fix


def test_saved_stages_can_be_opened_by_hand(tmp_path):
    with cell(tmp_path, *LOCAL) as run:
        graph = asyncio.run(run.stages.graph())
        found = run.stages.artifacts
        assert Graph.open(found["graph"].path).hierarchy is None  # communities are a stage of their own
        assert len(Hierarchy.open(found["communities"].path)) == graph.n_communities
        assert len(Reports.open(found["reports"].path)) == graph.n_communities
        assert "community" in graph.attributes
