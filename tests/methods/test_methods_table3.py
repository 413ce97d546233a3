"""Table 3 of the unified paper, method by method: the pages' operators, their first lines, and the original pages."""

import itertools
from functools import cache

import pytest

from graphrag_bench.cells import cells
from graphrag_bench.config import sources
from graphrag_bench.pipeline.method import Plan

COLUMNS = ("node", "relationship", "chunk", "subgraph", "community")
# METHODS §1 ([P] of each method) and, for the last six, §1.14 and §1.13. The paper's slips, corrected as METHODS §2.1 and
# STYLE §2.1 say: the node cell FromRel of GLightRAG and HLightRAG is the operator its text calls RelNode; the row RGraphRAG
# is GGraphRAG. "+" is a list: in sequence, side by side, or joined; in the order of the page.
TABLE_3 = {
    "zeroshot": "- | - | - | - | -",
    "vanilla": "- | - | VDB | - | -",
    "raptor": "VDB | - | - | - | -",
    "raptor_k": "VDB | - | - | - | -",
    "kgp": "TF-IDF | - | - | - | -",
    "hipporag": "Link + PPR | Aggregator | Aggregator | - | -",
    "hipporag_ircot": "Link + PPR | Aggregator | Aggregator | - | -",
    "g_retriever": "VDB | VDB | - | Steiner | -",
    "tog": "Link + Onehop + Agent | Onehop + Agent | - | - | -",
    "dalk": "Link + Onehop + Agent | - | - | KhopPath + AgentPath | -",
    "lgraphrag": "VDB | Onehop | Occurrence | - | Entity",
    "ggraphrag": "- | - | - | - | Layer",
    "fastgraphrag": "Link + VDB + PPR | Aggregator | Aggregator | - | -",
    "llightrag": "VDB | Onehop | Occurrence | - | -",
    "glightrag": "RelNode | VDB | FromRel | - | -",
    "hlightrag": "VDB + RelNode | Onehop + VDB | Occurrence + FromRel | - | -",
    "vgraphrag": "VDB | Onehop | VDB | - | VDB",
    "vgraphrag_cc": "- | - | VDB | - | VDB",
    "graphrag_er": "VDB | Onehop | - | - | -",
    "graphrag_cc": "VDB | Onehop | Occurrence | - | Entity",
    "cheaprag": "- | - | VDB | - | VDB",
    # after the paper
    "hipporag2": "Ends | Link + Filter | VDB + PPR | - | -",
    "kag": "Exact + Link | Onehop + Similar | PPR + VDB + Fuse | - | -",
    "hirag": "VDB + TopInCommunity | - | Occurrence | Bridge | Entity",
    "hirag_no_index": "VDB + TopInCommunity | - | Occurrence | Bridge | Entity",
    "hirag_no_bridge": "VDB | - | Occurrence | - | Entity",
    "ket_rag": "TypedVDB | Onehop | Occurrence + NearNodes + Fuse | - | -",
    # ArchRAG and its ablations, and GraphRAG's global search over its communities
    **dict.fromkeys(
        ("archrag", "archrag_spec", "archrag_spec_noaug", "archrag_leiden", "archrag_single", "archrag_direct"),
        "- | Onehop + Similar | - | - | Hierarchical",
    ),
    "archrag_entity": "VDB | Onehop + Similar | - | - | -",
    "graphrag_ac": "- | - | - | - | Layer",
    # the conditions of the GraphRAG paper (section 4.1.2)
    **dict.fromkeys(("graphrag_c0", "graphrag_c1", "graphrag_c2", "graphrag_c3"), "- | - | - | - | Layer"),
    "graphrag_ts": "- | - | All | - | -",
    "graphrag_ss": "- | - | VDB | - | -",
    # baselines of ours, not of the paper
    "bm25": "- | - | BM25 | - | -",
    "cot": "- | - | - | - | -",
}
OF_THE_PAPER = {
    "zeroshot",
    "vanilla",
    "raptor",
    "kgp",
    "hipporag",
    "g_retriever",
    "tog",
    "dalk",
    "lgraphrag",
    "ggraphrag",
    "fastgraphrag",
    "llightrag",
    "glightrag",
    "hlightrag",
}
SPELLED = {
    "node.vdb": "VDB", "node.rel_node": "RelNode", "node.ppr": "PPR", "node.agent": "Agent", "node.onehop": "Onehop",
    "node.link": "Link", "node.tfidf": "TF-IDF",
    "relationship.vdb": "VDB", "relationship.onehop": "Onehop", "relationship.aggregator": "Aggregator",
    "relationship.agent": "Agent",
    "chunk.aggregator": "Aggregator", "chunk.from_rel": "FromRel", "chunk.occurrence": "Occurrence",
    "subgraph.khop_path": "KhopPath", "subgraph.steiner": "Steiner", "subgraph.agent_path": "AgentPath",
    "community.entity": "Entity", "community.layer": "Layer",
    # not among the 19: of HippoRAG 2 and KAG
    "node.ends": "Ends", "node.exact": "Exact", "relationship.link": "Link", "relationship.filter": "Filter",
    "relationship.similar": "Similar", "chunk.ppr": "PPR", "chunk.fuse": "Fuse",
    # not among the 19: of HiRAG and KET-RAG
    "node.top_in_community": "TopInCommunity", "subgraph.bridge": "Bridge", "node.typed_vdb": "TypedVDB",
    "chunk.near_nodes": "NearNodes",
    # not among the 19: of ArchRAG
    "community.hierarchical": "Hierarchical",
    # not among the 19: METHODS §2, "Extra", and the baseline
    "chunk.vdb": "VDB", "community.vdb": "VDB", "chunk.bm25": "BM25", "chunk.all": "All",
}  # fmt: skip
# What stands in no column of Table 3, and why a page may use it all the same.
HELPERS = {
    ("hipporag_ircot", "question.thought"): "IRCoT's thought is the text of the next round",
    ("tog", "frontier.start"): "a walk begins at the linked entities; the agents carry it on (METHODS §2.1, agents)",
    ("tog", "subgraph.grow"): "the facts of all rounds are kept as paths, the context; the paper keeps them in the agents",
    ("tog", "question.enough"): "the model says when what was found suffices, and the loop ends early",
    ("dalk", "frontier.start"): "the node agent reads a frontier: here the linked entities themselves",
    ("hipporag2", "chunk.otherwise"): "a question none of whose facts is kept is answered from dense retrieval",
    ("kag", "question.plan"): "KAG's solver plans: the steps that a question is looked up in",
    ("kag", "question.start"): "the notes, which every step adds to, begin empty",
    ("kag", "question.step"): "the next step, with the answers it names, is what a round looks for",
    ("kag", "question.deduce"): "a step's answer is noted, for later steps and for the last answer",
    ("kag", "question.reflect"): "after its steps the model says what is missing, or ends the loop",
    ("kgp", "question.evidence"): "the model says which evidence is wanted next; Table 3 shows the two TF-IDF around it alone",
}  # fmt: skip
PAGES = sorted(name for name in sources.pages("method") if not name.startswith("original/"))
ORIGINALS = sorted(name for name in sources.pages("method") if name.startswith("original/"))
# The comment of a page that has nothing of the five columns says that in words.
WORDS = {"zeroshot": "The question alone.", "cot": "The question alone, with reasoning before the answer."}


