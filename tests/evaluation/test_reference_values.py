"""Every published or independently computed value of the shared data, to its printed digits.

The reference F1 is the plain SQuAD one; no gold answer of PopQA is yes or no, so HotpotQA's rule changes nothing
there and `f1` must match. The reference recall@k reads the first k ids as they stand: repeated ids are not removed
first (lightrag_local would be 0.655303 instead of 0.643939 at 5).
"""

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_bench.evaluation.gold import is_yesno
from graphrag_bench.evaluation.records import Record
from graphrag_bench.evaluation.score import score

DATA = Path(os.environ.get("GRAPHRAG_BENCH_DATA") or Path(__file__).parents[3] / "shared" / "data")
CHECKS = DATA / "metric_checks"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CHECKS.is_dir(), reason="the shared datasets are not here (GRAPHRAG_BENCH_DATA)"),
]
OURS = {"EM": "em", "F1": "f1"}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def run_records(dataset: str, run: str) -> list[Record]:
    questions = {row["id"]: row for row in lines(DATA / dataset / "questions.jsonl.gz")}
    records = []
    for row in lines(DATA / dataset / "runs" / f"{run}.jsonl.gz"):
        question = questions[row["question_id"]]
        records.append(Record(
            id=row["question_id"],
            prediction=row["prediction"],
            answers=tuple(question["answers"]),
            retrieved=tuple(row["retrieved"]),
            gold_passages=tuple(question["gold_passages"]),
            status="ok" if row["prediction"] is not None else "failed",
            reason="" if row["prediction"] is not None else "no prediction",
        ))
    return records


def test_the_runs() -> None:
    values = json.loads((CHECKS / "runs_reference_values.json").read_text(encoding="utf-8"))["values"]
    compared = 0
    for dataset, runs in values.items():
        for run, expected in runs.items():
            records = run_records(dataset, run)
            assert len(records) == expected.pop("questions")
            names = [OURS.get(name, name) for name in expected]
            found = score(records, names, resamples=10).to_json()["metrics"]
            assert {OURS.get(name, name): value for name, value in expected.items()} == {
                name: found[name]["value"] for name in names
            }, f"{dataset}/{run}"
            compared += len(names)
    assert compared == 36


def test_the_f1_reference_cannot_tell_the_two_variants_apart() -> None:
    assert not any(map(is_yesno, run_records("popqa_sub", "psi_rag_keyword")))


def test_perfect_retrieval_of_fast_graphrag() -> None:
    values = json.loads((CHECKS / "fast_graphrag_2wiki_published.json").read_text(encoding="utf-8"))["values"]
    records: dict[str, list[Record]] = defaultdict(list)
    for row in lines(CHECKS / "fast_graphrag_2wiki_perfect_retrieval.jsonl.gz"):
        records[f"{row['method']}/{row['subset']}"].append(
            Record(str(row["row"]), None, (), tuple(row["retrieved"]), tuple(row["gold"]), "failed")
        )
    assert records.keys() == values.keys()
    for name, expected in values.items():
        found = score(records[name], ["all_gold@8"], resamples=10)
        assert found.asked == expected["rows"]
        assert found.metrics["all_gold@8"].value == expected["published"] == expected["recomputed"], name
        assert sum(row["all_gold@8"] for row in found.per_question) == expected["perfect"]
