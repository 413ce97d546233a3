"""A Pareto front as a picture: one SVG, made by hand, the same bytes for the same points."""

import math
from collections.abc import Callable, Sequence
from html import escape

from graphrag_bench.report.pareto import Pareto, Point

_WIDTH, _PLOT, _LEFT, _TOP, _LINE = 960, 420, 64, 48, 18  # pixels
_STYLE = (
    "text{font:13px sans-serif;fill:#222}.tick{font-size:11px;fill:#555}.grid{stroke:#e5e5e5}"
    ".cell{fill:#9aa5b1;fill-opacity:.65}.front{fill:#c2410c}.line{fill:none;stroke:#c2410c;stroke-width:1.5}"
    ".number{font-size:11px;font-weight:bold;fill:#c2410c}"
)


def scatter(found: Pareto) -> str:
    """Return the picture: a dot a cell, the front as steps with numbers, and below what the numbers are.

    Seconds are on a logarithmic axis, the metric in percent from the least to the greatest there is.
    """
    milliseconds = [1000 * max(point.seconds, 1e-9) for point in found.points]
    values = [100 * point.value.value for point in found.points]
    ticks_x, ticks_y = _decades(milliseconds), _steps(values)
    low, high = math.log10(ticks_x[0]), math.log10(ticks_x[-1])

    def x(point: Point) -> float:
        return at_x(1000 * max(point.seconds, 1e-9))

    def at_x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 24) * (math.log10(value) - low) / (high - low)

    def at_y(value: float) -> float:
        return _TOP + _PLOT * (ticks_y[-1] - value) / (ticks_y[-1] - ticks_y[0])

    def y(point: Point) -> float:
        return at_y(100 * point.value.value)

    foot = _TOP + _PLOT
    parts = [
        f'<text x="{_LEFT}" y="24">{escape(found.label)} against the time of retrieval, {escape(found.dataset)}</text>'
    ]
    for tick in ticks_x:
        parts += [
            f'<path class="grid" d="M{at_x(tick):.1f} {_TOP}V{foot}"/>',
            f'<text class="tick" x="{at_x(tick):.1f}" y="{foot + 16}" text-anchor="middle">{tick:g}</text>',
        ]
    for tick in ticks_y:
        parts += [
            f'<path class="grid" d="M{_LEFT} {at_y(tick):.1f}H{_WIDTH - 24}"/>',
            f'<text class="tick" x="{_LEFT - 8}" y="{at_y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>',
        ]
    parts += [
        f'<text x="{(_LEFT + _WIDTH - 24) / 2:.1f}" y="{foot + 36}" text-anchor="middle">'
        "milliseconds a question, amortised over a batch (logarithmic)</text>",
        f'<text transform="translate(18 {_TOP + _PLOT / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(found.label)} (%)</text>",
    ]
    parts += [_dot(point, x, y, "cell", 3.5) for point in found.points if point not in found.front]
    parts.append(f'<path class="line" d="{_staircase(found.front, x, y)}"/>')
    for number, point in enumerate(found.front, start=1):
        parts.append(_dot(point, x, y, "front", 4.5))
        parts.append(
            f'<text class="number" x="{x(point) - 5:.1f}" y="{y(point) - 8:.1f}" text-anchor="end">{number}</text>'
        )
        parts.append(f'<text x="{_LEFT}" y="{foot + 46 + _LINE * number}">{number}  {escape(point.name)}</text>')
    height = foot + 64 + _LINE * len(found.front)
    frame = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">'
    )
    ground = f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([frame, f"<style>{_STYLE}</style>", ground, *parts, "</svg>", ""])


def _dot(point: Point, x: Callable[[Point], float], y: Callable[[Point], float], kind: str, radius: float) -> str:
    said = f"{point.name}: {100 * point.value.value:.1f} %, {1000 * point.seconds:.3f} ms"
    return f'<circle class="{kind}" cx="{x(point):.1f}" cy="{y(point):.1f}" r="{radius}"><title>{escape(said)}</title></circle>'


def _staircase(front: Sequence[Point], x: Callable[[Point], float], y: Callable[[Point], float]) -> str:
    """Return the path along the front: at any time, the best that can be had within it."""
    first, *others = front
    return f"M{x(first):.1f} {y(first):.1f}" + "".join(f"H{x(point):.1f}V{y(point):.1f}" for point in others)


def _decades(values: Sequence[float]) -> list[float]:
    """Return ticks 1, 2, 5, 10, … around the values."""
    low = min(values)
    exponent = math.floor(math.log10(low)) - 1  # a decade to spare: the logarithm of 0.00999… may round up to -2
    ladder = [step * 10.0**power for power in range(exponent, exponent + 40) for step in (1, 2, 5)]
    start = max(at for at, tick in enumerate(ladder) if tick <= low)
    end = next(at for at, tick in enumerate(ladder) if at > start and tick >= max(values))
    return ladder[start : end + 1]


def _steps(values: Sequence[float]) -> list[float]:
    """Return rising ticks around percents, a fifth of their range or so apart."""
    low, high = min(values), max(values)
    step = next(step for step in (1, 2, 5, 10, 20) if (high - low) / step <= 6 or step == 20)
    start, end = math.floor(low / step), math.ceil(high / step)
    return [float(step * number) for number in range(start, max(end, start + 1) + 1)]
