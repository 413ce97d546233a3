"""Map-reduce: what each call reads, which points are kept, what the last call shows, and every way it can fail.

A token is a word here. The model is a function of the prompt; a map prompt has a schema, the last one has none.
"""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.generation.answers import Context, Item
from graphrag_bench.generation.map_reduce import map_reduce, overhead
from graphrag_bench.llm.base import Failure, Reply
from graphrag_bench.llm.structured import check_schema
from graphrag_bench.llm.window import prompt_tokens
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.registry import REGISTRY

ASKED = Questions(("a",), ("who is it",))
COMPONENT = REGISTRY.get("generator", "map_reduce")


def count(text):
    return len(text.split())


class Model:
    """Answers map prompts by ``points(text)``, a list of (point, score) or a Failure, and the last prompt by ``said``."""

    def __init__(self, points=lambda text: [(f"saw {text.split()[0]}", 50)], said="Ada", window=10**6):
        self.points, self.said, self.window = points, said, window
        self.asked = []

    def count(self, text):
        return count(text)

    async def ask_all(self, requests):
        return [await self.ask(request) for request in requests]

    async def ask(self, request):
        self.asked.append(request)
        assert prompt_tokens(request.messages, count) + request.max_tokens <= self.window, "longer than the window"
        if request.schema is None:
            failed = isinstance(self.said, Failure)
            return Reply("" if failed else self.said, None, 1, 1, 0.0, failure=self.said if failed else None)
        check_schema(request.schema)
        found = self.points(request.messages[-1].text)
        if isinstance(found, Failure):
            return Reply("", None, 1, 1, 0.0, failure=found)
        points = [{"point": point, "score": score} for point, score in found]
        return Reply("{}", {"points": points[: request.schema["properties"]["points"]["maxItems"]]}, 1, 1, 0.0)

    @property
    def maps(self):
        """What each map call read."""
        return [r.messages[-1].text.split("\n\nQuestion: ")[0] for r in self.asked if r.purpose == "map"]

    @property
    def last(self):
        (request,) = [r for r in self.asked if r.purpose == "reduce"]
        return request


def items(*texts, layers=None):
    return tuple(Item("s", text, (), layers[n] if layers else 0) for n, text in enumerate(texts))


def ask(model, *contexts, questions=ASKED, cut=0, **chosen):
    shown = tuple(Context("unused", (), cut, found) for found in contexts)
    return asyncio.run(map_reduce(questions, shown, model, **chosen))


LOST = Failure("timeout", "60 s")


# -- what a call reads --


def test_every_item_is_a_call_of_its_own_in_the_order_of_its_rank():
    model = Model()
    (answer,) = ask(model, items("one", "two", "three"))
    assert model.maps == ["one", "two", "three"]
    assert (answer.status, answer.text, answer.reason, answer.cut) == ("ok", "Ada", "", 0)
    assert {(r.stage, r.subject) for r in model.asked} == {("answer", "a")}


def test_the_text_stands_before_the_question_so_that_calls_share_it():
    model = Model()
    ask(model, items("the text"), items("the text"), questions=Questions(("a", "b"), ("who is it", "where")))
    one, two = (request.messages for request in model.asked if request.purpose == "map")
    assert one[0] == two[0]
    assert one[-1].text.startswith("the text\n\nQuestion: who is it\n")
    assert two[-1].text.startswith("the text\n\nQuestion: where\n")


def test_a_question_may_hold_what_looks_like_a_field_of_the_prompt():
    model = Model()
    ask(model, items("t"), questions=Questions(("a",), ("costs $most or ${question}?",)))
    assert "Question: costs $most or ${question}?\n" in model.asked[0].messages[-1].text


