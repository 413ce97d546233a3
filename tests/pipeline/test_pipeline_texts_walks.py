"""Values that are said or walked: cut down to some questions and put together again, joined, ordered, taken apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.pipeline.texts import Questions, Text, Texts, Truths
from graphrag_bench.pipeline.values import Chunks, Communities, Nodes, Relationships
from graphrag_bench.pipeline.walks import BACKWARD, FORWARD, Frontier, Path, Reach, Subgraphs
from graphrag_bench.pipeline.wires import part, parts_of

SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
WORDS = st.sampled_from(["", "a", "b", "Ulm"])
TEXTS = st.lists(st.builds(Text, WORDS, st.integers(-1, 2)), max_size=4).map(tuple)
REACHES = st.lists(
    st.builds(Reach, st.integers(0, 3), st.integers(-1, 2), st.sampled_from([-1, 0, 1]), SCORES), max_size=4
)


@st.composite
def paths(draw):
    length = draw(st.integers(0, 2))
    nodes = draw(st.lists(st.integers(0, 3), min_size=length + 1, max_size=length + 1))
    relationships = draw(st.lists(st.integers(0, 3), min_size=length, max_size=length))
    directions = draw(st.lists(st.sampled_from([FORWARD, BACKWARD]), min_size=length, max_size=length))
    return Path(tuple(nodes), tuple(relationships), tuple(directions), draw(SCORES))


RANKED = st.dictionaries(st.integers(0, 5), SCORES, max_size=4).map(lambda row: (list(row), list(row.values())))
ROWS = {
    Texts: TEXTS,
    Truths: st.booleans(),
    Subgraphs: st.lists(paths(), max_size=4),
    Frontier: REACHES,
    Nodes: RANKED,
    Relationships: RANKED,
    Chunks: RANKED,
    Communities: RANKED,
}


def made(kind, rows, failed):
    return kind.of_rows(rows, failed) if hasattr(kind, "of_rows") else kind(rows, failed)


def plain(value):
    """A value as plain data, failures included."""
    if isinstance(value, Questions):
        return [value.row(n) for n in range(value.size)], dict(value.failed)
    if hasattr(value, "rows"):
        return list(value.rows), dict(value.failed)
    return [(row.ids.tolist(), row.scores.tolist()) for row in value], dict(value.failed)


@st.composite
def values(draw, size=None):
    """A value of any kind but questions, for a batch."""
    kind = draw(st.sampled_from(list(ROWS)))
    number = draw(st.integers(0, 4)) if size is None else size
    rows = draw(st.lists(ROWS[kind], min_size=number, max_size=number))
    failed = draw(
        st.dictionaries(
            st.integers(0, max(number - 1, 0)), st.sampled_from(["empty: x", "timeout: y"]), max_size=number
        )
    )
    return made(kind, rows, failed if number else {})


@st.composite
def asked(draw):
    number = draw(st.integers(0, 4))

    def column(one):
        return draw(st.none() | st.lists(one, min_size=number, max_size=number).map(tuple))

    failed = draw(st.dictionaries(st.integers(0, max(number - 1, 0)), st.just("empty: x"), max_size=number))
    return Questions(
        tuple(f"q{n}" for n in range(number)),
        tuple(f"text {n}?" for n in range(number)),
        column(st.lists(WORDS, max_size=2).map(tuple)),
        column(WORDS),
        column(WORDS),
        failed if number else {},
    )


@given(values() | asked(), st.randoms(use_true_random=False))
def test_a_value_cut_into_parts_and_placed_again_is_the_value(value, random):
    numbers = list(range(value.size))
    random.shuffle(numbers)
    at = random.randint(0, len(numbers))
    parts = [(numbers[:at], value.take(numbers[:at])), (numbers[at:], value.take(numbers[at:]))]
    assert plain(type(value).placed(value.size, parts)) == plain(value)
    assert plain(type(value).placed(value.size, [(range(value.size), value)])) == plain(value)


@given(values() | asked())
def test_taking_everything_in_order_changes_nothing_and_nothing_taken_is_nothing(value):
    assert plain(value.take(range(value.size))) == plain(value)
    none = value.take([])
    assert (type(none), none.size, none.failed) == (type(value), 0, {})
    if value.size:
        assert plain(value.take([value.size - 1, 0]))[0] == [plain(value)[0][-1], plain(value)[0][0]]


@given(st.data())
def test_a_later_part_wins_with_its_failures_and_what_nobody_speaks_of_is_empty(data):
    one = data.draw(values(size=3))
    kind = type(one)
    two = made(kind, data.draw(st.lists(ROWS[kind], min_size=1, max_size=1)), {0: "timeout: late"})
    placed = kind.placed(4, [([0, 1, 2], one), ([1], two)])
    rows, failed = plain(placed)
    assert rows[1] == plain(two)[0][0]
    assert failed[1] == "timeout: late"
    assert (rows[0], rows[2]) == (plain(one)[0][0], plain(one)[0][2])
    assert rows[3] == plain(kind.empty(1))[0][0]
    healed = kind.placed(3, [([0, 1, 2], kind.placed(3, [([1], two)])), ([1], made(kind, [plain_row(kind)], {}))])
    assert 1 not in healed.failed  # the later part has not failed


def plain_row(kind):
    return {Texts: (), Truths: False, Subgraphs: (), Frontier: ()}.get(kind, ([], []))


@pytest.mark.parametrize("kind", list(ROWS))
def test_empty_values_have_the_size_of_their_batch(kind):
    value = kind.empty(2, {1: "empty: x"})
    assert (value.size, len(value), value.failed) == (2, 2, {1: "empty: x"})
    assert kind.empty(0).size == 0
    assert kind.placed(2, []).size == 2
    assert plain(value)[0] == [plain_row(kind)] * 2


@given(st.data(), st.sampled_from(["max", "sum"]))
def test_joining_walks_does_not_depend_on_the_order_of_the_values(data, rule):
    kind = data.draw(st.sampled_from([Subgraphs, Frontier, Nodes]))
    several = [made(kind, data.draw(st.lists(ROWS[kind], min_size=2, max_size=2)), {}) for _ in range(3)]
    assert plain(kind.join(several, rule)) == plain(kind.join(several[::-1], rule))


@given(st.data())
def test_a_join_by_max_of_a_value_with_itself_is_the_value_with_each_item_once(data):
    kind = data.draw(st.sampled_from([Subgraphs, Frontier, Texts, Truths]))
    value = made(kind, data.draw(st.lists(ROWS[kind], min_size=2, max_size=2)), {1: "empty: x"})
    twice = kind.join([value, value])
    assert plain(twice) == plain(kind.join([value]))
    assert twice.failed == {1: "empty: x"}


def test_joins_by_hand():
    near, far = Path((0, 1), (0,), (FORWARD,), 0.5), Path((0, 2), (1,), (BACKWARD,), 0.25)
    one, two = Subgraphs([[near, far]], {}), Subgraphs([[near._replace(score=1.0)]], {})
    assert Subgraphs.join([one, two]).rows == ((near._replace(score=1.0), far),)
    assert Subgraphs.join([one, two], "sum").rows == ((near._replace(score=1.5), far),)
    stands, came = Reach(3, score=0.5), Reach(3, 1, FORWARD, 0.5)  # at one node by two ways: two items
    assert Frontier.join([Frontier([[stands]]), Frontier([[came, stands]])], "sum").rows == (
        (stands._replace(score=1.0), came),
    )
    noted = Texts([(Text("a"), Text("b", 2))]), Texts([(Text("b"), Text("a"))])
    assert Texts.join(noted).rows == ((Text("a"), Text("b", 2), Text("b")),)  # in order, an anchor makes another text
    assert Texts.join(noted[::-1]).rows == ((Text("b"), Text("a"), Text("b", 2)),)
    assert Truths.join([Truths([True, False]), Truths([False, False])]).rows == (True, False)
    first, second = Questions(("q",), ("A?",)), Questions(("q",), ("B?",))
    assert Questions.join([first, second]) is second


@given(st.lists(paths(), max_size=5), REACHES, st.randoms(use_true_random=False))
def test_walks_stand_by_score_then_by_what_they_are_whatever_the_order_given(row, reaches, random):
    value, frontier = Subgraphs([row]), Frontier([reaches])
    assert list(value.row(0)) == sorted(set(row), key=lambda p: (-p.score, *p[:3]))
    assert list(frontier.row(0)) == sorted(reaches, key=lambda r: (-r.score, *r[:3]))
    random.shuffle(row)
    random.shuffle(reaches)
    assert Subgraphs([row]).rows == value.rows
    assert Frontier([reaches]).rows == frontier.rows


@given(st.lists(st.lists(paths(), max_size=4), min_size=1, max_size=3), st.lists(REACHES, min_size=1, max_size=3))
def test_parts_hold_every_element_with_its_best_score(rows, reaches):
    walked, frontier = Subgraphs(rows, {0: "empty: x"}), Frontier(reaches, {0: "empty: y"})
    for number, row in enumerate(rows):
        for kind, name in ((Nodes, "nodes"), (Relationships, "relationships")):
            best: dict[int, float] = {}
            for path in row:
                for element in getattr(path, name):
                    best[element] = max(path.score, best.get(element, -math.inf))
            found = part(walked, name)
            assert (type(found), found.failed) == (kind, {0: "empty: x"})
            got = found.row(number)
            assert dict(zip(got.ids.tolist(), got.scores.tolist(), strict=True)) == best
            assert list(zip(-got.scores, got.ids, strict=True)) == sorted(zip(-got.scores, got.ids, strict=True))
    for number, items in enumerate(reaches):
        by_node: dict[int, float] = {}
        by_relationship: dict[int, float] = {}
        for item in items:
            by_node[item.node] = max(item.score, by_node.get(item.node, -math.inf))
            if item.relationship >= 0:  # the start of a walk has come by none
                by_relationship[item.relationship] = max(item.score, by_relationship.get(item.relationship, -math.inf))
        for name, best in (("nodes", by_node), ("relationships", by_relationship)):
            got = part(frontier, name).row(number)
            assert dict(zip(got.ids.tolist(), got.scores.tolist(), strict=True)) == best


def test_which_values_have_parts():
    assert parts_of(Subgraphs) == parts_of(Frontier) == {"nodes": Nodes, "relationships": Relationships}
    assert parts_of(Nodes) == parts_of(Texts) == parts_of(Truths) == parts_of(Questions) == {}


def test_questions_are_read_by_what_was_asked_of_them():
    value = Questions(("a", "b"), ("A?", "B?"), (("Ada",), ("Ulm",)), ("", "river"), None, {1: "empty: x"})
    assert value.read("question") == [("A?",), ()]  # of what has failed nothing is read
    assert value.read("entities") == [("Ada",), ()]
    assert value.read("low") == [(), ()]
    with pytest.raises(ValueError, match="has not asked for the questions' keywords"):
        value.read("high")
    with pytest.raises(ValueError, match="entities"):
        Questions(("a",), ("A?",)).read("entities")


def test_columns_of_placed_questions():
    whole = Questions(("a", "b", "c"), ("A?", "B?", "C?"))
    reworded = Questions(("a", "c"), ("A then?", "C then?"), (("Ada",), ()))
    # b has its own words and nobody has looked for its entities: nobody may read them
    placed = Questions.placed(3, [(range(3), whole), ([0, 2], reworded)])
    assert placed.texts == ("A then?", "B?", "C then?")
    assert placed.entities is None
    # but a question that has failed is asked for nothing
    failed = Questions(("a", "b", "c"), ("A?", "B?", "C?"), failed={1: "timeout: x"})
    placed = Questions.placed(3, [(range(3), failed), ([0, 2], reworded)])
    assert (placed.entities, placed.failed) == ((("Ada",), (), ()), {1: "timeout: x"})
    assert (placed.low, placed.high) == (None, None)
    assert Questions.placed(0, [([], reworded.take([]))]).entities == ()  # asked for, of nobody
    assert Questions.placed(0, [([], whole)]).entities is None


def test_dense_rankings_can_be_taken_and_placed():
    dense = Chunks.of_dense(np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [3.0, 0.0, 3.0]]), failed={1: "empty: x"})
    assert [row.ids.tolist() for row in dense.take([2, 1])] == [[0, 2], []]
    assert dense.take([2, 1]).failed == {1: "empty: x"}
    assert dense.take([]).size == 0
    assert [row.ids.tolist() for row in Chunks.placed(3, [([0, 1, 2], dense), ([0], dense.take([2]))])] == [
        [0, 2],
        [],
        [0, 2],
    ]
