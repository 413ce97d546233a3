"""node.agent: candidates, scores, drawing, pruning, and starting items."""

import asyncio

import pytest

from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Nodes
from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Frontier, Reach
from operators.node.agent import agent

TRIPLES = [
    ("Bridge", "spans", "Ulm"),  # 0
    ("Bridge", "spans", "Mill Road"),  # 1
    ("Bridge", "designed by", "Ada"),  # 2
    ("Brask", "has", "Bridge"),  # 3
    ("Bridge", "spans", "Ulm"),  # 4, parallel to 0
    ("Bridge", "is", "Bridge"),  # 5, a loop
]
BRIDGE, ULM, ROAD, ADA, BRASK = range(5)
SPANS = [Reach(BRIDGE, fact, FORWARD, 0.5) for fact in (0, 1, 4)]


def questions(*texts, failed=None, ids=None):
    return Questions(ids or tuple(f"q{n}" for n in range(len(texts))), texts, failed=failed or {})


def run(asking, answer, chosen, asked=None, candidates=None, triples=TRIPLES, **settings):
    model = asking.model_of(answer)
    asked = asked or questions("who?")
    found = asyncio.run(agent(asking.told(triples), asked, model, Frontier(chosen), candidates, **settings))
    return found, model


def picks(*pairs):
    return {"picks": [{"name": name, "score": score} for name, score in pairs]}


def never(text, schema):
    raise AssertionError(f"asked {text}")


def test_a_candidate_scores_its_share_times_the_relation(asking):
    found, model = run(asking, lambda *_: picks(("Mill Road", 6), ("Ulm", 2)), [SPANS])
    assert "Entity: Bridge\nRelation: spans ?\n\nCandidates:\n- Ulm\n- Mill Road\n\nQuestion: who?" in model.asked[0]
    # Ulm is reached by the first of the two parallel relationships
    assert found.rows == ((Reach(ROAD, 1, FORWARD, 0.375), Reach(ULM, 0, FORWARD, 0.125)),)


def test_a_single_candidate_keeps_the_relations_score_unasked(asking):
    chosen = [[Reach(BRIDGE, 2, FORWARD, 0.3), Reach(BRIDGE, 3, BACKWARD, 0.2), Reach(BRIDGE, 5, FORWARD, 0.9)]]
    found, _ = run(asking, never, chosen)
    assert found.rows == ((Reach(ADA, 2, FORWARD, 0.3), Reach(BRASK, 3, BACKWARD, 0.2)),)


def test_the_given_candidates_bound_it(asking):
    given = Nodes.of_rows([([ULM, ADA], [1.0, 1.0])])
    found, _ = run(asking, never, [[*SPANS, Reach(BRIDGE, 3, BACKWARD, 0.5)]], candidates=given)
    assert found.rows == ((Reach(ULM, 0, FORWARD, 0.5),),)


def test_the_best_over_all_relations_are_kept(asking):
    chosen = [[*SPANS, Reach(BRIDGE, 2, FORWARD, 0.3), Reach(BRIDGE, 3, BACKWARD, 0.0)]]
    found, _ = run(asking, lambda *_: picks(("Ulm", 9), ("Mill Road", 1)), chosen, width=2)
    assert found.rows == ((Reach(ULM, 0, FORWARD, 0.45), Reach(ADA, 2, FORWARD, 0.3)),)
    found, _ = run(asking, lambda *_: picks(("Ulm", 9), ("Mill Road", 1)), chosen, width=9)
    assert [item.node for item in found.rows[0]] == [ULM, ADA, ROAD]  # a score of 0 is dropped


def test_a_reply_that_is_not_as_asked_gives_equal_shares(asking):
    found, _ = run(asking, lambda *_: picks(("Danube", 9)), [SPANS])
    assert found.rows == ((Reach(ULM, 0, FORWARD, 0.25), Reach(ROAD, 1, FORWARD, 0.25)),) and not found.failed


