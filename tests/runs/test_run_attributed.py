"""Attributed communities within a run: reports written while the hierarchy grows, handed on, mended, paid for once."""

import asyncio
import json
from contextlib import contextmanager

import numpy as np
import pytest

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.errors import UserError
from graphrag_bench.estimates import Estimates
from graphrag_bench.graph.communities import Hierarchy, Reports
from graphrag_bench.index.hierarchy import HierarchyIndex
from graphrag_bench.index.vectors import CommunityVectors
from graphrag_bench.llm.backends._instances import instance, short_text
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError
from graphrag_bench.session import Session

FREE = ("graph.extractor=noun_phrase", "graph.describe=name+triples", "graph.merge=cut")
LAYERED = (
    "method=archrag", *FREE, "community.min_communities=2", "community.max_size=4", "index=exact",
)  # fmt: skip
USUAL = ("dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=none", "evaluation.bootstrap=20")
SAME_BYTES = ("answers.jsonl", "per_question.jsonl", "contexts.jsonl")


class Model:
    """Writes reports by the schema; fails where ``fails(number of the call, its text)`` says so, with an exception or by kind."""

    def __init__(self, fails=lambda number, text: None):
        self.fails, self.asked = fails, []

    def backend(self):
        def reply(messages, schema):
            text = messages[-1].text
            fault = self.fails(len(self.asked), text)
            self.asked.append(text)
            if isinstance(fault, str):
                raise CallError(fault, "said so", retry=False)
            if fault is not None:
                raise fault
            return json.dumps(instance(schema, text, "0.0")) if schema else short_text(text, "0.0")

        return Scripted.of(reply, name="a model")


def unasked():
    return Model(lambda number, text: pytest.fail("a model was asked")).backend()


@contextmanager
def cell(tmp_path, *overrides, backend):
    (checked,), _ = cells([*USUAL, f"output={tmp_path / 'out'}", *LAYERED, *overrides])
    session = Session(tmp_path / "store")
    session.use_backend(checked.config, backend)
    try:
        yield CellRun(session, checked)
    finally:
        asyncio.run(session.__aexit__())


def made(run):
    return asyncio.run(run.stages.graph())


def built(run):
    return {name for name, artifact in run.stages.artifacts.items() if artifact.built}


def shape(graph):
    hierarchy = graph.communities
    return (
        hierarchy.level.tolist(),
        hierarchy.parent.tolist(),
        [hierarchy.nodes(c).tolist() for c in range(len(hierarchy))],
    )


