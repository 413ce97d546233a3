"""What a page becomes, and every fault it can have, all at once and each with its line."""

from typing import NamedTuple

import pytest

from graphrag_bench.graph.graph import Graph
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks, Nodes, Relationships

HIPPORAG = """\
name: HippoRAG
top_k: 4
question: {entities: {by: rule}}
retrieve:
  linked: {operator: node.link}
  ranked: {operator: node.ppr, damping: 0.5, seeds: linked}
  relationships: {operator: relationship.aggregator, nodes: ranked}
  chunks: {operator: chunk.aggregator}
context: {chunks: {from: chunks, top_k: 4}}
answer: {generator: direct}
"""


def faults(planner, text, graph="kg"):
    made = planner(text, graph)
    assert (made.plan() is None) == bool(made.faults)
    return [f"{fault.problem} | {fault.fix}" for fault in made.faults]


def test_a_good_page_becomes_a_plan(planner):
    made = planner(HIPPORAG)
    plan = made.plan()
    assert made.faults == []
    assert [(step.name, step.component.name, dict(step.wires)) for step in plan.steps] == [
        ("linked", "node.link", {}),
        ("ranked", "node.ppr", {"seeds": ("linked",)}),
        ("relationships", "relationship.aggregator", {"nodes": ("ranked",)}),
        ("chunks", "chunk.aggregator", {"relationships": ("relationships",)}),  # left out: exactly one value fits
    ]
    assert plan.steps[1].settings | {"damping": 0.5, "weighted": True, "top_k": None} == plan.steps[1].settings
    assert [(s.name, s.sources, s.kind, s.top_k, s.tokens) for s in plan.sections] == [
        ("chunks", ("chunks",), Chunks, 4, None)
    ]
    assert plan.generator[0].name == "direct"
    assert [component.name for component in plan.components] == [
        "entities.rule",
        "node.link",
        "node.ppr",
        "relationship.aggregator",
        "chunk.aggregator",
        "direct",
    ]
    assert {loan.__name__ for loan in plan.loans} == {"Questions", "Graph", "NodeVectors"}
    assert plan.line() == (
        "entities.rule > node.link > node.ppr(linked) > relationship.aggregator(ranked) > "
        "chunk.aggregator(relationships) > context(chunks) > direct"
    )


BROKEN = """\
nme: Broken
top_k: four
requires: {grph: kg}
question:
  entities: {by: modl}
  keywords: 3
retrieve:
  linked: {operator: node.lnk}
  seeded: {operator: node.link, by: entities, wieght: specificity}
  ranked: {operator: node.ppr, seeds: seded, damping: high}
  mixed: {operator: node.ppr, seeds: [seeded, ranked], join: mean}
  twice: {operator: relationship.aggregator}
  wrong: {operator: chunk.aggregator, relationships: mixed}
  cut: {operator: chunk.bm25, top_k: 0}
  nothing: {nodes: ranked}
context:
  seen: {from: [ranked, cut]}
  chunks: {from: chnks, tokens: many}
  cut: {form: cut}
answer: {generator: direct, short_answers: true}
"""


def test_all_the_faults_of_a_page_are_told_at_once_each_with_its_line(planner):
    found = faults(planner, BROKEN)
    wanted = [
        (1, "no setting 'nme'", "Did you mean name?"),
        (1, "has no name", "Write name"),
        (2, "top_k as int | null, and found 'four'", ""),
        (3, "group 'grph'", "graph"),
        (5, "no converter is called 'entities.modl'", "Did you mean entities.model?"),
        (6, "keywords does not say by what", ""),
        (8, "no operator is called 'node.lnk'", "Did you mean node.link?"),
        (9, "no setting 'wieght'", "Did you mean weight?"),
        (10, "takes 'seded' as seeds", "Did you mean seeded?"),
        (10, "damping as float, and found 'high'", "The default is 0.85."),
        (11, "join is max or sum, and found 'mean'", ""),
        (12, "takes Nodes as 'nodes', and 3 values fit: seeded, ranked, mixed", "nodes: seeded"),
        (13, "wants Relationships as 'relationships', and 'mixed' is Nodes", "Of that type: twice."),
        (14, "top_k to be at least 1, and found 0", ""),
        (15, "'nothing' names no operator", ""),
        (17, "mixes Chunks and Nodes", "a section of its own"),
        (18, "'chnks', which no step makes", ""),
        (18, "tokens as int | null, and found 'many'", ""),
        (19, "'cut' does not say what it shows", "from"),
        (20, "no setting 'short_answers'", "Did you mean short_answer?"),
    ]
    for line, problem, fix in wanted:
        assert [f for f in found if f.startswith(f"page:{line}:") and problem in f and fix in f], (line, problem, found)
    assert len(found) == len(wanted), found


