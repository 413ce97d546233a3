"""The model as operators see it: cached, sent once, limited, retried, validated and booked."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from graphrag_bench.errors import BudgetExceeded, UserError
from graphrag_bench.llm import structured
from graphrag_bench.llm.base import CallError, ChatBackend, Completion, Failure, FailureKind, Message, Reply, Request
from graphrag_bench.llm.cache import ReplyCache, Stored
from graphrag_bench.llm.keys import call_key, identity_text, prompt_key
from graphrag_bench.llm.ledger import Entry, Ledger
from graphrag_bench.llm.limiter import Limiter
from graphrag_bench.llm.window import prompt_tokens, surely_fits

T = TypeVar("T")

_REPAIR = (
    "Your reply cannot be used. {problem} Write the whole reply again, corrected, as JSON only, with nothing before or "
    "after it."
)


@dataclass(slots=True)
class _Flow:
    """What belongs to one event loop."""

    limiter: Limiter
    flights: dict[str, asyncio.Future[Reply | None]] = field(default_factory=dict)


@dataclass(slots=True)
class _Sent:
    """What came of sending one prompt, all attempts together."""

    text: str = ""
    finish: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0
    failure: Failure | None = None


class Chat:
    """A ``ChatModel`` on top of a backend.

    May be used from several event loops, one after the other or in several threads; calls in flight are shared and
    limited within a loop.

    Args:
        backend: The model runtime.
        cache: Where replies are kept; without one nothing is remembered.
        ledger: Where calls are booked, and whose budget is obeyed; a fresh one if not given.
        concurrency: The most calls in flight; the backend's own bound holds in any case.
        requests_per_minute: The most calls begun in any 60 seconds.
        tokens_per_minute: The most tokens (prompt and allowed reply) of calls begun in any 60 seconds.
        attempts: How often a call is sent at most before it has failed.
        first_wait: Seconds before the second attempt; each further wait is twice as long.
        longest_wait: The bound of every wait, a server's Retry-After included.
        retry_failed: Ask again where the cache remembers a failure.
        on_call: Told of every call as it is booked.
        clock: Seconds, for time taken and for the limits.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        backend: ChatBackend,
        *,
        cache: ReplyCache | None = None,
        ledger: Ledger | None = None,
        concurrency: int | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        attempts: int = 5,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
        retry_failed: bool = False,
        on_call: Callable[[Entry], None] | None = None,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.backend = backend
        self.cache = cache
        self.ledger = ledger if ledger is not None else Ledger()
        self.window = backend.window
        self.concurrency = max(1, min(backend.concurrency, concurrency or backend.concurrency))
        self._limits = (requests_per_minute, tokens_per_minute)
        self._attempts = max(1, attempts)
        self._waits = (first_wait, longest_wait)
        self._retry_failed = retry_failed
        self._on_call = on_call
        self._clock = clock
        self._sleep = sleep
        self._identity = identity_text(backend.identity)
        self._retried: set[str] = set()
        self._flows: WeakKeyDictionary[asyncio.AbstractEventLoop, _Flow] = WeakKeyDictionary()

    def booked_to(self, ledger: Ledger, on_call: Callable[[Entry], None] | None = None) -> "Chat":
        """Return the same model with another ledger: one cache, one limiter, one set of calls in flight."""
        other = copy(self)  # shallow: the flows are shared
        other.ledger, other._on_call = ledger, on_call
        return other

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has."""
        return self.backend.count(text)

    async def close(self) -> None:
        """Close the backend; the cache and the ledger belong to the caller."""
        await self.backend.close()

    async def ask_all(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask concurrently within the limiter; replies in the order of the requests.

        Where the budget ends, calls in flight (they are paid) are finished and kept, and none is begun. On any other
        interruption they are cancelled.
        """
        replies: list[Reply | None] = [None] * len(requests)
        todo = iter(range(len(requests)))

        async def work() -> None:
            for at in todo:
                replies[at] = await self.ask(requests[at])

        # A few workers beyond the limit keep the limiter busy while others read the cache; a task for each of 100,000
        # requests would only cost memory.
        await together(work() for _ in range(min(len(requests), 2 * self.concurrency + 8)))
        return [reply for reply in replies if reply is not None]

    async def ask(self, request: Request) -> Reply:
        """Return the reply, or a Reply with ``failure``.

        Raises:
            BudgetExceeded: The budget was spent before this call.
            UserError: A fault of the set-up that every further call would meet: the key, the cache's file, the schema.
        """
        if request.schema is not None:
            structured.check_schema(request.schema)
        prompt = prompt_key(request.messages, max_tokens=request.max_tokens, schema=request.schema,
                            sample=request.sample)
        key = call_key(self._identity, prompt)
        if (failure := self._too_long(request)) is not None:  # before the cache, which may know the reply of a larger window
            self._book(request, request.purpose, _Sent(), failure.kind)
            return Reply("", None, 0, 0, 0.0, failure=failure)
        flow = self._flow()
        while True:
            if (known := self._recall(key, request)) is not None:
                return self._book_cached(request, known)
            flight = flow.flights.get(key)
            if flight is None:
                break
            # None says that the one who sent the call was cancelled; then this one sends it.
            if (shared := await asyncio.shield(flight)) is not None:
                return self._book_cached(request, shared)
        flight = flow.flights[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._call(request, key, prompt)
            flight.set_result(reply)
            return reply
        except UserError as error:
            flight.set_exception(error)
            flight.exception()  # read once, so that a flight nobody shares is not reported as never retrieved
            raise
        finally:
            del flow.flights[key]
            if not flight.done():
                flight.set_result(None)

    def _flow(self) -> _Flow:
        loop = asyncio.get_running_loop()
        flow = self._flows.get(loop)
        if flow is None:
            flow = self._flows[loop] = _Flow(Limiter(self.concurrency, *self._limits, self._clock, self._sleep))
        return flow

    def _recall(self, key: str, request: Request) -> Reply | None:
        stored = self.cache.get(key) if self.cache is not None else None
        if stored is None or self.cache is None:
            return None
        if stored.failure is not None:
            if self._retry_failed and key not in self._retried:
                self._retried.add(key)
                self.cache.forget(key)
                return None
            return _reply("", None, stored, failure=Failure(stored.failure, stored.text))
        data = None
        if request.schema is not None:
            parsed = structured.parse(stored.text, request.schema, cut=stored.truncated)
            if isinstance(parsed, structured.Fault):
                return None  # kept by a version that read it otherwise; ask again
            data = parsed.data
        return _reply(stored.text, data, stored)

    def _too_long(self, request: Request) -> Failure | None:
        room = self.window - request.max_tokens
        if surely_fits(request.messages, room) or (needed := prompt_tokens(request.messages, self.count)) <= room:
            return None
        return Failure("too_long", f"The prompt has {needed:,} tokens; the window of {self.window:,} leaves {room:,} "
                       f"beside {request.max_tokens:,} for the reply.")

    async def _call(self, request: Request, key: str, prompt: str) -> Reply:
        """Send a call that is neither known nor in flight; book it and remember it."""
        sent = await self._send(request, request.messages)
        total, repair = sent, None
        read = self._read(request, sent)
        try:
            if isinstance(read, structured.Fault) and read.kind != "truncated":
                repair = await self._repair(request, sent, read)
                if repair is not None:
                    total, read = _together(sent, repair), self._read(request, repair)
        finally:
            # The outcome is booked where the caller asked, the cost of a repair under a purpose of its own; and both
            # also when the repair was stopped by the budget, since the first call is paid.
            failure = Failure(read.kind, read.message) if isinstance(read, structured.Fault | Failure) else None
            self._book(request, request.purpose, sent, failure.kind if failure else None)
            if repair is not None:
                self._book(request, f"{request.purpose}.repair", repair, None)
        closed = isinstance(read, structured.Parsed) and read.closed
        stored = Stored(failure.message if failure else total.text, total.prompt_tokens, total.completion_tokens,
                        total.seconds, total.retries, closed, failure.kind if failure else None)
        if self.cache is not None:
            self.cache.put(key, stored, prompt=prompt, identity=self._identity)
        data = read.data if isinstance(read, structured.Parsed) else None
        return _reply("" if failure else total.text, data, stored, cached=False, failure=failure)

    def _read(self, request: Request, sent: _Sent) -> structured.Parsed | structured.Fault | Failure:
        if sent.failure is not None:
            return sent.failure
        cut = sent.finish == "length"
        if request.schema is None:
            return structured.Parsed(None, closed=cut)
        return structured.parse(sent.text, request.schema, cut=cut)

    async def _repair(self, request: Request, sent: _Sent, fault: structured.Fault) -> _Sent | None:
        """Say what is wrong and ask once more; None where the window has no room for that."""
        problem = fault.message if fault.kind == "invalid_json" else f"It does not satisfy the schema. {fault.message}"
        messages = (*request.messages, Message("assistant", sent.text),
                    Message("user", _REPAIR.format(problem=problem)))
        room = self.window - request.max_tokens
        if not surely_fits(messages, room) and prompt_tokens(messages, self.count) > room:
            return None
        return await self._send(request, messages)

    async def _send(self, request: Request, messages: Sequence[Message]) -> _Sent:
        """Send one prompt until it has a reply, or the attempts are used up, or trying again cannot help."""
        limiter = self._flow().limiter
        first_wait, longest_wait = self._waits
        tokens = prompt_tokens(messages, self.count) + request.max_tokens if limiter.counts_tokens else 0
        sent = _Sent()
        async with limiter.slot():
            self.ledger.check()
            for attempt in range(self._attempts):
                sent.retries = attempt
                await limiter.turn(tokens)
                begun = self._clock()
                try:
                    completion = await self.backend.complete(
                        messages, max_tokens=request.max_tokens, schema=request.schema, sample=request.sample)
                except CallError as error:
                    if error.kind == "auth":
                        raise UserError(str(error)) from error
                    sent.seconds += self._clock() - begun
                    sent.failure = Failure(error.kind, str(error))
                    if not error.retry or attempt + 1 == self._attempts:
                        break
                    if error.retry_after is not None:
                        limiter.pause(min(longest_wait, error.retry_after))
                    else:
                        await self._sleep(min(longest_wait, first_wait * 2**attempt))
                    continue
                sent.seconds += self._clock() - begun
                if self._take(sent, completion):
                    break
        return sent

    def _take(self, sent: _Sent, completion: Completion) -> bool:
        """Note a reply; say whether it is final. An empty one is asked for once more."""
        # A lone surrogate (half of an escaped emoji) is no text: neither SQLite nor a file could hold it.
        sent.text = completion.text.encode("utf-8", "replace").decode()
        sent.finish = completion.finish
        sent.prompt_tokens += completion.prompt_tokens
        sent.completion_tokens += completion.completion_tokens
        if sent.text.strip():
            sent.failure = None
            return True
        again = sent.failure is not None and sent.failure.kind == "empty"
        sent.failure = Failure("empty", "The reply is empty.")
        return again

    def _book(self, request: Request, purpose: str, sent: _Sent, failure: FailureKind | None) -> None:
        self._note(Entry(request.stage, purpose, request.subject, sent.prompt_tokens, sent.completion_tokens,
                         sent.seconds, sent.retries, cached=False, failure=failure))

    def _book_cached(self, request: Request, reply: Reply) -> Reply:
        failure = None if reply.failure is None else reply.failure.kind
        self._note(Entry(request.stage, request.purpose, request.subject, reply.prompt_tokens, reply.completion_tokens,
                         reply.seconds, reply.retries, cached=True, failure=failure))
        return replace(reply, cached=True)

    def _note(self, entry: Entry) -> None:
        self.ledger.book(entry)
        if self._on_call is not None:
            self._on_call(entry)


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await coroutines that ask the model, at once; return their results in order.

    Where the budget ends, calls in flight (they are paid) are finished and kept before it is raised: every later call
    meets the same end before it is sent. On any other interruption they are cancelled.
    """
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BudgetExceeded:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _together(first: _Sent, second: _Sent) -> _Sent:
    return _Sent(second.text, second.finish, first.prompt_tokens + second.prompt_tokens,
                 first.completion_tokens + second.completion_tokens, first.seconds + second.seconds,
                 first.retries + second.retries, second.failure)


def _reply(text: str, data: Any, stored: Stored, *, cached: bool = True, failure: Failure | None = None) -> Reply:
    return Reply(text, data, stored.prompt_tokens, stored.completion_tokens, stored.seconds, stored.retries, cached,
                 failure, stored.truncated)
