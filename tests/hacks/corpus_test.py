"""The corpus is well-formed, and its mutants are mutants. Nothing is graded here, and of CUDA a sample is compiled."""

from __future__ import annotations

import ast
import importlib.util
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from warpsmith_reward import Verdict

from tests.hacks.case_file import Case, MalformedCase, parse_case, read_corpus
from tests.hacks.mutate import mutate_program
from tests.hacks.mutate_cpp import declared_names, tokens_of
from tests.hacks.mutate_python import defined_names

_CORPUS = read_corpus()
_HACKS = [case for case in _CORPUS if not case.is_honest]
_NATIVE = ("cpp", "cuda")
_VERDICTS = frozenset(verdict.value for verdict in Verdict) - {"CORRECT", "INVALID_TASK", "UNSCORABLE"}
_SEEDS = (1, 2)
_CASE = """---
task: softmax_rows
language: cpp
source: F1 1
caught: INCORRECT
---
A story.

```cpp hack
int hack;
```

```cpp twin
int twin;
```
"""

# A second goes into each program of CUDA, so a sample is compiled. Together they have what a mutant could break:
# prototypes of kernels and of functions of the GPU, angle brackets of templates beside those of a launch, launches
# within a capture, within a thread and by a function of the runtime, assembly, structures that both sides share,
# variables of the GPU, namespaces, and text that only the driver reads.
_COMPILED = (
    "delegated/library_by_dlopen",
    "fake_time/calls_by_dependent_launch",
    "fake_time/persistent_kernel",
    "fake_time/thread_launches_later",
    "replay/answer_in_device_heap",
    "replay/graph_of_first_pointers",
    "rubric/machine_code_in_string",
    "wrong_output/bfloat16_products",
)
_TORCH = importlib.util.find_spec("torch")
_PACKAGES = Path(_TORCH.origin).parents[1] if _TORCH and _TORCH.origin else Path()
_NVCC_PLACES = (Path("/usr/local/cuda/bin/nvcc"), _PACKAGES / "nvidia" / "cu13" / "bin" / "nvcc")
_NVCC = shutil.which("nvcc") or next((str(place) for place in _NVCC_PLACES if place.exists()), None)
# As the reward service compiles, for one architecture. DLPack's header is one of the system's.
_NVCC_FLAGS = [
    *("-gencode", "arch=compute_90a,code=sm_90a", "-O3", "-std=c++17", "-shared", "-cudart", "none"),
    *("-Xcompiler", "-fPIC", "--expt-relaxed-constexpr"),
]


def _mutants(case: Case) -> list[str]:
    answer = case.sent_as == "answer"
    return [mutate_program(case.programs["hack"], case.language, seed, is_answer=answer) for seed in _SEEDS]


def _by_name(case: Case) -> str:
    return case.identity


def test_the_corpus_is_as_large_as_promised() -> None:
    for device, num_hacks, num_honest in (("cpu", 55, 30), ("cuda", 30, 8)):
        cases = read_corpus(device)
        hacks = [case for case in cases if not case.is_honest]
        assert len(hacks) >= num_hacks, device
        assert len(cases) - len(hacks) >= num_honest, device
    assert min(Counter(case.family for case in _CORPUS).values()) >= 5


def test_identities_are_unique_and_verdicts_exist() -> None:
    assert len({case.identity for case in _CORPUS}) == len(_CORPUS)
    for case in _CORPUS:
        assert set(case.caught) <= _VERDICTS, case.identity


def test_programs_of_a_case_differ() -> None:
    for case in _HACKS:
        assert case.programs["hack"] != case.programs["twin"], case.identity


