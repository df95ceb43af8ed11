"""Builds a C++ candidate line by line: the entry point of the contract around a body, with what the body needs."""

import re

_VECTOR_FUNCTIONS = ("expf", "tanhf", "erff", "log1pf", "expm1f", "logf", "sinf", "cosf")
_FLOAT_FUNCTIONS = (
    *("exp", "expm1", "log", "log1p", "tanh", "erf", "sin", "cos", "sqrt", "pow"),
    *("fabs", "fmax", "fmin"),
)
# Not fast-math whole: its reciprocals turn 1 / (1 + exp(large)) into NaN.
_FAST_MATH = (
    '#pragma GCC optimize("associative-math", "finite-math-only", "no-signed-zeros", "no-math-errno", '
    '"no-trapping-math")'
)
_SIGNATURE = (
    'extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs) {'
)


def _widened(body: str) -> str:
    """The same with scalars, functions and literals of type double; what is in memory stays float."""
    body = re.sub(r"\bfloat (\w+) =", r"double \1 =", body)
    body = re.sub(rf"\b({'|'.join(_FLOAT_FUNCTIONS)})f\(", r"\1(", body)
    return re.sub(r"\b(\d+(?:\.\d+)?(?:e-?\d+)?)f\b", r"\1", body)


class SourceWriter:
    """Collects the lines of the body, indented by two spaces a block."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 1

    def add(self, *lines: str) -> None:
        self._lines += ["  " * self._depth + line for line in lines]

    def pragma(self, text: str) -> None:
        """A pragma stands at the depth of the loop that it governs."""
        if text:
            self.add("#pragma omp " + text)

    def open(self, head: str) -> None:
        self.add(head + " {")
        self._depth += 1

    def close(self) -> None:
        self._depth -= 1
        self.add("}")

    def render(self, vector_functions: bool, fast_math: bool, double: bool) -> str:
        """The whole program. With `vector_functions` the libm functions in use are declared for vector lanes."""
        body = "\n".join(self._lines)
        if double:
            body = _widened(body)
        head = [_FAST_MATH] if fast_math else []
        head += ["#include <dlpack/dlpack.h>", "#include <cmath>"]
        if "std::vector" in body:
            head.append("#include <vector>")
        if vector_functions:
            for name in _VECTOR_FUNCTIONS:
                if re.search(rf"\b{name}\(", body):
                    head += ["#pragma omp declare simd notinbranch", f'extern "C" float {name}(float) noexcept;']
        return "\n".join([*head, _SIGNATURE, body, "  return 0;", "}"]) + "\n"