@cache
def plan_of(name: str) -> Plan:
    return cells([f"method={name}"])[0][0].plan


def row(name: str) -> str:
    """Return a plan's operators by column, each once in a column, in the order of the page; helpers left out."""
    found: dict[str, list[str]] = {column: [] for column in COLUMNS}
    for step in plan_of(name).operators:
        operator = step.component.name
        if (name.removeprefix("original/"), operator) in HELPERS:
            continue
        assert operator in SPELLED, (
            f"{name} uses {operator}, which is in no column of Table 3, and no helper that is explained"
        )
        found[operator.partition(".")[0]].append(SPELLED[operator])
    return " | ".join(" + ".join(dict.fromkeys(names)) or "-" for names in found.values())


def first_line(name: str) -> str:
    """Return the row that a page's first line says; what follows it after a wider gap is a remark."""
    line = sources.page("method", name).read_text("utf-8").partition("\n")[0]
    assert line.startswith("# ")
    return line.removeprefix("# ").partition("   ")[0].strip()


def test_every_page_has_a_row_here():
    assert set(PAGES) == set(TABLE_3)
    assert {name.removeprefix("original/") for name in ORIGINALS} <= set(TABLE_3)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_operators_of_its_row(name):
    ours, table = row(name).split(" | "), TABLE_3[name].split(" | ")
    for column, said, printed in zip(COLUMNS, ours, table, strict=True):
        assert sorted(said.split(" + ")) == sorted(printed.split(" + ")), f"{name}: {column}"


