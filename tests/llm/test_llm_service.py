"""What Chat promises whatever the backend: once sent, remembered, limited, booked, stopped by the budget."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from graphrag_bench.errors import BudgetExceeded, UserError
from graphrag_bench.llm.backends.scripted import Scripted
from graphrag_bench.llm.base import CallError, ChatModel, Completion, Message, Reply
from graphrag_bench.llm.cache import ReplyCache
from graphrag_bench.llm.ledger import Budget, Entry, Ledger, Prices
from graphrag_bench.llm.service import Chat


class Gate:
    """A backend whose calls wait until they are let through, and which knows how many are inside."""

    window = 1000
    identity: Mapping[str, Any] = {"backend": "gate"}

    def __init__(self, concurrency: int = 8) -> None:
        self.concurrency = concurrency
        self.inside = self.most = self.calls = self.cancelled = 0
        self.open = asyncio.Event()

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        self.calls += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        return Completion(messages[-1].text.upper(), 10, 1)

    def count(self, text: str) -> int:
        return len(text.split())

    async def close(self) -> None:
        pass


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def failing(kind: Any, *, retry: bool = False) -> Any:
    def answer(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str:
        raise CallError(kind, "no", retry=retry)

    return answer


def test_it_is_what_operators_are_lent() -> None:
    assert isinstance(Chat(Scripted()), ChatModel)


def test_identical_calls_in_flight_are_sent_once(tools: Any) -> None:
    async def main() -> None:
        gate = Gate()
        chat = Chat(gate)
        asked = asyncio.ensure_future(chat.ask_all([tools.ask("same", subject=str(n)) for n in range(6)]))
        await settle()
        gate.open.set()
        replies = await asked
        assert gate.calls == 1
        assert [reply.text for reply in replies] == ["SAME"] * 6
        assert sorted(reply.cached for reply in replies) == [False] + [True] * 5
        totals = chat.ledger.totals()
        assert (totals.calls, totals.cached, totals.paid_prompt_tokens) == (6, 5, 10)

    asyncio.run(main())


def test_another_sample_is_another_call(tools: Any) -> None:
    backend = Scripted()
    asyncio.run(Chat(backend).ask_all([tools.ask("same", sample=n) for n in range(3)]))
    assert backend.calls == 3


def test_who_shares_a_call_sends_it_when_the_first_is_cancelled(tools: Any) -> None:
    async def main() -> None:
        gate = Gate()
        chat = Chat(gate)
        first = asyncio.ensure_future(chat.ask(tools.ask("same")))
        second = asyncio.ensure_future(chat.ask(tools.ask("same")))
        await settle()
        first.cancel()
        await settle()
        gate.open.set()
        assert (await second).text == "SAME" and gate.calls == 2

    asyncio.run(main())


@pytest.mark.parametrize(("backend", "setting", "most"), [(3, None, 3), (3, 2, 2), (2, 9, 2)])
def test_calls_in_flight_are_bounded_by_backend_and_setting(
    tools: Any, backend: int, setting: int | None, most: int
) -> None:
    async def main() -> None:
        gate = Gate(backend)
        asked = asyncio.ensure_future(Chat(gate, concurrency=setting).ask_all([tools.ask(str(n)) for n in range(20)]))
        await settle()
        gate.open.set()
        assert [reply.text for reply in await asked] == [str(n) for n in range(20)]
        assert gate.most == most

    asyncio.run(main())


def test_requests_a_minute(tools: Any, clock: Any) -> None:
    chat = Chat(Scripted(), requests_per_minute=2, clock=clock, sleep=clock.sleep, concurrency=1)
    asyncio.run(chat.ask_all([tools.ask(str(n)) for n in range(5)]))
    assert clock.waits == [60.0, 60.0]


def test_tokens_a_minute(tools: Any, clock: Any) -> None:
    chat = Chat(Scripted(), tokens_per_minute=200, clock=clock, sleep=clock.sleep, concurrency=1)
    asyncio.run(chat.ask_all([tools.ask(str(n), max_tokens=60) for n in range(4)]))  # about 93 tokens each
    assert clock.waits == [60.0]


def test_a_cached_reply_is_the_original_with_its_cost(tools: Any, tmp_path: Any) -> None:
    backend = Scripted()
    with ReplyCache(tmp_path / "r.db") as cache:
        first = asyncio.run(Chat(backend, cache=cache).ask(tools.ask("Where is Ann?", schema=tools.NAMES)))
    with ReplyCache(tmp_path / "r.db") as cache:
        chat = Chat(backend, cache=cache)
        second = asyncio.run(chat.ask(tools.ask("Where is Ann?", schema=tools.NAMES)))
    assert backend.calls == 1 and not first.cached and second.cached
    assert (second.text, second.data, second.prompt_tokens, second.seconds) == (
        first.text, first.data, first.prompt_tokens, first.seconds)
    assert chat.ledger.totals().prompt_tokens == first.prompt_tokens
    assert chat.ledger.totals().paid_prompt_tokens == 0


def test_what_decides_a_reply_is_in_its_key(tools: Any, tmp_path: Any) -> None:
    def calls(request: Any, **settings: Any) -> int:
        backend = Scripted(**settings)
        asyncio.run(Chat(backend, cache=cache).ask(request))
        return backend.calls

    wider = {**tools.NAMES, "additionalProperties": True}
    with ReplyCache(tmp_path / "r.db") as cache:
        assert calls(tools.ask("Hi Ann")) == 1
        assert calls(tools.ask("Hi Ann", stage="other", purpose="other", subject="other")) == 0
        assert calls(tools.ask("Hi Ann"), window=4096, delay_s=0.001) == 0
        assert calls(tools.ask("Hi Bob")) == 1
        assert calls(tools.ask("Hi Ann", max_tokens=51)) == 1
        assert calls(tools.ask("Hi Ann", sample=1)) == 1
        assert calls(tools.ask("Hi Ann", schema=tools.NAMES)) == 1
        assert calls(tools.ask("Hi Ann", schema=wider)) == 1
        assert calls(tools.ask("Hi Ann"), seed=1) == 1
        assert calls(tools.ask("Hi Ann"), replies="fixed") == 1


@pytest.mark.parametrize(("kind", "kept"), [
    ("bad_request", True), ("connection", False), ("rate_limit", False), ("server_error", False), ("timeout", False),
    ("replay_miss", False),
])
def test_a_final_failure_is_remembered_unless_it_says_nothing_of_the_prompt(
    tools: Any, tmp_path: Any, kind: str, kept: bool
) -> None:
    backend = Scripted.of(failing(kind), name="f")
    with ReplyCache(tmp_path / "r.db") as cache:
        for _ in range(2):
            chat = Chat(backend, cache=cache)
            reply = asyncio.run(chat.ask(tools.ask()))
            assert reply.failure is not None and (reply.failure.kind, reply.failure.message) == (kind, "no")
            assert chat.ledger.totals().failed == {kind: 1}
    assert backend.calls == (1 if kept else 2)


def test_retry_failed_clears_a_failure_once_a_run(tools: Any, tmp_path: Any) -> None:
    broken, mended = Scripted(replies="no json"), Scripted(replies='{"names": []}')
    mended.identity = broken.identity  # the same model, in a better mood
    with ReplyCache(tmp_path / "r.db") as cache:
        asyncio.run(Chat(broken, cache=cache).ask(tools.ask(schema=tools.NAMES)))
        chat = Chat(broken, cache=cache, retry_failed=True)
        before = broken.calls
        asyncio.run(chat.ask(tools.ask(schema=tools.NAMES)))
        asyncio.run(chat.ask(tools.ask(schema=tools.NAMES)))
        assert broken.calls - before == 2  # the call and its repair, once
        assert asyncio.run(Chat(mended, cache=cache).ask(tools.ask(schema=tools.NAMES))).failure is not None
        reply = asyncio.run(Chat(mended, cache=cache, retry_failed=True).ask(tools.ask(schema=tools.NAMES)))
        assert reply.data == {"names": []}
        assert asyncio.run(Chat(broken, cache=cache).ask(tools.ask(schema=tools.NAMES))).data == {"names": []}


def test_a_repaired_reply_is_remembered_under_the_first_call(tools: Any, tmp_path: Any) -> None:
    replies = iter(["oops", '{"names": ["Ann"]}'])
    backend = Scripted.of(lambda messages, schema: next(replies), name="f")
    with ReplyCache(tmp_path / "r.db") as cache:
        first = asyncio.run(Chat(backend, cache=cache).ask(tools.ask(schema=tools.NAMES)))
        again = asyncio.run(Chat(backend, cache=cache).ask(tools.ask(schema=tools.NAMES)))
    assert first.data == again.data == {"names": ["Ann"]}
    assert again.prompt_tokens == first.prompt_tokens > 1


def test_a_cut_text_is_kept_and_marked(tools: Any, tmp_path: Any) -> None:
    backend = Scripted(replies="one two three four")
    with ReplyCache(tmp_path / "r.db") as cache:
        for _ in range(2):
            reply = asyncio.run(Chat(backend, cache=cache).ask(tools.ask(max_tokens=2)))
            assert (reply.text, reply.truncated, reply.failure) == ("one two", True, None)
    assert backend.calls == 1


def test_a_prompt_beyond_the_window_is_never_sent(tools: Any) -> None:
    backend = Scripted(window=300)
    chat = Chat(backend)
    reply = asyncio.run(chat.ask(tools.ask("word " * 250, max_tokens=40)))
    assert reply.failure is not None and reply.failure.kind == "too_long" and backend.calls == 0
    assert chat.ledger.totals().failed == {"too_long": 1}
    assert asyncio.run(chat.ask(tools.ask("word " * 200, max_tokens=40))).failure is None


def test_the_token_budget_stops_before_the_next_paid_call(tools: Any, tmp_path: Any) -> None:
    backend = Scripted(replies="a b c d e")  # 1 + 5 tokens a call
    with ReplyCache(tmp_path / "r.db") as cache:
        asyncio.run(Chat(backend, cache=cache).ask(tools.ask("0")))
        chat = Chat(backend, cache=cache, ledger=Ledger(budget=Budget(tokens=12)), concurrency=1)
        with pytest.raises(BudgetExceeded, match="12 tokens"):
            asyncio.run(chat.ask_all([tools.ask(str(n)) for n in range(10)]))
        assert backend.calls == 3 and len(cache) == 3  # 0 was cached and free; 1 and 2 were paid
        assert asyncio.run(chat.ask(tools.ask("1"))).cached  # what is known is still served
        resumed = Chat(backend, cache=cache, ledger=Ledger(budget=Budget(tokens=1000)))
        assert len(asyncio.run(resumed.ask_all([tools.ask(str(n)) for n in range(10)]))) == 10
        assert backend.calls == 10


def test_the_money_budget(tools: Any) -> None:
    chat = Chat(Scripted(replies="a b c d e"), concurrency=1,
                ledger=Ledger(budget=Budget(money=11e-6), prices=Prices(prompt=1.0, completion=2.0)))
    with pytest.raises(BudgetExceeded):
        asyncio.run(chat.ask_all([tools.ask(str(n)) for n in range(10)]))
    assert chat.ledger.totals().calls == 1 and chat.ledger.spent == pytest.approx(11e-6)


def test_calls_in_flight_are_finished_when_the_budget_ends(tools: Any, tmp_path: Any) -> None:
    async def main() -> None:
        gate = Gate(2)
        with ReplyCache(tmp_path / "r.db") as cache:
            chat = Chat(gate, cache=cache, ledger=Ledger(budget=Budget(tokens=5)))
            asked = asyncio.ensure_future(chat.ask_all([tools.ask(str(n)) for n in range(30)]))
            await settle()
            gate.open.set()
            with pytest.raises(BudgetExceeded):
                await asked
            assert gate.cancelled == 0 and len(cache) == gate.calls == 2

    asyncio.run(main())


def test_an_interruption_cancels_the_rest(tools: Any) -> None:
    async def main() -> None:
        gate = Gate(4)
        asked = asyncio.ensure_future(Chat(gate).ask_all([tools.ask(str(n)) for n in range(30)]))
        await settle()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert gate.cancelled == 4 and gate.inside == 0
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_set_up_fault_stops_everything(tools: Any) -> None:
    backend = Scripted.of(failing("auth"))
    with pytest.raises(UserError, match="no"):
        asyncio.run(Chat(backend, concurrency=2).ask_all([tools.ask(str(n)) for n in range(30)]))
    assert backend.calls <= 4


def test_a_bad_schema_is_the_callers_fault(tools: Any) -> None:
    with pytest.raises(UserError, match="schema"):
        asyncio.run(Chat(Scripted()).ask(tools.ask(schema={"type": "florp"})))


def test_every_call_is_told_to_on_call(tools: Any) -> None:
    seen: list[Entry] = []
    chat = Chat(Scripted(), on_call=seen.append)
    asyncio.run(chat.ask_all([tools.ask("a"), tools.ask("b", subject="q2")]))
    assert sorted(entry.subject for entry in seen) == ["q1", "q2"]


def test_two_ledgers_share_one_limiter_and_one_flight(tools: Any) -> None:
    async def main() -> None:
        gate = Gate(1)
        first = Chat(gate)
        second = first.booked_to(Ledger())
        asked = asyncio.gather(first.ask(tools.ask("a")), second.ask(tools.ask("a")), second.ask(tools.ask("b")))
        await settle()
        gate.open.set()
        await asked
        assert gate.calls == 2 and gate.most == 1
        assert (first.ledger.totals().calls, second.ledger.totals().calls) == (1, 2)

    asyncio.run(main())


def test_no_request_no_reply() -> None:
    assert asyncio.run(Chat(Scripted()).ask_all([])) == []


def test_a_lone_surrogate_does_no_harm(tools: Any, tmp_path: Any) -> None:
    with ReplyCache(tmp_path / "r.db") as cache:
        reply: Reply = asyncio.run(Chat(Scripted(replies="x\ud83d"), cache=cache).ask(tools.ask("y\ud83d")))
    assert reply.text == "x?" and reply.failure is None
