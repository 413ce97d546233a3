"""Retrieval metrics on one ranking, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.evaluation.catalogue import metric
from graphrag_bench.evaluation.records import Record


def value(name: str, retrieved: list[str] | None, gold: list[str], **fields: object) -> float | None:
    ranking = None if retrieved is None else tuple(retrieved)
    return metric(name).value(Record("q", "x", ("x",), ranking, tuple(gold), **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@1", 0.0), ("recall@2", 0.5), ("recall@3", 0.5), ("recall@4", 1.0), ("recall@100", 1.0),
        ("hit@1", 0.0), ("hit@2", 1.0), ("all_gold@3", 0.0), ("all_gold@4", 1.0),
        ("mrr", 0.5), ("mrr@1", 0.0), ("mrr@2", 0.5),
    ],
)
def test_by_hand(name: str, expected: float) -> None:
    assert value(name, ["x", "g1", "y", "g2"], ["g1", "g2"]) == expected


def test_a_repeated_id_takes_its_place_but_counts_once() -> None:
    assert value("recall@2", ["g1", "g1", "g2"], ["g1", "g2"]) == 0.5
    assert value("recall@3", ["g1", "g1", "g2"], ["g1", "g2"]) == 1.0
    assert value("recall@1", ["g1"], ["g1", "g1"]) == 1.0


@pytest.mark.parametrize("name", ["recall@5", "hit@5", "all_gold@5", "mrr", "mrr@5"])
def test_no_chunks_no_gold_and_nothing_found_are_three_things(name: str) -> None:
    assert value(name, None, ["g"]) is None  # the method retrieves no chunk
    assert value(name, ["g"], []) is None  # the dataset has no gold passage
    assert value(name, [], ["g"]) == 0.0


def test_text_recall_reads_the_context_that_was_really_sent() -> None:
    context = "Title\nParis is the\n capital of France. Rome lies"
    texts = ("Paris is the capital of France.", "Rome lies on the Tiber.")
    assert value("text_recall", None, ["a", "b"], context_text=context, gold_texts=texts) == 0.5
    assert value("text_recall", ["a"], ["a"], context_text=context) is None
    assert value("text_recall", ["a"], ["a"], gold_texts=texts) is None


@given(st.lists(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef"), min_size=1), st.integers(1, 8))
def test_orders(retrieved: list[str], gold: set[str], k: int) -> None:
    recall, hit, every = (value(f"{name}@{k}", retrieved, sorted(gold)) for name in ("recall", "hit", "all_gold"))
    assert every <= recall <= hit
    assert recall <= value(f"recall@{k + 1}", retrieved, sorted(gold))
    assert value(f"mrr@{k}", retrieved, sorted(gold)) <= value("mrr", retrieved, sorted(gold))
