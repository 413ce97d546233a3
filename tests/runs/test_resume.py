"""A run that is killed loses no finished call, and the resumed one writes the same bytes as one nobody interrupted."""

import signal

import pytest

EXTRACTION_CALLS, QUESTIONS = 32, 12  # two calls for each of 16 chunks; one a question and stage


def fresh_calls(bench, method):
    return sum(not row["cached"] for row in bench.rows(bench.cell(method) / "ledger.jsonl"))


@pytest.mark.parametrize("calls", [1, 13, 27])
def test_killed_while_it_extracts(bench, unbroken, wait_until, calls):
    process = bench.start("method=hipporag", "llm.delay_s=0.1", "execution.concurrency=4")
    wait_until(lambda: bench.replies() >= calls, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = bench.replies()
    assert calls <= kept < EXTRACTION_CALLS
    assert not (bench.cell("hipporag") / "run.json").exists()

    done = bench.run("method=hipporag")
    assert done.code == 0
    assert fresh_calls(bench, "hipporag") == EXTRACTION_CALLS + 2 * QUESTIONS - kept
    assert f"{kept} answered from the cache" in done.out
    assert bench.same("hipporag") == unbroken.same("hipporag")
    assert bench.unfinished() == []


@pytest.mark.parametrize("answers", [1, 5, 9])
def test_killed_while_it_answers(bench, unbroken, wait_until, answers):
    book = bench.cell("vanilla") / "answers.jsonl"
    process = bench.start("method=vanilla", "llm.delay_s=0.15", "execution.concurrency=2")
    wait_until(lambda: bench.lines(book) >= answers, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = bench.replies()
    assert answers <= bench.lines(book) <= kept < QUESTIONS  # what was written is whole, and no answer is ahead of the cache
    assert not (bench.cell("vanilla") / "metrics.json").exists()

    done = bench.run("method=vanilla")
    assert done.code == 0
    assert fresh_calls(bench, "vanilla") == QUESTIONS - kept
    assert bench.same("vanilla") == unbroken.same("vanilla")
    assert bench.unfinished() == []


def test_killed_between_extraction_and_answers_and_resumed_with_other_inert_settings(bench, unbroken, wait_until):
    process = bench.start("method=hipporag", "llm.delay_s=0.05", "execution.concurrency=4")
    wait_until(lambda: bench.replies() >= EXTRACTION_CALLS + 4, process)  # in the questions' entities
    process.kill()
    process.communicate()
    kept = bench.replies()
    assert list((bench.store / "graph").glob("*/manifest.json"))
    assert bench.run("method=hipporag", "batch_size=5", "execution.concurrency=1").code == 0
    assert fresh_calls(bench, "hipporag") == EXTRACTION_CALLS + 2 * QUESTIONS - kept
    assert bench.same("hipporag") == unbroken.same("hipporag")
    assert bench.unfinished() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal_it_says_how_to_resume(bench, unbroken, wait_until, number):
    book = bench.cell("vanilla") / "answers.jsonl"
    process = bench.start("method=vanilla", "llm.delay_s=0.2", "execution.concurrency=2")
    wait_until(lambda: bench.lines(book) >= 2, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.endswith("Stopped. What was finished is kept; run the same command again to resume.\n")
    assert out == ""
    kept = bench.replies()
    assert len(bench.rows(bench.cell("vanilla") / "ledger.jsonl")) == kept  # a clean stop books what was paid

    assert bench.run("method=vanilla").code == 0
    assert fresh_calls(bench, "vanilla") == QUESTIONS - kept
    assert bench.same("vanilla") == unbroken.same("vanilla")
    assert bench.unfinished() == []


def test_killed_while_it_is_done_again_it_is_not_taken_for_finished(bench, wait_until):
    assert bench.run("method=vanilla").code == 0
    cell = bench.cell("vanilla")
    before = bench.same("vanilla")
    (bench.store / "replies.sqlite").unlink()
    process = bench.start("method=vanilla", "execution.redo=true", "llm.delay_s=0.2", "execution.concurrency=2")
    # a reply in the new cache says that the finished run has been set aside: what lies there now is the new one's
    wait_until(lambda: bench.replies() >= 2 and bench.lines(cell / "answers.jsonl") >= 1, process)
    process.kill()
    process.communicate()
    assert 0 < bench.lines(cell / "answers.jsonl") < QUESTIONS
    (aside,) = (cell / "previous").iterdir()
    assert {name: (aside / name).read_bytes() for name in before} == before  # the finished one is not lost meanwhile

    done = bench.run("method=vanilla")
    assert "finished before" not in done.err
    assert bench.same("vanilla") == before
