"""Scores of a run: means, counts, names, and the text the CLI prints."""

import json
from pathlib import Path

import pytest
import yaml

from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.catalogue import DEFAULT_KS, DEFAULT_METRICS, expand, metric
from graphrag_bench.evaluation.records import Record
from graphrag_bench.evaluation.score import score, score_file
from graphrag_bench.evaluation.show import run_score
from graphrag_bench.registry import REGISTRY

RECORDS = (
    Record("1", "It was Paris.", ("Paris",), ("p1", "p2"), ("p1",)),
    Record("2", "Rome", ("Paris",), ("p3",), ("p1",)),
    Record("3", None, ("yes",), None, ("p1",), "failed", "timeout: 60 s"),
    Record("4", "I don't know.", ("unanswerable",), ("p9",), ()),
    Record("5", "Something", (), ("p1",), ("p1",)),
)


def test_by_hand() -> None:
    scores = score(RECORDS, ["accuracy", "accuracy_answered", "accuracy.yesno", "recall@1", "text_recall"])
    assert scores.to_json() == {
        "metrics": {
            # right, wrong, failed, rightly refused; the fifth has no gold answer
            "accuracy": {"value": 0.5, "n": 4, "ci": [0.0, 1.0]},
            "accuracy_answered": {"value": 0.666667, "n": 3, "ci": [0.0, 1.0]},
            "accuracy.yesno": {"value": 0.0, "n": 1, "ci": [0.0, 0.0]},
            # found, not found, failed before retrieving, found; the fourth has no gold passage
            "recall@1": {"value": 0.5, "n": 4, "ci": [0.0, 1.0]},
            "text_recall": {"value": None, "n": 0, "ci": None},
        },
        "asked": 5, "answered": 4, "failed": {"timeout": 1}, "refused": 1,
    }
    assert list(scores.to_json()["metrics"]) == list(scores.metrics)
    assert scores.per_question[2] == {
        "id": "3", "accuracy": 0.0, "accuracy_answered": None, "accuracy.yesno": 0.0, "recall@1": 0.0,
        "text_recall": None,
    }


def test_a_method_without_chunks_has_no_retrieval_score() -> None:
    records = [Record("1", "x", ("x",), None, ("p",)), Record("2", None, ("x",), None, ("p",), "failed")]
    found = score(records, ["recall@5", "mrr", "accuracy"]).to_json()
    assert found["metrics"]["recall@5"] == found["metrics"]["mrr"] == {"value": None, "n": 0, "ci": None}
    assert found["failed"] == {"no reason given": 1}


def test_no_records() -> None:
    assert score([], ["em"]).to_json() == {
        "metrics": {"em": {"value": None, "n": 0, "ci": None}}, "asked": 0, "answered": 0, "failed": {}, "refused": 0,
    }


def test_same_seed_same_bytes() -> None:
    records = [Record(str(i), " ".join("xyzuvw"[: i % 7]), ("x y",)) for i in range(41)]
    one, two, other = (json.dumps(score(records, ["f1"], seed=seed).to_json()) for seed in (1, 1, 2))
    assert one == two != other


def test_any_k_and_spelled_out_ks() -> None:
    assert metric("recall@7").label == "Recall@7"
    assert expand(["em", "recall@k", "recall@2", "em"], [2, 3]) == ["em", "recall@2", "recall@3"]
    assert list(score(RECORDS, ["hit@k"], ks=[3, 8]).metrics) == ["hit@3", "hit@8"]


@pytest.mark.parametrize(
    ("name", "says"),
    [("acuracy", "Did you mean accuracy?"), ("recal@7", "Did you mean recall@7?"), ("recall@0", "recall@5"),
     ("recall@x", "recall@5"), ("recall@", "recall@5"), ("f1@5", "No metric is called 'f1@5'")],
)
def test_an_unknown_metric_is_a_user_error(name: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        score(RECORDS, [name])
    assert says in str(caught.value)


def test_the_page_and_the_defaults_say_the_same() -> None:
    page = yaml.safe_load((Path(__file__).parents[2] / "conf/evaluation/default.yaml").read_text(encoding="utf-8"))
    assert tuple(page["metrics"]) == DEFAULT_METRICS
    assert tuple(page["ks"]) == DEFAULT_KS
    assert (page["bootstrap"], page["interval"]) == (2000, 0.95)


def test_every_metric_says_what_it_is() -> None:
    known = REGISTRY.all("metric")
    assert set(DEFAULT_METRICS) <= {component.name for component in known}
    for component in known:
        assert component.extra["direction"] in ("higher", "lower")
        assert component.extra["label"] and component.extra["description"].endswith(".")
        assert set(component.needs) <= {"answers", "passages"} and component.needs


def test_what_the_command_prints(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [
        {"id": "1", "prediction": "Paris", "answers": ["Paris"], "retrieved": ["a"], "gold_passages": ["a"]},
        {"id": "2", "prediction": None, "answers": ["Rome"], "retrieved": ["a"], "gold_passages": ["b"]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    as_json = json.loads(run_score(file, "accuracy, recall@7", True))
    assert as_json == score_file(file, ["accuracy", "recall@7"]).to_json()
    assert run_score(file, "accuracy,accuracy.yesno,recall@7") == """\
2 asked, 1 answered, 1 failed † (1 no prediction), 0 refused

Metric                                %  95 % interval  n
──────────────  ─────────────────  ────  ─────────────  ─
accuracy        Accuracy           50.0   [0.0, 100.0]  2
accuracy.yesno  Accuracy (yes/no)     –              –  0
recall@7        Recall@7           50.0   [0.0, 100.0]  2
† A failed question is 0 in the answer metrics (accuracy_answered leaves it out), and in the retrieval metrics \
where it came to no ranking."""
