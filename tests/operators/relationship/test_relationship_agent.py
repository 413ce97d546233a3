"""relationship.agent: what is offered, what is followed and with which score."""

import asyncio

import pytest

from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Relationships
from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Frontier, Reach
from operators.relationship.agent import agent

TRIPLES = [
    ("Bridge", "spans", "Ulm"),  # 0
    ("Bridge", "designed by", "Ada"),  # 1
    ("Brask", "has", "Bridge"),  # 2
    ("Bridge", "spans", "Mill Road"),  # 3
    ("Ada", "born in", "Pellwood"),  # 4
    ("Bridge", "is", "Bridge"),  # 5, a loop
    ("Mill", "designed by", "Ada"),  # 6
]
BRIDGE, ULM, ADA, BRASK = 0, 1, 2, 3


def questions(*texts, failed=None):
    return Questions(tuple(f"q{n}" for n in range(len(texts))), texts, failed=failed or {})


def run(asking, answer, frontier, texts=("who?",), relationships=None, failed=None, triples=TRIPLES, **settings):
    model = asking.model_of(answer, settings.pop("window", 8192))
    found = asyncio.run(
        agent(asking.told(triples), questions(*texts, failed=failed), model, frontier, relationships, **settings)
    )
    return found, model


def picks(*pairs):
    return {"picks": [{"name": name, "score": score} for name, score in pairs]}


def test_the_relations_are_offered_apart_and_by_the_alphabet(asking):
    seen = []

    def answer(text, schema):
        seen.append(schema)
        return picks(("spans ?", 6), ("? has", 2))

    found, model = run(asking, answer, Frontier([[Reach(BRIDGE)]]))
    assert "Entity: Bridge\n\nRelations:\n- designed by ?\n- spans ?\n- ? has\n\nQuestion: who?" in model.asked[0]
    item = seen[0]["properties"]["picks"]["items"]["properties"]
    assert item["name"]["enum"] == ["designed by ?", "spans ?", "? has"]
    assert seen[0]["properties"]["picks"]["maxItems"] == 3
    # both facts of "spans" go on, with the relation's share of the score
    assert found.rows == (
        (Reach(BRIDGE, 0, FORWARD, 0.75), Reach(BRIDGE, 3, FORWARD, 0.75), Reach(BRIDGE, 2, BACKWARD, 0.25)),
    )


def test_the_way_back_is_not_offered(asking):
    # Ada was reached along "designed by": from her, "? designed by" would lead back, also to the mill
    found, model = run(
        asking, lambda *_: pytest.fail("one relation is left"), Frontier([[Reach(ADA, 1, FORWARD, 0.4)]])
    )
    assert found.rows == ((Reach(ADA, 4, FORWARD, 1.0),),) and model.asked == []
    found, model = run(asking, lambda *_: picks(("? designed by", 5)), Frontier([[Reach(ADA)]]))
    assert [item.relationship for item in found.rows[0]] == [1, 6] and len(model.asked) == 1


def test_only_the_given_relationships_are_offered(asking):
    given = Relationships.of_rows([([1, 4], [1.0, 1.0]), ([], [])])
    at = Frontier([[Reach(BRIDGE)], [Reach(BRIDGE)]])
    found, model = run(asking, lambda *_: picks(), at, ("a?", "b?"), given)
    assert found.rows == ((Reach(BRIDGE, 1, FORWARD, 1.0),), ()) and model.asked == []


def test_one_call_an_entity_and_its_own_shares(asking):
    def answer(text, schema):
        return picks(("spans ?", 1)) if "Entity: Bridge" in text else picks(("born in ?", 9), ("? designed by", 1))

    at = Frontier([[Reach(BRIDGE, score=0.9), Reach(ADA, score=0.1), Reach(BRIDGE, 2, FORWARD, 0.5)]])
    found, model = run(asking, answer, at)
    assert len(model.asked) == 2
    assert {(i.node, i.relationship): i.score for i in found.rows[0]} == pytest.approx(
        {(BRIDGE, 0): 1.0, (BRIDGE, 3): 1.0, (ADA, 4): 0.9, (ADA, 1): 0.1, (ADA, 6): 0.1}
    )


def test_a_relation_picked_twice_counts_once(asking):
    found, _ = run(asking, lambda *_: picks(("? has", 4), ("? has", 9), ("spans ?", 4)), Frontier([[Reach(BRIDGE)]]))
    assert {item.relationship: item.score for item in found.rows[0]} == {0: 0.5, 2: 0.5, 3: 0.5}


def test_the_heaviest_are_offered_and_the_window_bounds_them(asking):
    at = Frontier([[Reach(BRIDGE)]])
    _, model = run(asking, lambda *_: picks(("spans ?", 1)), at, max_candidates=2)
    assert (
        "Relations:\n- designed by ?\n- spans ?\n\n" in model.asked[0]
    )  # "spans" weighs 2; then outgoing before incoming
    many = [("Bridge", f"relation number {n:02}", f"N{n}") for n in range(30)]
    found, model = run(asking, lambda *_: picks(("relation number 00 ?", 1)), at, triples=many, window=360)
    assert "relation number 00 ?" in model.asked[0] and "relation number 29 ?" not in model.asked[0]
    assert not found.failed


def test_a_lost_reply_leaves_its_entity_and_all_lost_fail_the_question(asking):
    def answer(text, schema):
        if "Entity: Bridge" in text:
            raise CallError("timeout", "60 s", retry=False)
        return picks(("born in ?", 1))

    at = Frontier([[Reach(BRIDGE), Reach(ADA)], [Reach(BRIDGE)], [Reach(ADA)], [], [Reach(BRIDGE)]])
    found, model = run(asking, answer, at, ("a?", "b?", "c?", "d?", "e?"), failed={4: "earlier"})
    assert dict(found.failed) == {1: "timeout: 60 s"}
    assert [[item.relationship for item in row] for row in found.rows] == [[4], [], [4], [], []]
    assert not any("e?" in text for text in model.asked)


def test_a_batch_is_its_questions_one_by_one_in_any_order(asking):
    def answer(text, schema):
        names = schema["properties"]["picks"]["items"]["properties"]["name"]["enum"]
        return picks((names[len(text) % len(names)], 3), (names[0], 1))

    texts = ("who?", "who was it?", "where is that?")
    rows = [[Reach(BRIDGE), Reach(ADA)], [Reach(ADA, 1, FORWARD), Reach(BRASK)], [Reach(BRIDGE, 2, FORWARD)]]
    whole, _ = run(asking, answer, Frontier(rows), texts)
    for number in range(3):
        alone, _ = run(asking, answer, Frontier([rows[number]]), texts[number : number + 1])
        assert alone.rows[0] == whole.rows[number]
    turned, _ = run(asking, answer, Frontier(rows[::-1]), texts[::-1])
    assert turned.rows == whole.rows[::-1]