def test_two_fitting_values_are_a_fault_never_a_guess(planner):
    two = HIPPORAG.replace("{operator: node.ppr, damping: 0.5, seeds: linked}", "{operator: node.ppr}").replace(
        "linked: {operator: node.link}", "linked: {operator: node.link}\n  similar: {operator: node.link, by: question}"
    )
    (said,) = faults(planner, two)
    assert said.startswith("page:7: node.ppr takes Nodes as 'seeds', and 2 values fit: linked, similar.")
    assert "seeds: [linked, similar]" in said
    none = "name: X\nretrieve:\n  chunks: {operator: chunk.aggregator}\ncontext: {c: {from: chunks}}\nanswer: {generator: direct}"
    (said,) = faults(planner, none)
    assert "page:3: chunk.aggregator takes Relationships as 'relationships', and no earlier step makes one" in said


def test_a_step_cannot_be_wired_to_a_later_one_or_to_itself(planner):
    swapped = HIPPORAG.replace("seeds: linked", "seeds: ranked")
    assert any("takes 'ranked' as seeds, which no earlier step makes" in f for f in faults(planner, swapped))


def test_every_unread_result_is_told(planner):
    unread = HIPPORAG.replace("context: {", "context: {").replace(
        "  chunks: {operator: chunk.aggregator}",
        "  extra: {operator: chunk.bm25}\n  chunks: {operator: chunk.aggregator}\n  more: {operator: chunk.vdb}",
    )
    found = faults(planner, unread)
    assert [f.split(". |")[0] for f in found] == [
        "page:8: nothing reads the result of step 'extra'",
        "page:10: nothing reads the result of step 'more'",
    ]


def test_a_method_that_shows_nothing_or_does_nothing(planner):
    (said,) = faults(planner, HIPPORAG.replace("context: {chunks: {from: chunks, top_k: 4}}", "context: {}"))
    assert said.startswith("page:4: the method retrieves, and its context shows none of it.")
    (said,) = faults(planner, "name: Nothing\n")
    assert "neither retrieves nor answers" in said
    assert faults(planner, "name: Asks\nanswer: {generator: direct}\n", None) == []
    assert faults(planner, HIPPORAG.replace("answer: {generator: direct}\n", "")) == []  # retrieval alone is a method


def test_empty_lists_are_faults(planner):
    (said,) = faults(
        planner,
        HIPPORAG.replace("seeds: linked", "seeds: []")
        .replace("retrieve:", "retrieve:\n  a: {operator: chunk.bm25}")
        .replace("from: chunks", "from: [chunks, a]"),
    )
    assert said.startswith("page:7: node.ppr takes seeds, and the list names no value.")
    found = faults(planner, HIPPORAG.replace("from: chunks,", "from: [],"))
    assert any(said.startswith("page:9: section chunks shows nothing") for said in found)


def test_a_graph_that_is_not_there(planner):
    found = faults(planner, HIPPORAG, None)
    assert [said.split(" | ")[0] for said in found] == [
        "page:5: node.link reads the graph, and this method builds no graph.",
        "page:6: node.ppr reads the graph, and this method builds no graph.",
        "page:7: relationship.aggregator reads the graph, and this method builds no graph.",
        "page:8: chunk.aggregator reads the graph, and this method builds no graph.",
    ]
    assert all("requires: {graph: kg}" in said for said in found)


def test_an_attribute_the_graph_has_not(planner, registered):
    def described(graph: Graph, questions: Questions) -> Chunks:
        return Chunks.empty(len(questions))

    registered("chunk.described", described, needs=("node.name", "node.description"))
    page = "name: X\nretrieve:\n  found: {operator: chunk.described}\ncontext: {c: {from: found}}\nanswer: {generator: direct}"
    (said,) = faults(planner, page)
    assert said.startswith("page:3: chunk.described reads node.description, which the graph kg has not.")


def test_entities_must_be_asked_for(planner):
    (said,) = faults(planner, HIPPORAG.replace("question: {entities: {by: rule}}\n", ""))
    assert "node.link reads the questions' entities, which the method does not ask for" in said
    assert (
        faults(
            planner,
            HIPPORAG.replace("question: {entities: {by: rule}}\n", "").replace(
                "node.link}", "node.link, by: question}"
            ),
        )
        == []
    )


