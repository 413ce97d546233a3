"""Whole runs on a server that fails in every way there is: what fails is counted, told, and never taken for an answer."""

import json

import pytest

TRANSIENT = ["rate limit", "server error", "hang", "cut-off body", "wrong schema", "empty", "error body", "hang up", "no JSON"]


def openai(server, *more):
    return ("llm=openai", "llm.model=m", f"llm.base_url={server.url}", *more)


def load(path):
    return json.loads(path.read_text("utf-8"))


@pytest.fixture
def questions(unbroken):
    return [row["question"] for row in unbroken.rows(unbroken.cell("vanilla") / "answers.jsonl")]


def test_a_server_that_fails_by_turns_costs_retries_and_nothing_else(bench, server, impatient, tmp_path):
    turns, met = TRANSIENT * 3, []

    def fault(prompt):
        """Fail each prompt at its first sending; a repair begins with the prompt it repairs."""
        if not turns or any(prompt.startswith(earlier) for earlier in met):
            return ""
        met.append(prompt)
        return turns.pop(0)

    server.fault = fault
    done = bench.run("method=hipporag", "limit=4", *openai(server, "llm.timeout_s=1.5", "execution.concurrency=3"))
    assert done.code == 0, done
    assert turns == []
    assert "4/4" in done.out
    cell = bench.cell("hipporag")
    metrics, ledger = load(cell / "metrics.json"), load(cell / "costs.json")["ledger"]["total"]
    assert (metrics["asked"], metrics["answered"], metrics["failed"], ledger["failed"]) == (4, 4, {}, {})
    assert ledger["retries"] > 0

    calm = type(bench)(tmp_path / "calm")
    assert calm.run("method=hipporag", "limit=4", *openai(server)).code == 0
    assert bench.same("hipporag") == calm.same("hipporag")


def test_lasting_failures_are_counted_by_kind_and_are_no_answers(bench, server, impatient, questions, unbroken):
    kinds = {"rate limit": "rate_limit", "server error": "server_error", "hang": "timeout", "cut-off body": "error_body",
             "error body": "error_body", "empty": "empty", "bad request": "bad_request", "too long": "too_long",
             "hang up": "connection"}
    failing = dict(zip(questions, kinds, strict=False))
    server.fault = lambda prompt: next((kind for text, kind in failing.items() if text in prompt), "")
    arguments = ("method=vanilla", *openai(server, "llm.timeout_s=2", "execution.attempts=2"))
    done = bench.run(*arguments)
    assert done.code == 0  # some questions have an answer: the run is done, and flagged
    cell = bench.cell("vanilla")

    counted = {}
    for kind in kinds.values():
        counted[kind] = counted.get(kind, 0) + 1
    metrics = load(cell / "metrics.json")
    assert metrics["failed"] == dict(sorted(counted.items()))
    assert (metrics["asked"], metrics["answered"]) == (12, 3)
    assert load(cell / "costs.json")["ledger"]["stages"]["answer"]["failed"] == metrics["failed"]
    booked = [row["failure"] for row in bench.rows(cell / "ledger.jsonl") if row["failure"]]
    assert sorted(booked) == sorted(kinds.values())
    assert "3/12" in done.out
    assert "3 of 12 answered (" in done.out
    assert "1 rate_limit" in done.out

    rows = bench.rows(cell / "answers.jsonl")
    for row in rows:
        if row["question"] in failing:
            assert (row["status"], row["prediction"]) == ("failed", None)
            assert row["reason"].startswith(kinds[failing[row["question"]]] + ": ")
        else:
            assert row["status"] == "ok"
            assert row["prediction"]
    for scored in bench.rows(cell / "per_question.jsonl")[: len(failing)]:
        assert scored["accuracy"] == 0
        assert scored["accuracy_answered"] is None
    assert metrics["metrics"]["accuracy_answered"]["n"] == 3
    # retrieval had come to a ranking, and counts as it is
    gold = unbroken.rows(unbroken.cell("vanilla") / "answers.jsonl")
    assert [row["retrieved"] for row in rows] == [row["retrieved"] for row in gold]

    # the same again is finished; asked for, what failed is tried again, and only that
    before = len(server.seen)
    assert bench.run(*arguments).code == 0
    assert len(server.seen) == before
    server.fault = lambda prompt: ""
    again = bench.run(*arguments, "execution.retry_failed=true")
    assert again.code == 0
    assert "12/12" in again.out
    assert len(server.seen) == before + len(failing)
    assert load(cell / "metrics.json")["failed"] == {}


