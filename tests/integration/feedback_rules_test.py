"""No measurement contradicts the feedback on it, and SFT pairs are told what the service tells."""

import itertools
import json
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datasets.advice_words import ADVICE
from datasets.cold_start.cpp_programs import write_cpp
from datasets.cold_start.flaws import FINDINGS
from datasets.cold_start.mixture import available_styles
from datasets.cold_start.performance_feedback import Measurements, Structure, performance_feedback, read_structure
from datasets.tasks.make_tasks import make_splits
from tests.support.feedback_contradictions import contradictions

Json = dict[str, Any]
_CEILING = 28.0


def feedback_of(lines: list[Json]) -> list[Json]:
    """What the service says of each line's grade; see tests/support/feedback_lines_main.cc."""
    binary = Path(os.environ["WARPSMITH_BIN_DIR"]).parent / "tests" / "feedback_lines"
    text = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([binary], input=text, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in done.stdout.splitlines()]


def structures() -> Iterator[Structure]:
    yield Structure()
    for passes, depth, arrays, strided, libm in itertools.product(
        (1, 2), (1, 2, 3), (0, 1), (False, True), (False, True)
    ):
        yield Structure(True, passes, depth, arrays, strided, libm)


def measurements() -> Iterator[Measurements]:
    speeds = ((0.08, True), (0.98, False), (1.0, False), (1.02, False), (2.4, True))
    shares = (0.018, 0.3, 0.7)
    profiles = ((0, 1.0), (100, 0.05), (100, 1.0))
    for (speedup, told), share, (samples, own), bits, libc, cores, short in itertools.product(
        speeds, shares, profiles, (0, 512), (0.0, 0.8), (1, 4), (False, True)
    ):
        yield Measurements(
            speedup, told, _CEILING * share, _CEILING, samples, own, bits, libc, min(samples, 1), cores, short
        )
    yield Measurements(2.0, True, 0.0, 0.0, 100)
    yield from beside_the_thresholds()


def beside_the_thresholds() -> Iterator[Measurements]:
    """A cell on either side of each threshold, so that none can move at one end alone."""
    base = Measurements(2.4, True, 0.3 * _CEILING, _CEILING, 100, 1.0, 512, 0.0, 1)
    for share in (0.099, 0.101, 0.599, 0.601):
        yield replace(base, gigabytes_per_second=share * _CEILING)
    for libc in (0.49, 0.51):
        yield replace(base, libc_share=libc)
    for samples in (19, 20):
        yield replace(base, num_samples=samples)
    for own in (0.19, 0.20):
        yield replace(base, own_code_share=own, vector_bits=0)
    for speedup, told in ((0.999, True), (1.001, True), (0.999, False), (1.0, False)):
        for share in (0.3, 0.7):
            yield replace(base, speedup=speedup, distinguishable=told, gigabytes_per_second=share * _CEILING)


def correct(m: Measurements) -> Json:
    """A grade in which all that is not the candidate's own is libc's."""
    share = m.gigabytes_per_second / m.ceiling if m.ceiling else 0.0
    profile = {
        "num_samples": m.num_samples,
        "own_code_share": m.own_code_share,
        "kernel_share": 1 - m.own_code_share,
        "vector_bits": m.vector_bits,
        "libc_share": m.libc_share,
        "num_threads": m.num_threads,
        "gigabytes_per_second": m.gigabytes_per_second,
        "gigabytes_per_second_ceiling": m.ceiling,
        "bound": "latency" if m.too_short else "memory" if share >= 0.5 else "compute",
    }
    timing = {"speedup": m.speedup, "distinguishable": m.distinguishable, "libraries_withheld": True}
    return {"verdict": "VERDICT_CORRECT", "timing": timing, "profile": profile}


@pytest.fixture(scope="module")
def grid() -> list[tuple[Measurements, Structure, Json, Json]]:
    cells = [(m, s, correct(m)) for m in measurements() for s in structures()]
    lines = [{"grade": grade, "facts": vars(s), "num_lane_cores": m.num_lane_cores} for m, s, grade in cells]
    return [(*cell, said) for cell, said in zip(cells, feedback_of(lines), strict=True)]


