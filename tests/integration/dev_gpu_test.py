"""./dev on a machine with a GPU and on one without, made of stand-ins for the programs that it calls."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_INSTALLED = 'shift 2; for package in "$@"; do echo "installed $package"; done'
# Lists one test for -N; else passes.
_CTEST = """case "$*" in
*" -N "*) echo "  Test #7: referee_gpu_test" ;;
esac"""
_CMAKE = """case "$1" in
--preset) mkdir -p build/$2; touch build/$2/build.ninja ;;
esac"""


class Tree:
    """./dev in a folder of its own, where everything is installed."""

    def __init__(self, folder: Path) -> None:
        self.root, self.programs, self.home = folder / "tree", folder / "programs", folder / "home"
        self.calls = folder / "calls"
        for path in (self.root / "tests/bench", self.root / ".ci", self.root / "datasets/generated", self.programs):
            path.mkdir(parents=True)
        shutil.copy(ROOT / "dev", self.root / "dev")
        requirements = self.root / ".ci/requirements.txt"
        requirements.write_text("torch==2.11.0\n")
        venv = self.home / ".cache/warpsmith/python"
        for path in (venv / "bin", venv / "lib/python3.11/site-packages/torch"):
            path.mkdir(parents=True)
        (venv / "lib/python3.11/site-packages/torch/version.py").write_text("")
        digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
        (venv / ".complete").write_text(f"{digest} {Path('/usr/bin/python3').resolve()} own\n")
        self.program("python", "", venv / "bin")
        for name, script in (("dpkg-query", _INSTALLED), ("cmake", _CMAKE), ("ctest", _CTEST), ("nvcc", "")):
            self.program(name, script)
        self.program("git", "exit 1")
        self.program("nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")

    def program(self, name: str, script: str, folder: Path | None = None) -> None:
        path = (folder or self.programs) / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >> {self.calls}\n{script}\n')
        path.chmod(0o755)

    def dev(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.root / "dev"), *arguments],
            env={"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.home), "TERM": "dumb", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def called(self, program: str) -> list[str]:
        lines = self.calls.read_text().splitlines()
        return [line.removeprefix(f"{program} ") for line in lines if line.startswith(f"{program} ")]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_without_a_gpu_the_tests_of_a_gpu_are_run_to_be_skipped_and_the_end_says_so(tree: Tree) -> None:
    answer = tree.dev("test", "gpu")
    assert answer.returncode == 0, answer.stderr
    assert "No GPU is here" in answer.stderr.splitlines()[-1]
    assert [call for call in tree.called("ctest") if "-L ^gpu$" in call] == tree.called("ctest")
    assert len(tree.called("ctest")) == 1
    assert not any("cuda" in call for call in tree.called("cmake"))


def test_with_gpus_the_preset_cuda_is_built_and_no_test_runs_twice(tree: Tree) -> None:
    tree.program("nvidia-smi", "echo 'GPU 0: NVIDIA H100'; echo 'GPU 1: NVIDIA H100'")
    answer = tree.dev("test", "gpu")
    assert answer.returncode == 0, answer.stderr
    assert any("--build build/cuda" in call for call in tree.called("cmake"))
    runs = [call for call in tree.called("ctest") if " -N " not in call]
    assert ["build/release" in runs[0], "build/cuda" in runs[1]] == [True, True]
    assert "-L ^gpu$ -E ^(referee_gpu_test)$ -j " in runs[1] and " -j " not in runs[0]
    assert "No GPU" not in answer.stderr
    assert re.search(r"The tests of the GPU took \d+ s\.$", answer.stderr)


def test_the_core_is_built_with_cuda_where_nvcc_is_and_asks_for_no_grpc(tree: Tree) -> None:
    answer = tree.dev("build", "core")
    assert answer.returncode == 0, answer.stderr
    configure, build = tree.called("cmake")
    assert configure.startswith("--preset core ") and configure.endswith(" -DWARPSMITH_CUDA=ON")
    assert "--build build/core" in build
    (packages,) = tree.called("dpkg-query")
    assert " libabsl-dev" in packages
    assert not any(name in packages for name in ("grpc", "protobuf", "cli11", "curl", "prometheus", "seccomp"))


def test_the_core_uses_a_torch_that_is_there_and_makes_no_environment(tree: Tree, tmp_path: Path) -> None:
    torch = tmp_path / "torch"
    torch.mkdir()
    (torch / "version.py").write_text("")
    tree.program("python3", "")
    answer = tree.dev("build", "core", WARPSMITH_TORCH_DIR=str(torch))
    assert answer.returncode == 0, answer.stderr
    assert f"-DWARPSMITH_PYTHON={tree.programs}/python3 -DWARPSMITH_TORCH_DIR={torch}" in tree.called("cmake")[0]
    assert tree.called("python3") == []
    assert not list(tree.home.glob("**/python-borrowed-torch"))


def test_another_name_still_chooses_tests_by_their_names(tree: Tree) -> None:
    assert tree.dev("test", "referee_gpu").returncode == 0
    assert [call.endswith("-R referee_gpu") for call in tree.called("ctest")] == [True]


def test_a_failing_test_of_a_gpu_fails_the_command(tree: Tree) -> None:
    tree.program("ctest", "exit 8")
    answer = tree.dev("test", "gpu")
    assert answer.returncode == 1
    assert "Some tests failed" in answer.stderr


def test_a_benchmark_on_a_gpu_writes_to_a_file_of_its_own(tree: Tree) -> None:
    (tree.root / "tests/bench/some_bench.py").write_text("")
    assert tree.dev("bench", "some", "--gpu", "--resume").returncode == 0
    assert tree.dev("bench", "some", "--seconds", "9").returncode == 0
    calls = [call for call in tree.called("python") if "some_bench" in call]
    assert calls == [
        "tests/bench/some_bench.py --out runs/bench/some_gpu.jsonl --gpu --resume",
        "tests/bench/some_bench.py --out runs/bench/some.json --seconds 9",
    ]


def test_the_engine_on_a_gpu_is_built_with_cuda_and_without_one_it_is_not(tree: Tree) -> None:
    (tree.root / "tests/bench/rollout_bench.py").write_text("")
    assert tree.dev("bench", "rollout", "--threads", "2").returncode == 0
    assert not any("build/core" in call for call in tree.called("cmake"))
    assert tree.dev("bench", "rollout", "--only", "churn", "--gpu").returncode == 0
    assert any("--build build/core" in call for call in tree.called("cmake"))
