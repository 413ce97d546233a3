"""llama.cpp inside this process: a small model on a few cores, with no server to start."""

import asyncio
import http.client
import json
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from graphrag_bench import weights
from graphrag_bench.errors import UserError
from graphrag_bench.llm.base import CallError, Completion, Message
from graphrag_bench.registry import register

# A prompt's state is reused up to a multiple of so many tokens. llama.cpp computes tokens in groups (of 4 with the
# kernels measured), and those left over with another kernel that rounds differently; see ``LlamaCpp``.
_GROUP = 16


@register("chat_model", "llamacpp", inert=("threads", "timeout_s"))
class LlamaCpp:
    """A GGUF model in this process, through xllamacpp.

    What a prompt shares with the one before it is not computed again (a passage asked about ten times is read once).
    Replies nevertheless do not depend on what was asked before, nor on the number of threads, so a killed run that is
    resumed goes on to the same replies. Neither comes by itself: reuse is cut back to whole groups of tokens, which a
    fresh run computes in the same way, and flash attention (which splits its sums among threads) is off. Measured on
    qwen2.5-coder-0.5b: log-probabilities equal to the last bit; with llama.cpp's own reuse, 1 reply in 12 differed when
    the same prompts came in another order. With ``slots`` above 1, replies depend on what is asked at the same time.

    Args:
        model: A name in ``weights.KNOWN``, fetched when first used, or the path of a GGUF file.
        window: Tokens of prompt and reply together.
        temperature: 0 is greedy.
        seed: Of the sampling; sample n of a prompt uses seed + n.
        top_p: Nucleus of the sampling, without effect at temperature 0.
        slots: Prompts computed together. Above 1 the work is faster when replies are long, and less repeatable.
        reuse_prefix: Keep what a prompt shares with the one before it.
        threads: CPU threads; if not given, 2, or 1 where that would be every core: llama.cpp's threads wait for each
            other by spinning, so that one that has to share its core holds up all (15 times slower on two busy cores).
        timeout_s: Seconds that counting may wait for the runtime.
    """

    def __init__(
        self, *, model: str = "qwen2.5-coder-0.5b", window: int = 4096, temperature: float = 0.0, seed: int = 0,
        top_p: float = 1.0, slots: int = 1, reuse_prefix: bool = True, threads: int | None = None,
        timeout_s: float = 60.0,
    ) -> None:
        self.window = window
        self.concurrency = slots
        self.say: weights.Say = lambda _: None  # told what is fetched; whoever shows progress may replace it
        self._model = model
        self._sampling = {"temperature": temperature, "top_p": top_p}
        self._seed = seed
        self._reuse = reuse_prefix
        self._threads = threads or max(1, min(2, (os.cpu_count() or 1) - 1))
        self._timeout = timeout_s
        self._server: Any = None
        self._loading = threading.Lock()
        self._counting = threading.Lock()
        self._key = secrets.token_hex(16)
        self._line: http.client.HTTPConnection | None = None
        self._before: list[int] = []  # the tokens of the last prompt, whose state the runtime still has
        self._workers: ThreadPoolExecutor | None = None
        self._count = lru_cache(maxsize=65536)(lambda text: len(self._tokens(text)))
        self.identity: Mapping[str, Any] = {
            "backend": "llamacpp", "weights": weights.sha256_of(model), "window": window, "seed": seed, "slots": slots,
            "reuse_prefix": reuse_prefix, **self._sampling,
        }

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Return the model's reply; with a schema it is held to it by a grammar."""
        body: dict[str, Any] = {
            "messages": [{"role": message.role, "content": message.text} for message in messages],
            "max_tokens": max_tokens, "seed": self._seed + sample, "cache_prompt": self._reuse, **self._sampling,
        }
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": dict(schema)}}
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self.concurrency, thread_name_prefix="llamacpp")
        return await asyncio.get_running_loop().run_in_executor(self._workers, self._complete, body)

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has, by the model's own tokenizer; loads the model when first asked."""
        return self._count(text)

    async def close(self) -> None:
        """Free the model; a later call loads it again."""
        workers, self._workers = self._workers, None
        if workers is not None:
            await asyncio.to_thread(workers.shutdown, cancel_futures=True)
        with self._counting:
            if self._line is not None:
                self._line.close()
                self._line = None
        with self._loading:
            self._server, self._before = None, []

    def _complete(self, body: dict[str, Any]) -> Completion:
        server = self._loaded()
        try:
            if self._reuse and self.concurrency == 1:
                self._align(server, body["messages"])
            reply = server.handle_chat_completions(body)
        except (ValueError, RuntimeError) as error:
            self._before = []
            raise CallError("bad_request", f"llama.cpp refused the prompt: {error}", retry=False) from error
        if "error" in reply:
            fault = reply["error"]
            long = fault.get("type") == "exceed_context_size_error"
            raise CallError("too_long" if long else "bad_request", str(fault.get("message", fault)), retry=False)
        choice, usage = reply["choices"][0], reply["usage"]
        if self._before and usage["prompt_tokens"] != len(self._before):
            # A template we cannot follow. Nothing was kept before this prompt, and nothing will be after it.
            self._reuse, self._before = False, []
        return Completion(choice["message"].get("content") or "", usage["prompt_tokens"], usage["completion_tokens"],
                          "length" if choice["finish_reason"] == "length" else "stop")

    def _align(self, server: Any, messages: list[dict[str, str]]) -> None:
        """Cut the state kept from the last prompt back to whole groups of tokens that a fresh run would have too."""
        prompt = self._tokens(str(self._post("/apply-template", {"messages": messages})["prompt"]), special=True)
        shared = 0
        for ours, theirs in zip(prompt, self._before, strict=False):
            if ours != theirs:
                break
            shared += 1
        whole = min(shared, len(prompt) - 1) // _GROUP * _GROUP
        if self._before and (whole != shared or shared == len(self._before)):
            # The runtime keeps all that two prompts share. One that leaves the common path at ``whole`` makes it drop
            # what follows, at the price of a single token.
            other = 1 if prompt[whole] != 1 else 2
            server.handle_completions({"prompt": [*prompt[:whole], other], "max_tokens": 1, "temperature": 0.0,
                                       "cache_prompt": True})
        self._before = prompt

    def _loaded(self) -> Any:
        with self._loading:
            if self._server is None:
                self._server = self._load()
            return self._server

    def _load(self) -> Any:
        try:
            import xllamacpp
        except ImportError as error:
            raise UserError("The llamacpp backend needs xllamacpp, which is not installed.",
                            "Run: pip install 'graphrag-bench[embedded]'") from error
        params = xllamacpp.CommonParams()
        if not hasattr(xllamacpp.Server, "listening_address") or not hasattr(params, "cache_ram_mib"):
            raise UserError("The installed xllamacpp is too old for the llamacpp backend.",
                            "Run: pip install -U xllamacpp")
        path = weights.resolve(self._model, say=self.say)
        params.model.path = str(path)
        params.n_ctx = self.window * self.concurrency
        params.n_parallel = self.concurrency
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self._threads
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.cache_ram_mib = 0  # otherwise up to 8 GB of old prompts are kept
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        # The runtime listens on the loopback interface, where we count tokens. The key keeps other users of the machine
        # out; it is made for this process and never leaves it.
        params.api_keys = [self._key]
        try:
            return xllamacpp.Server(params)
        except (RuntimeError, ValueError) as error:
            raise UserError(f"llama.cpp cannot load {path}: {error}.", "Give the path of a GGUF file of a chat model, "
                            "and check that the memory suffices.") from error

    def _tokens(self, text: str, *, special: bool = False) -> list[int]:
        asked = {"content": text, "add_special": special, "parse_special": special}
        return list(self._post("/tokenize", asked)["tokens"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        server = self._loaded()
        sent = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        with self._counting:
            for attempt in range(2):
                if self._line is None:
                    where = urlsplit(server.listening_address)
                    self._line = http.client.HTTPConnection(str(where.hostname), where.port, timeout=self._timeout)
                try:
                    self._line.request("POST", path, sent, headers)
                    answer = self._line.getresponse()
                    found = json.loads(answer.read())
                except (OSError, http.client.HTTPException) as error:
                    self._line.close()
                    self._line = None  # an idle connection is closed by the other side now and then
                    if attempt:
                        raise UserError(f"llama.cpp does not count tokens: {error}.", "Run again.") from error
                    continue
                if answer.status != http.client.OK:
                    raise CallError("bad_request", f"llama.cpp refused {path}: {found}", retry=False)
                return dict(found)
        raise AssertionError("unreachable")
