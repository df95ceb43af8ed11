"""./dev on machines that lack something: what is missing is named, with the way out, and nothing hangs.

The machine is made of stand-ins for dpkg-query, apt-get, df and the like, first on PATH.
"""

import subprocess
from pathlib import Path

import pytest

DEV = Path(__file__).resolve().parents[2] / "dev"


class Machine:
    """A PATH with stand-ins, and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.programs = folder / "programs"
        self.home = folder / "home"
        self.calls = folder / "calls"
        for directory in (self.programs, self.home):
            directory.mkdir()
        self.program("dpkg-query", "exit 1")
        self.program("id", "echo 0")

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {self.calls}\n{script}\n')
        path.chmod(0o755)

    def dev(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(DEV), *arguments],
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.home), "TERM": "dumb", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


ALL_INSTALLED = 'shift 2; for package in "$@"; do echo "installed $package"; done'


def test_help_lists_every_command(machine: Machine) -> None:
    answer = machine.dev("--help")
    assert answer.returncode == 0
    for command in ("demo", "test", "bench", "build", "datasets", "format", "tidy", "sanitize", "fuzz"):
        assert f"./dev {command}" in answer.stdout


@pytest.mark.parametrize("arguments", [("frobnicate",), ("build", "debug"), ("bench", "nothing"), ("sanitize", "x")])
def test_a_wrong_word_is_refused_before_anything_is_installed(machine: Machine, arguments: tuple[str, ...]) -> None:
    answer = machine.dev(*arguments)
    assert answer.returncode == 1
    assert "There is no" in answer.stderr and arguments[-1] in answer.stderr
    assert not machine.calls.exists()


def test_missing_packages_are_installed_in_one_go_without_questions(machine: Machine) -> None:
    machine.program(
        "dpkg-query", 'shift 2; for package in "$@"; do [ "$package" = g++ ] || echo "installed $package"; done'
    )
    machine.program("apt-get", 'case "$*" in *install*) echo "frontend $DEBIAN_FRONTEND" >&2; exit 1 ;; esac')
    answer = machine.dev("build")
    installs = [
        call for call in machine.calls.read_text().splitlines() if call.startswith("apt-get") and "install" in call
    ]
    assert len(installs) == 1 and installs[0].endswith(" g++") and " -y " in installs[0]
    assert "frontend noninteractive" in answer.stderr
    assert answer.returncode == 1 and "could not install: g++" in answer.stderr


def test_without_network_the_error_says_so(machine: Machine) -> None:
    machine.program("apt-get", "echo 'Temporary failure resolving' >&2; exit 100")
    answer = machine.dev("build")
    assert answer.returncode == 1
    assert "Temporary failure resolving" in answer.stderr and "Check the network" in answer.stderr


def test_without_root_and_sudo_the_error_says_what_to_run(machine: Machine) -> None:
    machine.program("id", "echo 1000")
    machine.program("sudo", "exit 1")
    answer = machine.dev("build")
    assert answer.returncode == 1
    assert "failed under sudo without a password" in answer.stderr


def test_a_full_disk_is_noticed_before_the_download(machine: Machine) -> None:
    machine.program("dpkg-query", ALL_INSTALLED)
    machine.program("df", "echo Avail; echo 120M")
    answer = machine.dev("build")
    assert answer.returncode == 1
    assert "has 120 MB free" in answer.stderr and "WARPSMITH_CACHE" in answer.stderr
    assert not list(machine.home.glob("**/.complete"))


def test_a_torch_folder_that_is_none_is_named(machine: Machine) -> None:
    machine.program("dpkg-query", ALL_INSTALLED)
    answer = machine.dev("build", WARPSMITH_TORCH_DIR="/nonexistent/torch")
    assert answer.returncode == 1
    assert "/nonexistent/torch is not a torch package" in answer.stderr
