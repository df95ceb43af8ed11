"""The client's own package, from its folder into an environment of its own: what it brings, and that it is typed."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

_FOLDER = os.environ["WARPSMITH_ADAPTERS_CLIENT"]
_TYPED = "from warpsmith_reward import Request\nreveal_type(Request('r').to_json)\nRequest(reference_source=1)\n"


def _install() -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--force-reinstall",
        _FOLDER,
    ]
    subprocess.run(command, check=True, timeout=300)


def _check_types() -> None:
    """mypy, of the environment that runs this command, must see the types of the installed package."""
    script = Path(os.environ["WARPSMITH_ADAPTERS_SCRATCH"], "typed.py")
    script.write_text(_TYPED)
    command = [os.environ["WARPSMITH_ADAPTERS_MYPY_PYTHON"], "-m", "mypy", "--python-executable", sys.executable]
    command += ["--config-file", os.devnull, "--cache-dir", os.devnull, str(script)]
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, cwd=script.parent).stdout
    assert 'expected "str"' in output and 'Revealed type is "def () ->' in output and "Found 1 error" in output, output


def main() -> None:
    """Fails by assertion."""
    _install()
    from kernel_tasks import expected_rewards, report

    files = {str(file) for file in importlib.metadata.files("warpsmith-reward") or []}
    adapters = {file for file in files if file.startswith("warpsmith_reward/adapters/") and file.endswith(".py")}
    assert {"warpsmith_reward/py.typed", "warpsmith_verifiers/py.typed"} <= files, files
    assert not any(file.startswith(("tests/", "build/")) for file in files), files
    for adapter in ("openrlhf", "slime", "trl", "verl"):  # those that import no framework
        importlib.import_module(f"warpsmith_reward.adapters.{adapter}")
    expected_rewards()
    _check_types()
    requires = importlib.metadata.requires("warpsmith-reward")
    report(f"{len(adapters)} files of adapters; requires {requires}; typed")


if __name__ == "__main__":
    main()
