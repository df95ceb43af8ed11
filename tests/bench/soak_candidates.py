"""Programs for the soak test, distinct by number, each with the verdicts that its kind demands.

Tensors are small, so that a grade costs the service its own overhead and little else.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NUM_TASKS = 24
# Shares of the logical requests; what is left repeats earlier ones. Of 10,000: 1,500 good, 1,300 wrong, 200 of each
# program that attacks, 400 whose caller hangs up.
_SHARES = {"good": 0.15, "wrong": 0.13, "hanging": 0.02, "forking": 0.02, "faulting": 0.02, "cancelled": 0.04}
_HANG_UP_SECONDS = (0.02, 1.5)
# Of the requests so far, those that are repeated: clients ask again soon, and no service remembers for ever.
_RECENT = 300

# One element's operator, in PyTorch and in C++.
_OPERATORS = (
    ("torch.relu(x)", "fmaxf(v, 0.0f)"),
    ("torch.abs(x)", "fabsf(v)"),
    ("torch.tanh(x)", "tanhf(v)"),
    ("torch.sigmoid(x)", "1.0f / (1.0f + expf(-v))"),
    ("x * x", "v * v"),
    ("torch.sin(x)", "sinf(v)"),
)
_HEAD = """#include <dlpack/dlpack.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <vector>
"""
_FAULTS = (
    "*(volatile int*)0 = 1;",
    "abort();",
    "return 3;",
    "_exit(0);",
    "raise(SIGSEGV);",
    "*(volatile float*)((char*)y + ((int64_t)1 << 40)) = 1.0f;",
    "std::vector<int> none; none.at(7) = 1;",
)
_FORKS = (
    "while (true) { if (fork() < 0) return 1; }",
    "if (fork() < 0) return 7;",
    "if (vfork() < 0) return 8;",
    'if (system("true") != 0) return 9;',
    "for (int i = 0; i < 64; ++i) if (fork() < 0) return 5;",
)
_HANGS = (
    "for (volatile int i = 0;;) i = i + 1;",
    "for (;;) pause();",
    "struct timespec second = {1, 0}; for (;;) nanosleep(&second, nullptr);",
    "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_mutex_lock(&m); pthread_mutex_lock(&m);",
)


@dataclass(frozen=True)
class Task:
    """relu-like chains: second(first(a x) + b), over rows x columns."""

    number: int
    rows: int
    columns: int
    first: int
    second: int
    scale: str
    shift: str

    @property
    def steps(self) -> tuple[str, ...]:
        """In PyTorch, from `x` to `x`."""
        lines = (f"x = x * {self.scale}", f"x = {_OPERATORS[self.first][0]}", f"x = x + {self.shift}")
        return (*lines, f"x = {_OPERATORS[self.second][0]}")

    @property
    def reference(self) -> str:
        body = "".join(f"        {line}\n" for line in self.steps)
        return (
            "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n" + body + "        return x\n\n"
            f"def get_inputs():\n    return [torch.randn({self.rows}, {self.columns})]\n\n"
            "def get_init_inputs():\n    return []\n"
        )


@dataclass(frozen=True)
class Program:
    """A candidate and what its grade must say."""

    kind: str
    task: Task
    source: str
    verdicts: frozenset[str]
    language: str = "CPP"
    device: str = "CPU"


@dataclass(frozen=True)
class LogicalRequest:
    """What a client wants answered once. With `hang_up_after` it is content to hang up after as many seconds."""

    request_id: str
    kind: str
    program: Program
    hang_up_after: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The GradeRequest in protobuf's JSON."""
        language = f"CANDIDATE_LANGUAGE_{self.program.language}"
        return {
            "requestId": self.request_id,
            "task": {
                "id": f"soak-{self.program.task.number}",
                "skill": "SKILL_GENERATE",
                "language": language,
                "device": f"DEVICE_{self.program.device}",
                "referenceSource": self.program.task.reference,
            },
            "candidate": {"language": language, "source": self.program.source},
        }


def make_tasks(rng: random.Random, count: int = _NUM_TASKS) -> list[Task]:
    """Few tasks: as in training, many candidates come for each."""
    pairs = [(i, j) for i in range(len(_OPERATORS)) for j in range(len(_OPERATORS)) if i != j]
    rng.shuffle(pairs)
    return [
        Task(
            number,
            rows=rng.choice((48, 64, 96)),
            columns=rng.choice((64, 128, 256)),
            first=first,
            second=second,
            scale=f"{rng.uniform(0.5, 2.0):.2f}",
            shift=f"{rng.uniform(0.2, 0.9):.2f}",
        )
        for number, (first, second) in enumerate(pairs[:count])
    ]


def element(task: Task, value: str, shift: str = "") -> str:
    """Statements in C++ that leave one element's output in `v`."""
    steps = (
        f"float v = {value} * {task.scale}f;",
        f"v = {_OPERATORS[task.first][1]};",
        f"v = v + {shift or task.shift}f;",
        f"v = {_OPERATORS[task.second][1]};",
    )
    return " ".join(steps)


