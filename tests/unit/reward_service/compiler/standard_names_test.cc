#include "reward_service/compiler/standard_names.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr std::string_view kNames[] = {"min", "vector"};

TEST_CASE("a program that names nothing of the standard library is told from one that does") {
  CHECK(NamesOnly("", {}));
  CHECK(NamesOnly(
      "#include <cstdint>\n#include \"cuda_fp16.h\"\nint stdlib(int std_, int my_std) { return 0; }\n", {}));
  CHECK(NamesOnly("  #  include <dlpack/dlpack.h>\n#define TWICE(x) \\\n  2 * (x)\n", {}));
  for (const char* source : {"std::min(1, 2)", "std", "using namespace std;", "::std::abs(x)", "a<std ::b>",
                             "// std::vector\n", "cuda::std::min(a, b)"}) {
    INFO(source);
    CHECK_FALSE(NamesOnly(source, {}));
  }
}

TEST_CASE("names that are allowed are allowed behind std alone, and no others") {
  CHECK(NamesOnly("std::vector<int> v(std :: min(1, 2));", kNames));
  CHECK(NamesOnly("sort(minimum)", kNames));
  CHECK_FALSE(NamesOnly("std::minmax(1, 2)", kNames));
  CHECK_FALSE(NamesOnly("std::vector<int> v; std::sort(v.begin(), v.end());", kNames));
  CHECK_FALSE(NamesOnly("using namespace std; min(1, 2);", kNames));
  CHECK_FALSE(NamesOnly("std:", kNames));
}

TEST_CASE("what takes a list is another function than that for two numbers") {
  CHECK_FALSE(NamesOnly("std::min({1, 2, 3})", kNames));
  CHECK_FALSE(NamesOnly("std::min<int> ( { 1, 2 })", kNames));
  CHECK(NamesOnly("std::vector<int> v; use({1, 2});", kNames));
  CHECK(NamesOnly("std::vector<int> v{1, 2}; std::min(v[0], v[1])", kNames));
}

TEST_CASE(
    "headers that may need more of the library, and ways to name one that cannot be read, count as more") {
  for (const char* source :
       {"#include <thrust/sort.h>", "#include <vector>", "#include HEADER", "#include",
        "#include <cuda_fp16.h", "#include_next <cmath>", "#import <cmath>", "__has_include(<version>)"}) {
    INFO(source);
    CHECK_FALSE(NamesOnly(source, kNames));
  }
  CHECK(NamesOnly("#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n", kNames));
}

TEST_CASE("words that the preprocessor could make are not overlooked") {
  CHECK_FALSE(NamesOnly("#define PASTE(a, b) a##b\nPASTE(s, td)::sort(x)", {}));
  CHECK_FALSE(NamesOnly("s\\\ntd::sort(x)", {}));
  CHECK_FALSE(NamesOnly("s\\ \t\r\ntd::sort(x)", {}));
  CHECK_FALSE(NamesOnly("s?\?/\ntd::sort(x)", {}));
  CHECK_FALSE(NamesOnly("%:include <vector>", {}));
  CHECK(NamesOnly("printf(\"x\\n\");\n#define A \\\n 1", {}));
}

TEST_CASE("a word stands in a source where no part of a word is beside it") {
  CHECK(HasWord("forward", "forward"));
  CHECK(HasWord("int is_forward, forward(int);", "forward"));
  CHECK(HasWord("// forward", "forward"));
  CHECK_FALSE(HasWord("is_forward forward2 forwards", "forward"));
  CHECK_FALSE(HasWord("", "forward"));
}

}  // namespace
}  // namespace warpsmith
