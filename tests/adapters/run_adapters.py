"""Runs every adapter inside its framework's own package, against a reward service that this starts.

    python tests/adapters/run_adapters.py [NAME...] [--model EXPORT]

A framework that cannot be installed here is skipped by name, with the reason.
Exit status 1 if one fails, or none passes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from environments import NotInstallable, build_wheel, ensure, version_of
from frameworks import FRAMEWORKS, Framework
from small_model import choose_model

_TREE = Path(__file__).resolve().parents[2]
_CLIENT = _TREE / "reward_service" / "clients" / "python"
_SCRIPT_SECONDS_MAX = 900


@dataclass(frozen=True)
class Outcome:
    """Of one framework; `lines` are what its script reports, or why it did not run."""

    name: str
    state: str
    version: str
    seconds: float
    lines: tuple[str, ...]


@contextlib.contextmanager
def reward_service(binaries: Path, scratch: Path) -> Iterator[str]:
    """The URL of a service of its own; ended by SIGTERM."""
    settings = {
        "address": f"unix:{scratch}/socket",
        "http_address": "127.0.0.1:0",
        "cache_directory": f"{scratch}/cache",
    }
    command = [str(binaries / "warpsmith-reward"), "--log-level", "warning"]
    for key, value in settings.items():
        command += ["--set", f"reward_service.{key}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("HTTP on "):
            raise RuntimeError(f"warpsmith-reward did not start: {line!r}")
        yield "http://" + line.removeprefix("HTTP on ").strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def run_script(
    framework: Framework, python: Path, environment: dict[str, str], scratch: Path
) -> tuple[bool, list[str]]:
    """Whether it succeeded, and what it reports, or else all that it said. Ends whatever it leaves behind."""
    script = Path(__file__).with_name(f"with_{framework.name}.py")
    process = subprocess.Popen(
        [str(python), "-B", str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=scratch,
        env=environment,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_SCRIPT_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return False, [f"it ran past {_SCRIPT_SECONDS_MAX} s"]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    lines = output.splitlines()
    if process.returncode != 0:
        return False, lines[-60:]
    return True, [line.removeprefix("result: ") for line in lines if line.startswith("result: ")]


def run_framework(framework: Framework, cache: Path, wheel: Path, shared: dict[str, str], scratch: Path) -> Outcome:
    """Installs and runs one."""
    start = time.monotonic()
    try:
        python = ensure(framework, cache, wheel)
    except NotInstallable as reason:
        return Outcome(framework.name, "skipped", "", time.monotonic() - start, (str(reason),))
    folder = scratch / "runs" / framework.name
    folder.mkdir(parents=True)
    environment = {**os.environ, **shared, "WARPSMITH_ADAPTERS_SCRATCH": str(folder)}
    # The tree has a folder called as Hugging Face's package datasets: it must not come first.
    environment.pop("PYTHONPATH", None)
    start = time.monotonic()
    passed, lines = run_script(framework, python, environment, folder)
    seconds = time.monotonic() - start
    version = version_of(framework, python)
    return Outcome(framework.name, "passed" if passed else "FAILED", version, seconds, tuple(lines))


def run_all(frameworks: list[Framework], options: argparse.Namespace) -> list[Outcome]:
    """One after the other, printed as they end."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="warpsmith_adapters_") as folder:
        scratch = Path(folder)
        wheel = build_wheel(_CLIENT, scratch)
        with reward_service(options.binaries, scratch) as url:
            shared = {
                "WARPSMITH_REWARD_URL": url,
                "WARPSMITH_ADAPTERS_CLIENT": str(scratch / "client"),
                "WARPSMITH_ADAPTERS_MODEL": str(choose_model(options.model, _TREE, scratch / "model")),
                "WARPSMITH_ADAPTERS_MYPY_PYTHON": sys.executable,
                "CUDA_VISIBLE_DEVICES": "",
                "HF_HUB_OFFLINE": "1",
                "WANDB_MODE": "disabled",
            }
            tasks = _TREE / "datasets" / "generated" / "train.jsonl"
            if tasks.exists():
                shared["WARPSMITH_ADAPTERS_TASKS"] = str(tasks)
            for framework in frameworks:
                outcomes.append(run_framework(framework, options.cache, wheel, shared, scratch))
                show(outcomes[-1])
    return outcomes


def show(outcome: Outcome) -> None:
    """One block of text."""
    print(f"{outcome.state:8}{outcome.name:12}{outcome.version:10}{outcome.seconds:6.0f} s", flush=True)
    for line in outcome.lines:
        print(f"        {line}", flush=True)


def main() -> int:
    """The command."""
    names = [framework.name for framework in FRAMEWORKS]
    cache = Path(os.environ.get("WARPSMITH_CACHE", Path.home() / ".cache" / "warpsmith")) / "adapters"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--model", type=Path, help="an exported checkpoint; default: the demo's or the latest of runs/")
    parser.add_argument("--binaries", type=Path, default=_TREE / "build" / "release" / "bin")
    parser.add_argument("--cache", type=Path, default=cache, help="where the environments are kept")
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"there is no adapter {', '.join(sorted(unknown))}: use {', '.join(names)}")
    chosen = [framework for framework in FRAMEWORKS if not options.names or framework.name in options.names]
    outcomes = run_all(chosen, options)
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in ("passed", "FAILED", "skipped")}
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return 0 if counts["passed"] and not counts["FAILED"] else 1


if __name__ == "__main__":
    sys.exit(main())
