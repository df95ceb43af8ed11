"""Every style of every family compiles and computes what PyTorch does, at sizes that divide by nothing."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from datasets.cold_start.cpp_programs import as_answer, write_cpp
from datasets.cold_start.mixture import available_styles
from datasets.cold_start.verify_answers import check
from datasets.tasks.grammar import FAMILY_WEIGHTS, draw_program
from datasets.tasks.program import Program, Statement, render_reference
from datasets.tasks.reference import load_reference

_ROWS, _COLS = 13, 131


def _small(program: Program) -> Program:
    return replace(program, rows=_ROWS, cols=_COLS, features=program.features and 29)


@pytest.mark.parametrize("family", FAMILY_WEIGHTS)
def test_every_style_is_right(family: str, tmp_path: Path) -> None:
    rng = random.Random(11)
    program = _small(draw_program(rng, family))
    reference = load_reference(render_reference(program))
    for style in available_styles(program):
        source = write_cpp(program, style)
        assert check(source, reference, tmp_path, style.name) == "", f"{style.name}\n{source}"


def test_a_wrong_program_is_found_wrong(tmp_path: Path) -> None:
    program = Program(_ROWS, _COLS, (Statement("scale", ("0.5",)),))
    source = write_cpp(program, available_styles(program)[0])
    reference = load_reference(render_reference(program))
    assert check(source, reference, tmp_path, "right") == ""
    assert check(source.replace("0.5f", "0.7f"), reference, tmp_path, "wrong").startswith("wrong values")
    assert "not declared" in check(source.replace("float v", "float w"), reference, tmp_path, "broken")


def test_an_answer_is_one_fenced_block() -> None:
    assert as_answer("int x;\n") == "```cpp\nint x;\n```"
