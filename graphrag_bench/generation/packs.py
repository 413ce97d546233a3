"""What each map call reads: elements of a context packed under a budget, and the order in which calls share what they read."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from graphrag_bench.generation.answers import Item
from graphrag_bench.llm.window import cut_to_window

_BETWEEN = "\n\n"
_STEP = 64  # tokens of a question


class Reading(NamedTuple):
    """The texts of a question's map calls, and how many of them were cut to fit the window."""

    packs: tuple[str, ...]
    shortened: int


def alike(question_tokens: int) -> int:
    """Return the tokens kept free for a question: those of the longest one of its kind, in steps of 64."""
    return -(-question_tokens // _STEP) * _STEP


def read(items: Iterable[Item], unit: str, budget: int, room: int, count: Callable[[str], int]) -> Reading:
    """Return what a question's map calls read.

    Args:
        items: the elements, in order.
        unit: ``item``, a call an element; ``pack``, elements up to the budget; ``layer``, packs within a hierarchy layer.
        budget: tokens of a pack at most.
        room: tokens the window leaves: a single element that is longer is cut at a word.
        count: counts tokens.
    """
    whole = [_BETWEEN.join(texts) for texts in _packs(items, unit, budget, count)]
    packs = tuple(cut_to_window(text, max(room, 0), count) for text in whole)
    return Reading(packs, sum(pack != text for pack, text in zip(packs, whole, strict=True)))


def by_pack(reading: Mapping[int, Reading]) -> list[tuple[int, int]]:
    """Return the (question, place of the text) of every map call, those over one text together, in the order texts are met."""
    asking: dict[str, list[tuple[int, int]]] = {}
    for row, made in reading.items():
        for at, pack in enumerate(made.packs):
            asking.setdefault(pack, []).append((row, at))
    return [call for calls in asking.values() for call in calls]


def _packs(items: Iterable[Item], unit: str, budget: int, count: Callable[[str], int]) -> list[list[str]]:
    """Return the texts of each map call."""
    if unit == "item":
        return [[item.text] for item in items]
    packs: dict[int, list[list[str]]] = {}
    used: dict[int, int] = {}
    for item in items:
        layer = item.layer if unit == "layer" else 0
        size = count(item.text + _BETWEEN)
        mine = packs.setdefault(layer, [])
        if not mine or used[layer] + size > budget:
            mine.append([])
            used[layer] = 0
        mine[-1].append(item.text)
        used[layer] += size
    return [pack for layer in sorted(packs) for pack in packs[layer]]
