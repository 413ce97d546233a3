"""The embedded backend around a runtime that only keeps books; the real one is tried by hand, see its docstring."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.llm.backends.llamacpp import LlamaCpp
from graphrag_bench.llm.backends.vllm import VLLM
from graphrag_bench.llm.base import CallError, Completion, Message


class Runtime:
    """Keeps, like llama.cpp, the state of all that a prompt shares with the last one. A token is a character."""

    def __init__(self) -> None:
        self.state: list[int] = []
        self.kept: list[int] = []  # of each real prompt, how many tokens were not computed again
        self.bodies: list[dict[str, Any]] = []
        self.answer: dict[str, Any] | None = None
        self.refuse: Exception | None = None

    def handle_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self._run(body["prompt"])
        return {}

    def handle_chat_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        if self.refuse is not None:
            raise self.refuse
        if self.answer is not None:
            return self.answer
        prompt = tokens(body["messages"])
        self.kept.append(self._run(prompt))
        reply = "a reply"
        self.state += [ord(letter) for letter in reply]
        return {"choices": [{"message": {"content": reply}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": len(prompt), "completion_tokens": len(reply)}}

    def _run(self, prompt: list[int]) -> int:
        shared = 0
        while shared < min(len(prompt) - 1, len(self.state)) and prompt[shared] == self.state[shared]:
            shared += 1
        self.state = list(prompt)
        return shared


def tokens(messages: list[dict[str, str]]) -> list[int]:
    return [ord(letter) for letter in "".join(message["content"] for message in messages)]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LlamaCpp, Runtime]:
    weights = tmp_path / "m.gguf"
    weights.write_bytes(b"weights")
    made, runtime = LlamaCpp(model=str(weights)), Runtime()

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "/apply-template":
            return {"prompt": "".join(message["content"] for message in body["messages"])}
        return {"tokens": [ord(letter) for letter in body["content"]]}

    monkeypatch.setattr(made, "_load", lambda: runtime)
    monkeypatch.setattr(made, "_post", post)
    return made, runtime


def ask(model: LlamaCpp, text: str, **wanted: Any) -> Completion:
    settings = {"max_tokens": 9, "schema": None, "sample": 0, **wanted}
    return asyncio.run(model.complete([Message("user", text)], **settings))


SHARED = "a passage that every one of these questions is about, to be read once: "


@pytest.mark.parametrize("second", [
    SHARED + "and who?",  # leaves the first prompt in its midst
    SHARED + "where?",  # the same again
    SHARED + "where?a reply, and then?",  # the first prompt and its reply, as a repair turn has them
    SHARED[:40], "something else", "a",
])
def test_what_is_kept_of_a_prompt_is_whole_groups_that_a_fresh_run_would_compute_alike(
    model: tuple[LlamaCpp, Runtime], second: str
) -> None:
    backend, runtime = model
    first = SHARED + "where?"
    ask(backend, first)
    ask(backend, second)
    same = next((at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)))
    assert runtime.kept == [0, min(same, len(second) - 1) // 16 * 16]


def test_a_refusal_or_an_error_is_a_failure_of_the_call(model: tuple[LlamaCpp, Runtime]) -> None:
    backend, runtime = model
    runtime.refuse = ValueError("unrecognized type florp")
    with pytest.raises(CallError, match="florp") as caught:
        ask(backend, "x")
    assert (caught.value.kind, caught.value.retry) == ("bad_request", False)
    runtime.refuse, runtime.answer = None, {"error": {"message": "long", "type": "exceed_context_size_error"}}
    with pytest.raises(CallError) as caught:
        ask(backend, "x")
    assert caught.value.kind == "too_long"


def test_schema_seed_and_sample_reach_the_runtime(model: tuple[LlamaCpp, Runtime]) -> None:
    backend, runtime = model
    assert ask(backend, "x", schema={"type": "integer"}, sample=2) == Completion("a reply", 1, 7)
    body = runtime.bodies[0]
    assert body["seed"] == 2 and body["temperature"] == 0.0 and body["max_tokens"] == 9
    assert body["response_format"]["json_schema"]["schema"] == {"type": "integer"}


def test_it_counts_by_the_models_own_tokenizer_and_loads_again_after_close(model: tuple[LlamaCpp, Runtime]) -> None:
    backend, runtime = model
    assert backend.count("four") == 4
    ask(backend, SHARED)
    asyncio.run(backend.close())
    runtime.state = []
    ask(backend, SHARED)
    assert runtime.kept == [0, 0]


def test_the_identity_knows_the_weights_not_where_they_are(model: tuple[LlamaCpp, Runtime], tmp_path: Path) -> None:
    backend, _ = model
    (tmp_path / "copy.gguf").write_bytes(b"weights")
    (tmp_path / "other.gguf").write_bytes(b"others")
    assert LlamaCpp(model=str(tmp_path / "copy.gguf"), threads=1).identity == backend.identity
    assert LlamaCpp(model=str(tmp_path / "other.gguf")).identity != backend.identity
    assert str(tmp_path) not in repr(backend.identity)
    with pytest.raises(UserError, match="neither a file nor the name"):
        LlamaCpp(model="no-such-model")


@pytest.mark.parametrize(("make", "module", "extra"), [
    (lambda: LlamaCpp(), "xllamacpp", "embedded"), (lambda: VLLM(), "vllm", "vllm"),
])
def test_a_missing_runtime_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError) as caught:
        make().count("x")
    assert f"graphrag-bench[{extra}]" in caught.value.fix
