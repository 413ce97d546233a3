"""Faults a reviewer found, each with the behaviour that replaced it."""

import asyncio
import json

import pytest

import graphrag_bench
from graphrag_bench.cli import main
from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.scripted import Scripted

BASE = ["dataset=sample", "dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=none"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path / "store"))

    def go(*overrides):
        code = main(["run", *BASE, f"output={tmp_path / 'out'}", *overrides])
        return code, capsys.readouterr()

    return go


def test_reasoning_cut_before_its_answer_is_a_failure(run, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"match": "Question", "reply": "The bridge was designed by someone who " * 20}) + "\n")
    code, _ = run("method=cot", f"llm.path={script}", "method.answer.max_tokens=12", "limit=2")
    rows = [json.loads(line) for line in (tmp_path / "out/cot/sample-demo/answers.jsonl").read_text().splitlines()]
    assert code == 1
    assert {row["status"] for row in rows} == {"failed"}
    assert all(row["prediction"] is None and row["reason"].startswith("truncated") for row in rows)


def test_no_metric_looks_deeper_than_the_ranking(run, tmp_path):
    assert run("method=bm25", "retrieval_depth=3", "until=retrieval")[0] == 0
    folder = tmp_path / "out/bm25/sample-demo"
    names = json.loads((folder / "metrics.json").read_text())["metrics"]
    assert "recall@2" in names
    assert not {"recall@5", "recall@10", "hit@20"} & names.keys()
    notes = json.loads((folder / "run.json").read_text())["result"]["notes"]
    assert any("nothing is said at 5, 10, 20" in note for note in notes)


@pytest.mark.parametrize("damage", ["metrics.json", "answers.jsonl"])
def test_a_finished_cell_is_believed_only_with_its_files(run, tmp_path, damage):
    assert run("method=bm25", "limit=3")[0] == 0
    path = tmp_path / "out/bm25/sample-demo" / damage
    whole = path.read_bytes()
    path.write_bytes(b"")
    assert run("method=bm25", "limit=3")[0] == 0
    assert path.read_bytes() == whole


def test_retrieved_rows_are_no_failures_for_score(run, tmp_path, capsys):
    assert run("method=bm25", "until=retrieval", "limit=5")[0] == 0
    assert main(["score", str(tmp_path / "out/bm25/sample-demo/answers.jsonl"), "--metrics", "accuracy,recall@5", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["metrics"]["accuracy"]["value"] is None
    assert scores["metrics"]["recall@5"]["n"] == 5
    assert scores["failed"] == {}


def test_secrets_in_settings_are_refused_and_not_repeated(run, tmp_path):
    for setting in ("llm.api_key_env=sk-secret-1234", "llm.base_url=http://u:secret-1234@h/v1", "llm.api_key=secret-1234"):
        code, said = run("method=zeroshot", "llm=openai", setting)
        assert code == 2
        assert "secret-1234" not in said.err + said.out
    assert not (tmp_path / "out").exists()


def test_the_window_counts_before_the_cache(run, tmp_path):
    small = ["method=bm25", "limit=2", "llm.window=300"]
    assert run("method=bm25", "limit=2")[0] == 0
    first = (tmp_path / "out/bm25/sample-demo/answers.jsonl").read_text()
    assert run(*small)[0] == 1  # too little room for any context: said, not asked without one
    assert (tmp_path / "out/bm25/sample-demo/answers.jsonl").read_text() != first


def test_compare_works_in_a_running_loop_and_takes_a_backend(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path / "store"))

    async def notebook():
        return graphrag_bench.compare(
            ["bm25", "zeroshot"], dataset="sample", llm=Scripted.of(lambda *_: "Ilse Varnholm"), embedder="hashing",
            limit=3, output=tmp_path / "out", show="none",
        )

    table = asyncio.run(notebook())
    assert "BM25" in str(table)
    assert table.to_markdown().startswith("| Method")
    assert "\\toprule" in table.to_latex()
    assert len(table.to_pandas()) == 2
    with pytest.raises(UserError, match="backend object"):
        graphrag_bench.compare(["bm25"], llm=3, output=tmp_path / "out")
