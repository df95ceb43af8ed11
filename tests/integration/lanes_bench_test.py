"""The lanes' benchmark on speed-ups that are made up: what scatters in a lane, and what between lanes."""

from typing import Any

import pytest

from tests.bench.lanes_bench import in_turn, scatter


def test_lanes_that_differ_widen_all_quartiles_and_none_in_a_lane() -> None:
    alike = scatter({"8": [1.0, 2.0, 3.0], "9": [1.0, 2.0, 3.0]})
    apart = scatter({"8": [1.0, 2.0, 3.0], "9": [4.0, 8.0, 12.0]})
    assert alike["in_a_lane"] == apart["in_a_lane"] == pytest.approx(0.5)
    assert alike["all"] == pytest.approx(0.75)
    assert apart["all"] == pytest.approx(4.75 / 3.5)
    assert (apart["least_median"], apart["largest_median"]) == (2.0, 8.0)


def test_a_lane_with_one_speedup_says_nothing_of_the_scatter_in_a_lane() -> None:
    assert scatter({"8": [1.0, 2.0, 3.0], "9": [7.0]})["in_a_lane"] == pytest.approx(0.5)


def test_services_in_turn_keep_their_lanes_apart_also_on_one_core() -> None:
    def row(rate: float, speedups: list[float]) -> dict[str, Any]:
        return {"graded_a_minute": rate, "speedups": {"softmax": {"15": speedups}}, "quality": ["realtime"]}

    one = in_turn([row(50, [1.0, 2.0]), row(70, [3.0]), row(60, [4.0])])
    assert one["graded_a_minute"] == 60
    assert list(one["speedups"]["softmax"].values()) == [[1.0, 2.0], [3.0], [4.0]]
    assert one["quality"] == ["realtime"]
