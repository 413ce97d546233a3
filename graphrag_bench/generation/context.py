"""Assemble contexts: look texts up once, in rank order, under a token budget.

Cutting rule: sections stand in the page's order and are filled in that order; inside a section whole elements are taken in
rank order while they fit; the first that does not is cut at a word to what room is left, if that is at least 32 tokens; what
ranks below it is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.generation.answers import Context
from graphrag_bench.llm.window import cut_to_window
from graphrag_bench.pipeline.plan import Section
from graphrag_bench.pipeline.values import Ranking

Count = Callable[[str], int]
_LEAST = 32
_BETWEEN = "\n\n"


def joined(section: Section, values: Mapping[str, Any], number: int) -> list[int]:
    """Return the ids a section shows for one question: its sources one after the other, each id once, at most top_k."""
    ids: dict[int, None] = {}
    for source in section.sources:
        value = values[source]
        assert isinstance(value, Ranking)
        ids.update(dict.fromkeys(int(identity) for identity in value.row(number).ids))
    return list(ids)[: section.top_k]


def assemble(
    sections: Sequence[Section], values: Mapping[str, Any], number: int, chunks: ChunkTable, room: int, count: Count
) -> Context:
    """Return one question's context in at most ``room`` tokens.

    Args:
        sections: what to show, in order.
        values: the results of the steps.
        number: the question's row in the batch.
        chunks: where texts are looked up.
        room: tokens for all sections together.
        count: counts the tokens of a text, as the answering model does.
    """
    parts: list[str] = []
    shown: list[int] = []
    cut = 0
    left = room
    for section in sections:
        budget = left if section.tokens is None else min(left, section.tokens)
        for identity in joined(section, values, number):
            text = f"[{len(parts) + 1}] {chunks[identity].text}"
            size = count(text + _BETWEEN)
            if size > budget:
                cut += 1
                if budget < _LEAST:
                    budget = 0
                    continue
                text = cut_to_window(text, budget, count)
                size = budget
            parts.append(text)
            shown.append(identity)
            budget -= size
            left -= size
    return Context(_BETWEEN.join(parts), tuple(shown), cut)