@pytest.mark.parametrize("name", sorted(set(PAGES) - WORDS.keys()))
def test_the_first_line_says_the_row(name):
    assert first_line(name) == TABLE_3[name]


@pytest.mark.parametrize("name", sorted(WORDS))
def test_the_first_line_says_that_there_is_no_row(name):
    assert first_line(name) == WORDS[name]
    assert row(name) == "- | - | - | - | -"


@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_page_has_the_row_of_its_page(name):
    page = name.removeprefix("original/")
    assert row(name) == row(page)
    assert first_line(name) == first_line(page) == TABLE_3[page]
    assert [step.component.name for step in plan_of(name).operators] == [
        step.component.name for step in plan_of(page).operators
    ]


@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_page_stands_on_the_graph_of_its_page(name):
    ours = cells([f"method={name}"])[0][0]
    page = cells([f"method={name.removeprefix('original/')}"])[0][0]
    assert (ours.ground, ours.choices["graph"]) == (page.ground, page.choices["graph"])


def test_every_helper_is_used_where_it_is_explained():
    used = {(name, step.component.name) for name in PAGES for step in plan_of(name).operators}
    assert HELPERS.keys() <= used
    assert all(operator not in SPELLED for _, operator in HELPERS)


def test_the_nineteen_operators_are_all_in_use():
    nineteen = list(itertools.islice(SPELLED, 19))
    used = {step.component.name for name in OF_THE_PAPER for step in plan_of(name).operators}
    assert set(nineteen) <= used
    assert [sum(name.startswith(f"{column}.") for name in nineteen) for column in COLUMNS] == [7, 4, 3, 3, 2]


@pytest.mark.parametrize(("name", "graph"), [
    ("raptor", "tree"), ("raptor_k", "tree_k"), ("kgp", "passage"), ("hipporag", "kg"), ("g_retriever", "kg"), ("tog", "kg"),
    ("dalk", "kg"), ("lgraphrag", "tkg"), ("ggraphrag", "tkg"), ("fastgraphrag", "tkg"), ("llightrag", "rkg"),
    ("glightrag", "rkg"), ("hlightrag", "rkg"), ("zeroshot", "none"), ("vanilla", "none"),
])  # fmt: skip
def test_a_method_requires_the_graph_of_table_1(name, graph):
    assert cells([f"method={name}"])[0][0].choices["graph"] == graph


@pytest.mark.parametrize(("name", "seeds"), [("hipporag", ["linked"]), ("fastgraphrag", ["linked", "similar"])])
def test_what_plus_means_is_wired(name, seeds):
    """Link + PPR is a sequence; Link + VDB + PPR seeds PPR with both."""
    ranked = next(step for step in plan_of(name).operators if step.component.name == "node.ppr")
    assert list(ranked.wires["seeds"]) == seeds


def test_the_two_branches_of_hlightrag_stay_apart():
    steps = {step.name: step for step in plan_of("hlightrag").operators}
    assert steps["low_chunks"].wires["relationships"] == ("low_relationships",)
    assert steps["high_chunks"].wires["relationships"] == ("high_relationships",)
    assert steps["high_entities"].wires["relationships"] == ("high_relationships",)


def test_the_chunk_aggregator_reads_the_relationship_aggregator():
    """The paper's text says it reads "the Link operator in the relationship type", which does not exist."""
    for name in ("hipporag", "fastgraphrag"):
        steps = {step.name: step for step in plan_of(name).operators}
        chunks = next(step for step in steps.values() if step.component.name == "chunk.aggregator")
        (read,) = chunks.wires["relationships"]
        assert steps[read].component.name == "relationship.aggregator"
