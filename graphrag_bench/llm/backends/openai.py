"""Any OpenAI-compatible HTTP server: vLLM, Ollama, llama.cpp's own, or the API itself."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from graphrag_bench.errors import UserError
from graphrag_bench.llm.base import CallError, Completion, Message
from graphrag_bench.llm.window import estimate_tokens
from graphrag_bench.registry import register

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_NO_KEY = "none"  # local servers want the header, not its content
_SHAPE = "\n\nReply with JSON only, with nothing before or after it, that satisfies this JSON schema:\n"


@register("chat_model", "openai", inert=("base_url", "api_key_env", "timeout_s", "concurrency"))
class OpenAI:
    """A model behind an OpenAI-compatible server.

    The server's address is not part of the identity: replies are kept by the model's name, so that a server may move.
    The key is read from the environment when a call is sent; it is in no message, file or identity.

    Args:
        model: The model's name, as the server knows it.
        base_url: The server's address, as in ``http://localhost:8000/v1``; if not given, $OPENAI_BASE_URL, or the API.
        api_key_env: The name of the environment variable that holds the key.
        window: Tokens of prompt and reply together that the model takes.
        temperature: 0 is greedy.
        seed: Of the sampling; sample n of a prompt uses seed + n.
        top_p: Nucleus of the sampling.
        schema_mode: How the server is told of a JSON schema: ``json_schema`` holds it to one; with ``json_object``
            (some JSON) and ``none`` the schema is put into the prompt.
        strict_schema: Ask for ``strict`` with ``json_schema``; the API then wants every property required and no other.
        max_tokens_field: What the server calls the bound of a reply.
        tokenizer: How tokens are counted before sending: a name or file that ``chunking.tokenizers`` knows. If not
            given, they are estimated from above.
        timeout_s: Seconds one attempt may take.
        concurrency: The most calls in flight.
        extra_body: Further fields of every call, as in ``{reasoning_effort: low}``.
    """

    def __init__(
        self, *, model: str = "gpt-4o-mini", base_url: str | None = None, api_key_env: str = "OPENAI_API_KEY",
        window: int = 8192, temperature: float = 0.0, seed: int = 0, top_p: float = 1.0,
        schema_mode: Literal["json_schema", "json_object", "none"] = "json_schema", strict_schema: bool = False,
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens", tokenizer: str | None = None,
        timeout_s: float = 120.0, concurrency: int = 16, extra_body: dict[str, Any] | None = None,
    ) -> None:
        self.window = window
        self.concurrency = concurrency
        self._model = model
        self._base_url = base_url
        self._key_name = api_key_env
        self._sampling = {"temperature": temperature, "top_p": top_p}
        self._seed = seed
        self._mode = schema_mode
        self._strict = strict_schema
        self._limit_field = max_tokens_field
        self._tokenizer = tokenizer
        self._timeout = timeout_s
        self._extra = extra_body
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()
        self.identity: Mapping[str, Any] = {
            "backend": "openai", "model": model, "window": window, "seed": seed, "schema_mode": schema_mode,
            "strict_schema": strict_schema, "extra_body": extra_body or {}, **self._sampling,
        }

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Send one call, once."""
        import openai

        body: dict[str, Any] = {
            "model": self._model, "messages": self._turns(messages, schema), self._limit_field: max_tokens,
            "seed": self._seed + sample, **self._sampling,
        }
        if schema is not None and self._mode == "json_schema":
            shape = {"name": "reply", "schema": dict(schema)} | ({"strict": True} if self._strict else {})
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        elif schema is not None and self._mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        client = self._client()
        try:
            async with asyncio.timeout(self._timeout):
                raw = await client.chat.completions.with_raw_response.create(**body, extra_body=self._extra)
            return self._read(raw.http_response.content, messages)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise CallError("timeout", f"No reply within {self._timeout:g} s.", retry=True) from error
        except openai.APIStatusError as error:
            raise self._refused(error) from None  # the chain would carry the request, and with it the key
        except openai.APIConnectionError as error:
            cause = self._safe(str(error.__cause__ or error))
            raise CallError("connection", f"The server cannot be reached: {cause}", retry=True) from None
        except openai.APIError as error:
            said = self._safe(error.message)
            raise CallError("error_body", f"The reply is not readable: {said}", retry=True) from None

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has, or an upper estimate where no tokenizer was named."""
        return estimate_tokens(text) if self._tokenizer is None else _count(text, self._tokenizer)

    async def close(self) -> None:
        """Close the connections of the running loop; those of loops that have ended went with them."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    def _turns(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> list[dict[str, str]]:
        # A lone surrogate (from a broken escape in some corpus) cannot be sent.
        turns = [{"role": message.role, "content": message.text.encode("utf-8", "replace").decode()}
                 for message in messages]
        if schema is not None and self._mode != "json_schema":
            turns[-1]["content"] += _SHAPE + json.dumps(schema, ensure_ascii=False)
        return turns

    def _client(self) -> "AsyncOpenAI":
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            from openai import AsyncOpenAI

            key = os.environ.get(self._key_name)
            if not key and not (self._base_url or os.environ.get("OPENAI_BASE_URL")):
                raise UserError(f"The environment variable {self._key_name} is not set, and the API wants a key.",
                                f"Set {self._key_name}, or llm.base_url to a local server.")
            client = AsyncOpenAI(api_key=key or _NO_KEY, base_url=self._base_url, max_retries=0, timeout=self._timeout)
            self._clients[loop] = client
        return client

    def _read(self, content: bytes, messages: Sequence[Message]) -> Completion:
        try:
            body = json.loads(content)
        except ValueError:
            start = self._safe(content[:80].decode("utf-8", "replace"))
            raise CallError("error_body", f"The reply is not JSON; it begins {start!r}.", retry=True) from None
        choices = body.get("choices") if isinstance(body, dict) else None
        if not choices or not isinstance(choices[0].get("message"), dict):
            said = body.get("error", body) if isinstance(body, dict) else body
            raise CallError("error_body", f"The reply has no answer: {self._safe(_said(said))}", retry=True)
        text = choices[0]["message"].get("content") or ""
        if isinstance(text, list):  # some servers answer in parts
            text = "".join(str(part.get("text", "")) for part in text)
        usage = body.get("usage") or {}
        prompt_tokens = usage.get("prompt_tokens")
        if prompt_tokens is None:
            prompt_tokens = sum(self.count(message.text) for message in messages)
        completion_tokens = usage.get("completion_tokens")
        if completion_tokens is None:
            completion_tokens = self.count(text)
        finish: Literal["stop", "length"] = "length" if choices[0].get("finish_reason") == "length" else "stop"
        return Completion(text, int(prompt_tokens), int(completion_tokens), finish)

    def _refused(self, error: "APIStatusError") -> Exception:
        """Return what an HTTP status means for this call, or a UserError where every call would meet it."""
        status, said = error.status_code, self._safe(_said(error.body))
        if status in (401, 403):  # the server's own words may repeat part of the key, so they are left out
            return UserError(f"The server refused the key (HTTP {status}).",
                             f"Set the environment variable {self._key_name} to a key that may use {self._model}.")
        if status == 404:
            return UserError(f"The server does not know the model {self._model!r}, or the address is wrong (HTTP 404: "
                             f"{said}).", "Correct llm.model or llm.base_url (which usually ends in /v1).")
        if status == 429:
            if error.code == "insufficient_quota":
                return UserError(f"The account of the key in {self._key_name} has no quota left.", "Add to it, or set "
                                 f"{self._key_name} to another key.")
            return CallError("rate_limit", f"Too many requests: {said}", retry=True, retry_after=_retry_after(error))
        if status >= 500 or status in (408, 409, 425):
            return CallError("timeout" if status == 408 else "server_error", f"HTTP {status}: {said}", retry=True,
                             retry_after=_retry_after(error))
        if error.code == "context_length_exceeded":
            return CallError("too_long", said, retry=False)
        return CallError("bad_request", f"HTTP {status}: {said}", retry=False)

    def _safe(self, text: str) -> str:
        """Return a server's words, shortened, without the key should they hold it."""
        key = os.environ.get(self._key_name)
        return (text.replace(key, "***") if key else text)[:300]


@lru_cache(maxsize=65536)
def _count(text: str, tokenizer: str) -> int:
    from graphrag_bench.chunking.tokenizers import load_tokenizer

    return len(load_tokenizer(tokenizer).starts(text))


def _said(body: Any) -> str:
    return str(body["message"]) if isinstance(body, dict) and "message" in body else str(body)


def _retry_after(error: "APIStatusError") -> float | None:
    """Return the seconds of Retry-After, which may be a number or a date."""
    written = error.response.headers.get("retry-after")
    if written is None:
        return None
    try:
        return max(0.0, float(written))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(written) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
