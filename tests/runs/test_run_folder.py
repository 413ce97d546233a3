"""What a run leaves in its folder, and when it may be taken for the run that was asked for."""

import json

import pytest

CELL = {"config.yaml", "run.json", "answers.jsonl", "contexts.jsonl", "metrics.json", "per_question.jsonl", "ledger.jsonl",
        "costs.json"}


def load(path):
    return json.loads(path.read_text("utf-8"))


def files(folder):
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_what_a_run_folder_holds(unbroken):
    import yaml

    assert files(unbroken.out) == {"table.md", "table.json"}
    for method in ("vanilla", "hipporag"):
        cell = unbroken.cell(method)
        assert files(cell) >= CELL
        config = yaml.safe_load((cell / "config.yaml").read_text("utf-8"))
        assert (config["llm"]["backend"], config["dataset"]["subset"], config["seed"]) == ("scripted", "demo", 0)
        record = load(cell / "run.json")
        assert record["status"] == "done"
        assert record["dataset"]["sha256"] == record["dataset"]["card"]["sha256"]
        assert record["model"]["backend"] == "scripted"
        assert record["embedder"]["backend"] == "hashing"
        assert record["prompts"]
        assert record["chain"].endswith("context(chunks) > direct")
        assert (record["graph"] is None) == (method == "vanilla")
        for key in record["artifacts"].values():
            assert (unbroken.store / key / "manifest.json").is_file()
        rows = unbroken.rows(cell / "answers.jsonl")
        assert [row["id"] for row in rows] == [f"q{number:02}" for number in range(1, 13)]
        assert {row["status"] for row in rows} == {"ok"}
        assert all(row["prediction"] and row["retrieved"] is not None for row in rows)
        assert [row["id"] for row in unbroken.rows(cell / "contexts.jsonl")] == [row["id"] for row in rows]
        assert [row["id"] for row in unbroken.rows(cell / "per_question.jsonl")] == [row["id"] for row in rows]
        ledger = unbroken.rows(cell / "ledger.jsonl")
        total = load(cell / "costs.json")["ledger"]["total"]
        assert total["calls"] == len(ledger) == (12 if method == "vanilla" else 32 + 24)
        assert total["prompt_tokens"] == sum(row["prompt_tokens"] for row in ledger)


def test_the_same_run_again_calls_no_model_and_changes_no_file(bench):
    assert bench.run("method=vanilla").code == 0
    cell = bench.cell("vanilla")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in cell.iterdir()}
    again = bench.run("method=vanilla", "batch_size=3", "llm.delay_s=5.0", "execution.concurrency=1")  # nothing that counts
    assert again.code == 0
    assert "finished before" in again.err
    assert "0 model calls made, 0 answered from the cache, 0 tokens spent" in again.out
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in cell.iterdir()} == before
    assert load(bench.out / "table.json")["rows"][0]["answered"] == 12


def test_other_settings_set_the_earlier_run_aside(bench):
    assert bench.run("method=vanilla").code == 0
    cell = bench.cell("vanilla")
    earlier = {path.name: path.read_bytes() for path in cell.iterdir()}
    done = bench.run("method=vanilla", "method.top_k=2")
    assert done.code == 0
    assert f"{cell} held a run with other settings; it lies now in {cell / 'previous'}" in done.err
    (aside,) = (cell / "previous").iterdir()
    assert {path.name: path.read_bytes() for path in aside.iterdir()} == earlier
    assert load(aside / "run.json")["fingerprint"].startswith(aside.name)
    assert files(cell) == set(earlier)
    assert (cell / "contexts.jsonl").read_bytes() != earlier["contexts.jsonl"]

    assert bench.run("method=vanilla").code == 0  # and back: every reply is in the cache, nothing is lost
    assert len(list((cell / "previous").iterdir())) == 2
    assert (cell / "answers.jsonl").read_bytes() == earlier["answers.jsonl"]


def test_redo_makes_the_run_again_from_the_cache(bench):
    assert bench.run("method=vanilla").code == 0
    before = bench.same("vanilla")
    again = bench.run("method=vanilla", "execution.redo=true")
    assert "0 model calls made, 12 answered from the cache" in again.out
    assert bench.same("vanilla") == before


