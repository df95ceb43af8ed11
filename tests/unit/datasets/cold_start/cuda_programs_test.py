"""Every style of every family computes what PyTorch does, on a GPU made of the host's threads."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from datasets.cold_start.cuda_programs import FAMILIES, CudaStyle, as_cuda_answer, styles_for, write_cuda
from datasets.cold_start.verify_answers import check
from datasets.tasks.grammar import draw_program
from datasets.tasks.program import Program, Statement, render_reference
from datasets.tasks.reference import load_reference

_ROWS, _COLS = 13, 131

# Blocks run one after the other, the threads of a block together.
_HOST_GPU = """
#include <pthread.h>
#include <cmath>
#include <thread>
#include <vector>
struct Dim { unsigned x; };
static thread_local Dim blockIdx, threadIdx;
static Dim blockDim;
static pthread_barrier_t barrier;
#define __global__ static
#define __shared__ static
static void __syncthreads() { pthread_barrier_wait(&barrier); }
typedef void* cudaStream_t;
static int cudaGetLastError() { return 0; }
template <typename Kernel> void launch(long blocks, unsigned threads, Kernel kernel) {
  blockDim.x = threads;
  pthread_barrier_init(&barrier, nullptr, threads);
  for (long block = 0; block < blocks; ++block) {
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread) {
      all.emplace_back([=] { blockIdx.x = block; threadIdx.x = thread; kernel(); });
    }
    for (std::thread& thread : all) thread.join();
  }
}
"""


def _for_the_host(source: str) -> str:
    """The program with its launches as calls."""
    source = source.replace("#include <cuda_runtime.h>", _HOST_GPU)
    return re.sub(r"(\w+)<<<(.+?), (\d+), 0, stream>>>\((.*)\);", r"launch(\2, \3, [&] { \1(\4); });", source)


def _programs(family: str) -> list[Program]:
    rng = random.Random(11)
    return [replace(draw_program(rng, family), rows=_ROWS, cols=_COLS) for _ in range(2)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_style_is_right(family: str, tmp_path: Path) -> None:
    for number, program in enumerate(_programs(family)):
        reference = load_reference(render_reference(program))
        for style in styles_for(program):
            source = _for_the_host(write_cuda(program, style))
            assert "<<<" not in source
            assert check(source, reference, tmp_path, f"{style.value}_{number}") == "", f"{style.value}\n{source}"


def test_a_wrong_program_is_found_wrong(tmp_path: Path) -> None:
    program = Program(_ROWS, _COLS, (Statement("scale", ("0.5",)),))
    source = _for_the_host(write_cuda(program, CudaStyle.FUSED))
    reference = load_reference(render_reference(program))
    assert check(source.replace("0.5f", "0.7f"), reference, tmp_path, "wrong").startswith("wrong values")


def test_styles_differ_by_their_launches() -> None:
    program = Program(_ROWS, _COLS, (Statement("relu"), Statement("square"), Statement("tanh")))
    launches = {style: write_cuda(program, style).count("<<<") for style in styles_for(program)}
    assert launches == {CudaStyle.ROWS: 1, CudaStyle.PASSES: 3, CudaStyle.FUSED: 1}
    by_row = Program(_ROWS, _COLS, (), "softmax")
    assert styles_for(by_row) == (CudaStyle.ROWS, CudaStyle.BLOCKS)
    assert "__syncthreads" in write_cuda(by_row, CudaStyle.BLOCKS)


def test_an_answer_is_one_fenced_block() -> None:
    assert as_cuda_answer("int x;\n") == "```cuda\nint x;\n```"
