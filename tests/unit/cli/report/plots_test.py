"""Plots are well-formed, keep to their frame, and bear odd data."""

import math
from xml.etree import ElementTree

from cli.report.plots import HEIGHT, WIDTH, Series, bar_plot, dumbbell_plot, line_plot, smooth, ticks


def svg(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text[: text.index("</svg>") + 6])


def test_ticks_are_round_and_inside() -> None:
    assert ticks(0, 1) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(0, 3) == [0, 1, 2, 3]
    assert ticks(2, 2) == [2]
    assert all(0.013 <= tick <= 0.094 for tick in ticks(0.013, 0.094))


def test_smoothing_skips_what_is_missing() -> None:
    assert smooth([1.0, None, 3.0], 2) == [1.0, 1.0, 3.0]
    assert smooth([None], 3) == [None]


def test_a_line_stays_within_the_frame_and_breaks_at_gaps() -> None:
    plot = svg(line_plot([Series("a", [0, 1, 2, 3], [0.0, 5.0, None, 2.0])], "step"))
    path = plot.find("path")
    assert path is not None
    commands = path.attrib["d"]
    assert commands.count("M") == 2
    numbers = [float(number) for number in commands.replace("M", " ").replace("L", " ").split()]
    assert all(0 <= x <= WIDTH for x in numbers[::2]) and all(0 <= y <= HEIGHT for y in numbers[1::2])


def test_odd_data_still_make_a_plot() -> None:
    assert "circle" in line_plot([Series("one", [1], [2.0])], "step")
    assert "path" in line_plot([Series("flat", [1, 2], [0.0, 0.0])], "step")
    assert "NaN" not in line_plot([Series("nan", [1, 2, 3], [1.0, math.nan, 2.0])], "step").replace("No data", "")
    assert "No data" in line_plot([Series("none", [1], [None])], "step")
    assert "No data" in bar_plot([], "s") and "No data" in dumbbell_plot([])


def test_names_are_escaped() -> None:
    for text in (
        line_plot([Series("<i>", [1, 2], [1.0, 2.0])], "<x>"),
        bar_plot([("<i>", 1.0)], "<s>"),
        dumbbell_plot([("<i>", 1.0, None)]),
    ):
        assert "<i>" not in text and "<x>" not in text and "<s>" not in text
        assert "&lt;i&gt;" in text


def test_bars_are_sorted_with_shares() -> None:
    text = bar_plot([("short", 1.0), ("long", 3.0), ("none", 0.0)], "s")
    assert text.index("long") < text.index("short")
    assert "3.0 s (75 %)" in text and "none" not in text
