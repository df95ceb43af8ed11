"""generate() of transformers with its default cache, which grows, and with a static one, whose decoding it compiles.

Compiling takes more than a minute for each model and batch, and one core. So each batch has a process of its own, all
compile at once, and only then are they timed, one after the other. The weights of a model are one allocation that its
processes share. Who has not compiled in time is ended, and the others are timed without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import torch

from tests.bench.qwen3_shapes import SHAPES

Row = dict[str, Any]

DEFAULT, STATIC = "transformers", "static"  # names of rows
COMPILE_SECONDS_MAX = 90.0
_TIMING_SECONDS_MAX = 10.0  # of one batch
_COMPILER_THREADS = "4"  # of each process
_MESSAGE_CHARACTERS_MAX = 300


class StepClock:
    """A logits processor that changes nothing and tells when the first token's and the last token's logits were there.

    Between the two are as many steps and samples as tokens follow the first."""

    def __init__(self, num_tokens: int, device: str) -> None:
        self._last = num_tokens - 1
        self._on_gpu = device == "cuda"
        self._calls = 0
        self._begin = 0.0
        self.seconds = 0.0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if self._calls in (0, self._last):
            if self._on_gpu:
                torch.cuda.synchronize()
            now = time.perf_counter()
            self._begin, self.seconds = (now, 0.0) if self._calls == 0 else (self._begin, now - self._begin)
        self._calls += 1
        return scores


@dataclass(frozen=True)
class Load:
    """`num_tokens` timed steps of `batch` sequences around a mean context of `context` tokens."""

    model: str
    batch: int
    context: int
    num_tokens: int
    device: str


def step_rate(model: Any, load: Load, cache: str) -> float:
    """Tokens a second of one call of generate(), its prompt aside. Raises RuntimeError where it ends early."""
    from transformers import LogitsProcessorList

    size = (load.batch, load.context - load.num_tokens // 2)
    prompt = torch.randint(SHAPES[load.model].vocab_size, size, device=load.device)
    clock = StepClock(load.num_tokens + 1, load.device)
    out = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        max_new_tokens=load.num_tokens + 1,
        logits_processor=LogitsProcessorList([clock]),
        **({"cache_implementation": "static"} if cache == STATIC else {}),
    )
    made = out.shape[1] - prompt.shape[1]
    if made != load.num_tokens + 1:
        raise RuntimeError(f"transformers made {made} tokens, not {load.num_tokens + 1}")
    return load.batch * load.num_tokens / clock.seconds


def _row(model: Any, load: Load, cache: str) -> Row:
    """The faster of two calls."""
    rate = max(step_rate(model, load, cache) for _ in range(2))
    return {"name": cache, "model": load.model, "batch": load.batch, "tok_per_s": rate}


def random_model(load: Load) -> Any:
    """In bfloat16 on a GPU, in float32 on a CPU."""
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if load.device == "cuda" else torch.float32
    config = SHAPES[load.model].transformers_config()
    with torch.device(load.device):
        return AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa").eval()


def default_rows(loads: Sequence[Load]) -> Iterator[Row]:
    """One for each load of one model, with the default cache."""
    model = random_model(loads[0])
    for load in loads:
        step_rate(model, replace(load, num_tokens=2), DEFAULT)  # first calls of libraries
        yield _row(model, load, DEFAULT)


def _compile_and_measure(model: Any, load: Load, parent: Connection) -> None:
    """In a process of its own. Sends the seconds of compilation, waits for its turn, and sends its row; a text tells
    what failed."""
    begin = time.perf_counter()
    try:
        step_rate(model, load, STATIC)
        seconds = time.perf_counter() - begin
        parent.send(seconds)
        parent.recv()
        parent.send({**_row(model, load, STATIC), "compile_s": seconds})
    except EOFError:
        return  # the parent has ended
    except Exception as error:  # of the compiler, whatever it is: the others are worth having
        parent.send(f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS_MAX])


def static_rows(loads: Sequence[Load], compile_seconds_max: float = COMPILE_SECONDS_MAX) -> Iterator[Row]:
    """One for each load of one model, with the static cache. Raises RuntimeError where one fails or is late, behind the
    rows of the others."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = _COMPILER_THREADS
    model = random_model(loads[0])
    context = torch.multiprocessing.get_context("spawn")
    processes, ends = [], []
    for load in loads:
        end, child_end = context.Pipe()
        ends.append(end)
        processes.append(context.Process(target=_compile_and_measure, args=(model, load, child_end)))
    failures = []
    try:
        for process in processes:
            process.start()
        deadline = time.monotonic() + compile_seconds_max
        answers = [_answer(end, deadline) for end in ends]
        for process, answer in zip(processes, answers, strict=True):
            if not isinstance(answer, float):
                process.kill()  # or it would compile beside those that are timed
        for load, end, answer in zip(loads, ends, answers, strict=True):
            if isinstance(answer, float):
                end.send(None)
                answer = _answer(end, time.monotonic() + _TIMING_SECONDS_MAX)
            if isinstance(answer, dict):
                yield answer
            else:
                failures.append(f"{load.model}, batch {load.batch}: {answer}")
    finally:
        for process in processes:
            process.kill()
            process.join(_TIMING_SECONDS_MAX)
    if failures:
        raise RuntimeError("; ".join(failures))


def _answer(end: Connection, deadline: float) -> Any:
    """What a process sends until `deadline`, else a text that says so."""
    if not end.poll(max(0.0, deadline - time.monotonic())):
        return "no answer in time"
    try:
        return end.recv()
    except EOFError:
        return "the process ended without an answer"
