"""A method's wiring as a picture: SVG by hand, readable on light and dark, the same bytes for the same plan."""

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from graphrag_bench.pipeline.method import Plan
from graphrag_bench.report.drawing_layout import (
    HEAD,
    LABEL,
    LANE_HEAD,
    LINE,
    MARGIN,
    OPERATOR,
    PAD,
    PILL,
    SMALL,
    TITLE,
    Drawing,
    Line,
    Placed,
    lay_out,
)
from graphrag_bench.report.drawing_scene import LANES, scene
from graphrag_bench.report.drawing_text import clipped, width

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
_KINDS = (
    "Nodes",
    "Relationships",
    "Chunks",
    "Subgraphs",
    "Communities",
)  # each in a colour of its own; all else is grey
_LIGHT = ("#0969a8", "#b45309", "#18794e", "#7c3aed", "#be185d", "#57606a")
_DARK = ("#58b4f0", "#f0a04b", "#4cc38a", "#b794f6", "#f47fb1", "#9aa4ae")
_LANE_KIND = (5, 0, 1, 2, 3, 4)


def draw(plan: Plan, row: str = "") -> str:
    """Return a method's wiring as SVG.

    Args:
        plan: the checked method.
        row: its row of the unified paper's Table 3, or whatever should stand under the name.
    """
    drawing = lay_out(scene(plan))
    w, h = _n(drawing.width), _n(drawing.height)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        f'aria-labelledby="drawing-title drawing-desc" font-family="{_FONT}">',
        f'<title id="drawing-title">{_t(plan.name)}</title>',
        f'<desc id="drawing-desc">{_t(plan.line())}</desc>',
        f"<style>{_style()}</style>",
        f"<defs>{''.join(_marker(number) for number in range(len(_LIGHT)))}</defs>",
        f'<rect class="page" width="{w}" height="{h}"/>',
        _text(MARGIN, 28, plan.name, 18, "ink bold"),
        _text(MARGIN, 47, clipped(row, OPERATOR, drawing.width - 2 * MARGIN), OPERATOR, "soft"),
        *_lanes(drawing),
        *_frames(drawing),
        *(_wire(line) for line in drawing.lines),
        *(_box(placed) for placed in drawing.boxes.values()),
        *(_label(line) for line in drawing.lines),
        *_captions(drawing),
        _text(MARGIN, drawing.height - 14, _legend(drawing), LABEL, "soft"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style() -> str:
    def rules(colours: tuple[str, ...], page: str, box: str, ink: str, soft: str, lane: str, edge: str) -> str:
        kinds = "".join(f".w{i}{{stroke:{c}}}.k{i}{{fill:{c}}}.e{i}{{stroke:{c}}}" for i, c in enumerate(colours))
        return (
            f".page{{fill:{page}}}.lane{{fill:{lane}}}.box{{fill:{box}}}.ink{{fill:{ink}}}.soft{{fill:{soft}}}"
            f".pill{{fill:{lane};stroke:{edge}}}.frame{{stroke:{soft}}}.halo{{stroke:{page}}}.section{{fill:{lane}}}"
            f".model{{fill:{soft}}}.onmodel{{fill:{page}}}{kinds}"
        )

    light = rules(_LIGHT, "#ffffff", "#ffffff", "#1f2328", "#57606a", "#f3f5f7", "#c5ccd3")
    dark = rules(_DARK, "#0d1117", "#161b22", "#e6edf3", "#9aa4ae", "#131a22", "#3d4650")
    fixed = (
        ".wire{fill:none;stroke-width:1.5}.back{stroke-dasharray:5 3}.edge{stroke-width:1.4}.bold{font-weight:600}"
        ".frame{fill:none;stroke-width:1;stroke-dasharray:2 3}.loop{stroke-dasharray:7 4}.halo{stroke-width:4;fill:none;"
        "stroke-linejoin:round}"
    )
    return f"{fixed}{light}@media (prefers-color-scheme: dark){{{dark}}}"


def _marker(number: int) -> str:
    return (
        f'<marker id="arrow{number}" viewBox="0 0 8 8" refX="7.2" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="k{number}" d="M0 0.5L8 4L0 7.5Z"/></marker>'
    )


def _lanes(drawing: Drawing) -> Iterable[str]:
    bottom = drawing.height - 30
    taken = {placed.box.lane for placed in drawing.boxes.values()}
    for number, (x, wide) in enumerate(drawing.lanes):
        kind = _LANE_KIND[number]
        yield f'<rect class="lane" x="{_n(x - 8)}" y="{_n(HEAD)}" width="{_n(wide + 16)}" height="{_n(bottom - HEAD)}" rx="6"/>'
        yield _text(x + wide / 2, HEAD + 19, LANES[number], OPERATOR, f"k{kind} bold", "middle")
        if number not in taken:
            yield _text(x + wide / 2, HEAD + LANE_HEAD + 20, "–", OPERATOR, "soft", "middle")


def _frames(drawing: Drawing) -> Iterable[str]:
    for frame, x, y, w, h in drawing.frames:
        yield f'<rect class="frame {frame.look}" x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="8"/>'


def _captions(drawing: Drawing) -> Iterable[str]:
    for frame, x, y, _, _ in drawing.frames:
        if frame.look == "context":
            yield _haloed(x + 10, y + 14, frame.title, SMALL, "soft bold")


def _wire(line: Line) -> str:
    kind = _kind(line.route.wire.label)
    dashed = " back" if line.route.wire.back else ""
    told = f"{line.route.wire.source} to {line.route.wire.target}: {line.route.wire.label}"
    return (
        f'<path class="wire w{kind}{dashed}" d="{_path(line.points)}" marker-end="url(#arrow{kind})">'
        f"<title>{_t(told)}</title></path>"
    )


def _path(points: tuple[tuple[float, float], ...]) -> str:
    """Return the path through the points, its corners rounded."""
    corners = [p for i, p in enumerate(points) if i in (0, len(points) - 1) or not _between(*points[i - 1 : i + 2])]
    d = f"M{_n(corners[0][0])} {_n(corners[0][1])}"
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        into, out = _toward(corner, before), _toward(corner, after)
        d += f"L{_n(into[0])} {_n(into[1])}Q{_n(corner[0])} {_n(corner[1])} {_n(out[0])} {_n(out[1])}"
    return f"{d}L{_n(corners[-1][0])} {_n(corners[-1][1])}"


def _between(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (a[0] == b[0] == c[0]) or (a[1] == b[1] == c[1])


def _toward(corner: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = abs(dx) + abs(dy) or 1.0
    share = min(5.0, length / 2) / length
    return corner[0] + dx * share, corner[1] + dy * share


def _label(line: Line) -> str:
    return _haloed(*line.label, line.route.wire.label, LABEL, f"k{_kind(line.route.wire.label)}")


def _box(placed: Placed) -> str:
    box = placed.box
    kind = _LANE_KIND[box.lane] if box.lane is not None else 5
    look = "section" if box.look == "section" else "box"
    radius = {"question": 14, "converter": 14, "section": 2}.get(box.look, 6)
    told = " ".join(filter(None, (f"{box.title}: {box.operator}." if box.operator else f"{box.title}.", box.about)))
    told += f" Settings: {', '.join(box.settings)}." if box.settings else ""
    parts = [
        f"<g class={quoteattr(box.look)}><title>{_t(told)}</title>",
        f'<rect class="{look} edge e{kind}" x="{_n(placed.x)}" y="{_n(placed.y)}" width="{_n(placed.w)}" '
        f'height="{_n(placed.h)}" rx="{radius}"/>',
    ]
    parts += _bar_text(placed) if box.lane is None else _step_text(placed, kind)
    return "".join([*parts, "</g>"])


def _step_text(placed: Placed, kind: int) -> list[str]:
    box, x, y, room = placed.box, placed.x + PAD, placed.y + PAD + 11, placed.w - 2 * PAD
    parts = [_text(x, y, clipped(box.title, TITLE * 1.06, room), TITLE, "ink bold")]
    if box.operator:
        y += LINE["operator"]
        parts.append(_text(x, y, clipped(box.operator, OPERATOR, room), OPERATOR, f"k{kind}"))
    for text in placed.settings:
        y += LINE["setting"]
        parts.append(_text(x, y, clipped(text, SMALL, room), SMALL, "soft"))
    return [*parts, *_marks(placed, x, y + 6)]


def _bar_text(placed: Placed) -> list[str]:
    box, x, y = placed.box, placed.x + PAD + 4, placed.y + PAD + 12
    parts = [_text(x, y, box.title, TITLE, "ink bold")]
    x += width(box.title, TITLE) * 1.06 + 12
    parts.append(_text(x, y, box.operator, OPERATOR, "soft"))
    x += width(box.operator, OPERATOR) + 16
    room = placed.x + placed.w - PAD - x
    for number, text in enumerate(placed.settings):
        parts.append(_text(x, y + number * LINE["setting"], clipped(text, SMALL, room), SMALL, "soft"))
    below = max(0, len(placed.settings) - 1) * LINE["setting"]
    return [*parts, *_marks(placed, placed.x + PAD + 4, y + below + 8)]


def _marks(placed: Placed, left: float, y: float) -> list[str]:
    parts = []
    for line in placed.marks:
        x = left
        for mark in line:
            wide = width(mark, LABEL) + PILL + 2
            rect, ink = ("model", "onmodel bold") if mark == "model" else ("pill", "soft")
            parts.append(f'<rect class="{rect}" x="{_n(x)}" y="{_n(y)}" width="{_n(wide)}" height="15" rx="7.5"/>')
            parts.append(_text(x + wide / 2, y + 11, mark, LABEL - 0.5, ink, "middle"))
            x += wide + 5
        y += LINE["mark"]
    return parts


def _legend(drawing: Drawing) -> str:
    marks = {mark for placed in drawing.boxes.values() for mark in placed.box.marks}
    told = ["arrows: values, by their type"]
    told += ["light marks: what a step borrows"] if marks - {"model"} else []
    told += ["model: each call costs tokens"] if "model" in marks else []
    told += ["dashed arrows: back into the loop"] if any(line.route.wire.back for line in drawing.lines) else []
    return " · ".join(told)


def _kind(label: str) -> int:
    return _KINDS.index(label) if label in _KINDS else len(_KINDS)


def _text(x: float, y: float, text: str, size: float, look: str, anchor: str = "start") -> str:
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{look}" x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{placed}>{_t(text)}</text>'


def _haloed(x: float, y: float, text: str, size: float, look: str) -> str:
    """Return a text that stands out from lines behind it; the halo is a text of its own, for renderers without paint-order."""
    halo = f'<text class="halo" aria-hidden="true" x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}">{_t(text)}</text>'
    return halo + _text(x, y, text, size, look)


def _t(text: str) -> str:
    """Return text for XML: escaped, without what it cannot hold, nor what would turn the rest of a line around."""
    return escape("".join(_shown(char) for char in text))


def _shown(char: str) -> str:
    if char.isprintable() or char in "\u200c\u200d":  # joiners, as Persian and emoji need them
        return char
    return " " if char.isspace() else "\ufffd"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
