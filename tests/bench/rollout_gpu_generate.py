"""generate() of transformers with its default cache, which grows, and with a static one, whose decoding it compiles.

Compiling takes more than a minute for each model and batch, and one core. So each has a process of its own, all compile
at once, and only then are they timed, one after the other. The weights of a model are one allocation that its
processes share.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import BrokenBarrierError
from typing import Any

import torch

from tests.bench.qwen3_shapes import SHAPES

Row = dict[str, Any]

DEFAULT, STATIC = "transformers", "static"  # names of rows
_COMPILE_SECONDS_MAX = 180.0
_TIMING_SECONDS_MAX = 20.0  # of one process
_COMPILER_THREADS = "2"  # of each process
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


def _measure(model: Any, load: Load, compiled: Any, turn: Any, rows: Any) -> None:
    """In a process of its own. Puts its rows, or what failed, and None at its end."""
    try:
        failure = ""
        try:
            step_rate(model, load, STATIC)
        except Exception as error:  # of the compiler, whatever it is: the others are worth having
            failure = f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS_MAX]
        compiled.wait(_COMPILE_SECONDS_MAX)
        with turn:
            for cache in (DEFAULT,) if failure else (STATIC, DEFAULT):
                rate = max(step_rate(model, load, cache) for _ in range(2))
                rows.put({"name": cache, "model": load.model, "batch": load.batch, "tok_per_s": rate})
    except BrokenBarrierError:
        failure = f"not all have compiled after {_COMPILE_SECONDS_MAX:.0f} s"
    except Exception as error:  # likewise
        failure = f"{type(error).__name__}: {error}"[:_MESSAGE_CHARACTERS_MAX]
    finally:
        if failure:
            rows.put(f"{load.model}, batch {load.batch}: {failure}")
        rows.put(None)


def generate_rows(loads: Sequence[Load]) -> Iterator[Row]:
    """Two rows for each load, by name: STATIC, the faster of two calls that are warm, and DEFAULT, likewise. Raises
    RuntimeError where a process fails, behind the rows of those that did not."""
    from transformers import AutoModelForCausalLM

    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = _COMPILER_THREADS
    models = {}
    for load in loads:
        if load.model not in models:
            dtype = torch.bfloat16 if load.device == "cuda" else torch.float32
            config = SHAPES[load.model].transformers_config()
            with torch.device(load.device):
                model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation="sdpa")
            models[load.model] = model.eval()
    context = torch.multiprocessing.get_context("spawn")
    compiled, turn, rows = context.Barrier(len(loads)), context.Lock(), context.Queue()
    processes = [
        context.Process(target=_measure, args=(models[load.model], load, compiled, turn, rows)) for load in loads
    ]
    for process in processes:
        process.start()
    failures, num_left = [], len(processes)
    end = time.monotonic() + _COMPILE_SECONDS_MAX + _TIMING_SECONDS_MAX * len(loads)
    try:
        while num_left:
            answer = rows.get(timeout=max(0.1, end - time.monotonic()))
            if answer is None:
                num_left -= 1
            elif isinstance(answer, str):
                failures.append(answer)
            else:
                yield answer
    except queue.Empty:
        failures.append(f"{num_left} processes did not end in time")
    finally:
        for process in processes:
            process.kill()
            process.join(_TIMING_SECONDS_MAX)
    if failures:
        raise RuntimeError("; ".join(failures))