def _fused(task: Task, shift: str = "", result: str = "v") -> str:
    return f"for (int64_t i = 0; i < n; ++i) {{ {element(task, 'x[i]', shift)} y[i] = {result}; }}"


def _simd(task: Task) -> str:
    return "\n#pragma omp simd\n  " + _fused(task)


def _temporary(task: Task) -> str:
    copy = "std::vector<float> t(x, x + n); "
    return (
        copy
        + f"for (int64_t i = 0; i < n; ++i) {{ {element(task, 't[i]')} t[i] = v; }} "
        + ("for (int64_t i = 0; i < n; ++i) y[i] = t[i];")
    )


def _by_rows(task: Task) -> str:
    return (
        "for (int64_t r = 0; r < outputs[0]->shape[0]; ++r) for (int64_t c = 0; c < outputs[0]->shape[1]; ++c) "
        f"{{ const int64_t i = r * outputs[0]->shape[1] + c; {element(task, 'x[i]')} y[i] = v; }}"
    )


_STYLES: tuple[Callable[[Task], str], ...] = (_fused, _simd, _temporary, _by_rows)


def _wrong(task: Task, rng: random.Random) -> str:
    choice = rng.randrange(4)
    if choice == 0:
        return _fused(task, shift=f"{float(task.shift) + rng.uniform(0.5, 0.9):.3f}")
    if choice == 1:
        return _fused(task, result=f"v * {rng.uniform(1.3, 1.9):.4f}f")
    if choice == 2:
        return _fused(task, result=f"v + {rng.uniform(0.5, 1.5):.4f}f")
    return _fused(task) + f" for (int64_t i = n - {rng.randrange(20, 200)}; i < n; ++i) y[i] = 7.5f;"


def _body(kind: str, task: Task, rng: random.Random) -> tuple[str, frozenset[str]]:
    right = rng.choice(_STYLES)(task)
    if kind in ("good", "cancelled"):
        return right, frozenset({"CORRECT"})
    if kind == "wrong":
        return _wrong(task, rng), frozenset({"INCORRECT"})
    if kind == "hanging":
        return rng.choice(_HANGS) + " " + right, frozenset({"TIMEOUT"})
    harm = rng.choice(_FORKS if kind == "forking" else _FAULTS)
    return harm + " " + right, frozenset({"RUNTIME_ERROR"})


def make_program(kind: str, number: int, task: Task, rng: random.Random) -> Program:
    """Distinct for distinct numbers: an unused constant says which one it is."""
    body, verdicts = _body(kind, task, rng)
    source = (
        f"{_HEAD}static const int mark_{number} = {number};\n"
        'extern "C" int run(const DLTensor* const* inputs, const DLTensor* const*, DLTensor* const* outputs) {\n'
        "  const float* x = (const float*)inputs[0]->data;\n  float* y = (float*)outputs[0]->data;\n"
        "  const int64_t n = outputs[0]->shape[0] * outputs[0]->shape[1];\n"
        f"  {body}\n  return 0;\n}}\n"
    )
    return Program(kind, task, source, verdicts)


def make_requests(count: int, seed: int) -> list[LogicalRequest]:
    """`count` logical requests in the order in which they are sent.

    What repeats comes after what it repeats: "repeated" under the same id, "copied" under an id of its own.
    """
    rng = random.Random(seed)
    kinds = [kind for kind, share in _SHARES.items() for _ in range(round(share * count))]
    return requests_of(kinds, count, seed, make_tasks(rng), make_program, rng)


def requests_of(
    kinds: list[str],
    count: int,
    seed: int,
    tasks: list[Task],
    make: Callable[[str, int, Task, random.Random], Program],
    rng: random.Random,
) -> list[LogicalRequest]:
    """A new program of each of `kinds`, in any order, and repeated ones up to `count`. What is "cancelled" hangs up."""
    rng.shuffle(kinds)
    fresh = []
    for number, kind in enumerate(kinds):
        program = make(kind, number, rng.choice(tasks), rng)
        hang_up = rng.uniform(*_HANG_UP_SECONDS) if kind == "cancelled" else None
        fresh.append(LogicalRequest(f"soak-{seed}-{number}", kind, program, hang_up))
    return _with_repeats(fresh, count, rng)


def _with_repeats(fresh: list[LogicalRequest], count: int, rng: random.Random) -> list[LogicalRequest]:
    places = sorted(rng.sample(range(1, count), count - len(fresh))) if count > len(fresh) else []
    requests: list[LogicalRequest] = []
    earlier: list[LogicalRequest] = []
    repeats, rest = set(places), iter(fresh)
    for place in range(count):
        if place in repeats and earlier:
            base = rng.choice(earlier[-_RECENT:])
            if rng.random() < 0.5:
                requests.append(LogicalRequest(base.request_id, "repeated", base.program))
            else:
                requests.append(LogicalRequest(f"{base.request_id}-copy-{place}", "copied", base.program))
            continue
        request = next(rest, None)
        if request is not None:
            requests.append(request)
            if request.hang_up_after is None:
                earlier.append(request)
    return requests + list(rest)
