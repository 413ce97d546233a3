"""Reports by a model: what it is shown, in which order, and what becomes of its replies."""

import asyncio
import json
import math

import pytest

from graphrag_bench.community.elements import Elements, Line
from graphrag_bench.community.packing import pack
from graphrag_bench.community.reporters.extractive import extractive
from graphrag_bench.community.reporters.model import by_model, checked_rating
from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError, Completion
from graphrag_bench.llm.service import Chat


def words(text):
    return len(text.split())


def report(title, **other):
    plain = {"title": title, "summary": f"On {title}.", "rating": 7, "rating_reason": "So.", "findings": []}
    return json.dumps({**plain, **other})


class Writer:
    """Answers as the function says; keeps what it was shown, by the order of the calls."""

    def __init__(self, answer=lambda community: report("T"), window=4096):
        self.shown = []

        def reply(messages, schema):
            community = messages[-1].text.split("\n\nWrite the report")[0]
            self.shown.append(community)
            return answer(community)

        self.chat = Chat(Scripted.of(reply, name="writer", window=window), attempts=1)

    def write(self, graph, **settings):
        return asyncio.run(by_model(graph, self.chat, **settings))


@pytest.fixture
def town(small):
    """Ada knows everybody (degree 3), Bob knows Ada and Cy; Eve, outside, knows Bob twice."""
    return small.graph_of(
        6,
        [
            (2, 3, 1.0, "", "Cy owes Dan."),  # degrees 2 + 2
            (0, 1, 1.0, "knows"),  # 3 + 3
            (2, 0, 1.0, "knows", "They met in May."),  # 2 + 3
            (0, 3, 1.0, "knows"),  # 3 + 2, after the one before by its id
            (1, 5, 1.0, "knows"),
            (5, 1, 1.0, "hears"),
            (1, 2, 1.0, "synonym of", "", "synonym"),
            (1, 4, 1.0, "feeds"),
        ],
        names=["Ada", "Bob", "Cy", "Dan", "Rex", "Eve"],
        types=["person", "person", "", "person", "", ""],
        descriptions=["A miller.", "", "", "", "", ""],
    )


def test_a_leaf_is_told_by_its_best_connected_facts_each_end_before_it_once(town, small):
    whole = town.with_communities(small.hierarchy_of(6, (0, -1, [0, 1, 2, 3]), (0, -1, [4, 5])), None)
    writer = Writer()
    found = writer.write(whole)
    assert writer.shown == [
        "What is known:\n"
        "Ada (person): A miller.\n"
        "Bob (person)\n"
        "Ada — knows → Bob\n"
        "Cy — knows → Ada: They met in May.\n"
        "Dan (person)\n"
        "Ada — knows → Dan\n"
        "Cy → Dan: Cy owes Dan.",
        "What is known:\nRex\nEve",  # nothing joins them within: Rex by id, both have degree 1
    ]
    assert found.cut == 0 and len(found) == 2
    entry = writer.chat.ledger.by_purpose()
    assert list(entry) == [("reports", "report")]


def test_what_a_prompt_begins_with_is_the_same_for_all(town, small):
    seen = []

    def reply(messages, schema):
        seen.append((messages[0].text, schema))
        return report("T")

    whole = town.with_communities(small.hierarchy_of(6, (0, -1, [0, 1]), (0, -1, [2, 3])), None)
    asyncio.run(by_model(whole, Chat(Scripted.of(reply, name="x"))))
    assert len(seen) == 2 and seen[0] == seen[1]
    schema = seen[0][1]
    assert schema["properties"]["findings"]["maxItems"] == 5
    assert list(schema["properties"])[-1] == "findings" and set(schema["required"]) == set(schema["properties"])


@pytest.fixture
def nested(small):
    """A root (0) of two parts: nodes 0 to 2 (community 1), nodes 3 and 4 (community 2), joined by one fact."""
    long = "with many words that take room in a prompt"
    graph = small.graph_of(
        5,
        [
            (0, 1, 1.0, "a", long),
            (1, 2, 1.0, "b", long),
            (2, 0, 1.0, "c", long),
            (3, 4, 1.0, "d", long),
            (2, 3, 1.0, "e", long),
        ],
        names=["A", "B", "C", "D", "E"],
    )
    return graph.with_communities(small.hierarchy_of(5, (0, -1, range(5)), (1, 0, [0, 1, 2]), (1, 0, [3, 4])), None)


LINE = "with many words that take room in a prompt"
FACTS = {
    "a": f"A — a → B: {LINE}", "b": f"B — b → C: {LINE}", "c": f"C — c → A: {LINE}",
    "d": f"D — d → E: {LINE}", "e": f"C — e → D: {LINE}",
}  # fmt: skip  # 14 words each


