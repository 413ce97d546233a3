"""A server that misbehaves in every known way: the run finishes, failures are counted by kind, none is an answer."""

import asyncio
import logging
from typing import Any

import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.openai import OpenAI
from graphrag_bench.llm.base import Reply, Request
from graphrag_bench.llm.cache import ReplyCache
from graphrag_bench.llm.ledger import Ledger
from graphrag_bench.llm.service import Chat

KEY = "sk-secret-1234567890"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def run(server: Any, clock: Any, requests: list[Request], *, timeout_s: float = 5.0, attempts: int = 3,
        cache: ReplyCache | None = None, ledger: Ledger | None = None, **settings: Any) -> tuple[list[Reply], Chat]:
    chat = Chat(OpenAI(base_url=server.url, timeout_s=timeout_s, model="m", **settings), cache=cache, ledger=ledger,
                attempts=attempts, clock=clock, sleep=clock.sleep)

    async def main() -> list[Reply]:
        try:
            return await chat.ask_all(requests)
        finally:
            await chat.close()

    return asyncio.run(main()), chat


def test_a_plain_reply(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok("Paris.", prompt=12, completion=3)]
    (reply,), chat = run(server, clock, [tools.ask("Capital of France?")], seed=7)
    assert (reply.text, reply.failure, reply.prompt_tokens, reply.completion_tokens) == ("Paris.", None, 12, 3)
    assert server.seen[0]["model"] == "m" and server.seen[0]["seed"] == 7 and server.seen[0]["max_tokens"] == 50
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert chat.ledger.totals().prompt_tokens == 12


def test_retry_after_is_waited_for_and_bounded(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.status(429, headers={"Retry-After": "7"}),
                      tools.status(429, headers={"Retry-After": "900"}), tools.ok("Yes.")]
    (reply,), chat = run(server, clock, [tools.ask()])
    assert reply.text == "Yes." and reply.retries == 2
    assert clock.waits == [7.0, 60.0]
    assert chat.ledger.totals().retries == 2


def test_backoff_doubles_without_chance(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.status(500)]
    (reply,), _ = run(server, clock, [tools.ask()], attempts=5)
    assert clock.waits == [1.0, 2.0, 4.0, 8.0]
    assert reply.failure is not None and reply.failure.kind == "server_error"


@pytest.mark.parametrize(("answer", "kind", "sent"), [
    ("429", "rate_limit", 3),
    ("500", "server_error", 3),
    ("503", "server_error", 3),
    ("400", "bad_request", 1),
    ("hang", "timeout", 3),
    ("error in a 200", "error_body", 3),
    ("no json", "error_body", 3),
    ("html", "error_body", 3),
    ("no choices", "error_body", 3),
    ("empty", "empty", 2),
    ("blank", "empty", 2),
    ("cut json", "truncated", 1),
    ("broken json", "invalid_json", 2),
    ("prose", "invalid_json", 2),
    ("wrong schema", "schema", 2),
])
def test_each_fault_is_a_counted_failure_and_never_an_answer(
    server: Any, clock: Any, tools: Any, answer: str, kind: str, sent: int
) -> None:
    server.answers = [{
        "429": tools.status(429), "500": tools.status(500), "503": tools.status(503), "400": tools.status(400),
        "hang": tools.hang,
        "error in a 200": (200, {}, {"error": {"message": "overloaded", "code": 502}}),
        "no json": (200, {}, b"upstream went away"),
        "html": (200, {"Content-Type": "text/html"}, b"<html>Bad gateway</html>"),
        "no choices": (200, {}, {"choices": []}),
        "empty": tools.ok(""), "blank": tools.ok(" \n"),
        "cut json": tools.ok('{"names": ["An', "length"),
        "broken json": tools.ok('{"names": ["Ann"'),
        "prose": tools.ok("I cannot help with that."),
        "wrong schema": tools.ok('{"names": "Ann"}'),
    }[answer]]
    ledger = Ledger()
    (reply,), _ = run(server, clock, [tools.ask(schema=tools.NAMES)], timeout_s=0.2 if answer == "hang" else 5.0,
                      ledger=ledger)
    assert reply.failure is not None and reply.failure.kind == kind
    assert reply.text == "" and reply.data is None
    assert ledger.totals().failed == {kind: 1}
    assert ledger.by_purpose()[("answer", "direct")].failed == {kind: 1}
    assert len(server.seen) == sent


def test_an_empty_reply_is_asked_for_once_more(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok("", prompt=10, completion=0), tools.ok("Ann", prompt=10, completion=1)]
    (reply,), chat = run(server, clock, [tools.ask()])
    assert reply.text == "Ann" and reply.failure is None and reply.retries == 1
    assert chat.ledger.totals().paid_prompt_tokens == 20


