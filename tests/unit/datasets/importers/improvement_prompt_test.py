"""The previous program and its feedback are read out of both forms of prompt."""

import pytest

from datasets.advice_words import ADVICE
from datasets.importers.import_report import Refusal
from datasets.importers.improvement_prompt import read_improvement
from tests.unit.datasets.importers.sample_prompts import CODE, RULE, optimise_prompt, repair_prompt


@pytest.mark.parametrize(
    ("log", "finding", "advice"),
    [
        ("/home/me/x/cuda.cu(3): error: no\nError building extension", "does not compile", "fix compile error"),
        ("RuntimeError: The size of tensor a (3) must match", "wrong shape", "fix shape"),
        ("CUDA error: an illegal memory access", "out of bounds", "fix bounds"),
        ("Outputs are not close (max_abs_err=3.0)", "wrong values", "fix formula"),
        ("AttributeError: no attribute x", "crashes", "fix crash"),
    ],
)
def test_a_log_decides_on_finding_and_advice(log: str, finding: str, advice: str) -> None:
    read = read_improvement(repair_prompt(log))
    assert (read.finding, read.advice, read.previous_source) == (finding, advice, CODE)
    assert advice in ADVICE
    assert "Index runs over; Check the index" in read.evidence


def test_a_program_to_repair_may_be_no_python_yet() -> None:
    read = read_improvement(repair_prompt("SyntaxError: invalid syntax", code="class ModelNew(:\n"))
    assert (read.previous_source, read.advice) == ("class ModelNew(:\n", "fix compile error")


def test_folders_of_whoever_ran_it_are_left_out() -> None:
    read = read_improvement(repair_prompt("/home/somebody/run/cuda.cu(3): error: expected a ;"))
    assert read.evidence.startswith("cuda.cu(3): error: expected a ;")


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("Fuse both kernels into one", "fuse passes"),
        ("Tile through shared memory", "tile"),
        ("Use FP16 tensor cores", "approximate"),
        ("float4 loads", "vectorise"),
        ("Drop the intermediate tensor", "avoid the temporary"),
        ("More warps for occupancy", "thread"),
    ],
)
def test_instructions_become_one_of_the_known_advices(method: str, advice: str) -> None:
    read = read_improvement(optimise_prompt(method))
    assert (read.finding, read.advice, read.evidence) == ("memory traffic", advice, f"{method}; do it")
    assert advice in ADVICE


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ("Write a program", "unknown_prompt"),
        (repair_prompt("all is well"), "no_feedback"),
        (repair_prompt("error", hint=""), "no_feedback"),
        (repair_prompt("error", code="x = 1\n"), "no_previous"),
        (optimise_prompt("tile", code="class ModelNew(:\n"), "not_python"),
        (optimise_prompt("Think harder", "really"), "no_advice"),
        (optimise_prompt("tile").replace('"bottleneck"', '"other"'), "no_feedback"),
        (optimise_prompt("tile").replace('"bottleneck":', '"bottleneck"'), "no_feedback"),
    ],
)
def test_a_prompt_without_one_of_the_parts_is_refused(prompt: str, kind: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_improvement(prompt)
    assert refused.value.kind == kind


def test_an_advice_may_stand_below_its_name() -> None:
    read = read_improvement(repair_prompt("error: x", hint="\n\n  Check the index  "))
    assert read.evidence == "error: x; Index runs over; Check the index"


@pytest.mark.parametrize(
    "piece", [f"\nERROR LOG\n{RULE}\n", "\n[ARCHITECTURE FILE]\n```python\n", "\n```\n", "critical_issue: ", " \n"]
)
def test_a_long_prompt_of_beginnings_is_refused_in_linear_time(piece: str) -> None:
    """An expression that tries each beginning with each end would need hours."""
    long = piece * (1_000_000 // len(piece))
    with pytest.raises(Refusal):
        read_improvement(long)
    with pytest.raises(Refusal):
        read_improvement(repair_prompt("error", hint="").replace("critical_issue: Index", f"critical_issue: {long}"))
