"""What model calls are likely to take before any is made: the counts that `plan` shows, and what they are reckoned from.

A component that asks the model registers ``calls=``, a function of its settings and a ``Scale`` that returns ``Calls``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from graphrag_bench.llm.base import Message
from graphrag_bench.llm.window import PER_MESSAGE, PER_PROMPT

Bound = Literal["", "at most", "about"]
_BOUNDS: tuple[Bound, ...] = ("", "at most", "about")
_LETTERS = 4  # of English a token, as byte-pair tokenizers have it
_TEMPLATE = (
    PER_MESSAGE + PER_PROMPT
) // 2  # of a chat template in all; what the window reserves for it is an upper bound

# tokens of what graphs hold, as replies of models have shown it
NAME_TOKENS = 4
DESCRIPTION_TOKENS = 40
FACT_TOKENS = 15  # two ends and a name
MENTIONS = 8  # entities a question at most, as the converters that ask for them bound it


@dataclass(frozen=True, slots=True)
class Calls:
    """Model calls and their tokens.

    Attributes:
        calls: how many.
        prompt_tokens: of all prompts together; an estimate in any case.
        reply_tokens: of all replies together; an estimate in any case.
        bound: what ``calls`` is: the number itself ("", as far as no call fails), the most there can be, or an estimate.
    """

    calls: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    bound: Bound = ""

    @classmethod
    def each(cls, calls: float, prompt: float, reply: float, bound: Bound = "") -> "Calls":
        """Return so many calls of so many prompt and reply tokens each."""
        return cls(round(calls), round(calls * prompt), round(calls * reply), bound)

    def __add__(self, other: "Calls") -> "Calls":
        """Return both together; the sum is as uncertain as the more uncertain of them."""
        return Calls(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            max(self.bound, other.bound, key=_BOUNDS.index),
        )

    def as_uncertain_as(self, bound: Bound) -> "Calls":
        """Return the calls, as uncertain as ``bound`` at least."""
        return self + Calls(bound=bound)


@dataclass(frozen=True)
class Scale:
    """How large everything is, or will be, that a component's calls depend on.

    Attributes:
        chunks: passages of the corpus.
        tokens: tokens of all of them together.
        nodes: of the graph.
        relationships: of the graph.
        described: its nodes and relationships have descriptions.
        passages: its nodes are passages, and summaries of them.
        communities: of the graph, all levels together.
        up_to: communities of a level and all coarser ones, by level; an estimate while the hierarchy is not known.
        at: communities that cover the graph at a level, by level; an estimate while the hierarchy is not known.
        memberships: nodes of all communities together, all levels.
        report_tokens: of one report.
        measured: the graph's numbers, or the hierarchy's, are those of a finished stage and not estimates.
        questions: to be asked.
        question_tokens: of all of them together.
        mentions: entities a question, at most.
        window: of the model, in tokens.
        inputs: port of an operator -> elements a question that are wired to it, at most.
        items: elements of a context, a question, at most.
        context_tokens: of a context, a question.
        guessed: the context's elements hang on a graph that is not there yet.
    """

    chunks: int = 0
    tokens: int = 0
    nodes: int = 0
    relationships: int = 0
    described: bool = False
    passages: bool = False
    communities: int = 0
    up_to: tuple[int, ...] = ()
    at: tuple[int, ...] = ()
    memberships: int = 0
    report_tokens: int = 250
    measured: bool = False
    questions: int = 0
    question_tokens: int = 0
    mentions: int = MENTIONS
    window: int = 8192
    inputs: Mapping[str, int] = field(default_factory=dict)
    items: int = 0
    context_tokens: int = 0
    guessed: bool = False

    @property
    def chunk(self) -> float:
        """Return the tokens of one passage, on average."""
        return self.tokens / max(self.chunks, 1)

    @property
    def question(self) -> float:
        """Return the tokens of one question, on average."""
        return self.question_tokens / max(self.questions, 1)

    @property
    def node_tokens(self) -> int:
        """Return the tokens of one node: of its passage, or of its name and description."""
        return round(self.chunk) if self.passages else NAME_TOKENS + DESCRIPTION_TOKENS * self.described

    @property
    def fact_tokens(self) -> int:
        """Return the tokens of one relationship with its ends."""
        return FACT_TOKENS + DESCRIPTION_TOKENS * self.described

    def per_level(self, counts: Sequence[int], level: int) -> int:
        """Return the communities at a level; all of them where nothing is known of levels."""
        return counts[min(level, len(counts) - 1)] if counts else self.communities


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text) // _LETTERS)


def prompt_of(*parts: str | Message) -> int:
    """Return about how many tokens a prompt of these parts has, with the chat template's."""
    return _TEMPLATE + sum(tokens_of(part.text if isinstance(part, Message) else part) for part in parts)
