"""The types of a model call, and the two protocols: what a backend offers and what an operator is lent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

FailureKind = Literal[
    "rate_limit", "server_error", "timeout", "connection", "bad_request", "auth", "error_body", "truncated",
    "empty", "invalid_json", "schema", "replay_miss", "too_long",
]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat turn."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call: what is asked, and for what it is booked in the ledger."""

    messages: tuple[Message, ...]
    max_tokens: int
    stage: str
    purpose: str
    subject: str = ""  # the id of the question or chunk this call serves
    schema: Mapping[str, Any] | None = None  # JSON schema the reply must satisfy
    sample: int = 0  # which of several draws for the same prompt


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call has no usable reply."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call. ``failure`` is set exactly when there is no usable reply; text is then not an answer.

    Tokens, seconds and retries are those of the original call also when it is served from the cache.
    """

    text: str
    data: Any  # the parsed JSON when the request had a schema, else None
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    retries: int = 0
    cached: bool = False
    failure: Failure | None = None
    truncated: bool = False  # cut at max_tokens, and usable all the same (JSON was closed after its last whole item)


@dataclass(frozen=True, slots=True)
class Completion:
    """One raw reply of a backend."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    finish: Literal["stop", "length"] = "stop"


class CallError(Exception):
    """A backend call that failed: its kind, whether trying again can help, and what Retry-After said (seconds)."""

    def __init__(self, kind: FailureKind, message: str, *, retry: bool, retry_after: float | None = None) -> None:
        self.kind: FailureKind = kind
        self.retry = retry
        self.retry_after = retry_after
        super().__init__(message)


@runtime_checkable
class ChatBackend(Protocol):
    """A model runtime. ``identity`` is everything that can change its replies; it keys the cache."""

    identity: Mapping[str, Any]
    window: int  # tokens of prompt and reply together
    concurrency: int  # calls it can usefully have in flight

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Return one reply, or raise CallError."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has (exact where the tokenizer is at hand, else an upper estimate)."""
        ...

    async def close(self) -> None:
        """Free the runtime or close the connections."""
        ...


@runtime_checkable
class ChatModel(Protocol):
    """What operators, extractors and generators are lent: cached, limited, booked, validated."""

    window: int
    concurrency: int  # calls that can be in flight

    async def ask(self, request: Request) -> Reply:
        """Return the reply, or a Reply with ``failure``; raise only BudgetExceeded."""
        ...

    async def ask_all(self, requests: Sequence[Request]) -> list[Reply]:
        """Ask concurrently within the limiter; replies in the order of the requests."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has."""
        ...