def test_a_lost_reply_leaves_out_its_relation_and_all_lost_fail_the_question(asking):
    def answer(text, schema):
        raise CallError("timeout", "60 s", retry=False)

    chosen = [SPANS, [*SPANS, Reach(BRIDGE, 2, FORWARD, 0.3)], [], SPANS]
    found, model = run(asking, answer, chosen, questions("a?", "b?", "c?", "d?", failed={3: "earlier"}))
    assert dict(found.failed) == {0: "timeout: 60 s"}
    assert found.rows == ((), (Reach(ADA, 2, FORWARD, 0.3),), (), ())
    assert not any("d?" in text for text in model.asked)


def test_many_candidates_are_drawn_the_same_whatever_is_beside(asking):
    triples = [("Hub", "has", f"N{n:02}") for n in range(20)] + [("Other", "has", f"N{n:02}") for n in range(20)]
    hub = [Reach(0, fact, FORWARD, 1.0) for fact in range(20)]
    other = [Reach(21, fact, FORWARD, 1.0) for fact in range(20, 40)]

    def lists(chosen, asked, **settings):
        def answer(text, schema):
            return picks((schema["properties"]["picks"]["items"]["properties"]["name"]["enum"][0], 1))

        _, model = run(asking, answer, chosen, asked, triples=triples, **settings)
        shown = [(text.split("Entity: ")[1].split("\n")[0], text.split("Question: ")[1]) for text in model.asked]
        drawn = [tuple(line[2:] for line in text.split("\n") if line.startswith("- ")) for text in model.asked]
        return dict(zip(shown, drawn, strict=True))

    both = lists([hub, hub + other], questions("a?", "b?"))
    assert (
        all(len(drawn) == 5 and list(drawn) == sorted(drawn) for drawn in both.values())
        and len(set(both.values())) == 3
    )
    alone = lists([other + hub], questions("b?", ids=("q1",)))
    assert alone == {key: drawn for key, drawn in both.items() if key[1] == "b?"}
    assert lists([hub], questions("a?"), seed=1)["Hub", "a?"] != both["Hub", "a?"]
    assert len(lists([hub[:19]], questions("a?"))["Hub", "a?"]) == 19
    assert len(lists([hub], questions("a?"), sample_above=3, sample=2)["Hub", "a?"]) == 2


def test_a_starting_item_stands_for_all_facts_of_its_node(asking):
    def answer(text, schema):
        return picks(("designed by Ada", 3), ("Brask has", 1))

    found, model = run(asking, answer, [[Reach(BRIDGE, score=0.8)]])
    assert (
        "Entity: Bridge\n\nCandidates:\n- spans Ulm\n- spans Mill Road\n- designed by Ada\n- Brask has\n\nQuestion: who?"
        in model.asked[0]
    )
    assert found.rows == ((Reach(ADA, 2, FORWARD, pytest.approx(0.6)), Reach(BRASK, 3, BACKWARD, pytest.approx(0.2))),)


def test_other_kinds_than_facts_are_not_walked_from_a_start(asking):
    model = asking.model_of(never)
    graph = asking.told(TRIPLES, kind="synonym")
    found = asyncio.run(agent(graph, questions("who?"), model, Frontier([[Reach(BRIDGE)]])))
    assert found.rows == ((),)


def test_a_batch_is_its_questions_one_by_one_in_any_order(asking):
    def answer(text, schema):
        names = schema["properties"]["picks"]["items"]["properties"]["name"]["enum"]
        return picks((names[len(text) % len(names)], 3), (names[0], 1))

    asked = questions("who?", "who was it?", "where is that?")
    rows = [SPANS, [Reach(BRIDGE)], [*SPANS, Reach(BRIDGE, 2, FORWARD, 0.3)]]
    whole, _ = run(asking, answer, rows, asked)
    for number in range(3):
        alone, _ = run(asking, answer, [rows[number]], asked.take([number]))
        assert alone.rows[0] == whole.rows[number]
    turned, _ = run(asking, answer, rows[::-1], asked.take([2, 1, 0]))
    assert turned.rows == whole.rows[::-1]
