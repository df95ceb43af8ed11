"""Programs that compute next to nothing are refused; ordinary ones are not."""

import pytest

from datasets.tasks.degeneracy import is_degenerate
from datasets.tasks.program import Program, Statement


def _chain(*statements: Statement) -> Program:
    return Program(64, 256, statements)


@pytest.mark.parametrize(
    "program",
    [
        _chain(Statement("floor_at", ("1.0",)), Statement("cap_at", ("0.5",))),
        _chain(Statement("logsigmoid"), Statement("relu")),
        _chain(Statement("sigmoid"), Statement("floor_at", ("2.0",)), Statement("add", (), "y")),
        Program(512, 1024, (Statement("square"),), "sum", after=(Statement("sigmoid"),)),
        Program(512, 1024, (Statement("hardswish"),), "amin"),
        Program(512, 1024, (Statement("sigmoid"),), total="mean"),
        Program(512, 1024, (Statement("add", (), "y"), Statement("hardsigmoid")), total="sum"),
        Program(256, 512, features=256, after=(Statement("floor_at", ("1.0",)), Statement("clamp", ("3.0", "0.5")))),
        _chain(Statement("subtract", ("2.0",)), Statement("shift", ("2.0",))),
    ],
)
def test_a_saturated_program_is_degenerate(program: Program) -> None:
    assert is_degenerate(program)


@pytest.mark.parametrize(
    "program",
    [
        _chain(Statement("relu"), Statement("scale", ("0.5",))),
        _chain(Statement("tanh"), Statement("multiply", (), "y"), Statement("sigmoid")),
        Program(512, 1024, (Statement("square"),), "softmax"),
        Program(512, 1024, (Statement("scale", ("2.0",)),), "amax"),
        Program(512, 1024, (Statement("square"),), total="mean"),
        Program(512, 1024, (Statement("multiply", (), "y"), Statement("abs")), total="sum"),
        Program(256, 512, features=256, after=(Statement("relu"),)),
    ],
)
def test_an_ordinary_program_is_not(program: Program) -> None:
    assert not is_degenerate(program)