@pytest.mark.parametrize("fault, kind", [("wrong schema", "schema"), ("no JSON", "invalid_json"), ("empty", "empty")])
def test_a_question_whose_entities_cannot_be_read_has_failed_and_is_not_asked(bench, server, impatient, questions, fault, kind):
    def faulty(prompt):
        return fault if questions[0] in prompt and "Passages:" not in prompt else ""

    server.fault = faulty
    done = bench.run("method=hipporag", *openai(server, "execution.attempts=2"))
    assert done.code == 0
    assert "11/12" in done.out
    cell = bench.cell("hipporag")
    assert load(cell / "metrics.json")["failed"] == {kind: 1}
    assert load(cell / "costs.json")["ledger"]["stages"]["question"]["failed"] == {kind: 1}
    row = bench.rows(cell / "answers.jsonl")[0]
    assert (row["status"], row["prediction"], row["retrieved"]) == ("failed", None, [])
    assert row["reason"].startswith(f"{kind}: ")
    assert bench.rows(cell / "per_question.jsonl")[0]["recall@5"] == 0
    answers = [entry for entry in bench.rows(cell / "ledger.jsonl") if entry["stage"] == "answer"]
    assert len(answers) == 11


def test_every_question_failed_is_an_exit_code_of_its_own(bench, server, impatient):
    server.fault = lambda prompt: "server error"
    done = bench.run("method=zeroshot", *openai(server, "execution.attempts=2"))
    assert done.code == 1
    assert "0/12" in done.out
    assert "0 of 12 answered (12 server_error)" in done.out
    assert len(server.seen) == 24
    server.fault = lambda prompt: ""
    done = bench.run("method=zeroshot", *openai(server))  # not finished, so the same command tries again
    assert done.code == 0
    assert "12/12" in done.out


@pytest.mark.parametrize("fault, kind, remembered", [
    ("no JSON", "invalid_json", True), ("wrong schema", "schema", True), ("server error", "server_error", False),
])
def test_extraction_below_its_floor_stops_and_keeps_no_artifact(bench, server, impatient, fault, kind, remembered):
    server.fault = lambda prompt: fault
    arguments = ("method=hipporag", "limit=2", *openai(server, "execution.attempts=2"))
    bad = bench.run(*arguments)
    assert bad.code == 2
    assert f"only 0% of the chunks gave a readable reply (execution.min_parse_rate=0.5); failures: 16 {kind}." in bad.err
    assert "execution.retry_failed=true" in bad.err
    assert not list((bench.store / "extraction").glob("*/manifest.json"))
    assert not (bench.store / "graph").exists()
    assert bench.unfinished() == []
    assert not (bench.cell("hipporag") / "run.json").exists()

    before = len(server.seen)
    if remembered:  # a bad reply is a finished call: it is neither paid twice nor forgotten
        assert bench.run(*arguments).code == 2
        assert len(server.seen) == before
    server.fault = lambda prompt: ""
    good = bench.run(*arguments, "execution.retry_failed=true")
    assert good.code == 0
    assert "2/2" in good.out
    assert len(list((bench.store / "extraction").glob("*/manifest.json"))) == 1


def test_extraction_without_entities_stops(bench, tmp_path):
    script = tmp_path / "script.jsonl"
    replies = {"State the facts": {"triples": []}, "of the passage": {"entities": []}}
    script.write_text("".join(json.dumps({"match": match, "reply": reply}) + "\n" for match, reply in replies.items()))
    bad = bench.run("method=hipporag", f"llm.path={script}", "execution.min_parse_rate=0.0")
    assert bad.code == 2
    assert "only 0.00 entities a chunk were found (execution.min_entities=0.5)" in bad.err


