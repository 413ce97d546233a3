"""subgraph.agent_path: the paths the model names, in its order."""

import asyncio

from graphrag_bench.llm.base import CallError
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.walks import Path, Subgraphs
from operators.subgraph.agent_path import agent_path

TRIPLES = [("Bridge", "spans", "Ulm"), ("Ada", "designed", "Bridge"), ("Ada", "born in", "Pellwood")]
UP = Path((0, 2), (1,), (-1,), 0.9)  # Bridge <- Ada
LONG = Path((0, 2, 3), (1, 2), (-1, 1), 0.5)
ULM = Path((0, 1), (0,), (1,), 0.7)
BARE = Path((3,), score=0.8)
TEXTS = {
    "up": "Ada -> designed -> Bridge",
    "long": "Ada -> designed -> Bridge; Ada -> born in -> Pellwood",
    "ulm": "Bridge -> spans -> Ulm",
}


def run(asking, answer, rows, failed=None, window=8192, **settings):
    model = asking.model_of(answer, window)
    asked = Questions(
        tuple(f"q{n}" for n in range(len(rows))), tuple(f"question {n}?" for n in range(len(rows))), failed=failed or {}
    )
    return asyncio.run(agent_path(asking.told(TRIPLES), asked, model, Subgraphs(rows), **settings)), model


def test_paths_are_kept_in_the_models_order(asking):
    seen = []

    def answer(text, schema):
        seen.append(schema["properties"]["chains"])
        return {"chains": [TEXTS["long"], TEXTS["up"], TEXTS["long"]]}

    found, model = run(asking, answer, [[UP, LONG, ULM, BARE]], max_paths=4)
    listed = f"Chains:\n- {TEXTS['up']}\n- {TEXTS['ulm']}\n- {TEXTS['long']}\n\nQuestion: question 0?"
    assert model.asked[0].endswith(listed) and "at most 4" in model.asked[0]
    assert seen[0]["maxItems"] == 4 and seen[0]["items"]["enum"] == [TEXTS["up"], TEXTS["ulm"], TEXTS["long"]]
    assert found.rows == ((LONG._replace(score=1.0), UP._replace(score=0.5)),)


def test_none_named_none_kept_and_nothing_to_choose_is_not_asked(asking):
    found, model = run(asking, lambda *_: {"chains": []}, [[UP], [BARE], [], [UP]], failed={3: "earlier"})
    assert found.rows == ((), (), (), ()) and not found.failed and len(model.asked) == 1


def test_an_unreadable_reply_fails_its_question_alone(asking):
    def answer(text, schema):
        if "question 0?" in text:
            raise CallError("timeout", "60 s", retry=False)
        return {"chains": [TEXTS["up"]]} if "question 1?" in text else {"chains": ["no such chain"]}

    found, _ = run(asking, answer, [[UP], [UP], [UP]])
    assert found.failed[0] == "timeout: 60 s" and found.failed[2].startswith("schema") and 1 not in found.failed
    assert found.rows == ((), (UP._replace(score=1.0),), ())


def test_what_the_window_cannot_hold_is_left_out_from_the_end(asking):
    _, model = run(asking, lambda *_: {"chains": []}, [[UP, LONG, ULM]], window=150, max_tokens=20)
    assert TEXTS["up"] in model.asked[0] and TEXTS["long"] not in model.asked[0]


def test_a_batch_is_its_questions_one_by_one(asking):
    def answer(text, schema):
        return {"chains": schema["properties"]["chains"]["items"]["enum"][::-1]}

    rows = [[UP, ULM], [LONG], [ULM, UP, LONG]]
    whole, _ = run(asking, answer, rows)
    assert [run(asking, answer, [row])[0].rows[0] for row in rows] == list(whole.rows)
