"""Compositions of the operator pool: as many as the types allow, each once, each a method that runs."""

import asyncio
from itertools import permutations

import pytest
import yaml

from graphrag_bench.cells import cells
from graphrag_bench.config import sources
from graphrag_bench.config.overrides import expand, report
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.experiment import run_to_end
from graphrag_bench.pipeline.compositions import Space, choose, compositions
from graphrag_bench.preflight import probe_cells
from graphrag_bench.registry import REGISTRY

PAGE = sources.read_page(sources.page("experiment", "operators"))
GIVEN = ["experiment=operators", "dataset=sample", "graph.extractor=noun_phrase"]


def names(pool, depth=9, **fields):
    return [page["name"] for page in compositions(Space("chunks", tuple(pool), depth, **fields))]


def test_by_hand():
    assert names(["chunk.bm25"]) == ["chunk.bm25"]
    assert names(["relationship.aggregator", "chunk.aggregator"]) == []  # nothing makes nodes
    pool = ["node.link", "node.ppr", "relationship.aggregator", "chunk.aggregator", "chunk.of_nodes"]
    assert names(pool) == [
        "node.link > chunk.of_nodes",
        "node.link > node.ppr > chunk.of_nodes",
        "node.link > rel.aggregator > chunk.aggregator",
        "node.link > node.ppr > rel.aggregator > chunk.aggregator",
    ]
    assert names(pool, 2) == ["node.link > chunk.of_nodes"]
    assert names(reversed(pool)) == names(pool)


def test_variants_joins_and_optional_wires():
    pool = ["node.link", "node.vdb", "node.ppr", "chunk.of_nodes"]
    variants = {"node.ppr": [{"damping": 0.5}, {"damping": 0.85, "weighted": False}]}
    found = names(pool, variants=variants, joins={"node.ppr": 2})
    assert "node.link + node.vdb > node.ppr(damping 0.85, not weighted) > chunk.of_nodes" in found
    assert len(found) == 2 + 2 * 3
    # onehop may walk relationships or leave that wire empty
    assert names(["node.link", "node.onehop", "relationship.vdb", "chunk.of_nodes"])[1:] == [
        "node.link > node.onehop > chunk.of_nodes",
        "[node.link; rel.vdb] > node.onehop > chunk.of_nodes",
    ]
    # of two wires that may both stay empty one is fed; a variant can keep one empty
    pool = ["node.link", "relationship.vdb", "chunk.occurrence"]
    assert names(pool) == [
        "node.link > chunk.occurrence", "rel.vdb > chunk.occurrence", "[rel.vdb; node.link] > chunk.occurrence",
    ]  # fmt: skip
    assert names(pool, variants={"chunk.occurrence": [{"rank": "nodes", "relationships": None}]}) == [
        "node.link > chunk.occurrence(nodes)"
    ]


def test_two_symmetric_wires_are_taken_in_one_order_and_by_two_values():
    assert names(["chunk.bm25", "chunk.vdb", "chunk.fuse"])[2:] == ["[chunk.bm25; chunk.vdb] > chunk.fuse"]


def test_the_page_of_a_composition():
    pool = ("node.link", "node.ppr", "chunk.of_nodes")
    method = {"top_k": 4, "question": {"entities": {"by": "rule"}, "keywords": {"by": "model"}}}
    assert compositions(Space("chunks", pool, 3, method=method))[-1] == {
        "name": "node.link > node.ppr > chunk.of_nodes",
        "top_k": 4,
        "question": {"entities": {"by": "rule"}},
        "retrieve": {
            "node_link": {"operator": "node.link"},
            "node_ppr": {"operator": "node.ppr", "seeds": "node_link"},
            "chunk_of_nodes": {"operator": "chunk.of_nodes", "top_k": "${retrieval_depth}", "nodes": "node_ppr"},
        },
        "context": {"chunks": {"from": "chunk_of_nodes", "top_k": "${method.top_k}"}},
    }


def graph_of(page):
    """What a composition is, whatever its steps are called: operator -> settings, and what feeds each wire."""
    steps = page["retrieve"]

    def told(name):
        values = dict(steps[name])
        component = REGISTRY.get("operator", values.pop("operator"))
        wired = {port.name: values.pop(port.name) for port in component.ports if port.name in values}
        fed = {
            port: sorted(told(one) for one in (names if isinstance(names, list) else [names]))
            for port, names in wired.items() if names is not None
        }  # fmt: skip
        if twins := component.extra.get("symmetric"):
            fed = {str(number): told for number, told in enumerate(sorted(fed[twin] for twin in twins))}
        return repr((component.name, sorted(values.items(), key=repr), sorted(fed.items())))

    return told(page["context"]["chunks"]["from"])


