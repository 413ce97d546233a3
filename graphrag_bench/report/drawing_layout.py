"""Where everything of a drawing stands: the sizes of boxes, the places of lanes, rows, ports and wires, in px."""

from collections import defaultdict
from dataclasses import dataclass, field

from graphrag_bench.report.drawing_routes import RIGHT, Group, Route, approach, routes, tracks
from graphrag_bench.report.drawing_scene import LANES, Box, Frame, Scene
from graphrag_bench.report.drawing_text import packed, width

TITLE, OPERATOR, SMALL, LABEL = 13.0, 12.0, 11.0, 10.5  # font sizes
LINE = {"title": 18.0, "operator": 16.0, "setting": 14.5, "mark": 19.0}
PAD, PILL = 9.0, 8.0
MARGIN, HEAD, LANE_HEAD = 20.0, 62.0, 30.0
_ROOM = 190.0  # the text of a box, at most
_TRACK, _GUTTER, _LABELS, _FRAME = 9.0, 12.0, 18.0, 12.0
_FIRST = 140.0  # the first lane, at least: the context's caption stands left of what comes down it
_STUBS = (0.5, 0.62, 0.38, 0.74, 0.26, 0.86, 0.14)


@dataclass
class Placed:
    """A box in its place, with its text in lines."""

    box: Box
    settings: list[str]
    marks: list[list[str]]
    x: float = 0.0
    y: float = 0.0
    w: float = 0.0
    h: float = 0.0


@dataclass(frozen=True)
class Line:
    """A wire in its place; its label begins at ``label`` and stands on that line."""

    route: Route
    points: tuple[tuple[float, float], ...]
    label: tuple[float, float]


@dataclass
class Drawing:
    """A scene with coordinates."""

    scene: Scene
    width: float = 0.0
    height: float = 0.0
    lanes: list[tuple[float, float]] = field(default_factory=list)  # x and width of each
    boxes: dict[str, Placed] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    frames: list[tuple[Frame, float, float, float, float]] = field(default_factory=list)  # x, y, width, height


def lay_out(scene: Scene) -> Drawing:
    """Return the scene with coordinates; nothing in it overlaps but wires that cross."""
    return _Layout(scene).drawing


