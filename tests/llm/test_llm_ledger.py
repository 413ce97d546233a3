"""The ledger's sums, its file, prices and budgets."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from graphrag_bench.errors import BudgetExceeded, UserError
from graphrag_bench.llm.ledger import Budget, Entry, Ledger, Prices


def entry(stage: str = "graph", purpose: str = "extract", **facts: Any) -> Entry:
    return Entry(**{"stage": stage, "purpose": purpose, "subject": "c1", "prompt_tokens": 100, "completion_tokens": 10,
                    "seconds": 0.5, "retries": 0, "cached": False, "failure": None, **facts})


def test_totals_by_stage_and_purpose() -> None:
    ledger = Ledger()
    for one in (entry(), entry(cached=True), entry(failure="schema", retries=2), entry(purpose="glean"),
                entry(stage="answer", purpose="direct", failure="timeout", prompt_tokens=0, completion_tokens=0)):
        ledger.book(one)
    total = ledger.totals()
    assert (total.calls, total.cached, total.failed) == (5, 1, {"schema": 1, "timeout": 1})
    assert (total.prompt_tokens, total.completion_tokens, total.seconds, total.retries) == (400, 40, 2.5, 2)
    assert (total.paid_prompt_tokens, total.paid_completion_tokens) == (300, 30)
    assert {stage: cell.calls for stage, cell in ledger.by_stage().items()} == {"answer": 1, "graph": 4}
    assert {key: cell.calls for key, cell in ledger.by_purpose().items()} == {
        ("answer", "direct"): 1, ("graph", "extract"): 3, ("graph", "glean"): 1}
    plain = json.loads(json.dumps(ledger.as_dict()))
    assert plain["total"]["calls"] == 5
    assert plain["stages"]["graph"]["purposes"]["extract"]["failed"] == {"schema": 1}


def test_lines_are_appended_and_flushed_on_close(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.jsonl"
    for _ in range(2):
        with Ledger(path) as ledger:
            for n in range(50):
                ledger.book(entry(subject=f"ä{n}"))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 100 and lines[-1]["subject"] == "ä49" and lines[0]["failure"] is None


def test_no_call_is_lost_between_threads() -> None:
    ledger = Ledger()
    threads = [threading.Thread(target=lambda: [ledger.book(entry()) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.totals().calls == 2000 and ledger.totals().prompt_tokens == 200_000


def test_cached_calls_do_not_count_against_the_budget() -> None:
    ledger = Ledger(budget=Budget(tokens=220))
    ledger.book(entry(cached=True))
    ledger.book(entry())
    ledger.check()
    ledger.book(entry())
    with pytest.raises(BudgetExceeded, match="220"):
        ledger.check()


def test_prices() -> None:
    table = {"m": {"prompt": 0.5, "completion": 2}}
    assert Prices.of("m", table).cost(1_000_000, 500_000) == pytest.approx(1.5)
    with pytest.raises(UserError, match="Did you mean"):
        Prices.of("mm", table)
    with pytest.raises(UserError, match="not readable"):
        Prices.of("m", {"m": {"prompt": "dear"}})
    with pytest.raises(UserError, match="prices"):
        Ledger(budget=Budget(money=1.0))


def test_a_ledger_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "file" / "ledger.jsonl")
    ledger.book(entry())
    with pytest.raises(UserError, match="cannot be written"):
        ledger.close()
