"""Answer metrics on examples small enough to compute by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.evaluation.catalogue import metric
from graphrag_bench.evaluation.metrics.overlap import overlap
from graphrag_bench.evaluation.normalise import normalise
from graphrag_bench.evaluation.records import Record


def value(name: str, prediction: str | None, *answers: str, **fields: object) -> float | None:
    return metric(name).value(Record("q", prediction, answers, **fields))  # type: ignore[arg-type]


# gold "quick brown fox" (3 tokens), answer "quick red fox ran" (4): 2 shared
@pytest.mark.parametrize(
    ("name", "expected"),
    [("precision", 2 / 4), ("recall", 2 / 3), ("f1", 2 * 2 / 7), ("em", 0.0), ("accuracy", 0.0)],
)
def test_by_hand(name: str, expected: float) -> None:
    assert value(name, "The quick red fox ran.", "a quick brown fox") == pytest.approx(expected)


def test_repeated_tokens_count_as_often_as_they_are_in_both() -> None:
    # answer "ha ha ha", gold "ha ha": 2 shared, P = 2/3, R = 1
    assert overlap("ha ha ha", "ha ha") == pytest.approx((2 / 3, 1.0, 0.8))


def test_the_best_alias_counts() -> None:
    aliases = ("United States of America", "USA", "United States")
    assert value("accuracy", "It was the U.S.A.", *aliases) == 1.0
    assert value("em", "The USA", *aliases) == 1.0
    assert value("f1", "United States", *aliases) == 1.0
    assert value("f1", "United Nations", *aliases) == pytest.approx(0.5)  # 1 of 2 and 1 of 2, not 1 of 4


def test_no_is_a_substring_of_not_but_not_a_token() -> None:
    assert value("accuracy", "It is not known.", "no") == 1.0
    assert value("accuracy_token", "It is not known.", "no") == 0.0
    assert value("accuracy_token", "No, it is not.", "no") == 1.0
    assert value("accuracy", "In 11905 AD", "1905") == 1.0
    assert value("accuracy_token", "In 11905 AD", "1905") == 0.0
    assert value("accuracy_token", "in New York City", "New York") == 1.0
    assert value("accuracy_token", "York, New", "New York") == 0.0


def test_an_option_letter_is_not_found_everywhere() -> None:
    assert value("accuracy_token", "B", "A") == 0.0
    assert value("em", "", "A") == 0.0
    assert value("em", "a", "A") == 1.0


@pytest.mark.parametrize(
    ("prediction", "gold", "recall", "plain"),
    [
        ("Yes", "yes", 1.0, 1.0),
        ("Yes, because it is.", "yes", 0.0, 1.0),  # the gold is "yes" and the answer is another text
        ("yes", "yes it is", 0.0, 1 / 3),  # the answer is "yes" and the gold another text
        ("no", "yes", 0.0, 0.0),
        ("Yes men", "The Yes Men", 1.0, 1.0),  # neither *is* yes
        ("noanswer here", "noanswer here too", 2 / 3, 2 / 3),
    ],
)
def test_the_yes_no_rule(prediction: str, gold: str, recall: float, plain: float) -> None:
    assert value("recall", prediction, gold) == pytest.approx(recall)
    assert value("recall_plain", prediction, gold) == pytest.approx(plain)


def test_yes_no_questions_are_told_apart() -> None:
    assert value("accuracy.yesno", "yes", "Yes.") == 1.0
    assert value("accuracy.other", "yes", "Yes.") is None
    assert value("accuracy.yesno", "Paris", "Paris") is None
    assert value("recall.other", "Paris", "Paris") == 1.0
    assert value("recall.yesno", "Yes, indeed", "yes") == 0.0
    assert value("accuracy.yesno", "yes") is None
    assert value("accuracy.other", "yes") is None


def test_a_failure_is_zero_where_a_gold_answer_exists_and_is_left_out_of_the_answered() -> None:
    for name in ("accuracy", "accuracy_token", "em", "f1", "precision", "recall", "recall_plain"):
        assert value(name, None, "Paris", status="failed") == 0.0
        assert value(name, None, status="failed") is None
    assert value("accuracy_answered", None, "Paris", status="failed") is None
    assert value("accuracy_answered", "Rome", "Paris") == 0.0
    assert value("accuracy.yesno", None, "no", status="failed") == 0.0


def test_without_a_gold_answer_nothing_is_scored() -> None:
    assert value("accuracy", "Paris") is None
    assert value("f1", "Paris", "", "  ") is None


@pytest.mark.parametrize("name", ["accuracy", "accuracy_token", "em", "f1", "precision", "recall"])
def test_a_refusal_is_right_only_where_there_is_no_answer(name: str) -> None:
    assert value(name, "I don't know.", "unanswerable") == 1.0
    assert value(name, "Not in the context", "Insufficient information.") == 1.0
    assert value(name, None, "Insufficient information", status="refused") == 1.0
    assert value(name, "I cannot answer. The text is about Rome.", "unanswerable") == 1.0
    assert value(name, "I do not know", "no") == 0.0  # though "no" is in "not" and in "know"
    assert value(name, None, "Paris", status="refused") == 0.0
    assert value(name, "Paris", "unanswerable") == 0.0


def test_an_answer_after_a_refusing_first_sentence_is_still_read() -> None:
    assert value("accuracy", "I don't know. Perhaps Paris.", "Paris") == 1.0


def test_other_scripts() -> None:
    assert value("accuracy", "他住在北京市。", "北京") == 1.0
    assert value("accuracy_token", "他住在北京市。", "北京") == 1.0
    assert value("f1", "北京市", "北京") == pytest.approx(0.8)
    assert value("em", "МОСКВА", "Москва") == 1.0
    assert value("em", "Zürich", "Zu\u0308rich") == 1.0  # composed and decomposed


TEXT = st.text(alphabet="ab yesno.é北", max_size=12)
NAMES = ("accuracy", "accuracy_token", "em", "f1", "precision", "recall", "recall_plain")


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_bounds_and_orders(prediction: str, golds: list[str]) -> None:
    values = {name: value(name, prediction, *golds) for name in NAMES}
    if values["em"] is None:
        assert set(values.values()) == {None}
        return
    assert all(0.0 <= v <= 1.0 for v in values.values() if v is not None)
    if values["em"] == 1.0:
        assert set(values.values()) == {1.0}
    assert values["accuracy"] >= values["accuracy_token"]
    assert values["recall_plain"] >= values["recall"]


@given(TEXT, TEXT)
def test_f1_is_symmetric_and_between_precision_and_recall(one: str, other: str) -> None:
    a, b = overlap(normalise(one), normalise(other)), overlap(normalise(other), normalise(one))
    assert a.f1 == b.f1
    assert (a.precision, a.recall) == (b.recall, b.precision)
    assert min(a.precision, a.recall) - 1e-12 <= a.f1 <= max(a.precision, a.recall) + 1e-12
    assert a.f1 == pytest.approx(2 * a.precision * a.recall / (a.precision + a.recall) if a.f1 else 0.0)


@given(TEXT, st.lists(TEXT, min_size=1, max_size=3), TEXT)
def test_one_more_alias_never_lowers_a_score(prediction: str, golds: list[str], more: str) -> None:
    for name in NAMES:
        before, after = value(name, prediction, *golds), value(name, prediction, *golds, more)
        assert before is None or after >= before
