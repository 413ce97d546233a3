"""Contexts: what is shown, in which order, and what is cut where. A token is a word here."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.chunking.types import Chunk
from graphrag_bench.generation.answers import Answer
from graphrag_bench.generation.context import assemble
from graphrag_bench.generation.shelf import Shelf
from graphrag_bench.pipeline.answering import answer_batch, contexts, retrieved_documents, with_failures
from graphrag_bench.pipeline.method import Plan, Section
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import REGISTRY


def count(text):
    return len(text.split())


def chunks(*sizes, documents=None):
    """Chunk n says "wn" as many times as its size."""
    return tuple(
        Chunk(n, " ".join([f"w{n}"] * size), "", documents[n] if documents else (f"d{n}",), size)
        for n, size in enumerate(sizes)
    )


def section(*sources, name="chunks", top_k=None, tokens=None):
    return Section(name, sources, Chunks, top_k, tokens)


def ranked(*ids):
    return Chunks.of_rows([(ids, range(len(ids), 0, -1))])


def shown(sections, values, texts, room=10**6):
    context = assemble(sections, values, 0, Shelf(texts), room, count)
    assert context.text == "" or context.text.startswith("Passages:\n")
    return replace(context, text=context.text.removeprefix("Passages:\n"), items=())


def joined(section, values, number):
    """The ids a section shows, whatever the room."""
    texts = chunks(*[1] * 9)
    return [element.chunks[0] for element in Shelf(texts).elements(section, values, number)]


def test_elements_stand_in_rank_order_numbered_with_their_text():
    context = shown([section("found")], {"found": ranked(2, 0)}, chunks(1, 1, 3))
    assert context.text == "[1] w2 w2 w2\n\n[2] w0"
    assert (context.chunks, context.cut) == ((2, 0), 0)


def test_sources_are_joined_one_after_the_other_each_element_once_and_top_k_cuts_the_whole():
    values = {"one": ranked(2, 0), "two": ranked(0, 1, 3)}
    assert joined(section("one", "two"), values, 0) == [2, 0, 1, 3]
    assert joined(section("two", "one"), values, 0) == [0, 1, 3, 2]
    assert joined(section("one", "two", top_k=3), values, 0) == [2, 0, 1]
    assert joined(section("one", top_k=9), values, 0) == [2, 0]
    assert joined(section("none"), {"none": Chunks.empty(1)}, 0) == []


def test_sections_stand_in_the_pages_order_and_number_on():
    context = shown(
        [section("b", name="second"), section("a", name="first")], {"a": ranked(0), "b": ranked(1, 2)}, chunks(1, 1, 1)
    )
    assert context.text == "[1] w1\n\n[2] w2\n\n[3] w0"
    assert context.chunks == (1, 2, 0)


def test_the_first_that_does_not_fit_is_cut_at_a_word_and_what_ranks_below_is_left_out():
    # sizes with the number before them: 41, 61, 3; room 90 leaves 49 for the second
    context = shown([section("found")], {"found": ranked(0, 1, 2)}, chunks(40, 60, 2), room=90)
    assert context.chunks == (0, 1)
    assert count(context.text) == 90
    assert context.text.endswith("[2] " + " ".join(["w1"] * 48))
    assert context.cut == 2  # one shortened, one left out


def test_what_is_too_little_room_for_a_part_is_left_empty_also_for_what_would_fit():
    # 41 of 60 are taken; the 19 left are too few to cut the second, and the third ranks below it
    context = shown([section("found")], {"found": ranked(0, 1, 2)}, chunks(40, 60, 2), room=60)
    assert context.chunks == (0,)
    assert context.cut == 2


def test_a_section_keeps_to_its_own_tokens_and_leaves_the_rest_to_the_next():
    sections = [section("a", name="first", tokens=50), section("b", name="second")]
    context = shown(sections, {"a": ranked(0, 1), "b": ranked(2)}, chunks(40, 40, 40), room=100)
    assert context.chunks == (0, 2)
    assert context.cut == 1
    greedy = shown(sections, {"a": ranked(0, 1), "b": ranked(2)}, chunks(40, 40, 40), room=45)
    assert (greedy.chunks, greedy.cut) == ((0,), 2)


def test_no_room_no_elements_no_sections():
    assert shown([section("found")], {"found": ranked(0)}, chunks(40), room=0) == (type(shown([], {}, ()))("", (), 1))
    empty = shown([section("found")], {"found": Chunks.empty(1)}, chunks(40))
    assert (empty.text, empty.chunks, empty.cut) == ("", (), 0)


@given(
    st.lists(st.integers(1, 80), min_size=1, max_size=6), st.integers(0, 250), st.one_of(st.none(), st.integers(1, 120))
)
def test_the_room_is_kept_and_the_head_of_the_ranking_is_what_is_shown(sizes, room, tokens):
    texts = chunks(*sizes)
    context = shown([section("found", tokens=tokens)], {"found": ranked(*range(len(sizes)))}, texts, room)
    budget = room if tokens is None else min(room, tokens)
    assert count(context.text) <= budget
    assert list(context.chunks) == list(range(len(context.chunks)))
    whole = [n for n in context.chunks if count(texts[n].text) == context.text.split().count(f"w{n}")]
    assert context.cut == len(sizes) - len(whole)
    if sum(size + 1 for size in sizes) <= budget:
        assert context.cut == 0
    elif len(whole) < len(sizes):  # the next whole one would not have fitted
        assert sum(sizes[n] + 1 for n in whole) + sizes[len(whole)] + 1 > budget


class Model:
    """Eighty tokens of window; answers "Ada" to everything."""

    window = 80

    def __init__(self):
        self.asked = []

    async def ask(self, request):
        return (await self.ask_all([request]))[0]

    async def ask_all(self, requests):
        from graphrag_bench.llm.base import Reply

        self.asked += requests
        return [Reply("Ada", None, 1, 1, 0.0) for _ in requests]

    def count(self, text):
        return count(text)


def plan(*sections, generator=True, **settings):
    component = REGISTRY.get("generator", "direct")
    chosen = {name: setting.default for name, setting in component.settings.items()} | {"max_tokens": 8} | settings
    return Plan("X", (), (), sections, tuple(s.name for s in reversed(sections)), (component, chosen) if generator else None)


QUESTIONS = Questions(("a", "b", "c"), ("who is it", "where", "when was that"), failed={1: "timeout: 60 s"})
VALUES = {"found": Chunks.of_rows([([0, 1], [2.0, 1.0]), ([], []), ([1], [1.0])], {2: "empty: no reply"})}


def test_the_context_has_the_room_the_window_leaves():
    model = Model()
    model.window = 4000
    wide = contexts(plan(section("found")), model, QUESTIONS, VALUES, Shelf(chunks(300, 300)))
    assert [context.chunks for context in wide] == [(0, 1), (), (1,)]
    model.window = 300
    narrow = contexts(plan(section("found")), model, QUESTIONS, VALUES, Shelf(chunks(300, 300)))
    assert narrow[0].cut > 0
    assert count(narrow[0].text) < 300 - 8 - count(QUESTIONS.texts[0])
    more = contexts(plan(section("found"), max_tokens=100), model, QUESTIONS, VALUES, Shelf(chunks(300, 300)))
    assert count(more[0].text) == count(narrow[0].text) - 92  # a longer reply leaves less
    model.window = 1
    assert [
        context.text for context in contexts(plan(section("found")), model, QUESTIONS, VALUES, Shelf(chunks(300, 300)))
    ] == ["", "", ""]
    assert [
        c.text for c in contexts(plan(section("found"), generator=False), model, QUESTIONS, VALUES, Shelf(chunks(3, 3)))
    ] == [""] * 3


def test_a_batch_is_answered_and_a_question_that_failed_is_not_asked():
    model, heard = Model(), []
    model.window = 4000
    answers = asyncio.run(
        answer_batch(plan(section("found")), model, QUESTIONS, VALUES, Shelf(chunks(3, 3)), lambda *pair: heard.append(pair))
    )
    assert answers == (
        Answer("a", "ok", "Ada"),
        Answer("b", "failed", None, "timeout: 60 s"),
        Answer("c", "failed", None, "empty: no reply"),
    )
    assert [request.subject for request in model.asked] == ["a"]
    assert sorted(answer.question for answer, _ in heard) == ["a", "b", "c"]
    assert {answer.question: context.chunks for answer, context in heard}["a"] == (0, 1)
    assert asyncio.run(answer_batch(plan(generator=False), model, QUESTIONS, VALUES, Shelf(()))) == ()


def test_failures_of_any_step_are_failures_of_the_question():
    assert with_failures(QUESTIONS, VALUES).failed == {1: "timeout: 60 s", 2: "empty: no reply"}


def test_retrieved_documents_are_those_of_the_ranked_chunks_each_once():
    texts = chunks(1, 1, 1, documents=[("d0", "d9"), ("d1",), ("d9", "d2")])
    values = {"found": ranked(0, 2, 1), "more": ranked(1)}
    made = plan(section("found"), section("more"))
    assert retrieved_documents(made, values, 0, Shelf(texts), 20) == ("d0", "d9", "d2", "d1")
    assert retrieved_documents(made, values, 0, Shelf(texts), 3) == ("d0", "d9", "d2")
    assert retrieved_documents(made, values, 0, Shelf(texts), 1) == ("d0",)
    assert retrieved_documents(plan(section("none")), {"none": Chunks.empty(1)}, 0, Shelf(texts), 5) == ()
    assert retrieved_documents(plan(), {}, 0, Shelf(texts), 5) is None


@pytest.mark.parametrize("depth", [1, 2])
def test_the_ranking_is_read_beyond_what_the_context_shows(depth):
    made = plan(section("found", top_k=1))
    assert len(retrieved_documents(made, {"found": ranked(1, 0)}, 0, Shelf(chunks(1, 1)), depth)) == depth