def test_no_row_contradicts_its_measurements(grid: list[tuple[Measurements, Structure, Json, Json]]) -> None:
    assert len(grid) > 20_000
    for m, structure, grade, said in grid:
        found = contradictions(grade, vars(structure), said, m.num_lane_cores)
        assert not found, (found, said, m, structure)


def test_the_grid_reaches_every_row(grid: list[tuple[Measurements, Structure, Json, Json]]) -> None:
    assert len({said["finding"] for *_, said in grid}) == 12
    assert {said["advice"] for *_, said in grid} >= {"keep", "tile", "thread", "approximate", "vectorise", ""}


def test_pairs_are_told_what_the_service_tells(grid: list[tuple[Measurements, Structure, Json, Json]]) -> None:
    for m, structure, _, said in grid:
        expected = vars(performance_feedback(m, structure))
        assert {name: said[name] for name in expected} == expected, (m, structure)


def test_a_program_of_the_pairs_has_the_structure_that_the_service_reads() -> None:
    rng = random.Random(1)
    sources = []
    for task in make_splits(num_cold_start=120).cold_start:
        sources += [write_cpp(task.program, style) for style in rng.sample(available_styles(task.program), 3)]
    said = feedback_of([{"grade": {"verdict": "VERDICT_CORRECT", "source": source}} for source in sources])
    for source, line in zip(sources, said, strict=True):
        assert vars(read_structure(source)) == line["facts"], source
    assert {line["facts"]["strided"] for line in said} == {False, True}


def test_pairs_say_findings_and_advice_in_the_words_of_the_service(
    grid: list[tuple[Measurements, Structure, Json, Json]],
) -> None:
    assert {said["finding"] for *_, said in grid if said["advice"]} <= set(FINDINGS)
    for verdict, finding in (
        ("COMPILE_ERROR", "does not compile"),
        ("RUNTIME_ERROR", "crashes"),
        ("INCORRECT", "wrong values"),
        ("WRONG_SHAPE", "wrong shape"),
        ("NON_FINITE", "not finite"),
        ("TIMEOUT", "times out"),
        ("HACK", "right values by forbidden means"),
    ):
        (said,) = feedback_of([{"grade": {"verdict": f"VERDICT_{verdict}"}}])
        assert (said["finding"], said["advice"] in ADVICE) == (finding, True)
        assert not contradictions({"verdict": f"VERDICT_{verdict}"}, said["facts"], said)
        assert finding in FINDINGS or verdict == "HACK"


def not_credited(m: Measurements, change: Json) -> Json:
    grade = correct(m)
    return {**grade, "timing": {**grade["timing"], **change}}


def test_what_is_not_credited_is_told_before_all_else() -> None:
    changes: tuple[Json, ...] = ({"libraries_withheld": False, "library_share": 0.4}, {"parameters_fixed": True})
    lines: list[Json] = [
        {"grade": not_credited(m, change), "facts": vars(structure)}
        for m, structure, change in itertools.product(beside_the_thresholds(), structures(), changes)
    ]
    for line, said in zip(lines, feedback_of(lines), strict=True):
        assert said["advice"] == "compute everything"
        assert not contradictions(line["grade"], line["facts"], said)


def test_the_rules_see_what_misled_before() -> None:
    facts = vars(Structure(True, 1, 2, 0, strided=True))
    walk = Measurements(0.079, True, 0.5, _CEILING)
    for finding, advice in (("as fast as it gets", "keep"), ("scalar code", "vectorise"), ("compute bound", "thread")):
        assert contradictions(correct(walk), facts, {"finding": finding, "evidence": "speedup 0.08", "advice": advice})
    hack = {"verdict": "VERDICT_HACK", "verdict_reason": "own code 3 %"}
    said = {"finding": "wrong values", "evidence": "own code 3 %", "advice": "fix formula"}
    assert len(contradictions(hack, facts, said)) == 2
    for change in ({"libraries_withheld": False, "library_share": 0.4}, {"parameters_fixed": True}):
        assert contradictions(not_credited(walk, change), facts, {"finding": "strided walk", "advice": "tile"})
