"""Descriptions from many passages made one text of bounded length: joined, and where too long merged by a model or cut."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import DESCRIPTION_TOKENS, Calls, Scale, prompt_of
from graphrag_bench.llm.window import cut_to_window, estimate_tokens, prompt_tokens
from graphrag_bench.prompts import prompt, prompt_hash

_HERE = "graphrag_bench.graph"
_ENDS = tuple(".!?。！？।؟…")
PROMPTS = prompt_hash(_HERE, "merge")


def merge_calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return how many descriptions are likely to be merged.

    A node's descriptions pass the threshold when it is described in m passages, and of the graphs measured (2Wiki and
    MuSiQue, 994 and 1,890 passages) about one node in m² is in m or more. Few relationships are stated so often.
    """
    many = -(-settings["summary_threshold"] // DESCRIPTION_TOKENS)
    reply = min(settings["summary_threshold"], settings["summary_tokens"]) // 2
    asked = prompt_of(prompt(_HERE, "merge")) + 2 * settings["summary_threshold"]
    return Calls.each(scale.nodes / many**2, min(asked, scale.window), reply, "about")


def sentence(text: str) -> str:
    """Return a text with a full stop where it ends without one."""
    return text if text.endswith(_ENDS) else f"{text}."


def joined(parts: Sequence[str]) -> str:
    """Return one description as it is, several as one text of sentences."""
    return parts[0] if len(parts) == 1 else " ".join(map(sentence, parts))


@dataclass
class Summaries:
    """Shortens descriptions that are too long, and keeps account of it.

    Attributes:
        model: who merges and who counts tokens; None to cut, by an estimate of tokens.
        threshold: tokens from which a text is too long, and to which it is cut.
        tokens: room for a merged text.
        asked: descriptions the model was asked to merge.
        cut: descriptions cut to the threshold, those of failed merges among them.
        cut_prompts: merges whose descriptions did not all fit the model's window.
        failed: by subject, why the model gave no merged text.
    """

    model: ChatModel | None
    threshold: int
    tokens: int
    asked: int = 0
    cut: int = 0
    cut_prompts: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    async def shorten(self, subjects: Sequence[str], descriptions: Sequence[Sequence[str]]) -> list[str]:
        """Return one text for each subject's descriptions; an empty one where it has none."""
        texts = [joined(parts) if parts else "" for parts in descriptions]
        long = [at for at, text in enumerate(texts) if self._is_long(text)]
        replies = await self._merged([(subjects[at], descriptions[at]) for at in long])
        for at, reply in zip(long, replies, strict=True):
            if reply is not None and reply.failure is None:
                texts[at] = " ".join(reply.text.split())
                continue
            if reply is not None and reply.failure is not None:
                self.failed[self._new(subjects[at])] = f"{reply.failure.kind}: {reply.failure.message}"
            texts[at] = cut_to_window(texts[at], self.threshold, self._count)
            self.cut += 1
        return texts

    def _new(self, subject: str) -> str:
        """Return a subject, numbered where it has failed before: parallel relationships share theirs."""
        numbered = (f"{subject} ({number})" for number in count(2))
        return subject if subject not in self.failed else next(name for name in numbered if name not in self.failed)

    def _count(self, text: str) -> int:
        return estimate_tokens(text) if self.model is None else self.model.count(text)

    def _is_long(self, text: str) -> bool:
        # no token is shorter than a byte: the model's tokenizer is not started for texts that are short in any case
        return len(text.encode()) > self.threshold and self._count(text) > self.threshold

    async def _merged(self, rows: Sequence[tuple[str, Sequence[str]]]) -> Sequence[Reply | None]:
        if self.model is None or not rows:
            return [None] * len(rows)
        self.asked += len(rows)
        return await self.model.ask_all([self._request(self.model, *row) for row in rows])

    def _request(self, model: ChatModel, subject: str, parts: Sequence[str]) -> Request:
        task = Message("system", prompt(_HERE, "merge"))
        head = f"Name: {subject}\n\nDescriptions:\n"
        room = model.window - self.tokens - prompt_tokens((task, Message("user", head)), model.count)
        body = "\n".join(f"- {part}" for part in parts)
        if model.count(body) > room > 0:
            body = cut_to_window(body, room, model.count)
            self.cut_prompts += 1
        return Request((task, Message("user", head + body)), self.tokens, "graph", "merge", subject)
