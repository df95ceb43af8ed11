"""What may be a reference is told from its text alone."""

from pathlib import Path

import pytest

from datasets.importers.import_report import Refusal
from datasets.importers.reference_program import check_reference

_TAIL = "\ndef get_inputs():\n    return [torch.rand(4)]\n\ndef get_init_inputs():\n    return []\n"
_MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x) @ F.softmax(x, 0)\n"
_IMPORTS = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def _kind(source: str) -> str:
    with pytest.raises(Refusal) as refused:
        check_reference(source)
    assert refused.value.way_out
    return refused.value.kind


def test_a_kernelbench_file_is_accepted_with_its_operators_in_order() -> None:
    assert check_reference(_IMPORTS + _MODEL + _TAIL).operators == ["relu", "softmax", "matmul"]


def test_nothing_of_the_program_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    check_reference(f"open({str(mark)!r}, 'w')\n" + _IMPORTS + _MODEL + _TAIL)
    assert not mark.exists()


@pytest.mark.parametrize("missing", ["class Model", "def forward", "def get_inputs", "def get_init_inputs"])
def test_each_part_is_needed(missing: str) -> None:
    keyword, name = missing.split()
    assert _kind((_IMPORTS + _MODEL + _TAIL).replace(missing, f"{keyword} Other{name}")) == "not_a_task"


@pytest.mark.parametrize(
    "source",
    ["def f(:\n", "x = 1\0\n", "x = " + "(" * 5000, "x = " + "-" * 200_000 + "1"],
    ids=["syntax", "nul", "deep", "long"],
)
def test_what_is_no_python_is_refused(source: str) -> None:
    assert _kind(source) == "not_python"


def test_a_program_longer_than_the_limit_is_refused_unparsed() -> None:
    assert _kind("#" * (1 << 20) + "\n") == "too_long"


def test_modules_beyond_the_standard_library_must_be_named() -> None:
    source = "from einops import rearrange\nimport os.path\n" + _IMPORTS + _MODEL + _TAIL
    assert _kind(source) == "missing_module"
    assert check_reference(source, frozenset({"torch", "einops"})).operators


def test_downloads_are_refused() -> None:
    assert _kind(_IMPORTS + "config = Config.from_pretrained('gpt2')\n" + _MODEL + _TAIL) == "needs_network"


def test_line_ends_of_other_systems_do_not_matter() -> None:
    program = check_reference((_IMPORTS + _MODEL + _TAIL).replace("\n", "\r\n"))
    assert "\r" not in program.source