def facts(letters):
    return "\n".join(["What is known:", *(FACTS[letter] for letter in letters)])


def answers(community):
    for letter, title in (("e →", "Root"), ("a →", "Part one"), ("d →", "Part two")):
        if letter in community:
            return report(title)
    return report("None")


def test_finer_levels_come_first_and_a_level_that_fits_is_told_by_its_elements(nested):
    writer = Writer(answers)
    found = writer.write(nested)
    # degrees: A 2, B 2, C 3, D 2, E 1
    assert writer.shown == [facts("bca"), facts("d"), facts("bcead")]
    assert found.table["title"].to_pylist() == ["Root", "Part one", "Part two"]


def test_a_large_community_is_told_by_the_report_on_its_largest_part_first(nested):
    """All five facts take 70 words and 3 of headings; the part of 42 words is replaced, and then all fits."""
    writer = Writer(answers)
    found = writer.write(nested, input_tokens=60)
    assert writer.shown[2] == "\n\n".join(["Reports on parts of the group:", "# Part one\n\nOn Part one.", facts("ed")])
    assert found.cut == 0


def test_parts_are_replaced_the_largest_first_until_it_fits_and_the_rest_is_cut():
    lines = [Line("a b c d", 2), Line("e f g h i", 1), Line("j k", -1), Line("l m n o", 2), Line("p q", -1)]
    reports = {1: "# 1", 2: "# 2"}
    heads = ["Reports on parts of the group:", "What is known:"]  # 6 words and 3
    elements = "\n".join([heads[1], "a b c d", "e f g h i", "j k", "l m n o", "p q"])
    assert pack(lines, reports, 17 + 3, words) == (elements, False, ())
    # community 2 has the most words, 8 of 17: without it 9 are left, and its report
    one = "\n\n".join([heads[0], "# 2", "\n".join([heads[1], "e f g h i", "j k", "p q"])])
    assert pack([*lines, Line("r s t u v w x y", 2)], reports, 11 + 9, words) == (one, False, (2,))
    both = "\n\n".join([heads[0], "# 2", "# 1", "\n".join([heads[1], "j k", "p q"])])
    assert pack(lines, reports, 8 + 9, words) == (both, False, (2, 1))
    assert pack(lines, reports, 7 + 9, words) == (both.removesuffix("\np q"), True, (2, 1))
    assert pack(lines, reports, 3 + 9, words) == ("\n\n".join([heads[0], "# 2"]), True, (2,))


def test_a_cut_leaf_is_counted(nested):
    writer = Writer(answers)
    found = writer.write(nested, input_tokens=40)
    assert found.cut == 1
    assert writer.shown[0] == facts("bc")


def test_a_part_without_a_report_is_told_by_its_elements(nested):
    def answer(community):
        if FACTS["a"] in community and FACTS["e"] not in community:
            raise CallError("server_error", "Down.", retry=False)
        return answers(community)

    writer = Writer(answer)
    found = writer.write(nested, input_tokens=66)
    assert dict(found.failed) == {1: "server_error: Down."}
    assert found.table.to_pylist()[1] == {
        "title": "", "summary": "", "text": "", "rating": None, "rating_reason": "", "failed": "server_error: Down.",
    }  # fmt: skip
    # the small part alone is replaced: 70 + 3 - 14 + its report and heading is 72 words; what has no room is cut
    assert "Part one" not in writer.shown[2] and "# Part two" in writer.shown[2]
    assert found.cut == 1
    assert found.statistics()["failed"] == {"server_error": 1}


def test_a_report_longer_than_what_it_stands_for_makes_no_room():
    lines = [Line("a a a", 1), Line("b b", 2), Line("c", -1)]
    packed = pack(lines, {1: "much longer than it"}, 3 + 5, words)
    assert packed == ("What is known:\na a a\nb b", True, ())
    # nor does one whose heading alone fills the room
    assert pack(lines, {2: "x"}, 3 + 5, words) == packed


def test_the_first_element_is_cut_at_a_word_where_even_it_has_no_room():
    packed = pack([Line("one two three four five")], {}, 3 + 2, words)
    assert packed == ("What is known:\none two", True, ())


def test_the_window_bounds_the_prompt(nested):
    lengths = []
    for window in range(800, 920, 10):
        writer = Writer(answers, window=window)
        try:
            assert not writer.write(nested).failed
        except UserError as error:
            assert "no room" in str(error) and not lengths
        else:
            lengths.append(words(writer.shown[2]))
    assert len(lengths) > 2 and lengths == sorted(lengths) and lengths[0] < lengths[-1] <= 73


