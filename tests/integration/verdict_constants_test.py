"""docs/verdict_constants.md has the values that the source has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "verdict_constants.md").read_text()
_ROW = re.compile(r"^\| `(?P<name>\w+)` \| `(?P<value>[^`]+)` \| `(?P<path>[^`]+)` \|", re.M)
_ROWS = [(row["path"], row["name"], row["value"]) for row in _ROW.finditer(_PAGE)]


def test_every_row_with_a_value_is_read() -> None:
    named = [line for line in _PAGE.splitlines() if line.startswith("| `") and line.count("` | `") == 2]
    assert len(named) == len(_ROWS) > 0


@pytest.mark.parametrize(("path", "name", "value"), _ROWS)
def test_the_source_has_the_value(path: str, name: str, value: str) -> None:
    source = (_ROOT / "reward_service" / path).read_text()
    assert re.search(rf"\b{name} = {re.escape(value)}(?![\w.])", source), f"{path} has no {name} = {value}"
