"""node.tfidf: by question, among candidates, at anchors; single nodes and pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.pipeline.texts import Questions, Text, Texts
from graphrag_bench.pipeline.values import Nodes
from operators.node.tfidf import tfidf

PASSAGES = ["bridge river", "river mill", "mill town", "town bridge bridge", "glacier"]
WORDS = ["bridge", "river", "mill", "town", "glacier", "unknown"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return TfidfIndex.build(PASSAGES, tmp_path_factory.mktemp("tfidf"))


@pytest.fixture(scope="module")
def passages(small):
    """0 - 1 - 2 - 3, a fact between 0 and 4, and 4 alone otherwise."""
    edges = [(0, 1, "passage", 1.0), (2, 1, "passage", 1.0), (2, 3, "passage", 1.0), (0, 4, "fact", 1.0)]
    return small.graph_of(5, edges)


def questions(*texts, failed=None):
    return Questions(tuple(f"q{n}" for n in range(len(texts))), texts, failed=failed or {})


def test_without_wires_it_searches_every_node(small, passages, index):
    found = tfidf(passages, questions("which bridge", "lost", "unknown", failed={1: "x"}), index, top_k=1)
    assert [row.ids.tolist() for row in found] == [[3], [], []]
    whole = tfidf(passages, questions("river bridge"), index)
    ids, scores = index.search(["river bridge"], 10)[0]
    assert small.pairs(whole.row(0)) == list(zip(ids.tolist(), scores.tolist(), strict=True))


def test_candidates_bound_the_search_and_fit_the_idf(passages, index):
    among = Nodes.of_rows([([1, 0], [1.0, 0.5]), ([], [])])
    asked = questions("bridge river", "bridge")
    for fit in ("candidates", "corpus"):
        found = tfidf(passages, asked, index, None, among, fit=fit)
        wanted = index.search(["bridge river"], 10, [np.array([0, 1])], fit)[0]
        assert found.row(0).ids.tolist() == wanted[0].tolist() and found.row(0).scores.tolist() == wanted[1].tolist()
        assert found.row(1).ids.tolist() == []


def test_texts_are_looked_for_beside_their_anchors(passages, index):
    wanted = Texts([(Text("mill bridge", 1), Text("river mill", 3)), (Text("glacier", 0),), (Text("glacier"),)])
    asked = questions("a", "b", "c")
    near = tfidf(passages, asked, index, wanted, None, top_k=1)
    # beside 1 both 0 ("bridge river") and 2 ("mill town") hold one of the two words, and the smaller id is taken; beside 3
    # there is only 2, whose one word of the text is all that its neighbourhood knows of it
    assert [row.ids.tolist() for row in near] == [[2, 0], [], [4]]
    assert near.row(0).scores.tolist() == pytest.approx([2**-0.5, 0.5])
    facts = tfidf(passages, asked, index, wanted, None, top_k=1, kinds=("fact",))
    assert [row.ids.tolist() for row in facts] == [[], [4], [4]]
    bounded = tfidf(passages, asked, index, wanted, Nodes.of_rows([([2], [1.0])] * 3), top_k=3)
    assert [row.ids.tolist() for row in bounded] == [[2], [], []]


def test_a_node_found_twice_keeps_its_best_cosine(small, passages, index):
    wanted = Texts([(Text("mill", 1), Text("mill town", 3))])
    found = tfidf(passages, questions("a"), index, wanted, None, fit="corpus")
    alone = dict(
        small.pairs(tfidf(passages, questions("a"), index, Texts([(Text("mill town", 3),)]), None, fit="corpus").row(0))
    )
    assert dict(small.pairs(found.row(0)))[2] == alone[2] == pytest.approx(1.0)


def test_pairs_put_what_was_found_behind_its_anchor(small, passages, index):
    wanted = Texts([(Text("town", 2), Text("mill", 4), Text("river", 0)), ()])
    found = tfidf(passages, questions("a", "b"), index, wanted, None, top_k=2, anchored="pairs")
    # 2 with 3 beside it; 4 has no neighbour and stays; 0 with 1
    assert small.pairs(found.row(0)) == [(2, 1.0), (3, 1 / 2), (4, 1 / 3), (0, 1 / 4), (1, 1 / 5)]
    assert small.pairs(found.row(1)) == []
    again = Texts([(Text("mill", 1), Text("river", 2))])
    found = tfidf(passages, questions("a"), index, again, None, top_k=1, anchored="pairs")
    assert found.row(0).ids.tolist() == [1, 2]  # each is the other's neighbour, and stands where it came first


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), order=st.permutations(range(4)), anchored=st.sampled_from(["neighbours", "pairs"]))
def test_batch_one_by_one_and_permuted_are_the_same(small, same, passages, index, seed, order, anchored):
    rng = np.random.default_rng(seed)

    def text():
        return " ".join(rng.choice(WORDS, 2))

    rows = [tuple(Text(text(), int(rng.integers(-1, 5))) for _ in range(int(rng.integers(0, 4)))) for _ in range(4)]
    asked = questions(*(text() for _ in range(4)))
    whole = tfidf(passages, asked, index, Texts(rows), None, top_k=2, anchored=anchored)
    permuted = tfidf(passages, asked.take(order), index, Texts(rows).take(order), None, top_k=2, anchored=anchored)
    assert [small.pairs(row) for row in permuted] == [small.pairs(whole.row(n)) for n in order]
    for n in range(4):
        one = tfidf(passages, asked.take([n]), index, Texts([rows[n]]), None, top_k=2, anchored=anchored)
        same(one, whole.take([n]))
