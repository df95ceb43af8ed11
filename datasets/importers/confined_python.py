"""Runs a script of this folder over outside data: in a process of its own, without network, within limits.

The process sees the Python installation and its packages, the script and one file, all read-only; it is killed when it
outlives its time. What it prints is data: bounded here, to be checked by whoever asked.
"""

import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache")
_ENVIRONMENT = {  # Torch asks for a user's name and a folder when it first looks at shapes alone
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "USER": "task",
    "TORCHINDUCTOR_CACHE_DIR": "/tmp",
    "OMP_NUM_THREADS": "1",
}


class ConfinementFailed(Exception):
    """The script could not be run to its end; says why."""


@dataclass(frozen=True)
class Limits:
    """Of one run. Memory is address space, of which Torch reserves much more than it uses."""

    seconds_max: int = 120
    memory_bytes_max: int = 8 << 30
    output_bytes_max: int = 1 << 20


@dataclass(frozen=True)
class Confinement:
    """How strictly. Without `sandbox` only limits hold: for files whose authors are trusted."""

    sandbox: bool = True

    def check(self) -> None:
        """Raises ConfinementFailed where this machine grants no sandbox."""
        if not self.sandbox:
            return
        command = [*_bubblewrap([]), sys.executable, "-I", "-c", "pass"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise ConfinementFailed(
                f"bubblewrap cannot confine a process here: {done.stderr.strip()[:200]}; allow user namespaces, or "
                "pass --without-sandbox if you trust the authors of what you import"
            )

    def run(self, script: Path, data: Path, packages: tuple[str, ...], limits: Limits) -> str:
        """Standard output of `script DATA`, with `packages` importable. Raises ConfinementFailed."""
        folders = _package_folders(packages)
        command = [sys.executable, "-I", "-B", str(script), str(data), *folders]
        if self.sandbox:
            command = [*_bubblewrap([str(script), str(data), *folders]), *command]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            _run(command, out.fileno(), err.fileno(), limits)
            out.seek(0)
            return out.read(limits.output_bytes_max).decode("utf-8", errors="replace")


def _bubblewrap(visible: list[str]) -> list[str]:
    program = shutil.which("bwrap")
    if program is None:
        raise ConfinementFailed("there is no bwrap: install bubblewrap")
    command = [program, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for name, value in _ENVIRONMENT.items():
        command += ["--setenv", name, value]
    command += ["--tmpfs", "/tmp"]
    for folder in (*_SYSTEM_FOLDERS, sys.prefix, sys.base_prefix, *visible):
        command += ["--ro-bind-try", folder, folder]
    return [*command, "--proc", "/proc", "--dev", "/dev", "--chdir", "/tmp"]


def _package_folders(packages: tuple[str, ...]) -> list[str]:
    """Where each package lies, so that one outside the installation is found as well."""
    found: dict[str, None] = {}
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise ConfinementFailed(f"Python lacks {package}: install the packages of .ci/requirements.txt")
        found.setdefault(str(Path(spec.origin).resolve().parents[1]))
    return list(found)


def _limiter(limits: Limits) -> Callable[[], None]:
    def limit() -> None:
        for what, most in (
            (resource.RLIMIT_AS, limits.memory_bytes_max),
            (resource.RLIMIT_CPU, limits.seconds_max),
            (resource.RLIMIT_FSIZE, limits.output_bytes_max),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(what, (most, most))

    return limit


def _run(command: list[str], out: int, err: int, limits: Limits) -> None:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env=_ENVIRONMENT,
        start_new_session=True,
        preexec_fn=_limiter(limits),
    )
    try:
        status = process.wait(timeout=limits.seconds_max)
    except subprocess.TimeoutExpired:
        raise ConfinementFailed(f"it ran longer than {limits.seconds_max} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status != 0:
        raise ConfinementFailed(f"it ended with status {status}: {_last_line(err)}")


def _last_line(err: int) -> str:
    size = os.fstat(err).st_size
    text = os.pread(err, 4096, max(0, size - 4096)).decode("utf-8", errors="replace").strip()
    return text.splitlines()[-1][:300] if text else "it said nothing"