def test_sections_of_two_kinds(planner):
    found = faults(planner, HIPPORAG.replace("from: chunks", "from: [chunks, ranked]"))
    assert any("section chunks mixes Chunks and Nodes" in said for said in found)


class Hits(NamedTuple):
    nodes: Nodes
    chunks: Chunks


class Odd(NamedTuple):
    nodes: Nodes
    count: int


SPLIT = """\
name: Split
retrieve:
  hits: {operator: node.both}
  ranked: {operator: node.ppr, seeds: hits.nodes}
  relationships: {operator: relationship.aggregator, nodes: ranked}
  found: {operator: chunk.aggregator}
context: {chunks: {from: [hits.chunks, found]}}
answer: {generator: direct}
"""


def test_the_fields_of_a_named_tuple_are_wires(planner, registered):
    def both(graph: Graph, questions: Questions) -> Hits:
        return Hits(Nodes.empty(len(questions)), Chunks.empty(len(questions)))

    registered("node.both", both)
    made = planner(SPLIT)
    plan = made.plan()
    assert made.faults == []
    assert plan.steps[1].wires == {"seeds": ("hits.nodes",)}
    assert plan.sections[0].sources == ("hits.chunks", "found")
    (said,) = faults(planner, SPLIT.replace("[hits.chunks, found]", "found"))
    assert "page:3: nothing reads the result of step 'hits.chunks'" in said
    found = faults(planner, SPLIT.replace("seeds: hits.nodes", "seeds: hits"))
    assert any("takes 'hits' as seeds" in said and "Did you mean hits.nodes?" in said for said in found)


def test_results_and_parameters_of_types_that_do_not_flow(planner, registered):
    def odd(graph: Graph, questions: Questions) -> Odd:
        return Odd(Nodes.empty(len(questions)), 0)

    def number(questions: Questions, nodes: int) -> Chunks:
        return Chunks.empty(len(questions))

    registered("node.odd", odd)
    registered("chunk.number", number)
    page = (
        "name: X\nretrieve:\n  a: {operator: node.odd}\n  b: {operator: chunk.number}\n"
        "context: {c: {from: b}}\nanswer: {generator: direct}"
    )
    found = faults(planner, page)
    assert any(said.startswith("page:3: node.odd returns Odd, which is no value that flows") for said in found)
    assert any(
        said.startswith("page:4: chunk.number takes nodes of type int, which is neither lent nor wired")
        for said in found
    )


def test_an_optional_wire_may_stay_out(planner, registered):
    def hybrid(questions: Questions, nodes: Nodes | None = None) -> Chunks:
        return Chunks.empty(len(questions))

    registered("chunk.hybrid", hybrid)
    page = "name: X\nretrieve:\n  a: {operator: chunk.hybrid}\ncontext: {c: {from: a}}\nanswer: {generator: direct}"
    made = planner(page)
    assert made.plan().steps[0].wires == {}
    page = page.replace("  a: {op", "  n: {operator: node.link, by: question}\n  a: {op")
    assert planner(page).plan().steps[1].wires == {"nodes": ("n",)}


@pytest.mark.parametrize("rule", ["max", "sum"])
def test_a_list_joins(planner, rule):
    page = HIPPORAG.replace("seeds: linked}", f"seeds: [linked, similar], join: {rule}}}").replace(
        "linked: {operator: node.link}", "linked: {operator: node.link}\n  similar: {operator: node.link, by: question}"
    )
    plan = planner(page).plan()
    assert (plan.steps[2].wires, plan.steps[2].join) == ({"seeds": ("linked", "similar")}, rule)
    wrong = HIPPORAG.replace("seeds: linked", "seeds: [linked, nobody]")
    assert any("takes 'nobody' as seeds" in said for said in faults(planner, wrong))


def test_wires_have_the_type_of_their_port(planner, registered):
    def scored(relationships: Relationships, chunks: Chunks) -> Chunks:
        return chunks

    registered("chunk.scored", scored)
    page = HIPPORAG.replace("from: chunks", "from: last").replace(
        "context:", "  last: {operator: chunk.scored, chunks: relationships, relationships: chunks}\ncontext:"
    )
    found = faults(planner, page)
    assert any("wants Relationships as 'relationships', and 'chunks' is Chunks" in said for said in found)
    assert any("wants Chunks as 'chunks', and 'relationships' is Relationships" in said for said in found)
