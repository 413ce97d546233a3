"""Which of a community's elements, and which reports on its parts, a prompt of bounded length holds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from graphrag_bench.community.elements import Line
from graphrag_bench.llm.window import cut_to_window

_PARTS = "Reports on parts of the group:"
_ELEMENTS = "What is known:"


class Packed(NamedTuple):
    """What a prompt says of a community; ``cut`` where not everything had room, ``reports`` the parts told by a report."""

    text: str
    cut: bool
    reports: tuple[int, ...] = ()


def pack(lines: Sequence[Line], reports: Mapping[int, str], room: int, count: Callable[[str], int]) -> Packed:
    """Fit a community into ``room`` tokens, by the rule of the GraphRAG paper (section 3.1.4).

    All elements, if they have room. If not, parts (those with the most element tokens first, ties by id) are told by their
    report instead of by their elements, until the rest has room. A report that is not shorter than the elements it
    stands for is left out, since it would make no room. What still has none is cut from the end: reports stand first,
    elements after them in their order, up to the first that does not fit.

    Args:
        lines: the elements, in order.
        reports: the report on each part that has one.
        room: tokens at most, headings included.
        count: counts tokens.
    """
    sizes = [count(f"{line.text}\n") for line in lines]
    whole = room
    room -= count(f"{_ELEMENTS}\n")
    if sum(sizes) <= room:
        return Packed(_written([], [line.text for line in lines]), cut=False)
    of_part: dict[int, int] = {}
    for line, size in zip(lines, sizes, strict=True):
        of_part[line.part] = of_part.get(line.part, 0) + size
    needed = sum(sizes)
    told: dict[int, int] = {}
    for part in sorted(reports, key=lambda part: (-of_part.get(part, 0), part)):
        size = count(f"{reports[part]}\n\n")
        if size >= of_part.get(part, 0):
            continue
        if not told:
            room -= count(f"{_PARTS}\n\n")
        told[part] = size
        needed += size - of_part[part]
        if needed <= room:
            break
    left = [(line.text, size) for line, size in zip(lines, sizes, strict=True) if line.part not in told]
    kept, _, cut = fitting([*((reports[part], size) for part, size in told.items()), *left], room, count)
    if told and not kept:  # a room so small that the heading over the reports fills it
        return pack(lines, {}, whole, count)
    return Packed(_written(kept[: len(told)], kept[len(told) :]), cut, tuple(told)[: len(kept)])


def _written(reports: Sequence[str], elements: Sequence[str]) -> str:
    blocks = [_PARTS, *reports] if reports else []
    if elements:
        blocks.append("\n".join([_ELEMENTS, *elements]))
    return "\n\n".join(blocks)


def fitting(texts: Iterable[tuple[str, int]], room: int, count: Callable[[str], int]) -> tuple[list[str], int, bool]:
    """Return the (text, tokens) that fit from the first on, the room left, and whether any did not; the first is cut to fit."""
    kept: list[str] = []
    for text, size in texts:
        if size > room:
            if not kept and (short := cut_to_window(text, room, count)):
                kept.append(short)
            return kept, 0, True
        kept.append(text)
        room -= size
    return kept, room, False
