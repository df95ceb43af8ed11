"""The corpora of the fuzzers in Python, where there is no Atheris."""

import importlib
from pathlib import Path

import pytest

_FOLDER = Path(__file__).parent
_INPUTS = [
    path
    for fuzzer in sorted(_FOLDER.glob("*_fuzz.py"))
    for path in sorted((_FOLDER / "corpus" / fuzzer.stem).iterdir())
]


@pytest.mark.parametrize("path", _INPUTS, ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_input_is_imported_or_refused(path: Path) -> None:
    importlib.import_module(f"tests.fuzz.{path.parent.name}").check(path.read_bytes())
