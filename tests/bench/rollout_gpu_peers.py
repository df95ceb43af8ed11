"""What the engine on a GPU is measured beside, each in a process of its own: a line of JSON for each batch.

pytorch       rollout_gpu_peer.py, compiled and captured, with one form of attention
static        rollout_gpu_generate.py: transformers with a static cache, all batches compiled at once
transformers  the same with its default cache
ceilings      the device's copies and products, no model

Weights are random, in bfloat16 on a GPU, and are made there. Answers are shorter than the engine's, around the same
mean context: the cache begins at a middle position. It ends where the last token does, which favours the peers: a
static cache for whole answers would be read whole at each step. Prompts and compilation are not timed.

python -m tests.bench.rollout_gpu_peers PEER [--model NAME] [--batch N,N] [--attention NAME] [--context N]
       [--tokens N] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from tests.bench.qwen3_shapes import SHAPES, Shape
from tests.bench.rollout_gpu_generate import Load, default_rows, static_rows
from tests.bench.rollout_gpu_peer import ATTENTIONS, decode_seconds, random_weights

Row = dict[str, Any]

_COPY_BYTES = 4 << 30
_PRODUCT_SIZE = 8192
_REPEATS = 10
_FAILURE_CHARACTERS_MAX = 300


def pytorch_rows(
    shape: Shape, attention: str, batches: Sequence[int], context: int, num_tokens: int, device: str
) -> Iterator[Row]:
    """Of each batch, the fastest of three rounds. Raises RuntimeError where one fails, behind the others' rows."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    weights = random_weights(shape, device, dtype)
    failures = []
    for batch in batches:
        torch._dynamo.reset()  # or it would count the recompilations of all batches together, and refuse
        begin = time.monotonic()
        try:
            seconds = decode_seconds(shape, weights, attention, batch, context, num_tokens)
        except Exception as error:  # of the compiler, whatever it is: the other batches are worth having
            failures.append(f"batch {batch}: {type(error).__name__}: {error}"[:_FAILURE_CHARACTERS_MAX])
        else:
            rate, taken = batch * num_tokens / seconds, time.monotonic() - begin
            yield {"batch": batch, "tok_per_s": rate, "attention": attention, "with_compilation_s": taken}
    if failures:
        raise RuntimeError("; ".join(failures))


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
    parser.add_argument("peer", choices=("pytorch", "static", "transformers", "ceilings"))
    parser.add_argument("--model", choices=SHAPES, default="0.6B")
    parser.add_argument("--batch", default="1")
    parser.add_argument("--attention", choices=ATTENTIONS, default=next(iter(ATTENTIONS)), help="of pytorch")
    parser.add_argument("--context", type=int, default=640, help="mean tokens that a step attends to")
    parser.add_argument("--tokens", type=int, default=64, help="timed steps, even")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args(words)
    torch.manual_seed(1)
    model, batches = arguments.model, [int(batch) for batch in arguments.batch.split(",")]
    context, tokens, device = arguments.context, arguments.tokens, arguments.device
    if arguments.peer == "ceilings":
        rows = ceiling_rows()
    elif arguments.peer == "pytorch":
        rows = pytorch_rows(SHAPES[model], arguments.attention, batches, context, tokens, device)
    else:
        loads = [Load(model, batch, context, tokens, device) for batch in batches]
        rows = static_rows(loads) if arguments.peer == "static" else default_rows(loads)
    for row in rows:
        print(json.dumps({"name": arguments.peer, "model": arguments.model, **row}), flush=True)


if __name__ == "__main__":
    main()
