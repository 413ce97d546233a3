"""How many calls may be in flight, and how many calls and tokens a minute may begin."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

_MINUTE = 60.0


class Limiter:
    """Lets calls begin one by one, in the order in which they asked. Belongs to one event loop.

    The limits per minute hold for any 60 seconds, not for calendar minutes. One call that alone is above the limit of
    tokens is let through when nothing else was sent in the last minute.
    """

    def __init__(
        self, concurrency: int, requests_per_minute: int | None, tokens_per_minute: int | None,
        clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._turn = asyncio.Lock()
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._read_clock = clock
        self._sleep = sleep
        self._ahead = 0.0
        self._begun: deque[tuple[float, int]] = deque()
        self._sum = 0
        self._resume_at = 0.0

    @property
    def counts_tokens(self) -> bool:
        """Say whether ``turn`` wants to know a call's tokens."""
        return self._tokens is not None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the places in flight."""
        async with self._slots:
            yield

    def pause(self, seconds: float) -> None:
        """Let no call begin for so long: a server's Retry-After is meant for all of them."""
        self._resume_at = max(self._resume_at, self._clock() + seconds)

    async def turn(self, tokens: int) -> None:
        """Wait until one more call of so many tokens may begin."""
        if self._requests is None and self._tokens is None and self._resume_at == 0.0:
            return
        async with self._turn:
            while (wait := self._wait(tokens)) > 0:
                until = self._clock() + wait
                await self._sleep(wait)
                # What was slept has passed, even where the clock is coarse or a test's sleep does not move it.
                self._ahead += max(0.0, until - self._clock())
            self._begun.append((self._clock(), tokens))
            self._sum += tokens

    def _clock(self) -> float:
        return self._read_clock() + self._ahead

    def _wait(self, tokens: int) -> float:
        now = self._clock()
        while self._begun and now - self._begun[0][0] >= _MINUTE:
            self._sum -= self._begun.popleft()[1]
        if now < self._resume_at:
            return self._resume_at - now
        full = self._requests is not None and len(self._begun) >= self._requests
        full |= self._tokens is not None and bool(self._begun) and self._sum + tokens > self._tokens
        return self._begun[0][0] + _MINUTE - now if full else 0.0
