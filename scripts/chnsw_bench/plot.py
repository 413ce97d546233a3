"""Recall–QPS curves as one SVG made by hand, the same bytes for the same points; a panel a hierarchy and thread count."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

PANEL_W, PANEL_H, LEFT, TOP, GAP = 430, 320, 62, 34, 54  # pixels
STYLE = (
    "text{font:12px sans-serif;fill:#222}.tick{font-size:11px;fill:#555}.grid{stroke:#e5e5e5}"
    ".curve{fill:none;stroke-width:1.6}"
)
COLOURS = {
    "chnsw": "#c2410c",
    "chnsw-int8": "#d97706",
    "chnsw-float16": "#a16207",
    "faiss": "#1d4ed8",
    "hnswlib": "#15803d",
    "exact": "#6b7280",
}


@dataclass(frozen=True)
class Panel:
    """Named curves of (recall, QPS); ``least_miss`` is what recall 1 is drawn as."""

    title: str
    curves: dict[str, Sequence[tuple[float, float]]]
    least_miss: float


def draw(panels: Sequence[Panel], columns: int) -> str:
    """Return the picture: recall on a logarithmic axis of what is missed, QPS on a logarithmic axis."""
    rows = math.ceil(len(panels) / columns)
    width, height = columns * (PANEL_W + LEFT) + 24, rows * (PANEL_H + TOP + GAP) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        x, y = LEFT + number % columns * (PANEL_W + LEFT), TOP + number // columns * (PANEL_H + TOP + GAP)
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    for number, name in enumerate(names):
        x = LEFT + 130 * number
        parts.append(f'<circle cx="{x}" cy="{height - 16}" r="4" fill="{COLOURS[name]}"/>')
        parts.append(f'<text x="{x + 9}" y="{height - 12}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel) -> list[str]:
    points = [point for curve in panel.curves.values() for point in curve]
    misses = [max(1 - recall, panel.least_miss) for recall, _ in points]
    x_ticks, y_ticks = _ladder(misses), _ladder([qps for _, qps in points])

    def at_x(miss: float) -> float:
        return PANEL_W * (1 - _share(max(miss, panel.least_miss), x_ticks))

    def at_y(qps: float) -> float:
        return PANEL_H * (1 - _share(qps, y_ticks))

    parts = [f'<text x="0" y="-12">{escape(panel.title)}</text>']
    for tick in x_ticks:
        label = f"{1 - tick:.5f}".rstrip("0").rstrip(".")
        parts.append(f'<path class="grid" d="M{at_x(tick):.1f} 0V{PANEL_H}"/>')
        if f"{tick:e}"[0] == "1" or len(x_ticks) < 8:
            parts.append(
                f'<text class="tick" x="{at_x(tick):.1f}" y="{PANEL_H + 15}" text-anchor="middle">{label}</text>'
            )
    for tick in y_ticks:
        parts.append(f'<path class="grid" d="M0 {at_y(tick):.1f}H{PANEL_W}"/>')
        parts.append(f'<text class="tick" x="-6" y="{at_y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(
        f'<text x="{PANEL_W / 2:.0f}" y="{PANEL_H + 33}" text-anchor="middle">recall (logarithm of 1 - recall)</text>'
    )
    parts.append(
        f'<text transform="translate(-46 {PANEL_H / 2:.0f}) rotate(-90)" text-anchor="middle">queries a second</text>'
    )
    for name, curve in panel.curves.items():
        places = [(at_x(1 - recall), at_y(qps)) for recall, qps in sorted(curve)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="curve" stroke="{COLOURS[name]}" d="M{path}"/>')
        for (x, y), (recall, qps) in zip(places, sorted(curve), strict=True):
            said = f"{name}: recall {recall:.5f}, {qps:.0f} queries a second"
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"><title>{said}</title></circle>'
            )
    return parts


def _share(value: float, ticks: Sequence[float]) -> float:
    low, high = math.log(ticks[0]), math.log(ticks[-1])
    return (math.log(value) - low) / (high - low)


def _ladder(values: Sequence[float]) -> list[float]:
    """Return rising ticks 1, 2, 5, 10, … around positive values."""
    low = min(values)
    start = math.floor(math.log10(low)) - 1
    ladder = [float(f"{step}e{power}") for power in range(start, start + 40) for step in (1, 2, 5)]
    first = max(at for at, tick in enumerate(ladder) if tick <= low)
    last = next(at for at, tick in enumerate(ladder) if at > first and tick >= max(values))
    return ladder[first : last + 1]
