"""Constants that set sizes are found in the text, and other values written in their place."""

import ast

import pytest

from datasets.importers.size_constants import folded, pieces_around, size_constants, with_sizes

_SOURCE = """# é: bytes and characters differ
batch_size = 8
height, width = 128, 64
features = 2048 * 2
kernel_size = 32
eps = 1e-5
shape = (features, 256)
sizes = [512, 3]
dim = 1

def get_inputs():
    return [torch.rand(batch_size, 3, 224, 224)]

def get_init_inputs():
    return [features]
"""


def _found() -> list[tuple[str, int, int]]:
    return [(c.name, c.value, c.order) for c in size_constants(_SOURCE, ast.parse(_SOURCE))]


def test_batches_come_first_then_extents_then_features() -> None:
    assert _found() == [
        ("batch_size", 8, 0),
        ("height", 128, 1),
        ("width", 64, 1),
        ("features", 4096, 2),
        ("shape", 256, 1),
        ("sizes", 512, 1),
        ("", 224, 1),
        ("", 224, 1),
    ]


def test_kernels_factors_and_small_numbers_stay() -> None:
    assert not {"kernel_size", "eps", "dim"} & {name for name, _, _ in _found()}


def test_values_take_the_place_of_the_whole_expression() -> None:
    constants = size_constants(_SOURCE, ast.parse(_SOURCE))
    pieces = pieces_around(_SOURCE, constants)
    written = with_sizes(pieces, [2, 4, 5, 6, 7, 8, 9, 10])
    assert "batch_size = 2\nheight, width = 4, 5\nfeatures = 6\nkernel_size = 32\n" in written
    assert "shape = (features, 7)\nsizes = [8, 3]\n" in written
    assert "torch.rand(batch_size, 3, 9, 10)" in written
    assert with_sizes(pieces, [c.value for c in constants]) == _SOURCE.replace("2048 * 2", "4096")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 * 3 + 4", 10), ("2 ** 10", 1024), ("7 // 2", 3), ("7 // 0", None), ("9 ** 9 ** 9", None), ("n * 2", None)]
    + [("True", None), ("1.5", None), ("-3", None), ("2 ** 40 * 2 ** 40 + 1", None)],
)
def test_only_small_arithmetic_of_literals_is_folded(text: str, value: int | None) -> None:
    assert folded(ast.parse(text, mode="eval").body) == value