@pytest.mark.parametrize("stage, has, artifacts, columns", [
    ("graph", set(), {"chunks", "extraction", "graph"}, ("Index tokens", "Index seconds")),
    ("index", set(), {"chunks", "extraction", "graph", "vectors"}, ("Index tokens", "Index seconds")),
    ("retrieval", {"answers.jsonl", "metrics.json", "per_question.jsonl"}, {"chunks", "extraction", "graph", "vectors"},
     ("Recall@5", "MRR")),
    ("answer", {"answers.jsonl", "contexts.jsonl"}, {"chunks", "extraction", "graph", "vectors"}, ("Index tokens",)),
    ("score", {"answers.jsonl", "contexts.jsonl", "metrics.json", "per_question.jsonl"},
     {"chunks", "extraction", "graph", "vectors"}, ("Accuracy", "Recall@5")),
])
def test_a_run_goes_as_far_as_it_is_told(bench, stage, has, artifacts, columns):
    done = bench.run("method=hipporag", f"until={stage}")
    assert done.code == 0
    cell = bench.cell("hipporag")
    kept = files(cell)
    assert kept >= {"config.yaml", "run.json", "costs.json", "ledger.jsonl"} | has
    assert not kept & ({"answers.jsonl", "contexts.jsonl", "metrics.json", "per_question.jsonl"} - has)
    assert {path.parent.parent.name for path in bench.store.glob("*/*/manifest.json")} - {"vectors"} == artifacts - {"vectors"}
    for column in columns:
        assert column in done.out
    asked = {"extraction"} | ({"question"} if stage in ("retrieval", "answer", "score") else set())
    asked |= {"answer"} if stage in ("answer", "score") else set()
    assert set(load(cell / "costs.json")["ledger"]["stages"]) == asked
    if stage == "retrieval":
        assert {row["prediction"] for row in bench.rows(cell / "answers.jsonl")} == {None}
        assert not [name for name in load(cell / "metrics.json")["metrics"] if name.startswith(("accuracy", "f1"))]


def test_stage_by_stage_costs_no_more_than_at_once_and_ends_alike(bench, unbroken):
    for stage in ("graph", "index", "retrieval", "answer", "score"):
        done = bench.run("method=hipporag", f"until={stage}")
        assert done.code == 0
    assert bench.replies() == 32 + 12 + 12
    assert "0 model calls made, 24 answered from the cache" in done.out
    assert bench.same("hipporag") == unbroken.same("hipporag")


def test_limit_takes_the_first_questions(bench, unbroken):
    done = bench.run("method=vanilla", "limit=5")
    assert "5/5" in done.out
    lines = (unbroken.cell("vanilla") / "answers.jsonl").read_bytes().splitlines(keepends=True)
    assert (bench.cell("vanilla") / "answers.jsonl").read_bytes() == b"".join(lines[:5])


@pytest.mark.parametrize("size", [1, 5])
def test_the_size_of_a_batch_changes_nothing(bench, unbroken, size):
    assert bench.run("-m", "method=vanilla,hipporag", f"batch_size={size}").code == 0
    for method in ("vanilla", "hipporag"):
        assert bench.same(method) == unbroken.same(method)


def test_a_seed_makes_another_run(bench):
    assert bench.run("-m", "method=bm25", "seed=0,1,2").code == 0
    prints = {load(bench.cell("bm25", f"sample-demo/seed={seed}") / "run.json")["fingerprint"] for seed in range(3)}
    assert len(prints) == 3
    rows = load(bench.out / "table.json")["rows"]
    assert [(row["runs"], row["asked"], row["answered"]) for row in rows] == [(3, 36, 36)]


def test_what_counts_is_in_the_fingerprint_and_what_does_not_is_not(bench):
    def fingerprint(*more):
        assert bench.run("method=bm25", "limit=2", "execution.redo=true", *more).code == 0
        return load(bench.cell("bm25") / "run.json")["fingerprint"]

    first = fingerprint()
    for inert in ("batch_size=1", "execution.attempts=1", "logging.display=none", "llm.concurrency=1"):
        assert fingerprint(inert) == first
    for counting in ("method.top_k=3", "index.k1=1.2", "llm.seed=1", "evaluation.bootstrap=30", "chunking.size=300"):
        assert fingerprint(counting) != first


def test_score_makes_the_metrics_again_from_the_answers(bench):
    assert bench.run("-m", "method=vanilla,zeroshot", "evaluation.bootstrap=2000").code == 0
    for method in ("vanilla", "zeroshot"):
        cell = bench.cell(method)
        scored = bench.run(str(cell / "answers.jsonl"), "--json", verb="score")
        assert scored.code == 0
        again, kept = json.loads(scored.out), load(cell / "metrics.json")
        # the text the prompts showed is not in the answers, so that its recall is the one metric left out
        assert again["metrics"].pop("text_recall")["value"] is None
        kept["metrics"].pop("text_recall")
        assert again == kept


def test_a_graph_that_a_method_does_not_read_is_not_billed_to_it(bench):
    done = bench.run("-m", "method=bm25,hipporag", "graph=kg")
    assert done.code == 0
    assert "graph=kg has no effect on bm25" in done.err
    tokens = {row["method"]: row["values"]["index_tokens"]["value"] for row in load(bench.out / "table.json")["rows"]}
    assert tokens["BM25"] == 0 < tokens["HippoRAG"]
    assert load(bench.cell("bm25") / "run.json")["graph"] is None


def test_two_long_names_are_two_folders(bench):
    (bench.root / "data").mkdir()
    (bench.root / "data/corpus.jsonl").write_text('{"id": "a", "text": "Ada built the bridge."}\n')
    (bench.root / "data/questions.jsonl").write_text('{"id": "q", "question": "Who?", "answers": ["Ada"]}\n')
    names = ["n" * 200 + end for end in "ab"]
    data = ("dataset=folder", f"dataset.path={bench.root / 'data'}", f"dataset.name={','.join(names)},..")
    done = bench.run("-m", "method=bm25", *data)
    assert done.code == 0, done.err
    assert len(list((bench.out / "bm25").glob("*/*/run.json"))) == 3
    assert not list(bench.out.rglob("previous"))
