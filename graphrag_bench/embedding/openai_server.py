"""Embeddings from any server that speaks the OpenAI protocol: the API itself, vLLM, Ollama, llama.cpp, TEI."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.openai_wire import Trouble, as_trouble, read_reply
from graphrag_bench.embedding.vectors import check_texts, no_rows, unit_rows
from graphrag_bench.embedding.windows import OVERLAP, LongText, cut_text, estimate_tokens, merge
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_API = "https://api.openai.com/v1"
_REQUEST_TOKENS = 200_000  # the API takes 300,000 a request; ours are estimates
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds; doubled with every retry, no jitter, so that runs are repeatable
_LONGEST_RETRY_AFTER = 120.0


@register("embedder", "openai", inert=("base_url", "api_key_env", "batch_size", "concurrency", "timeout", "retries"))
class OpenAIEmbedder:
    """Embed through an OpenAI-compatible server; one client, so one pool of connections, for the embedder's life.

    The server's address is not part of the identity, so that the same model on another port is the same model. Where
    two servers mean different weights by one name, tell them apart by ``revision``.

    Args:
        model: The model's name on the server.
        dimensions: Length of the vectors; what the server sends is checked against it.
        shorten: Ask the server to shorten its vectors to ``dimensions`` (not every server knows how).
        base_url: Where the server is, ``/v1`` included.
        api_key_env: The environment variable that holds the key; a server that wants none needs none.
        revision: Any text that tells these weights from others of the same name.
        query_prompt: Put before every query, as some models want it.
        passage_prompt: Put before every passage.
        max_tokens: The model's window. Texts are cut by an estimate of 3 bytes a token, before they are sent.
        long_text: ``mean`` averages the vectors of overlapping windows; ``truncate`` sends only the first.
        batch_size: Texts a request.
        concurrency: Requests in flight.
        timeout: Seconds to wait for one reply.
        retries: How often a failed request is sent again.
    """

    def __init__(
        self,
        *,
        model: str = "text-embedding-3-small",
        dimensions: int = 1536,
        shorten: bool = False,
        base_url: str = _API,
        api_key_env: str = "OPENAI_API_KEY",
        revision: str = "",
        query_prompt: str = "",
        passage_prompt: str = "",
        max_tokens: int = 8191,
        long_text: LongText = "mean",
        batch_size: int = 64,
        concurrency: int = 4,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        for name, value in (("dimensions", dimensions), ("max_tokens", max_tokens), ("batch_size", batch_size),
                            ("concurrency", concurrency)):
            if value < 1:
                raise UserError(f"{name} of the embedder openai is {value}.", "Set it to at least 1.")
        self.dim = dimensions
        self.sleep: Callable[[float], None] = time.sleep
        self._model, self._shorten = model, shorten
        self._base_url, self._api_key_env = base_url, api_key_env
        self._prompts: dict[Role, str] = {"query": query_prompt, "passage": passage_prompt}
        self._max_tokens = max_tokens
        self._long_text: LongText = long_text
        self._batch_size, self._concurrency = batch_size, concurrency
        self._timeout, self._retries = timeout, retries
        self._client: Any = None
        self._lock = threading.Lock()
        self.identity: Mapping[str, Any] = {
            "backend": "openai",
            "model": model,
            "revision": revision,
            "dim": dimensions,
            "shorten": shorten,
            "prompts": dict(self._prompts),
            "max_tokens": max_tokens,
            "long_text": long_text,
            "overlap": OVERLAP if long_text == "mean" else 0,
        }

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return (n, dimensions) unit vectors.

        Raises:
            UserError: A text is empty, the server cannot be used, or what it sent is not what was asked for.
        """
        check_texts(texts)
        if not texts:
            return no_rows(self.dim)
        pieces: list[str] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            cut = cut_text(text, self._max_tokens, self._long_text)
            pieces += [self._prompts[role] + piece for piece in cut]
            owners += [owner] * len(cut)
        self._connect()
        with ThreadPoolExecutor(self._concurrency) as pool:
            rows = unit_rows(np.concatenate(list(pool.map(self._request, self._batches(pieces)))), pieces)
        return unit_rows(merge(rows, owners, len(texts)), texts) if len(pieces) > len(texts) else rows

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts are, by the estimate, longer than the window."""
        return sum(estimate_tokens(text) > self._max_tokens for text in texts)

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _batches(self, pieces: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for piece in pieces:
            more = estimate_tokens(piece)
            if batch and (len(batch) == self._batch_size or tokens + more > _REQUEST_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(piece)
            tokens += more
        yield batch

    def _request(self, batch: list[str]) -> NDArray[np.float32]:
        """Send one batch until it is answered, refused for good, or out of retries."""
        for attempt in range(self._retries + 1):
            try:
                return read_reply(self._post(batch), len(batch), self.dim)
            except Trouble as trouble:
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt)
                if trouble.retry_after is not None:
                    wait = trouble.retry_after
                if not trouble.retry or attempt == self._retries or wait > _LONGEST_RETRY_AFTER:
                    raise self._user_error(trouble, attempt) from None
            self.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _post(self, batch: list[str]) -> bytes:
        from openai import OpenAIError

        extra = {"dimensions": self.dim} if self._shorten else {}
        try:
            raw = self._connect().embeddings.with_raw_response.create(
                model=self._model, input=batch, encoding_format="base64", **extra
            )
        except OpenAIError as error:
            raise as_trouble(error) from None  # the original may quote the key
        content: bytes = raw.http_response.content
        return content

    def _connect(self) -> Any:
        with self._lock:
            if self._client is None:
                from openai import OpenAI

                key = self._key()
                if not key and self._base_url.rstrip("/") == _API:
                    raise UserError(f"The embedder openai finds no key in the variable {self._api_key_env}.",
                                    f"Set {self._api_key_env}, or base_url to your own server.")
                self._client = OpenAI(api_key=key or "none", base_url=self._base_url, timeout=self._timeout,
                                      max_retries=0)
            return self._client

    def _key(self) -> str:
        return os.environ.get(self._api_key_env, "") if self._api_key_env else ""

    def _user_error(self, trouble: Trouble, retries: int) -> UserError:
        parts = urlsplit(self._base_url)  # a user name or password in the address stays out of the message
        host = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
        tried = f" after {retries} {'retry' if retries == 1 else 'retries'}" if retries else ""
        key = self._key()
        said = trouble.problem.replace(key, "***") if key else trouble.problem
        return UserError(f"The embedding server {host} (model {self._model}) {said}{tried}.", trouble.fix)
