"""TF-IDF over node texts, against scikit-learn's vectoriser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from graphrag_bench.index.tfidf import TfidfIndex

WORDS = ["bridge", "river", "the", "of", "Ørvik", "mill", "x", "9", "1904", "Bridge"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=9)
CORPUS = ["The Harrow Bridge", "the river", "bridge bridge river", "", "the river"]


def build(tmp_path_factory, texts, **more):
    return TfidfIndex.build(texts, tmp_path_factory.mktemp("tfidf"), **more)


def sklearn_hits(texts, ids, query, top_k, fitted, **more):
    """The ids and cosines by scikit-learn, among ``ids``, with a vectoriser fitted on the texts ``fitted``."""
    vectorizer = TfidfVectorizer(**more)
    try:
        vectorizer.fit(fitted)
    except ValueError:  # it refuses a corpus without a word
        return []
    cosines = cosine_similarity(vectorizer.transform([query]), vectorizer.transform([texts[i] for i in ids]))[0].round(
        9
    )
    found = [(int(i), float(c)) for i, c in zip(ids, cosines, strict=True) if c > 0]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:top_k]


def agree(hits, wanted):
    assert hits[0].tolist() == [identity for identity, _ in wanted]
    np.testing.assert_allclose(hits[1], [score for _, score in wanted], atol=2e-9)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, queries=TEXTS, top_k=st.integers(1, 10), stop=st.booleans(), seed=st.integers(0, 999))
def test_equals_scikit_learn(tmp_path_factory, texts, queries, top_k, stop, seed):
    index = build(tmp_path_factory, texts, stop_words=stop)
    more = {"stop_words": "english"} if stop else {}
    everything = list(range(len(texts)))
    for query, hits in zip(queries, index.search(queries, top_k), strict=True):
        agree(hits, sklearn_hits(texts, everything, query, top_k, texts, **more))
    rng = np.random.default_rng(seed)
    within = [np.flatnonzero(rng.random(len(texts)) < 0.6) for _ in queries]
    for fit in ("corpus", "candidates"):
        for query, ids, hits in zip(queries, within, index.search(queries, top_k, within, fit), strict=True):
            fitted = texts if fit == "corpus" else [texts[i] for i in ids]
            agree(hits, sklearn_hits(texts, ids.tolist(), query, top_k, fitted, **more) if len(ids) else [])


def test_ties_go_to_the_smaller_id_and_nothing_shared_is_no_hit(tmp_path_factory):
    index = build(tmp_path_factory, CORPUS)
    (ids, scores), (none, _), (empty, _) = index.search(["River", "glacier", ""], 10)
    assert ids.tolist() == [1, 4, 2]
    assert scores[0] == scores[1] > scores[2] > 0
    assert none.tolist() == empty.tolist() == []


def test_the_idf_of_the_candidates_is_not_the_corpus_one(tmp_path_factory):
    texts = ["bridge river", "bridge", "bridge", "river mill"]
    index = build(tmp_path_factory, texts)
    among = [np.array([0, 3])]
    # in the corpus "bridge" is the commoner word of text 0; of the two candidates only "river" is in both
    corpus = index.search(["river"], 5, among, "corpus")[0]
    fitted = index.search(["river"], 5, among, "candidates")[0]
    assert corpus[1][0] != fitted[1][0]
    assert fitted[1][0] == pytest.approx(1 / np.sqrt(1 + (np.log(3 / 2) + 1) ** 2))


def test_a_batch_is_its_texts_one_by_one(tmp_path_factory):
    index = build(tmp_path_factory, CORPUS)
    queries = ["bridge", "the river", "harrow mill"]
    for query, (ids, scores) in zip(queries, index.search(queries, 3), strict=True):
        alone = index.search([query], 3)[0]
        assert ids.tolist() == alone[0].tolist() and scores.tolist() == alone[1].tolist()


@pytest.mark.parametrize("texts", [CORPUS, [], ["", "a b"]])
def test_opened_it_is_the_same_and_its_bytes_repeat(tmp_path, texts):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        built = TfidfIndex.build(texts, tmp_path / name)
    opened = TfidfIndex.open(tmp_path / "one")
    assert opened.size == len(texts) and list(opened.terms) == list(built.terms)
    for one, two in zip(built.search(["the river"], 9), opened.search(["the river"], 9), strict=True):
        assert one[0].tolist() == two[0].tolist() and one[1].tolist() == two[1].tolist()
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