def test_a_refused_connection_is_a_failure(clock: Any, tools: Any, server: Any) -> None:
    server.close()
    (reply,), _ = run(server, clock, [tools.ask()])
    assert reply.failure is not None and reply.failure.kind == "connection"


def test_one_bad_reply_costs_one_question(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok("one"), tools.status(400), tools.ok("three")]
    replies, chat = run(server, clock, [tools.ask(str(n)) for n in range(3)], concurrency=1)
    assert [reply.text for reply in replies] == ["one", "", "three"]
    assert [reply.failure is None for reply in replies] == [True, False, True]
    assert chat.ledger.totals().failed == {"bad_request": 1}


def test_one_repair_turn_shows_the_fault_and_is_booked_apart(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok('{"names": "Ann"}', prompt=10, completion=5),
                      tools.ok('{"names": ["Ann"]}', prompt=30, completion=6)]
    (reply,), chat = run(server, clock, [tools.ask(schema=tools.NAMES)])
    assert reply.data == {"names": ["Ann"]} and reply.failure is None
    assert (reply.prompt_tokens, reply.completion_tokens) == (40, 11)
    turns = server.seen[1]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == '{"names": "Ann"}' and "names" in turns[2]["content"]
    cells = chat.ledger.by_purpose()
    assert cells[("answer", "direct")].prompt_tokens == 10
    assert cells[("answer", "direct.repair")].prompt_tokens == 30
    assert chat.ledger.totals().failed == {}


def test_a_list_cut_off_at_its_bound_keeps_its_whole_items(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok('{"names": ["Ann", "Bob", "Cha', "length")]
    (reply,), _ = run(server, clock, [tools.ask(schema=tools.NAMES)])
    assert reply.data == {"names": ["Ann", "Bob"]} and reply.truncated and reply.failure is None


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_stops_the_run_and_names_the_variable(server: Any, clock: Any, tools: Any, code: int) -> None:
    server.answers = [tools.status(code, f"Incorrect API key provided: {KEY}")]
    with pytest.raises(UserError, match="OPENAI_API_KEY") as caught:
        run(server, clock, [tools.ask(str(n)) for n in range(50)])
    assert KEY not in str(caught.value)
    assert len(server.seen) <= 32  # those in flight, not all fifty


def test_an_unknown_model_stops_the_run(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.status(404, "model not found")]
    with pytest.raises(UserError, match=r"llm\.model"):
        run(server, clock, [tools.ask()])


def test_the_api_itself_wants_a_key(monkeypatch: pytest.MonkeyPatch, tools: Any) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        asyncio.run(Chat(OpenAI()).ask(tools.ask()))


def test_a_local_server_wants_none(server: Any, clock: Any, tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.answers = [tools.ok("Yes.")]
    (reply,), _ = run(server, clock, [tools.ask()])
    assert reply.text == "Yes."


@pytest.mark.parametrize(("mode", "form"), [
    ("json_schema", "json_schema"), ("json_object", "json_object"), ("none", None),
])
def test_the_schema_reaches_the_model_in_every_mode(server: Any, clock: Any, tools: Any, mode: Any, form: Any) -> None:
    server.answers = [tools.ok('```json\n{"names": ["Ann"]}\n```')]
    (reply,), _ = run(server, clock, [tools.ask(schema=tools.NAMES)], schema_mode=mode)
    assert reply.data == {"names": ["Ann"]}
    sent = server.seen[0]
    assert sent.get("response_format", {}).get("type") == form
    assert ("additionalProperties" in sent["messages"][0]["content"]) is (mode != "json_schema")


def test_the_key_is_nowhere(
    server: Any, clock: Any, tools: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="graphrag_bench")
    server.answers = [tools.ok("Ann"), tools.status(400, f"bad: {KEY}"), tools.status(500, f"worse: {KEY}")]
    cache, ledger = ReplyCache(tmp_path / "replies.db"), Ledger(tmp_path / "ledger.jsonl")
    replies, chat = run(server, clock, [tools.ask(str(n)) for n in range(3)], cache=cache, ledger=ledger, concurrency=1)
    cache.close()
    ledger.close()
    assert [reply.failure and reply.failure.kind for reply in replies] == [None, "bad_request", "server_error"]
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    shown = f"{replies!r} {chat.backend!r} {chat.backend.identity!r} {vars(chat.backend)!r} {caplog.text}"
    assert KEY.encode() not in written and KEY not in shown


def test_it_works_from_one_event_loop_after_another(server: Any, clock: Any, tools: Any) -> None:
    server.answers = [tools.ok("Yes.")]
    chat = Chat(OpenAI(base_url=server.url), clock=clock, sleep=clock.sleep)
    for number in range(3):
        assert asyncio.run(chat.ask(tools.ask(str(number)))).text == "Yes."