def test_a_report_is_written_as_text(nested):
    said = [
        ("They  trade", "A\nsells to B."),
        ("Old", "Since 1830."),
        ("They trade", "A sells to B."),
        ("Same.", "Same."),
    ]
    findings = [{"summary": summary, "explanation": explanation} for summary, explanation in said]
    found = Writer(lambda community: report(" The\nmill ", findings=findings)).write(nested)
    row = found.table.to_pylist()[0]
    assert row == {
        "title": "The mill",
        "summary": "On The mill .",
        "text": "# The mill\n\nOn The mill .\n\n## They trade\nA sells to B.\n\n## Old\nSince 1830.\n\n## Same.",
        "rating": 7.0,
        "rating_reason": "So.",
        "failed": None,
    }


@pytest.mark.parametrize("value", [0, 10, 7.5])
def test_a_rating_is_kept_as_it_is(value):
    assert checked_rating(value) == (float(value), "")


@pytest.mark.parametrize("value", [10.5, -1, math.nan, math.inf, None, True, "8", [3], 10**400])
def test_a_rating_that_is_no_number_from_0_to_10_is_none_at_all(value):
    assert checked_rating(value) == (None, f"no number from 0 to 10: {str(value)[:40]}")


def test_a_report_outlives_its_rating(nested):
    found = Writer(lambda community: report("T", rating=95)).write(nested)
    rows = found.table.to_pylist()
    assert [row["rating"] for row in rows] == [None] * 3
    assert rows[0]["rating_reason"] == "[no number from 0 to 10: 95] So."
    assert not found.failed and math.isnan(found.ratings[0])


def test_a_reply_cut_off_keeps_its_whole_findings(nested):
    findings = [{"summary": "One", "explanation": "First."}, {"summary": "Two", "explanation": "Second."}]
    reply = report("T", findings=findings)
    found = Writer(lambda community: Completion(reply[: reply.index("Second")], 5, 5, "length")).write(nested)
    assert [row["text"] for row in found.table.to_pylist()] == ["# T\n\nOn T.\n\n## One\nFirst."] * 3
    nothing = Writer(lambda community: Completion(reply[: reply.index("rating")], 5, 5, "length")).write(nested)
    assert [reason.split(":")[0] for reason in nothing.failed.values()] == ["truncated"] * 3


def test_blank_words_are_no_report(nested):
    found = Writer(lambda community: report("T", summary=" ")).write(nested)
    assert set(found.failed.values()) == {"empty: the report has no summary"}


def test_the_scripted_model_writes_reports_of_itself(nested):
    found = asyncio.run(by_model(nested, Chat(Scripted())))
    assert len(found) == 3 and not found.failed and ((found.ratings >= 0) & (found.ratings <= 10)).all()


def test_a_graph_without_communities_costs_nothing(small):
    graph = small.graph_of(2, [(0, 1)])
    writer = Writer()
    assert len(writer.write(graph.with_communities(small.hierarchy_of(2), None))) == 0
    assert writer.shown == []


def test_the_weight_within_a_community_leaves_loops_and_what_runs_out_of_it_aside(small):
    graph = small.graph_of(4, [(0, 1, 2.0), (1, 0, 1.0), (1, 1, 9.0), (1, 2, 5.0), (2, 3, 4.0)])
    elements = Elements(
        graph.with_communities(small.hierarchy_of(4, (0, -1, [0, 1]), (0, -1, [2, 3])), None), by_weight=True
    )
    assert elements.mass.tolist() == [3.0, 4.0]
    assert elements.facts(0).tolist() == [0, 1, 2]
    assert elements.ranked_facts(0).tolist() == [0, 1, 2]
    assert elements.ranked_nodes(0).tolist() == [0, 1]


def test_other_kinds_of_relationship_are_told_where_they_are_asked_for(small):
    graph = small.graph_of(
        3,
        [(0, 1, 2.0, "knows"), (2, 0, 3.0, "sums up", "", "member"), (1, 2, 5.0, "is a", "", "is_a")],
        names=["Ada", "Bob", "Both"],
    )
    graph = graph.with_communities(small.hierarchy_of(3, (0, -1, [0, 1, 2])), None)
    facts, both = Elements(graph, by_weight=True), Elements(graph, kinds=("fact", "member"), by_weight=True)
    assert (facts.mass.tolist(), both.mass.tolist()) == ([2.0], [5.0])
    told = ["Both — sums up → Ada", "Ada — knows → Bob"]
    assert [line.text for line in both.lines(0)] == told
    assert [line.text for line in facts.lines(0)] == ["Ada — knows → Bob", "Both"]
    writer = Writer()
    writer.write(graph, kinds=("fact", "member"))
    assert all(line in writer.shown[0] for line in told) and "is a" not in writer.shown[0]
    report = extractive(graph, kinds=("fact", "member")).table["text"].to_pylist()[0]
    assert all(line in report for line in told) and "is a" not in report
