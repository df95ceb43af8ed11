"""Plots as SVG text: no library, no external resource."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 620
HEIGHT = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 30
COLOURS = ("#1f6f8b", "#d1495b", "#5b8c5a", "#8d6a9f", "#c98b2b", "#4a4e69", "#7a9e9f", "#a44a3f")


@dataclass(frozen=True)
class Series:
    """One line of a plot; points that are None leave a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]


@dataclass(frozen=True)
class Frame:
    """The mapping from data to pixels."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        span = (self.x_high - self.x_low) or 1
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - self.x_low) / span

    def y(self, value: float) -> float:
        span = (self.y_high - self.y_low) or 1
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (value - self.y_low) / span


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from `low` to `high`, at most `most` and one more."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 5, 10) if factor * magnitude >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 10) for index in range(first, int(math.floor(high / step + 1e-9)) + 1)]


def smooth(values: Sequence[float | None], window: int) -> list[float | None]:
    """Mean over the last `window` values that exist."""
    result: list[float | None] = []
    for index in range(len(values)):
        seen = [value for value in values[max(0, index - window + 1) : index + 1] if value is not None]
        result.append(sum(seen) / len(seen) if seen else None)
    return result


def line_plot(series: Sequence[Series], x_label: str, y_low: float | None = 0.0) -> str:
    """Lines over a common x; `y_low` None lets the axis begin where the data does. Says so when there are no data."""
    points = [
        (x, y) for line in series for x, y in zip(line.x, line.y, strict=True) if y is not None and math.isfinite(y)
    ]
    if not points:
        return '<p class="none">No data.</p>'
    low = min(y for _, y in points) if y_low is None else min(y_low, min(y for _, y in points))
    high = max(y for _, y in points)
    frame = Frame(min(x for x, _ in points), max(x for x, _ in points), low, high if high > low else low + 1)
    body = [_axes(frame, x_label)]
    for index, line in enumerate(series):
        body.append(_polyline(line, frame, COLOURS[index % len(COLOURS)]))
    return _svg(HEIGHT, "".join(body)) + _legend([line.name for line in series])


def _axes(frame: Frame, x_label: str) -> str:
    parts = []
    for value in ticks(frame.y_low, frame.y_high):
        y = frame.y(value)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in ticks(frame.x_low, frame.x_high, 8):
        parts.append(f'<text x="{frame.x(value):.1f}" y="{HEIGHT - 14}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 2}" text-anchor="end">{escape(x_label)}</text>')
    return "".join(parts)


def _polyline(line: Series, frame: Frame, colour: str) -> str:
    """One path, broken where a value is missing."""
    commands = []
    pen = "M"
    for x, y in zip(line.x, line.y, strict=True):
        if y is None or not math.isfinite(y):
            pen = "M"
            continue
        commands.append(f"{pen}{frame.x(x):.1f} {frame.y(y):.1f}")
        pen = "L"
    if len(commands) == 1:
        centre_x, centre_y = commands[0][1:].split()
        return f'<circle cx="{centre_x}" cy="{centre_y}" r="3" fill="{colour}"/>'
    return f'<path d="{" ".join(commands)}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def bar_plot(bars: Sequence[tuple[str, float]], unit: str) -> str:
    """Horizontal bars with their values and shares, the longest first."""
    bars = sorted((bar for bar in bars if bar[1] > 0), key=lambda bar: -bar[1])
    if not bars:
        return '<p class="none">No data.</p>'
    total, longest = sum(value for _, value in bars), bars[0][1]
    rows = []
    for index, (name, value) in enumerate(bars):
        y, width = 6 + 22 * index, (WIDTH - 330) * value / longest
        rows.append(f'<text x="170" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        rows.append(f'<rect x="178" y="{y}" width="{max(width, 1):.1f}" height="15" fill="{COLOURS[0]}"/>')
        amount = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
        text = f"{amount} {unit} ({100 * value / total:.0f} %)"
        rows.append(f'<text x="{184 + width:.1f}" y="{y + 12}">{escape(text)}</text>')
    return _svg(10 + 22 * len(bars), "".join(rows))


def dumbbell_plot(rows: Sequence[tuple[str, float | None, float | None]]) -> str:
    """Before and after by task: a hollow and a full mark on one line each, in the order given."""
    values = [value for _, before, after in rows for value in (before, after) if value is not None]
    if not values:
        return '<p class="none">No data.</p>'
    high = max(max(values), 1e-9)
    left, width = 250, WIDTH - 250 - 24
    parts = []
    for index, (name, before, after) in enumerate(rows):
        y = 14 + 17 * index
        label = name if len(name) <= 40 else name[:37] + "..."
        parts.append(f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(label)}</text>')
        marks = [left + width * value / high for value in (before, after) if value is not None]
        parts.append(
            f'<line x1="{min(marks, default=left):.1f}" y1="{y}" x2="{max(marks, default=left):.1f}" y2="{y}" '
            f'stroke="#999"/>'
        )
        if before is not None:
            parts.append(
                f'<circle cx="{left + width * before / high:.1f}" cy="{y}" r="4" fill="#fff" '
                f'stroke="{COLOURS[0]}" stroke-width="1.5"/>'
            )
        if after is not None:
            parts.append(f'<circle cx="{left + width * after / high:.1f}" cy="{y}" r="4" fill="{COLOURS[1]}"/>')
    bottom = 14 + 17 * len(rows)
    for value in ticks(0, high):
        parts.append(
            f'<text x="{left + width * value / high:.1f}" y="{bottom + 10}" text-anchor="middle">{value:g}</text>'
        )
    return _svg(bottom + 16, "".join(parts))


def _svg(height: int, body: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">{body}</svg>'


def _legend(names: Sequence[str]) -> str:
    items = "".join(
        f'<span><i style="background:{COLOURS[index % len(COLOURS)]}"></i>{escape(name)}</span>'
        for index, name in enumerate(names)
    )
    return f'<p class="legend">{items}</p>'
