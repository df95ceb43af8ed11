"""What the engine on a GPU is measured beside, each in a process of its own: a line of JSON for each batch.

transformers  generate() of AutoModelForCausalLM, sdpa, a cache that grows
static        the same with a static cache, whose decoding transformers compiles (Inductor, CUDA graphs)
pytorch       rollout_gpu_peer.py, compiled and captured; the fastest of its forms of attention
ceilings      the device's copies and products, no model

Weights are random, in bfloat16 on a GPU, and are made there. Answers are shorter than the engine's, around the same
mean context: the cache begins at a middle position. It ends where the last token does, which favours the peers: a
static cache for whole answers would be read whole at each step. Prompts and compilation are not timed.

python -m tests.bench.rollout_gpu_peers PEER [--model NAME] [--batch N,N] [--context N] [--tokens N] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tests.bench.qwen3_shapes import SHAPES, Shape
from tests.bench.rollout_gpu_peer import ATTENTIONS, decode_seconds, random_weights

Row = dict[str, Any]

_COPY_BYTES = 4 << 30
_PRODUCT_SIZE = 8192
_REPEATS = 10
_FAILURE_CHARACTERS_MAX = 300


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


def transformers_rows(
    shape: Shape, batches: Sequence[int], context: int, num_tokens: int, device: str, static: bool
) -> Iterator[Row]:
    """Of each batch, a timed call after one that warms; with `static` the faster of two after one that compiles."""
    from transformers import AutoModelForCausalLM, LogitsProcessorList

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            shape.transformers_config(), dtype=dtype, attn_implementation="sdpa"
        ).eval()
    cache = {"cache_implementation": "static"} if static else {}
    for batch in batches:
        prompt = torch.randint(shape.vocab_size, (batch, context - num_tokens // 2), device=device)
        seconds = []
        for _ in range(3 if static else 2):
            clock = StepClock(num_tokens + 1, device)
            out = model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=1.0,
                max_new_tokens=num_tokens + 1,
                logits_processor=LogitsProcessorList([clock]),
                **cache,
            )
            if out.shape[1] != prompt.shape[1] + num_tokens + 1:
                raise RuntimeError(f"transformers made {out.shape[1] - prompt.shape[1]} tokens, not {num_tokens + 1}")
            seconds.append(clock.seconds)
        yield {"batch": batch, "tok_per_s": batch * num_tokens / min(seconds[1:])}


def pytorch_rows(shape: Shape, batches: Sequence[int], context: int, num_tokens: int, device: str) -> Iterator[Row]:
    """Of each batch, the fastest of three rounds of the fastest form of attention so far."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    weights = random_weights(shape, device, dtype)
    for batch in batches:
        rates: dict[str, float] = {}
        failures: dict[str, str] = {}
        for attention in ATTENTIONS:
            torch._dynamo.reset()  # or it would count the recompilations of all forms together, and refuse
            try:
                seconds = decode_seconds(shape, weights, attention, batch, context, num_tokens)
            except Exception as error:  # of the compiler, whatever it is: the other forms are worth having
                failures[attention] = f"{type(error).__name__}: {error}"[:_FAILURE_CHARACTERS_MAX]
            else:
                rates[attention] = batch * num_tokens / seconds
            # Line by line, for a process that is ended early: the last one counts.
            if rates:
                yield {"batch": batch, "tok_per_s": max(rates.values()), "by_attention": rates, "failures": failures}
        if not rates:
            raise RuntimeError(f"no form of attention works: {failures}")


def _device_seconds(work: Any) -> list[float]:
    """Of each of ten calls, after three that are not timed."""
    seconds = []
    for i in range(3 + _REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        if i >= 3:
            seconds.append(begin.elapsed_time(end) / 1e3)
    return seconds


def ceiling_rows() -> Iterator[Row]:
    """Best copy of 4 GiB, bytes read and written; mean of ten 8192^3 products of normal numbers in bfloat16."""
    import transformers

    source = torch.empty(_COPY_BYTES, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    copy = min(_device_seconds(lambda: target.copy_(source)))
    a, b = (torch.randn(_PRODUCT_SIZE, _PRODUCT_SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    product = _device_seconds(lambda: torch.mm(a, b, out=out))
    yield {
        "copy_tb_per_s": 2 * _COPY_BYTES / copy / 1e12,
        "product_tflops": 2 * _PRODUCT_SIZE**3 * len(product) / sum(product) / 1e12,
        "gpu": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("transformers", "static", "pytorch", "ceilings"))
    parser.add_argument("--model", choices=SHAPES, default="0.6B")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--context", type=int, default=640, help="mean tokens that a step attends to")
    parser.add_argument("--tokens", type=int, default=64, help="timed steps, even")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args(words)
    torch.manual_seed(1)
    load = ([int(batch) for batch in arguments.batch.split(",")], arguments.context, arguments.tokens, arguments.device)
    shape = SHAPES[arguments.model]
    if arguments.peer == "ceilings":
        rows = ceiling_rows()
    elif arguments.peer == "pytorch":
        rows = pytorch_rows(shape, *load)
    else:
        rows = transformers_rows(shape, *load, static=arguments.peer == "static")
    for row in rows:
        print(json.dumps({"name": arguments.peer, "model": arguments.model, **row}), flush=True)


if __name__ == "__main__":
    main()
