"""The page and the example of the configuration are what the programs say of the keys that they read."""

import os
from pathlib import Path

import pytest

from cli import config_reference
from cli.config_reference import Key

_RENEW = "renew it: WARPSMITH_BIN_DIR=build/release/bin python3 -m cli.config_reference --write"


@pytest.fixture(scope="module")
def keys() -> list[Key]:
    return config_reference.read_keys(Path(os.environ["WARPSMITH_BIN_DIR"]))


@pytest.mark.parametrize("path", sorted(config_reference.generate([])), ids=str)
def test_the_files_of_the_tree_are_what_the_programs_say(path: Path, keys: list[Key]) -> None:
    stored = path.read_text() if path.exists() else ""
    assert stored == config_reference.generate(keys)[path], f"{path} is stale; {_RENEW}"


def test_every_key_says_what_it_means_where_it_is_read(keys: list[Key]) -> None:
    silent = [key.path for key in keys if not key.meaning]
    assert not silent, f"give these keys a meaning in the call that reads them: {silent}"
    assert len({key.path for key in keys}) == len(keys)


def test_there_are_at_most_100_keys(keys: list[Key]) -> None:
    number = config_reference.count(keys)
    print(f"{number} keys")
    assert number <= config_reference.KEYS_MAX
