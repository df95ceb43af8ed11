"""docs/configuration.md and the configurations with every key, from what the programs say of the keys they read.

    python3 -m cli.config_reference            # whether the files are as the programs say; prints the number of keys
    python3 -m cli.config_reference --write    # writes them

The programs are those of WARPSMITH_BIN_DIR, else of build/release/bin.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROGRAMS = ("warpsmith-train", "warpsmith-rollout", "warpsmith-reward")
DOCUMENT, TRAINING = Path("docs/configuration.md"), Path("configs/training.yaml")
REWARD_SERVICE = Path("configs/reward_service.yaml")
KEYS_MAX = 110
_DEMO = Path("configs/demo.yaml")
_SECTION = "a section"
# Names of Hugging Face, given where there is no config.json to read them from. They are no keys of ours.
_MODEL_KEYS = ("model.path",)
_TENANTS = "reward_service.tenants"
_WRITING_HINT = " (in quotes if it looks like a number)"
_BARE_WORD = re.compile(r"[A-Za-z_./][\w./-]*")

_DOCUMENT_HEAD = """\
# Configuration

One YAML file is one run. Its sections have owners: the trainer reads `run`, `model`, `data` and
`trainer`, the rollout worker `rollout` (and the trainer's `model` and `data`), the reward service
`reward_service`. A key that is unknown, given twice, of the wrong type or out of range, and a file
that is not there, are errors with file, line and key.

```
build/release/bin/warpsmith config FILE [--set section.key=value]...
```

has each program check its sections and starts nothing. It prints the whole configuration with every
default, or every fault of all sections at once, with exit status 1. `warpsmith up` does the same
before it starts anything. Paths count from the working directory.

[configs/training.yaml](../configs/training.yaml) is the demo's run with every key written out,
[configs/reward_service.yaml](../configs/reward_service.yaml) a reward service alone. This page and
both files are made from the code: `python3 -m cli.config_reference --write`.
"""

_TRAINING_HEAD = """\
# The demo's run with every key that there is. Keep what you change and delete the rest: it has its defaults.
# `warpsmith config configs/training.yaml` checks it; docs/configuration.md has the same as tables.
# Made from the code by `python3 -m cli.config_reference --write`."""

_REWARD_SERVICE_HEAD = """\
# The reward service on its own: every key that it has, with its default. Keep what you change, delete the rest.
#   warpsmith-reward --config configs/reward_service.yaml [--check]
# Made from the code by `python3 -m cli.config_reference --write`."""


@dataclass(frozen=True)
class Key:
    """A key, or a section, as a program describes it. `default` is YAML."""

    path: str
    default: str
    allowed: str
    unit: str
    meaning: str

    @property
    def is_section(self) -> bool:
        return self.allowed == _SECTION

    @property
    def is_counted(self) -> bool:
        return not self.is_section and (not self.path.startswith("model.") or self.path in _MODEL_KEYS)


def read_keys(binaries: Path) -> list[Key]:
    """What all programs say. Raises CalledProcessError."""
    keys = []
    for program in PROGRAMS:
        command = [str(binaries / program), "--reference"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
        keys += [Key(*line.replace(_WRITING_HINT, "").split("\t")) for line in lines]
    return keys


def _table(keys: list[Key]) -> Iterator[str]:
    yield "| key | default | unit | value | meaning |"
    yield "|---|---|---|---|---|"
    for key in keys:
        default = f"`{_plain(key.default)}`" if _has_default(key) else ""
        yield f"| `{key.path}` | {default} | {key.unit} | {key.allowed} | {key.meaning} |"


def _has_default(key: Key) -> bool:
    """Sizes of a model have none: 0 stands for that."""
    return "Required." not in key.meaning and not (key.path.startswith("model.") and key.default == "0")


def document(keys: list[Key]) -> str:
    """The page: a table for each section and each section within one."""
    parts = [_DOCUMENT_HEAD, f"There are {count(keys)} keys beside the fields of a model's `config.json`.\n"]
    parents: dict[str, list[Key]] = {}
    for key in keys:
        parents.setdefault(key.path.rpartition(".")[0], []).append(key)
    meanings = {key.path: key.meaning for key in keys if key.is_section}
    for parent, children in parents.items():
        leaves = [key for key in children if not key.is_section]
        if not leaves and not meanings.get(parent):
            continue
        level = "##" if "." not in parent else "###"
        parts.append(f"{level} {parent}\n")
        if meanings.get(parent):
            parts.append(f"{meanings[parent]}\n")
        if leaves:
            parts.append("\n".join(_table(leaves)) + "\n")
    return "\n".join(parts)


def count(keys: list[Key]) -> int:
    """Keys of ours."""
    return sum(key.is_counted for key in keys)


def _value_in(values: dict[str, Any], path: str) -> Any:
    found: Any = values
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _plain(value: str) -> str:
    """A YAML value without the quotes that it does not need."""
    word = value[1:-1] if value.startswith('"') else ""
    return word if _BARE_WORD.fullmatch(word) and word not in ("true", "false", "null") else value


def _comment(key: Key, value: str) -> str:
    facts = [fact for fact in (key.unit, "" if key.is_section else key.allowed) if fact]
    if value != key.default and _has_default(key):
        facts.append(f"default {_plain(key.default)}")
    return key.meaning + (f" ({'; '.join(facts)})" if facts else "")


def example(head: str, keys: list[Key], values: dict[str, Any]) -> str:
    """A file with every key, its value that of `values` or else the default.

    Tenants are comments: with tenants, tokens are asked for.
    """
    lines = [head]
    section = ""
    for key in keys:
        names = key.path.split(".")
        if names[0] != section:
            section = names[0]
            lines += ["", f"{section}:"]
        given = None if key.is_section else _value_in(values, key.path)
        value = key.default if given is None else json.dumps(given)
        depth = len(names) - 1
        is_off = key.path.startswith(_TENANTS)
        indent = "  # " + "  " * (depth - 1) if is_off else "  " * depth
        before = "  " if key.path == _TENANTS else indent
        start = f"{before}# "
        lines += textwrap.wrap(_comment(key, value), 100, initial_indent=start, subsequent_indent=start)
        lines.append(f"{indent}{names[-1]}: {_plain(value)}".rstrip())
    return "\n".join(lines) + "\n"


def generate(keys: list[Key]) -> dict[Path, str]:
    """The text of all files."""
    values = yaml.safe_load(_DEMO.read_text())
    values["run"]["name"] = TRAINING.stem
    of_service = [key for key in keys if key.path.startswith("reward_service.")]
    return {
        DOCUMENT: document(keys),
        TRAINING: example(_TRAINING_HEAD, keys, values),
        REWARD_SERVICE: example(_REWARD_SERVICE_HEAD, of_service, {}),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="renew the files")
    arguments = parser.parse_args()
    keys = read_keys(Path(os.environ.get("WARPSMITH_BIN_DIR", "build/release/bin")))
    stale = [path for path, text in generate(keys).items() if not path.exists() or path.read_text() != text]
    if arguments.write:
        for path, text in generate(keys).items():
            path.write_text(text)
    print(f"{count(keys)} keys, at most {KEYS_MAX}; {len(keys)} lines with sections and a model's config.json")
    for path in stale:
        print(f"{path} {'is written' if arguments.write else 'is stale: python3 -m cli.config_reference --write'}")
    return 0 if arguments.write or not stale else 1


if __name__ == "__main__":
    sys.exit(main())
