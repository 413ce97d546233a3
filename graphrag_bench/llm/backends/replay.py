"""Recorded replies, so that a run can be repeated by anyone, with no model at all."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

from graphrag_bench.errors import UserError
from graphrag_bench.llm.base import CallError, Completion, FailureKind, Message
from graphrag_bench.llm.cache import ReplyCache
from graphrag_bench.llm.keys import prompt_key
from graphrag_bench.llm.window import estimate_tokens
from graphrag_bench.registry import register


@register("chat_model", "replay", inert=("concurrency",))
class Replay:
    """Replies from a file that ``export_cache`` wrote; a prompt that is not in it is an error, never a guess.

    Args:
        path: The file, JSON lines.
        window: Tokens of prompt and reply together; as in the recorded run, or prompts are cut elsewhere and not found.
        temperature: Part of the identity, without effect.
        seed: Part of the identity, without effect.
        concurrency: Calls in flight.
    """

    def __init__(
        self, *, path: str, window: int = 8192, temperature: float = 0.0, seed: int = 0, concurrency: int = 64
    ) -> None:
        self.window = window
        self.concurrency = concurrency
        self._path = Path(path).expanduser()
        try:
            raw = self._path.read_bytes()
        except OSError as error:
            raise UserError(f"The recording {path} cannot be read: {error.strerror}.", "Correct llm.path.") from error
        self._replies = _load(self._path, raw)
        self.identity: Mapping[str, Any] = {
            "backend": "replay", "recording": hashlib.sha256(raw).hexdigest(), "window": window,
            "temperature": temperature, "seed": seed,
        }

    async def complete(
        self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
    ) -> Completion:
        """Return the recorded reply."""
        key = prompt_key(messages, max_tokens=max_tokens, schema=schema, sample=sample)
        found = self._replies.get(key)
        if found is None:
            raise CallError("replay_miss", f"{self._path.name} has no reply to this prompt ({key[:12]}…).", retry=False)
        if found.get("failure") is not None:
            raise CallError(cast(FailureKind, found["failure"]), str(found["text"]), retry=False)
        return Completion(found["text"], int(found["prompt_tokens"]), int(found["completion_tokens"]),
                          "length" if found.get("truncated") else "stop")

    def count(self, text: str) -> int:
        """Return an upper estimate of the tokens of ``text``."""
        return estimate_tokens(text)

    async def close(self) -> None:
        """Do nothing."""


def export_cache(cache: ReplyCache, path: Path, *, identity: Mapping[str, Any] | None = None) -> int:
    """Write the replies of a cache as a recording, and return how many there are.

    Args:
        cache: Where the replies are.
        path: The file to write.
        identity: Take only replies of backends whose identity has these entries, as in ``{"model": "gpt-4o-mini"}``.

    Raises:
        UserError: The cache has replies of several models to one prompt, and ``identity`` does not choose.
    """
    lines: dict[str, str] = {}
    for prompt, by, stored in cache.rows():
        known = json.loads(by)
        if any(known.get(name) != value for name, value in (identity or {}).items() if name != "window"):
            continue
        if prompt in lines:
            raise UserError("The cache holds replies of several models to one prompt.",
                            "Choose one of them by its identity, as in {'model': NAME}.")
        lines[prompt] = json.dumps({
            "prompt": prompt, "text": stored.text, "failure": stored.failure, "truncated": stored.truncated,
            "prompt_tokens": stored.prompt_tokens, "completion_tokens": stored.completion_tokens,
        }, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{lines[prompt]}\n" for prompt in sorted(lines)), encoding="utf-8")
    return len(lines)


def _load(path: Path, raw: bytes) -> dict[str, dict[str, Any]]:
    replies: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if (
            not isinstance(entry, dict)
            or not {"prompt", "text", "prompt_tokens", "completion_tokens"} <= entry.keys()
            or entry.get("failure") not in (None, *get_args(FailureKind))
        ):
            raise UserError(f"{path}:{number} is not a recorded reply.", "Record it again with export_cache.")
        replies[entry["prompt"]] = entry
    return replies
