"""Reading records: what is accepted, and what an error says."""

import gzip
import json
from pathlib import Path

import pytest

from graphrag_bench.errors import Faults, UserError
from graphrag_bench.evaluation.records import Record, read_records


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def row(**changes: object) -> dict[str, object]:
    return {"id": "q1", "prediction": "Paris", "answers": ["Paris"]} | changes


def test_the_smallest_and_the_fullest_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "answers.jsonl",
        row(),
        row(id=7, retrieved=["a", 3], gold_passages=["a"], status="refused", type="bridge", context_text="…",
            gold_texts=["x"], reason="declined", tokens={"answer": 3}),
    )
    assert read_records(path) == (
        Record("q1", "Paris", ("Paris",)),
        Record("7", "Paris", ("Paris",), ("a", "3"), ("a",), "refused", "declined", "bridge", "…", ("x",)),
    )


def test_gzip_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl.gz"
    path.write_bytes(gzip.compress(f"\n{json.dumps(row())}\n\n".encode()))
    assert [record.id for record in read_records(path)] == ["q1"]


def test_a_null_prediction_and_a_failed_status_are_failures(tmp_path: Path) -> None:
    records = read_records(write(
        tmp_path / "a.jsonl", row(prediction=None), row(id="q2", status="failed", reason="timeout: 60 s"),
        row(id="q3", prediction=""), row(id="q4", prediction=None, status="refused"),
    ))
    assert [(r.status, r.prediction, r.reason) for r in records] == [
        ("failed", None, "no prediction"), ("failed", None, "timeout: 60 s"), ("ok", "", ""), ("refused", None, ""),
    ]


def test_no_ranking_and_an_empty_one_differ(tmp_path: Path) -> None:
    records = read_records(write(tmp_path / "a.jsonl", row(retrieved=None), row(id="q2", retrieved=[])))
    assert [record.retrieved for record in records] == [None, ()]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"id": "q2", "answers": []}, 'the field "prediction" is missing'),
        ({"id": "q2", "predictions": "x", "answers": []}, "Is it the one called 'predictions'?"),
        ({"prediction": "x", "answers": []}, 'the field "id" is missing'),
        (row(id="q2", answers="Paris"), '"answers" must be a list of strings'),
        (row(id="q2", answers=["Paris", 3]), '"answers"'),
        (row(id="q2", prediction=3), '"prediction"'),
        (row(id="q2", retrieved="a b"), '"retrieved"'),
        (row(id="q2", retrieved=[None]), '"retrieved" holds None'),
        (row(id=True), '"id" holds True'),
        (row(id="q2", status="fail"), "Did you mean failed?"),
        (row(id="q1"), "the id 'q1' was already used"),
        ("{broken", "not valid JSON"),
        ("[1, 2]", "not a JSON object"),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, line: object, says: str) -> None:
    path = write(tmp_path / "answers.jsonl", row(), line)
    with pytest.raises(UserError) as caught:
        read_records(path)
    assert says in str(caught.value)
    assert f"{path}:2" in str(caught.value)


def test_several_faults_are_reported_together(tmp_path: Path) -> None:
    path = write(tmp_path / "answers.jsonl", row(id=None), row(), '{"id": }', row(id="q2", answers=3))
    with pytest.raises(Faults) as caught:
        read_records(path)
    assert [fault.problem.split(" ")[0] for fault in caught.value.faults] == [f"{path}:{n}:" for n in (1, 3, 4)]


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe\x00"])
def test_empty_and_foreign_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"answers\.jsonl"):
        read_records(path)


def test_missing_file_folder_and_cut_gzip(tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(json.dumps(row()).encode() * 50)[:-12])
    for path in (tmp_path / "none.jsonl", tmp_path, cut):
        with pytest.raises(UserError):
            read_records(path)