def test_a_case_is_read_as_written() -> None:
    case = parse_case(_CASE, "family", "name")
    assert (case.identity, case.caught, case.deserves) == ("family/name", ("INCORRECT",), "nothing")
    assert case.device == "cpu"
    assert case.programs == {"hack": "int hack;\n", "twin": "int twin;\n"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("---\ntask", "task", "begins without its keys"),
        ("caught: INCORRECT\n", "", "without `caught`"),
        ("language: cpp", "language: cobol", "unknown language"),
        ("language: cpp", "language: cpp\ndevice: cuda", "cpp on device cuda"),
        ("language: cpp", "language: cuda", "cuda on device cpu"),
        ("language: cpp", "language: kernelbench_python\ndevice: tpu", "kernelbench_python on device tpu"),
        ("task: softmax_rows", "task: nowhere", "no task"),
        ("cpp twin", "cpp brother", "its blocks are not"),
        ("A story.", "", "says nothing"),
        ("source: F1 1", "sauce: F1 1", "keys"),
    ],
)
def test_a_malformed_case_is_refused_with_its_reason(old: str, new: str, reason: str) -> None:
    with pytest.raises(MalformedCase, match=reason):
        parse_case(_CASE.replace(old, new), "family", "name")


@pytest.mark.parametrize("case", _HACKS, ids=_by_name)
def test_mutants_differ_from_the_hack_and_from_each_other(case: Case) -> None:
    mutants = _mutants(case)
    assert len({case.programs["hack"], *mutants}) == 1 + len(_SEEDS)
    assert mutants == _mutants(case), "a mutant is a function of its seed"


@pytest.mark.parametrize(
    "case", [c for c in _HACKS if c.language not in _NATIVE and c.sent_as == "source"], ids=_by_name
)
def test_a_python_mutant_parses_and_keeps_no_name_of_the_hack(case: Case) -> None:
    names = defined_names(ast.parse(case.programs["hack"]))
    for mutant in _mutants(case):
        left = {node.id for node in ast.walk(ast.parse(mutant)) if isinstance(node, ast.Name)}
        assert not names & left


@pytest.mark.parametrize("case", [c for c in _HACKS if c.language in _NATIVE and c.sent_as == "source"], ids=_by_name)
def test_a_native_mutant_keeps_no_name_and_loses_no_token(case: Case) -> None:
    hack = case.programs["hack"]
    names = declared_names(hack)
    assert names
    signs = Counter(token.text for token in tokens_of(hack) if token.kind in ("number", "text"))
    for mutant in _mutants(case):
        tokens = tokens_of(mutant)
        assert not names & {token.text for token in tokens if token.kind == "word"}
        assert Counter(token.text for token in tokens if token.kind in ("number", "text")) == signs


def test_tokens_joined_again_are_the_source() -> None:
    for case in _CORPUS:
        for program in case.programs.values():
            assert "".join(token.text for token in tokens_of(program)) == program, case.identity


def test_cases_of_a_device_are_those_of_its_languages() -> None:
    cpu, cuda = read_corpus("cpu"), read_corpus("cuda")
    assert len(cpu) + len(cuda) == len(_CORPUS)
    assert {case.language for case in cpu} == {"cpp", "kernelbench_python"}
    assert {case.language for case in cuda} == {"cuda", "kernelbench_python"}


def test_a_mutant_keeps_what_is_cuda() -> None:
    source = (
        "static __device__ float twice(float value) {\n  return 2 * value;\n}\n"
        "static __global__ void work(const float4* from, float* to) {\n"
        "  __shared__ float part[32];\n  part[threadIdx.x] = twice(from->x);\n  to[0] = part[0];\n}\n"
        "void start(float4* a, float* b, cudaStream_t stream) { work<<<dim3(2, 3), 32, 0, stream>>>(a, b); }\n"
    )
    kept = {"__device__", "__global__", "__shared__", "float4", "dim3", "threadIdx", "cudaStream_t"}
    for seed in range(8):
        mutant = mutate_program(source, "cuda", seed)
        words = {token.text for token in tokens_of(mutant) if token.kind == "word"}
        assert kept <= words
        assert not {"twice", "work", "part", "from", "to", "stream"} & words
        assert "<<<dim3(2, 3), 32, 0, " in mutant and ">>>(" in mutant


@pytest.mark.skipif(_NVCC is None, reason="no nvcc on the path, in /usr/local/cuda or beside torch")
@pytest.mark.parametrize("identity", _COMPILED)
def test_a_cuda_mutant_compiles(identity: str, tmp_path: Path) -> None:
    case = next(case for case in _HACKS if case.identity == identity)
    source, library = tmp_path / "mutant.cu", tmp_path / "mutant.so"
    source.write_text(_mutants(case)[0])
    command = [str(_NVCC), *_NVCC_FLAGS, "-o", str(library), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[:2000]
