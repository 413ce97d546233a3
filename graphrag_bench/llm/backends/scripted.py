"""A model that reads its replies from a script, or makes them up in the wanted shape: for tests, probes and demos."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args

from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends._instances import instance, short_text
from graphrag_bench.llm.base import CallError, Completion, FailureKind, Message
from graphrag_bench.registry import register

Answer = Callable[[Sequence[Message], Mapping[str, Any] | None], str | Completion]


@register("chat_model", "scripted", inert=("delay_s", "concurrency"))
class Scripted:
    """Replies from a script, or plausible ones made from the prompt by rule; the same every time.

    Args:
        replies: ``auto`` makes a reply from the prompt: with a schema a small instance of it, without one a short
            phrase of the prompt. Anything else is the reply itself.
        path: A script of JSON lines, tried in order before ``replies``: ``{"match": …, "reply": …}`` or
            ``{"match": …, "fail": KIND}``. ``match`` is a substring of the last user message, or a regular expression
            found in it; ``reply`` is a text, or JSON.
        delay_s: Seconds each reply takes.
        window: Tokens (here: words) of prompt and reply together.
        seed: Changes what ``auto`` makes up.
        temperature: Part of the identity, without effect.
        concurrency: Calls in flight.
    """

    def __init__(
        self, *, replies: str = "auto", path: str | None = None, delay_s: float = 0.0, window: int = 8192,
        seed: int = 0, temperature: float = 0.0, concurrency: int = 64,
    ) -> None:
        self.window = window
        self.concurrency = concurrency
        self.calls = 0  # how many were really asked, for tests of caching
        self._replies = replies
        self._delay = delay_s
        self._seed = seed
        self._answer: Answer | None = None
        self._script, digest = _load(Path(path)) if path is not None else ([], None)
        self.identity: Mapping[str, Any] = {
            "backend": "scripted", "replies": replies, "script": digest, "window": window, "seed": seed,
            "temperature": temperature,
        }

    @classmethod
    def of(cls, answer: Answer, *, name: str = "", window: int = 8192, delay_s: float = 0.0) -> Self:
        """Make a model of a function of (messages, schema) that returns a text or a Completion, or raises CallError.

        ``name`` keys the cache; the function's qualified name if not given.
        """
        made = cls(window=window, delay_s=delay_s)
        made._answer = answer
        made.identity = {"backend": "scripted", "function": name or getattr(answer, "__qualname__", repr(answer)),
                         "window": window}
        return made

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Return the scripted reply."""
        self.calls += 1
        await asyncio.sleep(self._delay)
        reply = self._reply(messages, schema, sample)
        if isinstance(reply, Completion):
            return reply
        prompt_tokens = sum(self.count(message.text) for message in messages)
        finish: Literal["stop", "length"] = "stop"
        if schema is None and self.count(reply) > max_tokens:
            reply, finish = " ".join(reply.split()[:max_tokens]), "length"
        return Completion(reply, prompt_tokens, self.count(reply), finish)

    def _reply(self, messages: Sequence[Message], schema: Mapping[str, Any] | None, sample: int) -> str | Completion:
        if self._answer is not None:
            return self._answer(messages, schema)
        asked = next((message.text for message in reversed(messages) if message.role == "user"), "")
        for match, reply, failure in self._script:
            if match in asked or _found(match, asked):
                if failure is not None:
                    raise CallError(failure, "The script says so.", retry=False)
                return reply
        if self._replies != "auto":
            return self._replies
        salt = f"{self._seed}.{sample}"
        if schema is None:
            return short_text(asked, salt)
        return json.dumps(instance(schema, asked, salt), ensure_ascii=False)

    def count(self, text: str) -> int:
        """Return how many words ``text`` has."""
        return len(text.split())

    async def close(self) -> None:
        """Do nothing."""


def _found(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # a plain text with a bracket in it
        return False


def _load(path: Path) -> tuple[list[tuple[str, str, FailureKind | None]], str]:
    try:
        raw = path.expanduser().read_bytes()
    except OSError as error:
        raise UserError(f"The script {path} cannot be read: {error.strerror}.", "Correct llm.path.") from error
    script: list[tuple[str, str, FailureKind | None]] = []
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            match, failure = str(entry["match"]), entry.get("fail")
            reply = "" if failure is not None else entry["reply"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}:{number} is not a scripted reply.",
                            'Write {"match": TEXT, "reply": TEXT OR JSON}, one on a line.') from error
        if failure is not None and failure not in get_args(FailureKind):
            raise UserError(f"{path}:{number}: {failure!r} is no kind of failure.",
                            f"Use one of {', '.join(get_args(FailureKind))}.")
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        script.append((match, text, cast("FailureKind | None", failure)))
    return script, hashlib.sha256(raw).hexdigest()
