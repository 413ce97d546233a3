"""vLLM inside this process, for a machine with a GPU and no server."""

import asyncio
import inspect
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any, TypeVar

from graphrag_bench.errors import UserError
from graphrag_bench.llm.base import CallError, Completion, Message
from graphrag_bench.registry import register

T = TypeVar("T")


@register("chat_model", "vllm", inert=("concurrency", "gpu_memory"))
class VLLM:
    """A model run by vLLM in this process, with its continuous batching and prefix caching.

    The engine belongs to one event loop, so it lives in a thread with a loop of its own. Replies of concurrent prompts
    may differ in the last bits from run to run, as vLLM documents; finished ones are kept by the reply cache.

    Args:
        model: A name on the model hub, or a folder.
        window: Tokens of prompt and reply together.
        temperature: 0 is greedy.
        seed: Of the sampling; sample n of a prompt uses seed + n.
        top_p: Nucleus of the sampling.
        dtype: Of the weights, as vLLM names it.
        quantization: As vLLM names it.
        tensor_parallel: GPUs the model is split over.
        gpu_memory: The share of the GPU's memory the engine takes.
        concurrency: The most calls in flight.
    """

    def __init__(
        self, *, model: str = "Qwen/Qwen2.5-7B-Instruct", window: int = 8192, temperature: float = 0.0, seed: int = 0,
        top_p: float = 1.0, dtype: str = "auto", quantization: str | None = None, tensor_parallel: int = 1,
        gpu_memory: float = 0.9, concurrency: int = 256,
    ) -> None:
        self.window = window
        self.concurrency = concurrency
        self._sampling = {"temperature": temperature, "top_p": top_p}
        self._seed = seed
        self._engine_settings = {
            "model": model, "max_model_len": window, "dtype": dtype, "quantization": quantization, "seed": seed,
            "tensor_parallel_size": tensor_parallel, "gpu_memory_utilization": gpu_memory,
            "enable_prefix_caching": True,
        }
        self._starting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._engine: Any = None
        self._tokenizer: Any = None
        self._numbers = count()
        self.identity: Mapping[str, Any] = {
            "backend": "vllm", "model": model, "window": window, "seed": seed, "dtype": dtype,
            "quantization": quantization, "tensor_parallel": tensor_parallel, **self._sampling,
        }

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Return the model's reply; with a schema it is held to it by guided decoding."""
        await asyncio.to_thread(self._start)
        return await asyncio.wrap_future(self._submit(self._generate(messages, max_tokens, schema, sample)))

    def count(self, text: str) -> int:
        """Return how many tokens ``text`` has, by the model's own tokenizer; starts the engine when first asked."""
        self._start()
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    async def close(self) -> None:
        """Shut the engine down; a later call starts it again."""
        await asyncio.to_thread(self._stop)

    async def _generate(
        self, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        from vllm.sampling_params import RequestOutputKind

        turns = [{"role": message.role, "content": message.text} for message in messages]
        tokens = self._tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True,
                                                     return_dict=False)
        wanted = _sampling_params(schema, max_tokens=max_tokens, seed=self._seed + sample,
                                  output_kind=RequestOutputKind.FINAL_ONLY, **self._sampling)
        last: Any = None
        try:
            async for output in self._engine.generate({"prompt_token_ids": list(tokens)}, wanted,
                                                      f"call-{next(self._numbers)}"):
                last = output
        except ValueError as error:  # a prompt or schema the engine does not take
            raise CallError("bad_request", f"vLLM refused the prompt: {error}", retry=False) from error
        if last is None:
            raise CallError("error_body", "vLLM ended without a reply.", retry=True)
        reply = last.outputs[0]
        return Completion(reply.text, len(tokens), len(reply.token_ids),
                          "length" if reply.finish_reason == "length" else "stop")

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _start(self) -> None:
        with self._starting:
            if self._engine is not None:
                return
            try:
                from vllm import AsyncEngineArgs, AsyncLLMEngine
            except ImportError as error:
                raise UserError(f"The vllm backend needs vLLM, which cannot be imported ({error}).",
                                "Run: pip install 'graphrag-bench[vllm]'; or serve the model and use llm=openai."
                                ) from error
            loop = self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=loop.run_forever, name="vllm", daemon=True)
            self._thread.start()

            async def make() -> tuple[Any, Any]:  # on the loop, because the engine binds itself to the running one
                engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(**self._engine_settings))
                tokenizer = engine.get_tokenizer()  # a coroutine in some versions, a plain call in others
                return engine, await tokenizer if inspect.isawaitable(tokenizer) else tokenizer

            try:
                self._engine, self._tokenizer = self._submit(make()).result()
            except (OSError, ValueError, RuntimeError) as error:
                self._end_loop()
                raise UserError(f"vLLM cannot start {self._engine_settings['model']}: {error}.",
                                "Check the model's name and the GPU's memory (llm.gpu_memory, llm.window).") from error

    def _stop(self) -> None:
        with self._starting:
            if self._engine is not None and self._loop is not None:
                self._loop.call_soon_threadsafe(self._engine.shutdown)
                self._engine = None
                self._end_loop()

    def _end_loop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=30)
            self._loop = self._thread = None


def _sampling_params(schema: Mapping[str, Any] | None, **settings: Any) -> Any:
    from vllm import SamplingParams

    if schema is None:
        return SamplingParams(**settings)
    try:
        from vllm.sampling_params import StructuredOutputsParams
    except ImportError:  # vLLM before 0.11
        from vllm.sampling_params import GuidedDecodingParams

        return SamplingParams(guided_decoding=GuidedDecodingParams(json=dict(schema)), **settings)
    return SamplingParams(structured_outputs=StructuredOutputsParams(json=dict(schema)), **settings)