def test_failed_chunks_are_read_again_on_request_although_their_graph_is_there(bench, server, impatient):
    """Two chunks fail: above the floor, so a graph is built without them, until they are asked for again."""
    server.fault = lambda prompt: "no JSON" if "Harrow Bridge carries" in prompt or "Brask is a mill" in prompt else ""
    arguments = ("method=hipporag", "limit=2", *openai(server, "execution.attempts=2"))
    assert bench.run(*arguments).code == 0
    cell = bench.cell("hipporag")
    poor = load(cell / "costs.json")["artifacts"]
    assert poor["extraction"]["failed"] == {"invalid_json": 2}

    server.fault = lambda prompt: ""
    assert bench.run(*arguments, "execution.retry_failed=true").code == 0
    rich = load(cell / "costs.json")["artifacts"]
    assert rich["extraction"]["failed"] == {}
    assert rich["graph"]["built_now"]
    assert rich["graph"]["nodes"] > poor["graph"]["nodes"]


def test_calls_in_flight_when_the_budget_ends_are_kept_since_they_are_paid(bench, server, monkeypatch):
    """The first call comes back and spends the budget; the others are held by the server until the run has noticed."""
    from graphrag_bench.llm.ledger import Ledger

    server.turns, server.fault = [""], lambda prompt: "late"
    told = Ledger._exceeded

    def tell(self, *args):
        server.released.set()
        return told(self, *args)

    monkeypatch.setattr(Ledger, "_exceeded", tell)
    for method in ("hipporag", "zeroshot"):
        server.released.clear()
        server.turns = [""]
        held = bench.replies()
        sent = len(server.seen)
        bad = bench.run(f"method={method}", *openai(server, "execution.budget_tokens=1", "execution.concurrency=4"))
        assert bad.code == 2
        assert "The budget of 1 tokens is spent" in bad.err
        assert "every finished call is kept" in bad.err
        assert len(server.seen) - sent == 4
        assert bench.replies() - held == 4
        assert len(bench.rows(bench.cell(method) / "ledger.jsonl")) == 4
    server.released.set()
    done = bench.run("method=zeroshot", *openai(server))
    assert done.code == 0
    assert "8 model calls made, 4 answered from the cache" in done.out


def test_no_key_is_written_or_said(bench, server, impatient):
    secret = "sk-this-is-a-secret-0123456789"
    bench.env["OPENAI_API_KEY"] = secret
    server.turns = ["server error", "error body", "bad request", "rate limit"]  # all of them repeat the key
    said = []
    for arguments in (("method=hipporag", "limit=2"), ("method=zeroshot", "limit=2")):
        server.fault = lambda prompt: ""
        said.append(bench.run(*arguments, *openai(server)))
    server.fault = lambda prompt: "bad request"
    said.append(bench.run("method=bm25", "limit=2", *openai(server)))
    said += [bench.run("method=bm25", *openai(server), verb=verb) for verb in ("check", "plan")]
    assert [outcome.code for outcome in said] == [0, 0, 1, 0, 0]
    assert server.keys == {f"Bearer {secret}"}
    for outcome in said:
        assert secret not in outcome.out + outcome.err
    files = [path for top in (bench.store, bench.out) for path in top.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_a_run_that_stops_at_its_answers_counts_the_failed_ones(bench, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"match": "Short answer", "fail": "timeout"}) + "\n")
    done = bench.run("method=bm25", f"llm.path={script}", "until=answer")
    assert done.code == 1
    assert "0 of 12 answered (12 timeout)" in done.out
    record = load(bench.cell("bm25") / "run.json")
    assert (record["result"]["answered"], record["status"]) == (0, "every question failed")
    assert not (bench.cell("bm25") / "metrics.json").exists()


def test_answers_given_without_some_of_the_map_calls_are_counted(bench, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"match": r"(?s)Castren.*Points:\s*\Z", "fail": "timeout"}) + "\n")
    done = bench.run(
        "method=ggraphrag", "graph.extractor=noun_phrase", "graph.describe=name+triples", "graph.merge=cut",
        "community.reports=extractive", f"llm.path={script}", "limit=2",
    )  # fmt: skip
    assert done.code == 0
    rows = bench.rows(bench.cell("ggraphrag") / "answers.jsonl")
    assert all("map calls failed" in row["reason"] for row in rows)
    assert f"2 of 2 answers have a remark in answers.jsonl, such as {rows[0]['id']}: {rows[0]['reason']}." in done.out