def facts_of(run, stage):
    return run.stages.artifacts[stage].facts


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A hierarchy of several layers whose reports were all written, and what was asked for them."""
    folder, model = tmp_path_factory.mktemp("calm"), Model()
    with cell(folder, backend=model.backend()) as run:
        graph = made(run)
        spent = {stage: facts_of(run, stage).get("spent") for stage in ("communities", "reports")}
        assert {"communities", "reports"} <= built(run)
        one, other = (Reports.open(run.stages.artifacts[stage].path) for stage in ("communities", "reports"))
        assert one.table.equals(other.table)
        assert len(Hierarchy.open(run.stages.artifacts["communities"].path)) == graph.n_communities
    assert graph.communities.level.max() >= 1
    return folder, graph, model.asked, spent


def test_every_community_is_reported_on_once_while_the_hierarchy_grows(calm):
    folder, graph, asked, spent = calm
    assert len(asked) == len(set(asked)) == graph.n_communities == len(graph.reports)
    assert graph.reports.failed == {}
    assert spent["communities"] is None, "one stage tells what reports cost"
    assert spent["reports"]["calls"] == len(asked)
    with cell(folder, backend=unasked()) as run:
        again = made(run)
        assert built(run) == set() and shape(again) == shape(graph)
        assert again.reports.table.equals(graph.reports.table)


def test_what_the_reports_cost_stands_once_in_the_costs_of_a_run(tmp_path, calm):
    _, _, asked, _ = calm
    model = Model()
    with cell(tmp_path, "until=retrieval", "limit=2", backend=model.backend()) as run:
        result = asyncio.run(run.run())
        costs = json.loads((run.folder / "costs.json").read_text("utf-8"))
    assert model.asked == asked
    assert costs["ledger"]["total"]["calls"] == len(asked)
    made_of = costs["artifacts"]
    index = {stage: found.get("spent", {}).get("calls", 0) for stage, found in made_of.items()}
    assert sum(index.values()) == index["reports"] == len(asked)
    clustering, reporting = made_of["communities"], made_of["reports"]
    assert clustering["reports_seconds"] == reporting["seconds"] > 0
    own = clustering["seconds"] - clustering["reports_seconds"] - clustering["embedding_seconds"]
    assert result.seconds["index.communities"] == pytest.approx(max(own, 0), abs=1e-3)
    assert result.seconds["index.reports"] == pytest.approx(
        max(reporting["seconds"], reporting["spent"]["seconds"]), abs=1e-3
    )


@pytest.mark.parametrize(("kind", "again"), [("schema", ("execution.retry_failed=true",)), ("timeout", ())])
def test_a_report_that_failed_is_asked_again_and_the_layers_upon_it_are_made_anew(tmp_path, calm, kind, again):
    _, graph, asked, _ = calm
    failing = Model(lambda number, text: kind if text == asked[0] else None)
    with cell(tmp_path, backend=failing.backend()) as run:
        found = made(run)
        ((_, reason),) = found.reports.failed.items()
        assert reason.startswith(f"{kind}: ")
        index = asyncio.run(run.indexes.lend([HierarchyIndex]))[HierarchyIndex]
        (lost,) = found.reports.failed
        assert (
            not index.communities.matrix[lost].any()
            and index.communities.matrix.any(axis=1).sum() == len(found.reports) - 1
        )
        assert all(lost not in layer for layer in index.layers)
        alone = asyncio.run(run.indexes.lend([CommunityVectors]))[CommunityVectors]
        np.testing.assert_array_equal(alone.matrix, index.communities.matrix)
        assert facts_of(run, "communities")["failed"] == facts_of(run, "reports")["failed"] == {kind: 1}
    if kind == "schema":
        with cell(tmp_path, backend=unasked()) as run:
            assert len(made(run).reports.failed) == 1  # not tried again unasked
            assert built(run) == set()
            there = {row.stage: row.there for row in Estimates(run).rows}
            assert there["communities"] and there["reports"] and there["community vectors"]
    mended = Model()
    with cell(tmp_path, *again, backend=mended.backend()) as run:
        found = made(run)
        assert built(run) == {"communities", "reports"}
    assert found.reports.failed == {} and shape(found) == shape(graph)
    assert found.reports.table.equals(graph.reports.table)
    assert mended.asked[0] == asked[0] and set(mended.asked) <= set(asked) and len(mended.asked) < len(asked)


def test_a_run_that_died_goes_on_where_it_was(tmp_path, calm):
    _, graph, asked, _ = calm
    half = len(asked) // 2
    dying = Model(lambda number, text: OSError("the machine went down") if number >= half else None)
    with (
        cell(tmp_path, "execution.concurrency=1", backend=dying.backend()) as run,
        pytest.raises(OSError, match="went down"),
    ):
        made(run)
    store = tmp_path / "store"
    assert not list(store.glob("communities/*/*.parquet")) and not list(store.glob("reports/*/*.parquet"))
    resumed = Model()
    with cell(tmp_path, backend=resumed.backend()) as run:
        found = made(run)
        assert facts_of(run, "reports")["spent"]["calls"] >= len(resumed.asked)
    assert shape(found) == shape(graph) and found.reports.table.equals(graph.reports.table)
    assert sorted(dying.asked[:half] + resumed.asked) == sorted(asked)


def test_reports_below_the_floor_stop_it_and_leave_no_communities(tmp_path):
    every = Model(lambda number, text: "schema")
    with (
        cell(tmp_path, backend=every.backend()) as run,
        pytest.raises(UserError, match="Writing reports stopped: only 0%"),
    ):
        made(run)
    store = tmp_path / "store"
    assert not list(store.glob("communities/*/*.parquet")) and not list(store.glob("reports/*/*.parquet"))


def test_communities_hang_on_the_reporter_only_where_it_is_asked_for_them(tmp_path):
    def keys(*overrides):
        with cell(tmp_path, *overrides, backend=unasked()) as run:
            return run.stages.hierarchy_spec().key, run.stages.reports_spec().key

    usual = keys()
    for said in ("community.reports=extractive", "community.report_tokens=99", "community.augment=none"):
        assert all(a != b for a, b in zip(keys(said), usual, strict=True)), said
    members = keys("community.vectors=members")
    fewer = keys("community.vectors=members", "community.report_tokens=99")
    assert members[0] == fewer[0] != usual[0] and members[1] != fewer[1]


@pytest.mark.parametrize("index", ["chnsw", "hnswlib"])
def test_the_index_over_the_layers_is_an_artifact_that_opens_again(tmp_path, index):
    pytest.importorskip(index)
    said = (f"index={index}", "community.reports=extractive")
    found = []
    for attempt in range(2):
        with cell(tmp_path, *said, backend=unasked()) as run:
            hierarchy = asyncio.run(run.indexes.lend([HierarchyIndex]))[HierarchyIndex]
            texts = run.dataset.questions[0].text, "who"
            found.append([[(i.tolist(), s.tolist()) for i, s in layer] for layer in hierarchy.search(texts, 3)])
            assert ("hierarchy index" in built(run)) == (attempt == 0)
            graph = made(run)
            assert len(hierarchy.layers) == graph.communities.level.max() + 1
            assert np.array_equal(np.sort(np.concatenate(hierarchy.layers)), np.arange(graph.n_communities))
    assert found[0] == found[1]


def test_a_run_without_a_model_is_the_same_by_every_index_and_by_every_start(bench):
    said = (*LAYERED[:-1], "community.reports=extractive", "until=retrieval", "limit=6", "llm=scripted")
    files = []
    for index in ("exact", "chnsw"):
        for fresh in (False, True):
            done = bench.run(*said, f"index={index}", f"output={bench.root / f'{index}{fresh}'}")
            assert done.code == 0, done.err
            where = bench.root / f"{index}{fresh}" / "archrag" / "sample-demo"
            files.append([(where / name).read_bytes() for name in SAME_BYTES if (where / name).exists()])
    assert files[0] and all(other == files[0] for other in files[1:])


def test_a_graph_in_which_no_community_is_found_is_said(bench):
    said = (*LAYERED, "community.reports=extractive", "community.min_communities=500", "until=retrieval", "limit=2")
    done = bench.run(*said)
    assert done.code == 0 and "No communities were found (stopped by min_communities)" in done.out + done.err
