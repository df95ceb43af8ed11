"""Writes a task's program as a native CUDA candidate in a given style: a reference statement is a CUDA statement."""

from dataclasses import dataclass, field
from enum import Enum

from datasets.tasks.program import Program, Statement
from datasets.tasks.row_operators import Accumulator, Pass

FAMILIES = ("elementwise", "broadcast", "reduction", "normalisation")
_THREADS = 256


class CudaStyle(Enum):
    """How the work is laid out on a GPU."""

    PASSES = "passes"  # one kernel a statement, each reads and writes the whole array
    ROWS = "rows"  # one thread a row: neighbours read elements that lie far apart
    FUSED = "fused"  # one thread an element, all statements in registers
    BLOCKS = "blocks"  # one block a row, sums in shared memory


def styles_for(program: Program) -> tuple[CudaStyle, ...]:
    """The styles in which a program of FAMILIES can be written, from the slowest to the fastest."""
    if program.row_operator is not None:
        return (CudaStyle.ROWS, CudaStyle.BLOCKS)
    if len(program.before) == 1:
        return (CudaStyle.ROWS, CudaStyle.FUSED)
    return (CudaStyle.ROWS, CudaStyle.PASSES, CudaStyle.FUSED)


@dataclass
class _Kernel:
    name: str
    lines: list[str] = field(default_factory=list)


