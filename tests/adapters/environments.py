"""A virtual environment a framework, outside the tree, kept between runs."""

from __future__ import annotations

import glob
import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import asdict
from pathlib import Path

from frameworks import Framework

_PIP_SECONDS_MAX = 1800


class NotInstallable(Exception):
    """In words, why a framework cannot be run here."""


def python_of(version: str) -> str:
    """A Python of that minor version; raises NotInstallable."""
    found = [
        shutil.which(f"python{version}") or "",
        *sorted(glob.glob(f"{Path.home()}/.pyenv/versions/{version}.*/bin/python")),
    ]
    for python in filter(None, found):
        command = [python, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        if subprocess.run(command, capture_output=True, text=True).stdout.strip() == version:
            return python
    raise NotInstallable(f"there is no Python {version}")


def ensure(framework: Framework, cache: Path, wheel: Path) -> Path:
    """The environment's Python, with the framework and the client of `wheel` installed. Raises NotInstallable."""
    if framework.not_installable:
        raise NotInstallable(framework.not_installable)
    base = python_of(framework.python) if framework.python else sys.executable
    folder = cache / framework.name
    python = folder / "bin" / "python"
    stamp = folder / ".complete"
    wanted = json.dumps({**asdict(framework), "base": base}, sort_keys=True)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _create(framework, folder, base)
        _pip(python, *framework.requirements, str(wheel))
        if framework.bare_requirements:
            _pip(python, "--no-deps", *framework.bare_requirements)
        stamp.write_text(wanted)
    _pip(python, "--no-deps", "--force-reinstall", str(wheel))
    return python


def version_of(framework: Framework, python: Path) -> str:
    """Of the framework as installed."""
    command = [str(python), "-c", f"import importlib.metadata as m; print(m.version({framework.distribution!r}))"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def build_wheel(client: Path, scratch: Path) -> Path:
    """Of a copy, so that the build leaves nothing in the tree."""
    copy = scratch / "client"
    shutil.copytree(client, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run(
        [*command, "--no-build-isolation", "-w", str(scratch), str(copy)], check=True, timeout=_PIP_SECONDS_MAX
    )
    (wheel,) = scratch.glob("*.whl")
    return wheel


def _create(framework: Framework, folder: Path, base: str) -> None:
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    torch = importlib.util.find_spec("torch")
    if framework.python or framework.name == "client" or torch is None or torch.origin is None:
        return
    # Behind the environment's own packages: what it installs itself goes first.
    borrowed = dict.fromkeys([sysconfig.get_path("purelib"), str(Path(torch.origin).parents[1])])
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "borrowed_packages.pth").write_text("\n".join(borrowed) + "\n")


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input", *arguments]
    try:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=_PIP_SECONDS_MAX)
    except subprocess.TimeoutExpired as late:
        raise NotInstallable(f"pip ran past {_PIP_SECONDS_MAX} s") from late
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise NotInstallable(f"pip: {lines[0] if lines else 'no message'}")
