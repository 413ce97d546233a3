"""How the wires of a drawing run, before any coordinate is known: straight down, over and down, or through a channel.

Channel k runs down the left side of lane k; the last one is the right margin. Gutter g runs across, above row g.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from graphrag_bench.report.drawing_scene import LANES, Box, Scene, Wire

RIGHT = len(LANES)
Group = tuple[str, str]  # a value: the box that makes it, and its name there; its wires may share a line


@dataclass(frozen=True)
class Route:
    """One wire's way.

    Attributes:
        wire: the wire.
        way: straight down; across the gutter below its source and down; through a channel; or back up the right margin.
        channel: the channel it takes, or -1.
        lane: where it arrives.
        side: whether it enters a bar from the side.
    """

    wire: Wire
    way: Literal["straight", "drop", "channel", "back"]
    lane: int
    channel: int = -1
    side: bool = False

    @property
    def group(self) -> Group:
        """The value it carries."""
        return self.wire.source, self.wire.value


class Field:
    """Which lanes are free in which rows."""

    def __init__(self, boxes: Iterable[Box]) -> None:
        self._taken = {(box.row, box.lane) for box in boxes}

    def free(self, lane: int, after: int, before: int) -> bool:
        """Say whether nothing stands in a lane in the rows between."""
        return not any({(row, lane), (row, None)} & self._taken for row in range(after + 1, before))

    def barred(self, after: int, before: int) -> bool:
        """Say whether a bar stands between two rows."""
        return any((row, None) in self._taken for row in range(after + 1, before))


def routes(scene: Scene) -> list[Route]:
    """Return every wire's way, in the order of the wires."""
    field = Field(scene.boxes.values())
    return [_route(wire, scene.boxes[wire.source], scene.boxes[wire.target], field) for wire in scene.wires]


def _route(wire: Wire, source: Box, target: Box, field: Field) -> Route:
    after, before = source.row, target.row
    if wire.back:
        return Route(wire, "back", RIGHT, RIGHT, True)
    if target.lane is None:
        lanes = range(RIGHT) if source.lane is None else (source.lane,)
        for lane in lanes:
            if field.free(lane, after, before):
                return Route(wire, "straight", lane)
        if field.barred(after, before):
            return Route(wire, "channel", 0, 0, True)
        return Route(wire, "channel", lanes[0], lanes[0], not lanes[0])
    if field.free(target.lane, after, before):
        return Route(wire, "straight" if source.lane in (None, target.lane) else "drop", target.lane)
    if field.barred(after, before):
        return Route(wire, "channel", target.lane, 0)
    return Route(wire, "channel", target.lane, _beside(source.lane, target.lane))


def _beside(source: int | None, target: int) -> int:
    if source is None or source < target:
        return target
    return target + 1 if source > target or target + 1 < RIGHT else target


def approach(route: Route, source: Box) -> float:
    """Return from where a wire reaches its target, as a lane's number; ports are sorted by it."""
    if route.way == "channel":
        return route.channel - 0.5
    return route.lane if source.lane is None else source.lane


def tracks(intervals: Sequence[tuple[Group, float, float]]) -> tuple[dict[Group, int], int]:
    """Return the track of each group, so that no two overlap on one, and how many tracks there are.

    A group's intervals are joined: it keeps to one track.
    """
    spans: dict[Group, tuple[float, float]] = {}
    for group, start, end in intervals:
        low, high = min(start, end), max(start, end)
        known = spans.get(group, (low, high))
        spans[group] = (min(low, known[0]), max(high, known[1]))
    ends: list[float] = []
    found: dict[Group, int] = {}
    for group, (low, high) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        track = next((number for number, end in enumerate(ends) if end < low), len(ends))
        ends[track : track + 1] = [high]
        found[group] = track
    return found, len(ends)