def test_packs_are_filled_up_to_their_tokens():
    texts = [f"{name} {name} {name}" for name in "abcde"]
    for budget, packs in ((3, 5), (5, 5), (6, 3), (9, 2), (15, 1), (100, 1)):
        model = Model()
        ask(model, items(*texts), unit="pack", pack_tokens=budget, shuffle=False)
        assert model.maps == ["\n\n".join(texts[n : n + -(-5 // packs)]) for n in range(0, 5, -(-5 // packs))]
        assert all(count(text) <= max(budget, 3) for text in model.maps)


def test_layers_are_packed_apart_the_lowest_first():
    model = Model()
    ask(model, items("a", "b", "c", "d", layers=[2, 1, 2, 1]), unit="layer", shuffle=False)
    assert model.maps == ["b\n\nd", "a\n\nc"]
    model = Model()
    ask(model, items("a", "b", "c", "d", layers=[2, 1, 2, 1]), unit="pack", shuffle=False)
    assert model.maps == ["a\n\nb\n\nc\n\nd"]


@given(
    st.lists(st.integers(1, 9), max_size=12),
    st.integers(1, 20),
    st.sampled_from(["item", "pack", "layer"]),
    st.booleans(),
)
@settings(deadline=None)
def test_every_item_is_read_once_and_packs_keep_to_their_tokens(sizes, budget, unit, shuffle):
    texts = [" ".join([f"w{n}"] * size) for n, size in enumerate(sizes)]
    model = Model()
    ask(model, items(*texts, layers=[n % 3 for n in range(len(sizes))]), unit=unit, pack_tokens=budget, shuffle=shuffle)
    read = [text for pack in model.maps for text in pack.split("\n\n")]
    assert sorted(read) == sorted(texts)
    if unit == "item":
        assert read == texts
    for pack in model.maps:
        assert count(pack) <= budget or "\n\n" not in pack


def test_shuffling_is_the_same_for_every_question_and_every_run_and_the_seeds_alone():
    texts = [f"t{n}" for n in range(20)]
    three = Questions(("a", "b", "c"), ("who", "where", "when"))

    def packs(seed, questions, *contexts):
        model = Model()
        ask(model, *contexts, questions=questions, unit="pack", pack_tokens=4, seed=seed)
        return model.maps

    whole = packs(7, three, *[items(*texts)] * 3)
    alone = packs(7, three.take([1]), items(*texts))
    assert whole == [pack for pack in alone for _ in range(3)] and len(alone) == 5
    assert alone != ["\n\n".join(texts[n : n + 4]) for n in range(0, 20, 4)]
    assert packs(8, three.take([0]), items(*texts)) != alone


@pytest.mark.parametrize(("room", "pack_tokens"), [(10**6, 40), (64 + 43, 10**6)])
def test_calls_over_the_same_reports_share_their_prompts_up_to_the_question_and_stand_next_to_each_other(room, pack_tokens):
    """Prefix caching: all that stands before the question is the same, also where the window bounds the packs."""
    asked = Questions(("a", "b", "c"), ("who is it", "where does the river lie that is told of", "when"))
    texts = [f"t{n} and more words" for n in range(30)]
    model = Model(window=overhead({"map_tokens": 50}, count) + room)
    ask(model, *[items(*texts)] * 3, questions=asked, unit="pack", pack_tokens=pack_tokens, map_tokens=50, max_tokens=50)
    calls = [request for request in model.asked if request.purpose == "map"]
    groups = [calls[start : start + 3] for start in range(0, len(calls), 3)]
    assert len(groups) > 1
    for group in groups:
        assert [request.subject for request in group] == ["a", "b", "c"]
        assert len({request.messages[:-1] for request in group}) == 1
        shared, told = zip(*(request.messages[-1].text.rsplit("Question: ", 1) for request in group), strict=True)
        assert len(set(shared)) == 1
        assert [text.removesuffix("\nPoints:") for text in told] == list(asked.texts)


# -- which points are kept --


def test_points_below_the_score_are_dropped_and_the_rest_stand_best_first_equals_in_order():
    given = {"one": [("p1", 20), ("p2", 90)], "two": [("p3", 90), ("p4", 0)], "three": [("p5", 50), ("p6", 19)]}
    model = Model(lambda text: given[text.split()[0]])
    ask(model, items(*given), min_score=20)
    assert model.last.messages[-1].text.startswith(
        "Points:\n[1] (score 90) p2\n[2] (score 90) p3\n[3] (score 50) p5\n[4] (score 20) p1\n\nQuestion: who is it\n"
    )
    for least, kept in ((0, 6), (1, 5), (50, 3), (90, 2)):
        model = Model(lambda text: given[text.split()[0]])
        ask(model, items(*given), min_score=least)
        assert model.last.messages[-1].text.count("(score") == kept


def test_a_point_given_twice_counts_once_with_its_better_score():
    given = {"one": [("It  is\nAda.", 20), ("", 100), (" ", 100)], "two": [("Other.", 50), ("It is Ada.", 90)]}
    model = Model(lambda text: given[text.split()[0]])
    ask(model, items(*given))
    assert model.last.messages[-1].text.startswith(
        "Points:\n[1] (score 90) It is Ada.\n[2] (score 50) Other.\n\nQuestion"
    )


def test_a_call_may_give_only_so_many_points():
    model = Model(lambda text: [(f"p{n}", 50) for n in range(9)])
    ask(model, items("t"), max_points=2)
    assert model.asked[0].schema["properties"]["points"]["maxItems"] == 2
    assert model.last.messages[-1].text.count("(score") == 2


def test_points_that_do_not_fit_are_left_out_from_the_end_and_counted():
    model = Model(lambda text: [(f"p{n} x", 90 - n) for n in range(5)])
    (answer,) = ask(model, items("t"), reduce_tokens=10, cut=3)  # a line has five words
    assert model.last.messages[-1].text.count("(score") == 2
    assert answer.cut == 3 + 3
    # the first that does not fit ends it: a worse point may not stand where a better one is left out
    sizes = {0: "x", 1: "y " * 20, 2: "z"}
    model = Model(lambda text: [(sizes[n].strip(), 90 - n) for n in range(3)])
    (answer,) = ask(model, items("t"), reduce_tokens=12)
    assert "z" not in model.last.messages[-1].text.split("Question")[0].split()
    assert answer.cut == 2


def test_of_a_best_point_that_does_not_fit_a_part_is_shown():
    model = Model(lambda text: [("w " * 30, 90), ("v", 80)])
    (answer,) = ask(model, items("t"), reduce_tokens=10)
    assert model.last.messages[-1].text.startswith("Points:\n[1] (score 90) " + " ".join(["w"] * 7) + "\n\nQuestion")
    assert (answer.status, answer.cut) == ("ok", 2)


# -- failures --


def test_some_map_calls_may_fail_and_it_is_said():
    model = Model(lambda text: LOST if text.startswith("two") else [("p", 50)])
    (answer,) = ask(model, items("one", "two", "three"))
    assert (answer.status, answer.text, answer.reason) == ("ok", "Ada", "1 of 3 map calls failed")


def test_a_question_that_loses_all_its_map_calls_has_failed():
    model = Model(lambda text: LOST)
    (answer,) = ask(model, items("one", "two"), empty="fallback", cut=4)
    assert (answer.status, answer.text, answer.cut) == ("failed", None, 4)
    assert answer.reason == "timeout: every one of 2 map calls failed; the first: 60 s"
    assert not [request for request in model.asked if request.purpose == "reduce"]


def test_a_failure_of_one_question_is_not_anothers():
    model = Model(lambda text: LOST if text.startswith("bad") else [("p", 50)])
    three = Questions(("a", "b", "c"), ("x", "y", "z"), failed={2: "timeout: before"})
    answers = ask(model, items("bad"), items("good"), items("good"), questions=three)
    assert [answer.status for answer in answers] == ["failed", "ok", "failed"]
    assert answers[2].reason == "timeout: before"
    assert [request.subject for request in model.asked] == ["a", "b", "b"]


def test_a_last_call_that_fails_is_a_failure_with_its_kind():
    model = Model(said=Failure("empty", "no text"))
    (answer,) = ask(model, items("one"))
    assert (answer.status, answer.text, answer.reason) == ("failed", None, "empty: no text")


@pytest.mark.parametrize(("found", "said"), [((), "nothing was retrieved"), (("one",), "no point scored 1 or more")])
def test_with_no_point_left_it_refuses_or_answers_from_the_question_alone(found, said):
    model = Model(lambda text: [("It says nothing.", 0)])
    (answer,) = ask(model, items(*found), cut=2)
    assert (answer.status, answer.text, answer.reason, answer.cut) == ("refused", "unanswerable", said, 2)
    assert len(model.asked) == len(found)
    model = Model(lambda text: [("It says nothing.", 0)])
    (answer,) = ask(model, items(*found), empty="fallback")
    assert (answer.status, answer.text) == ("ok", "Ada")
    assert answer.reason == "answered from the question alone: no point was left"
    assert model.last.messages[-1].text == "Question: who is it\nShort answer:"
    assert "points" not in model.last.messages[0].text.casefold()  # it is told nothing of what it is not shown


def test_part_of_the_calls_failed_and_the_rest_found_nothing():
    model = Model(lambda text: LOST if text.startswith("one") else [])
    (answer,) = ask(model, items("one", "two"))
    assert (answer.status, answer.reason) == ("refused", "1 of 2 map calls failed; no point scored 1 or more")
    (answer,) = ask(Model(model.points), items("one", "two"), empty="fallback")
    assert answer.reason == "1 of 2 map calls failed; answered from the question alone: no point was left"


def test_a_refusal_of_the_last_call_is_a_refusal():
    (answer,) = ask(Model(said=" Unanswerable.\n"), items("one"), may_refuse=True)
    assert (answer.status, answer.text) == ("refused", "Unanswerable.")


# -- the window: the model above refuses every prompt that is longer than its own --


FIXED = overhead({"map_tokens": 384}, count)


def test_a_unit_longer_than_the_window_leaves_room_for_is_cut_at_a_word_and_said():
    model = Model(window=FIXED + 3 + 50)
    (answer,) = ask(model, items(" ".join(["w"] * 80), "short"))
    assert [count(text) for text in model.maps] == [50, 1]
    assert (answer.status, answer.cut) == ("ok", 1)


def test_packs_are_never_larger_than_the_window():
    model = Model(window=FIXED + 3 + 50)
    ask(model, items(*[" ".join([f"w{n}"] * 20) for n in range(5)]), unit="pack", shuffle=False)
    assert [count(text) for text in model.maps] == [40, 40, 20]


@pytest.mark.parametrize("empty", ["refuse", "fallback"])
def test_where_the_window_has_no_room_for_a_text_the_question_fails(empty):
    model = Model(window=FIXED + 3)
    (answer,) = ask(model, items("one"), empty=empty)
    assert (answer.status, answer.text) == ("failed", None)
    assert answer.reason == "too_long: the window leaves no room for a context"
    assert model.asked == []  # asked over nothing it would be another method's question
    (answer,) = ask(Model(window=FIXED + 4), items("one"), empty=empty)
    assert answer.status == "ok"


@given(st.integers(1, 1500), st.integers(1, 600), st.integers(1, 600))
@settings(deadline=None)
def test_no_prompt_is_longer_than_the_window_whatever_the_room_for_replies(more, map_tokens, max_tokens):
    """The last call's room is its own: a long answer leaves less for points than a short map reply."""
    window = more + overhead({"map_tokens": 0}, count)
    model = Model(lambda text: [(" ".join([f"p{n}"] * 30), 90 - n) for n in range(5)], window=window)
    (answer,) = ask(
        model,
        items(*[" ".join([f"w{n}"] * 200) for n in range(4)]),
        unit="pack",
        map_tokens=map_tokens,
        max_tokens=max_tokens,
    )
    assert answer.status == "ok" or answer.reason == "too_long: the window leaves no room for a context"


def test_the_generator_says_that_it_takes_the_whole_and_what_it_adds():
    assert COMPONENT.extra["whole"] is True
    defaults = {name: setting.default for name, setting in COMPONENT.settings.items()}
    assert COMPONENT.extra["overhead"](defaults, count) == FIXED
    assert replace(ASKED, failed={0: "x: y"}).failed
    (answer,) = ask(Model(), items("one"), questions=replace(ASKED, failed={0: "x: y"}))
    assert (answer.status, answer.reason) == ("failed", "x: y")


def test_the_instruction_follows_the_settings():
    for short, cue in ((True, "Short answer:"), (False, "Answer:")):
        model = Model()
        ask(model, items("one"), short_answer=short, may_refuse=True, max_tokens=77)
        assert model.last.messages[-1].text.endswith(f"Question: who is it\n{cue}")
        assert model.last.max_tokens == 77
        assert "unanswerable" in model.last.messages[0].text.casefold()


# -- the model's own answer as one more text --


class Knows(Model):
    """A model with an answer of its own, which it gives without a context."""

    def __init__(self, own="By and large, Bob.", **kwargs):
        super().__init__(**kwargs)
        self.own = own

    async def ask(self, request):
        if request.purpose != "own":
            return await super().ask(request)
        self.asked.append(request)
        assert prompt_tokens(request.messages, count) + request.max_tokens <= self.window
        lost = isinstance(self.own, Failure)
        return Reply("" if lost else self.own, None, 1, 1, 0.0, failure=self.own if lost else None)


def test_its_own_answer_is_read_like_any_other_text():
    model = Knows(points=lambda text: [("Bob it is", 90) if "Bob" in text else ("Ada is seen", 10)])
    (answer,) = ask(model, items("one", "two"), own_answer=True)
    assert answer.status == "ok" and answer.text == "Ada"
    assert [r.purpose for r in model.asked] == ["own", "map", "map", "map", "reduce"]
    assert model.maps == ["one", "two", "What is generally known:\nBy and large, Bob."]
    assert "[1] (score 90) Bob it is\n[2] (score 10) Ada is seen" in model.last.messages[-1].text
    (own,) = [r for r in model.asked if r.purpose == "own"]
    assert (own.stage, own.subject, own.schema) == ("answer", "a", None)
    assert "who is it" in own.messages[-1].text and "one" not in own.messages[-1].text.split()


@pytest.mark.parametrize("own", ["", "  ", LOST])
def test_where_it_says_nothing_there_is_one_text_less(own):
    model = Knows(own)
    (answer,) = ask(model, items("one"), own_answer=True)
    assert answer.status == "ok" and model.maps == ["one"]
    (alone,) = ask(Knows(own), items(), own_answer=True)
    assert (alone.status, alone.reason) == ("refused", "nothing was retrieved")


def test_with_nothing_retrieved_its_own_answer_is_all_there_is():
    model = Knows()
    (answer,) = ask(model, items(), own_answer=True)
    assert answer.status == "ok" and len(model.maps) == 1


def test_each_question_has_its_own_and_a_failed_one_none():
    asked = Questions(("a", "b", "c"), ("who", "where", "when"), failed={1: "timeout: 60 s"})
    model = Knows()
    answers = ask(model, items("one"), items("one"), items("one"), questions=asked, own_answer=True)
    assert [answer.status for answer in answers] == ["ok", "failed", "ok"]
    assert [r.subject for r in model.asked if r.purpose == "own"] == ["a", "c"]
    assert sorted(r.subject for r in model.asked if r.purpose == "map") == ["a", "a", "c", "c"]


def test_an_own_answer_longer_than_the_window_leaves_room_for_is_cut_like_any_text():
    window = overhead({"map_tokens": 20}, count) + 60
    model = Knows("word " * 200, window=window + 200)
    (answer,) = ask(model, items("one"), own_answer=True, map_tokens=220, max_tokens=40)
    assert answer.status == "ok"


def test_without_it_nothing_is_asked_beforehand():
    model = Knows()
    ask(model, items("one"))
    assert [r.purpose for r in model.asked] == ["map", "reduce"]