def test_the_experiment_has_more_than_a_hundred_all_different_all_typed_the_same_each_time():
    pages, left_out = choose(PAGE["compose"], "page")
    assert len(pages) >= 100
    assert left_out == 0
    assert choose(PAGE["compose"], "page") == (pages, 0)
    assert len({page["name"] for page in pages.values()}) == len(pages)
    assert len({graph_of(page) for page in pages.values()}) == len(pages)
    assert all(len(slug) <= 70 and set(slug) & set("/ >(") == set() for slug in pages)
    for page in pages.values():
        made = {}
        for name, values in page["retrieve"].items():
            component = REGISTRY.get("operator", values["operator"])
            for port in component.ports:
                feeds = values.get(port.name) or []
                assert all(made[one] is port.annotation for one in ([feeds] if isinstance(feeds, str) else feeds))
            made[name] = component.returns
    chains = {page["name"] for page in pages.values()}
    assert "node.link > node.ppr(0.5) > rel.aggregator > chunk.aggregator" in chains  # HippoRAG's
    assert "chunk.vdb" in chains  # VanillaRAG's


def test_every_composition_passes_the_planner_and_the_probe():
    checked, _ = cells(GIVEN)
    assert len(checked) == len(choose(PAGE["compose"], "page")[0])
    asyncio.run(probe_cells(checked))
    assert len({cell.folder("sample") for cell in checked}) == len(checked)
    assert {cell.config["graph"]["extractor"] for cell in checked if cell.config["graph"]["builder"]} == {"noun_phrase"}


def test_an_operator_more_only_adds():
    spec = PAGE["compose"]
    whole = {page["name"] for page in choose(spec, "")[0].values()}
    variants = {name: found for name, found in spec["variants"].items() if name != "chunk.occurrence"}
    less = spec | {"pool": [name for name in spec["pool"] if name != "chunk.occurrence"], "variants": variants}
    without = {page["name"] for page in choose(less, "")[0].values()}
    assert without < whole
    assert all("chunk.occurrence" in name for name in whole - without)
    more = {
        page["name"] for page in choose(spec | {"pool": [*spec["pool"], "node.rel_node"], "most": None}, "")[0].values()
    }
    assert whole < more


def test_most_keeps_the_shortest_and_says_how_many_it_left_out(pages):
    pages(
        "experiment/few.yaml",
        yaml.safe_dump({"overrides": PAGE["overrides"], "compose": PAGE["compose"] | {"most": 5}}),
    )
    checked, notices = cells(["experiment=few", "dataset=sample", "graph.extractor=noun_phrase"])
    assert max(len(cell.plan.steps) for cell in checked) == 2
    assert len(checked) == 5
    assert notices[0].endswith("longer compositions were left out (most: 5).")


def test_what_is_typed_stands_above_the_compositions(pages):
    few = {"pool": ["node.link", "chunk.of_nodes", "chunk.vdb"], "depth": 2, "method": PAGE["compose"]["method"]}
    pages("experiment/few.yaml", yaml.safe_dump({"compose": few, "sweep": {"method": ["bm25"]}}))
    typed = ["experiment=few", "dataset=sample", "graph.extractor=noun_phrase", "until=retrieval"]
    checked, _ = cells([*typed, "method.retrieve.node_link.top_k=3", "graph=tkg", "graph.extractor=noun_phrase"])
    assert [cell.config["method"]["name"] for cell in checked] == ["BM25", "chunk.vdb", "node.link > chunk.of_nodes"]
    assert checked[-1].config["method"]["retrieve"]["node_link"]["top_k"] == 3
    assert checked[-1].config["graph"]["builder"] == "tkg"
    assert checked[-1].config["method"]["question"] == {"entities": {"by": "rule"}}
    assert "question" not in checked[1].config["method"]
    assert [cell.method for cell in cells(["experiment=few", "dataset=sample", "method=vanilla"])[0]] == ["vanilla"]