class _CudaProgram:
    """One rendering of a program in a style."""

    def __init__(self, program: Program, style: CudaStyle) -> None:
        self._program, self._style = program, style
        self._names = [*program.input_shapes, *program.parameter_shapes]

    def write(self) -> str:
        kernels, launches = self._kernels()
        head = ["#include <cuda_runtime.h>", "#include <dlpack/dlpack.h>"]
        return "\n".join([*head, *(line for kernel in kernels for line in self._render(kernel)), *self._run(launches)])

    def _kernels(self) -> tuple[list[_Kernel], list[str]]:
        elements, rows = f"(n + {_THREADS - 1}) / {_THREADS}", f"(rows + {_THREADS - 1}) / {_THREADS}"
        if self._style is CudaStyle.BLOCKS:
            return [self._row_kernel(blocks=True)], [f"f<<<rows, {_THREADS}, 0, stream>>>"]
        if self._program.row_operator is not None:
            return [self._row_kernel(blocks=False)], [f"f<<<{rows}, {_THREADS}, 0, stream>>>"]
        texts = self._texts(self._program.before)
        if self._style is CudaStyle.ROWS:
            return [self._thread_a_row(texts)], [f"f<<<{rows}, {_THREADS}, 0, stream>>>"]
        if self._style is CudaStyle.FUSED:
            return [self._thread_an_element("f", "x[i]", texts)], [f"f<<<{elements}, {_THREADS}, 0, stream>>>"]
        names = [f"f{number}" for number in range(len(texts))]
        kernels = [
            self._thread_an_element(name, "x[i]" if number == 0 else "out[i]", [text])
            for number, (name, text) in enumerate(zip(names, texts, strict=True))
        ]
        return kernels, [f"{name}<<<{elements}, {_THREADS}, 0, stream>>>" for name in names]

    # Pieces ----------------------------------------------------------------------------------------------------

    def _texts(self, statements: tuple[Statement, ...]) -> list[str]:
        place = {"full": "i", "row": "c", "parameter": "c", "column": "r"}
        return [
            statement.render(s.cpp, f"{statement.operand}[{place.get(s.operand, '')}]")
            for statement in statements
            for s in (statement.operator,)
        ]

    def _render(self, kernel: _Kernel) -> list[str]:
        pointers = ", ".join(f"const float* {name}" for name in self._names)
        head = f"__global__ void {kernel.name}({pointers}, float* out, long rows, long cols) {{"
        return [head, *("  " + line for line in kernel.lines), "}"]

    def _run(self, launches: list[str]) -> list[str]:
        lines = [
            'extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, '
            "DLTensor* const* outputs, cudaStream_t stream) {"
        ]
        for index, name in enumerate(self._program.input_shapes):
            lines.append(f"  const float* {name} = (const float*)inputs[{index}]->data;")
        for index, name in enumerate(self._program.parameter_shapes):
            lines.append(f"  const float* {name} = (const float*)parameters[{index}]->data;")
        lines += [
            "  float* out = (float*)outputs[0]->data;",
            "  const long rows = inputs[0]->shape[0];",
            "  const long cols = inputs[0]->shape[1];",
        ]
        if any("(n +" in launch for launch in launches):
            lines.append("  const long n = rows * cols;")
        arguments = ", ".join([*self._names, "out", "rows", "cols"])
        lines += [f"  {launch}({arguments});" for launch in launches]
        return [*lines, "  return cudaGetLastError();", "}", ""]

    # Elements --------------------------------------------------------------------------------------------------

    def _thread_an_element(self, name: str, source: str, texts: list[str]) -> _Kernel:
        lines = [
            "const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;",
            "if (i >= rows * cols) return;",
        ]
        body = " ".join(texts)
        if "[r]" in body:
            lines.append("const long r = i / cols;")
        if "[c]" in body:
            lines.append("const long c = i % cols;")
        return _Kernel(name, [*lines, f"float v = {source};", *texts, "out[i] = v;"])

    def _thread_a_row(self, texts: list[str]) -> _Kernel:
        lines = [*self._own_row(), "for (long c = 0; c < cols; ++c) {", "  const long i = r * cols + c;"]
        lines += ["  " + text for text in ("float v = x[i];", *texts, "out[i] = v;")]
        return _Kernel("f", [*lines, "}"])

    @staticmethod
    def _own_row() -> list[str]:
        return ["const long r = blockIdx.x * (long)blockDim.x + threadIdx.x;", "if (r >= rows) return;"]

    # Rows ------------------------------------------------------------------------------------------------------

    def _row_kernel(self, blocks: bool) -> _Kernel:
        operator = self._program.row_operator
        assert operator is not None
        lines = [f"__shared__ float t[{_THREADS}];", "const long r = blockIdx.x;"] if blocks else self._own_row()
        source, before, after = "x[i]", self._texts(self._program.before), self._texts(self._program.after)
        for number, visit in enumerate(operator.passes):
            final = number + 1 == len(operator.passes) and not operator.is_reduction
            texts = [*before, *visit.statements, *(after if final else [])]
            stores = not operator.is_reduction and bool(texts or final)
            lines += self._visit(visit, source, texts, stores, blocks)
            lines += visit.after
            if stores:
                source, before = "out[i]", []
        if operator.is_reduction:
            lines += ["if (threadIdx.x > 0) return;"] if blocks else []
            lines += [f"float v = {operator.result};", *after, "out[r] = v;"]
        return _Kernel("f", lines)

    def _visit(self, visit: Pass, source: str, texts: list[str], stores: bool, blocks: bool) -> list[str]:
        accumulator = visit.accumulator
        lines = [f"float {accumulator.name} = {accumulator.initial};"] if accumulator else []
        first, step = ("threadIdx.x", "c += blockDim.x") if blocks else ("0", "++c")
        lines.append(f"for (long c = {first}; c < cols; {step}) {{")
        lines += ["  const long i = r * cols + c;", f"  float v = {source};", *("  " + text for text in texts)]
        lines += ["  out[i] = v;"] if stores else []
        lines += [f"  {accumulator.update}"] if accumulator else []
        return [*lines, "}", *(self._share(accumulator) if accumulator and blocks else [])]

    @staticmethod
    def _share(accumulator: Accumulator) -> list[str]:
        """What the threads of a block have, folded into one value that all of them get."""
        name, mine, other = accumulator.name, "t[threadIdx.x]", "t[threadIdx.x + k]"
        fold = f"{mine} + {other}" if accumulator.operation == "+" else f"f{accumulator.operation}f({mine}, {other})"
        return [
            f"{mine} = {name};",
            "__syncthreads();",
            f"for (int k = {_THREADS // 2}; k > 0; k /= 2) {{",
            f"  if (threadIdx.x < k) {mine} = {fold};",
            "  __syncthreads();",
            "}",
            f"{name} = t[0];",
            "__syncthreads();",
        ]


def write_cuda(program: Program, style: CudaStyle) -> str:
    """The candidate's source, of a program of FAMILIES. The style must be one of `styles_for(program)`."""
    return _CudaProgram(program, style).write()


def as_cuda_answer(source: str) -> str:
    """An answer is one fenced block."""
    return f"```cuda\n{source}```"
