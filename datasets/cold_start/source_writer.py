"""Builds a C++ candidate line by line: the entry point of the contract around a body, with what the body needs."""

# All that any program may call: which ones it will need is thus not to be known before the first statement.
_VECTOR_FUNCTIONS = (
    'extern "C" __attribute__((simd("notinbranch"))) float expf(float) noexcept, tanhf(float) noexcept, '
    "erff(float) noexcept, log1pf(float) noexcept, expm1f(float) noexcept, logf(float) noexcept, "
    "sinf(float) noexcept, cosf(float) noexcept;"
)
# Not fast-math whole: its reciprocals turn 1 / (1 + exp(large)) into NaN.
_FAST_MATH = (
    '#pragma GCC optimize("associative-math", "finite-math-only", "no-signed-zeros", "no-math-errno", '
    '"no-trapping-math")'
)
_SIGNATURE = (
    'extern "C" int run(const DLTensor* const* inputs, const DLTensor* const* parameters, DLTensor* const* outputs) {'
)


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

    def render(self, vector_functions: bool, fast_math: bool) -> str:
        """The whole program. With `vector_functions` libm's functions are declared for vector lanes."""
        body = "\n".join(self._lines)
        head = ["#include <dlpack/dlpack.h>", "#include <cmath>"]
        if "std::vector" in body:
            head.append("#include <vector>")
        if fast_math:
            head.append(_FAST_MATH)  # after the includes, or no precompiled header serves them
        if vector_functions:
            head.append(_VECTOR_FUNCTIONS)
        return "\n".join([*head, _SIGNATURE, body, "  return 0;", "}"]) + "\n"