class _Layout:
    def __init__(self, scene: Scene) -> None:
        self.drawing = Drawing(scene)
        self._scene = scene
        self._routes = routes(scene)
        self._boxes = self.drawing.boxes
        self._arrivals: dict[str, list[Route]] = defaultdict(list)
        for route in self._routes:
            self._arrivals[route.wire.target].append(route)
        for arriving in self._arrivals.values():
            arriving.sort(key=lambda route: (approach(route, scene.boxes[route.wire.source]), route.wire.value))
        self._sizes()
        self._columns()
        self._ports()
        self._gutters()
        self._rows()
        self.drawing.lines = [self._line(route) for route in self._routes]

    def _sizes(self) -> None:
        for key, box in self._scene.boxes.items():
            marks = packed(list(box.marks), LABEL, _ROOM, PILL * 2)
            self._boxes[key] = placed = Placed(box, list(box.settings), marks)
            if box.lane is None:
                continue
            texts = [width(box.title, TITLE) * 1.06, width(box.operator, OPERATOR)]
            texts += [width(text, SMALL) for text in box.settings]
            texts += [sum(width(mark, LABEL) + PILL * 2 for mark in line) for line in marks]
            ports = sum(_slot(route) for route in self._arrivals[key])
            placed.w = max(min(max(texts), _ROOM) + 2 * PAD, ports + 8, 96.0)
            placed.h = 2 * PAD + LINE["title"] + LINE["operator"] * bool(box.operator) - 4
            placed.h += LINE["setting"] * len(box.settings) + LINE["mark"] * len(marks)

    def _columns(self) -> None:
        spans: dict[int, list[tuple[Group, float, float]]] = defaultdict(list)
        for route in self._routes:
            if route.channel >= 0:
                rows = self._scene.boxes[route.wire.source].row + 1, self._scene.boxes[route.wire.target].row
                spans[route.channel].append((route.group, *rows))
        sided = {channel: [r for r in self._routes if r.side and r.channel == channel] for channel in (0, RIGHT)}
        label = {
            channel: max((width(r.wire.label, LABEL) + 22 for r in found), default=0.0)
            for channel, found in sided.items()
        }
        x = MARGIN
        self._channels: dict[tuple[int, Group], float] = {}
        for channel in range(RIGHT + 1):
            found, count = tracks(spans[channel])
            room = max(28.0, 2 * _GUTTER + _TRACK * count)
            if channel in (0, RIGHT):
                room = label[channel] + _TRACK * count + 2 * _GUTTER if count else 2 * _GUTTER
            for group, track in found.items():
                inner = (
                    x + _GUTTER + _TRACK * track if channel < RIGHT else x + label[channel] + _GUTTER + _TRACK * track
                )
                self._channels[channel, group] = inner
            x += room
            if channel == RIGHT:
                break
            wide = max([p.w for p in self._boxes.values() if p.box.lane == channel], default=0.0)
            wide = max(wide, width(LANES[channel], OPERATOR) + 24, 0.0 if channel else _FIRST)
            self.drawing.lanes.append((x, wide))
            for placed in self._boxes.values():
                if placed.box.lane == channel:
                    placed.x, placed.w = x, wide
            x += wide
        self.drawing.width = x + MARGIN
        left, right = self.drawing.lanes[0][0], sum(self.drawing.lanes[-1])
        for placed in self._boxes.values():
            if placed.box.lane is None:
                placed.x, placed.w = left, right - left
                self._bar(placed)

    def _bar(self, placed: Placed) -> None:
        box = placed.box
        head = width(box.title, TITLE) * 1.06 + width(box.operator, OPERATOR) + 40
        lines = packed(list(box.settings), SMALL, placed.w - 2 * PAD - head, 16.0)
        placed.settings = [" · ".join(line) for line in lines]
        sides = sum(route.side for route in self._arrivals[box.key])
        placed.h = (
            2 * PAD
            + max(LINE["title"], LINE["setting"] * len(lines), 16.0 * sides)
            + LINE["mark"] * len(placed.marks)
            - 2
        )

    def _ports(self) -> None:
        """Say where wires enter and leave: what goes straight down leaves where it enters."""
        self._in: dict[Route, float] = {}
        self._out: dict[Route, float] = {}
        for key, arriving in self._arrivals.items():
            placed = self._boxes[key]
            if placed.box.lane is None:
                continue
            x = placed.x + (placed.w - sum(map(_slot, arriving))) / 2 + 5
            for route in arriving:
                self._in[route] = x
                x += _slot(route)
        trunks: dict[Group, float] = {}
        for route in self._routes:
            if route.way == "straight" and route in self._in:
                self._out[route] = self._in[route]
                trunks.setdefault(route.group, self._in[route])
        for route in self._routes:
            source = self._boxes[route.wire.source]
            if route in self._out:
                continue
            if source.box.lane is None:
                x = (
                    self._channels[route.channel, route.group]
                    if route.channel >= 0
                    else sum(self.drawing.lanes[route.lane]) - 20
                )
                self._out[route] = x
                continue
            if route.group not in trunks:
                trunks[route.group] = self._stub(source, trunks)
            self._out[route] = trunks[route.group]
        for route in self._routes:
            if route not in self._in:  # a bar is entered where the wire comes down, or from the side
                self._in[route] = (
                    self._out[route] if route.way == "straight" else self._channels[route.channel, route.group]
                )

    def _stub(self, source: Placed, trunks: dict[Group, float]) -> float:
        """Return where a value leaves its box: away from other values, and from what enters the box below."""
        taken = [x for (box, _), x in trunks.items() if box == source.box.key]
        below = [p for p in self._boxes.values() if p.box.lane == source.box.lane and p.box.row > source.box.row]
        if below:
            following = min(below, key=lambda p: p.box.row)
            taken += [self._in[route] for route in self._arrivals[following.box.key] if route in self._in]
        places = [source.x + source.w * share for share in _STUBS]
        return max(places, key=lambda x: (min([10.0, *(abs(x - other) for other in taken)]), -places.index(x)))

    def _gutters(self) -> None:
        spans: dict[int, list[tuple[Group, float, float]]] = defaultdict(list)
        for route in self._routes:
            for gutter, start, end in self._across(route):
                spans[gutter].append((route.group, start, end))
        self._tracks: dict[tuple[int, Group], int] = {}
        self._counts: dict[int, int] = {}
        for gutter, found in spans.items():
            tracked, self._counts[gutter] = tracks(found)
            self._tracks.update({(gutter, group): track for group, track in tracked.items()})

    def _across(self, route: Route) -> list[tuple[int, float, float]]:
        """Return the stretches a wire runs across: the gutter, and from where to where."""
        below, above = self._boxes[route.wire.source].box.row + 1, self._boxes[route.wire.target].box.row
        start, end = self._out[route], self._in[route]
        if route.way == "straight":
            return []
        if route.way == "drop":
            return [(below, start, end)]
        channel = self._channels[route.channel, route.group]
        found = (
            [(below, start, channel), (above, channel, end)] if route.way == "channel" else [(below, start, channel)]
        )
        return [(gutter, a, b) for gutter, a, b in found if a != b]

    def _rows(self) -> None:
        y = HEAD + LANE_HEAD
        self._gutter_top: dict[int, float] = {}
        tops: dict[int, float] = {}
        ends: dict[int, float] = {}
        count = self._scene.rows
        for row in range(count + 1):
            self._gutter_top[row] = y + _GUTTER - 4
            y += _GUTTER + _TRACK * self._counts.get(row, 0)
            for frame in sorted(self._scene.frames, key=lambda frame: -frame.depth):
                if frame.last == row - 1:
                    ends[id(frame)] = y
                    y += _FRAME
            for frame in sorted(self._scene.frames, key=lambda frame: frame.depth):
                if frame.first == row:
                    y += _FRAME
                    tops[id(frame)] = y
                    y += 14.0 if frame.look == "context" else 2.0
            if row == count:
                break
            y += _LABELS * bool(row)
            inside = [placed for placed in self._boxes.values() if placed.box.row == row]
            for placed in inside:
                placed.y = y
            y += max(placed.h for placed in inside)
        self.drawing.height = y + 34
        left, right = self.drawing.lanes[0][0], sum(self.drawing.lanes[-1])
        for frame in self._scene.frames:
            inset = 3.0 * frame.depth
            outer = self.drawing.width - MARGIN - 2 if frame.look == "loop" else right + 9
            x, top = left - 9 + inset, tops[id(frame)]
            self.drawing.frames.append((frame, x, top, outer - inset - x, ends[id(frame)] - top))

    def _line(self, route: Route) -> Line:
        source, target = self._boxes[route.wire.source], self._boxes[route.wire.target]
        points = [(self._out[route], source.y + source.h)]
        if source.box.lane is None and self._out[route] < source.x:  # around the bars below: it leaves from the side
            points = [(source.x, source.y + source.h - 6), (self._out[route], source.y + source.h - 6)]
        for gutter, start, end in self._across(route):
            y = self._gutter_top[gutter] + _TRACK * self._tracks[gutter, route.group]
            points += [(start, y), (end, y)]
        end = self._in[route]
        if not route.side:
            points.append((end, target.y))
            return Line(route, tuple(points), (end + 4, target.y - 6))
        sided = [other for other in self._arrivals[target.box.key] if other.side and other.channel == route.channel]
        y = target.y + target.h * (sided.index(route) + 1) / (len(sided) + 1) + 3
        edge = target.x + target.w if route.channel == RIGHT else target.x
        points += [(end, y), (edge, y)]
        told = width(route.wire.label, LABEL)
        return Line(route, tuple(points), (edge + 12 if route.channel == RIGHT else edge - told - 10, y - 5))


def _slot(route: Route) -> float:
    return width(route.wire.label, LABEL) + 12
