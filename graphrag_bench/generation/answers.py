"""The answer to one question, and the context it was made from."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Item:
    """One element of a context as it is shown: its section, text and chunks; its hierarchy layer, 0 but for communities."""

    section: str
    text: str
    chunks: tuple[int, ...] = ()
    layer: int = 0


@dataclass(frozen=True)
class Context:
    """What one question's prompt shows: the text, the chunks in it (ids, best first), and what was cut to make it fit."""

    text: str
    chunks: tuple[int, ...] = ()
    cut: int = 0  # elements left out or shortened for lack of room
    items: tuple[Item, ...] = ()  # the same, element by element, for generators that put prompts together themselves


@dataclass(frozen=True)
class Answer:
    """One question's answer. A failure is a status with a reason, never an empty text."""

    question: str
    status: Literal["ok", "failed", "refused", "retrieved"]  # retrieved: the run stopped before answering
    text: str | None
    reason: str = ""
    raw: str = ""  # the whole reply, where the answer was taken out of it
    cut: int = 0


Contexts = tuple[Context, ...]
Answers = tuple[Answer, ...]
