"""Assemble contexts: look texts up once, in rank order, under a token budget.

Cutting rule: sections stand in the page's order. They give way to the window in the order of the page's ``cut``, the last
section first where it says nothing: what gives way last is filled first. Inside a section whole elements are taken in rank
order while they fit; the first that does not is cut at a word to what room is left, if that is at least 32 tokens; what
ranks below it is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphrag_bench.generation.answers import Context, Item
from graphrag_bench.generation.shelf import NUMBERED, Shelf
from graphrag_bench.llm.window import cut_to_window
from graphrag_bench.pipeline.method import Section

Count = Callable[[str], int]
BOUNDLESS = 1 << 30  # room nobody need count for: the generator packs the elements itself
_LEAST = 32
_BETWEEN, _LINE = "\n\n", "\n"


def headings(sections: Sequence[Section], shelf: Shelf) -> list[str]:
    """Return what stands above each section; an empty text where it goes on under the heading before."""
    named = [f"{shelf.heading(section.kind)}:\n" for section in sections]
    return [name if n == 0 or name != named[n - 1] else "" for n, name in enumerate(named)]


def assemble(
    sections: Sequence[Section],
    values: Mapping[str, Any],
    number: int,
    shelf: Shelf,
    room: int,
    count: Count,
    cut: Sequence[str] = (),
) -> Context:
    """Return one question's context in at most ``room`` tokens, its headings apart.

    Args:
        sections: what to show, in order.
        values: the results of the steps.
        number: the question's row in the batch.
        shelf: where texts are looked up.
        room: tokens for all sections together.
        count: counts the tokens of a text, as the answering model does.
        cut: the names of the sections in the order in which they give way; by default the last gives way first.
    """
    shown: dict[str, list[Item]] = {}
    left, lost = room, 0
    order = [*reversed(cut)] or [section.name for section in sections]
    by_name = {section.name: section for section in sections}
    for name in order:
        section = by_name[name]
        budget = left if section.tokens is None else min(left, section.tokens)
        items, used, missed = _fill(section, values, number, shelf, budget, count)
        shown[name] = items
        left, lost = left - used, lost + missed
    return _written(sections, shown, shelf, lost)


def _fill(
    section: Section, values: Mapping[str, Any], number: int, shelf: Shelf, budget: int, count: Count
) -> tuple[list[Item], int, int]:
    """Return what of a section fits into a budget, the tokens it takes, and how many elements were shortened or left out."""
    numbered = shelf.heading(section.kind) in NUMBERED
    items: list[Item] = []
    used = lost = 0
    full = False
    for element in shelf.elements(section, values, number):
        mark = "[99] " if numbered else "- "
        between = _BETWEEN if numbered else _LINE
        size = 0 if full or budget >= BOUNDLESS else count(mark + element.text + between)
        text = element.text
        if full or used + size > budget:
            lost += 1
            if full or budget - used < _LEAST:
                full = True
                continue
            # the cut text is measured with the mark it will stand behind
            text = cut_to_window(mark + text, budget - used, count)[len(mark) :]
            size, full = budget - used, True
        items.append(Item(section.name, text, element.chunks, element.layer))
        used += size
    return items, used, lost


def _written(sections: Sequence[Section], shown: Mapping[str, Sequence[Item]], shelf: Shelf, lost: int) -> Context:
    parts: list[str] = []
    chunks: list[int] = []
    items: list[Item] = []
    heading, position = "", 0
    for section in sections:
        found = shown[section.name]
        title = shelf.heading(section.kind)
        if not found:
            continue
        if title != heading:
            heading, position = title, 0
            parts.append(f"{_BETWEEN if parts else ''}{title}:\n")
        else:
            parts.append(_BETWEEN if title in NUMBERED else _LINE)
        lines = []
        for item in found:
            position += 1
            lines.append(f"[{position}] {item.text}" if title in NUMBERED else f"- {item.text}")
            chunks.extend(item.chunks)
        items.extend(found)
        parts.append((_BETWEEN if title in NUMBERED else _LINE).join(lines))
    return Context("".join(parts), tuple(dict.fromkeys(chunks)), lost, tuple(items))