def test_a_run_prints_the_leaderboard_and_the_front_and_is_resumed(pages, tmp_path):
    few = {"pool": ["node.link", "chunk.of_nodes", "chunk.bm25"], "depth": 2, "method": PAGE["compose"]["method"]}
    wanted = {"leaderboard": "recall@2", "pareto": "recall@2"}
    pages("experiment/few.yaml", yaml.safe_dump({"overrides": PAGE["overrides"], "compose": few, "report": wanted}))
    run = [
        "experiment=few", "dataset=sample", "dataset.subset=demo", "graph.extractor=noun_phrase", "embedder=hashing",
        f"output={tmp_path / 'out'}", "logging.display=none", "evaluation.bootstrap=50",
    ]  # fmt: skip
    said: list[str] = []
    results = run_to_end(run, out=said.append, store=tmp_path / "store")
    assert [result.method for result in results] == ["chunk.bm25", "node.link > chunk.of_nodes"]
    assert "Retrieval was run 3 times; its seconds are those of the fastest." in said[0]
    assert "Pareto front on" in said[0]
    written = {path.name for path in (tmp_path / "out").iterdir() if path.is_file()}
    assert written == {
        "table.md", "table.json", "leaderboard.md", "leaderboard.json", "pareto.md", "pareto.json", "pareto.svg",
    }  # fmt: skip
    again: list[str] = []
    assert run_to_end(run, out=again.append, store=tmp_path / "store") == results
    assert again[0] == said[0]


def test_a_composition_without_its_converter_is_loud(pages):
    pages("experiment/bad.yaml", yaml.safe_dump({"compose": {"pool": ["node.link", "chunk.of_nodes"], "depth": 2}}))
    with pytest.raises(Faults) as caught:
        cells(["experiment=bad", "dataset=sample", "graph=kg", "graph.extractor=noun_phrase"])
    assert (
        "conf/experiment/bad.yaml:1, method=node.link > chunk.of_nodes: node.link reads the questions' entities"
        in str(caught.value)
    )


def test_what_is_wrong_with_many_compositions_is_said_once():
    with pytest.raises(Faults) as caught:
        cells(["experiment=operators", "dataset=sample", "graph=none"])
    problems = [fault.problem for fault in caught.value.faults]
    assert len(problems) < 20
    assert sum("node.link reads the graph, and this method builds no graph" in problem for problem in problems) == 1


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("[]", "compose says what compositions are made of"),
        ("{depth: 2}", "compose needs the setting pool"),
        ("{depth: 2, pool: [node.lnk]}", "No operator is called 'node.lnk'. Did you mean node.link?"),
        ("{depth: 2, pool: [node.agent]}", "The operator node.agent asks a model"),
        ("{depth: 2, pool: [node.link]}", "No composition of this pool and depth ends as asked"),
        (
            "{depth: 2, pool: [chunk.vdb], variants: {chunk.bm25: [{}]}}",
            "variants names chunk.bm25, which is not in the pool",
        ),
        ("{depth: 2, pool: [chunk.vdb], joins: {node.ppr: 2}}", "joins names node.ppr"),
        ("{depth: 2, pool: [chunk.vdb], into: chunk}", "compose wants into as"),
        ("{depth: 2, pool: [chunk.vdb], most: 0}", "compose wants most to be at least 1"),
        ("{depth: 2, pool: [chunk.vdb], pol: 1}", "compose has no setting 'pol'"),
        ("{depth: 2, pool: [chunk.vdb], variants: {chunk.vdb: [{}, {}]}}", "Two compositions read 'chunk.vdb'"),
    ],
)
def test_a_broken_page(pages, spec, says):
    pages("experiment/bad.yaml", f"description: x\ncompose: {spec}")
    with pytest.raises(UserError) as caught:
        expand(["experiment=bad"], False)
    assert says in str(caught.value)
    assert "conf/experiment/bad.yaml:2: " in str(caught.value)


def test_what_a_page_wants_reported(pages):
    assert report(["experiment=operators", "seed=1"]) == {"leaderboard": "recall@5", "pareto": "recall@5"}
    assert report(["experiment=demo"]) == report(["method=bm25"]) == {}
    for text, says in {
        "{parto: recall@5}": "experiment/bad.yaml:1: there is no report called 'parto'. Did you mean pareto?",
        "{pareto: recal@5}": "experiment/bad.yaml:1: No metric is called 'recal@5'",
        "[pareto]": "experiment/bad.yaml:1: report is a mapping of a report to its metric",
    }.items():
        pages("experiment/bad.yaml", f"report: {text}")
        with pytest.raises(UserError) as caught:
            report(["experiment=bad"])
        assert says in str(caught.value)


def test_the_order_of_the_pool_says_nothing():
    pool = ["node.link", "node.vdb", "chunk.of_nodes", "chunk.fuse"]
    assert len({tuple(names(order, joins={"chunk.of_nodes": 2})) for order in permutations(pool)}) == 1
