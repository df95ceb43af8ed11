#include "reward_service/program/renamed_copy.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::string kHead = "extern \"C\" int run(const DLTensor* const* inputs, DLTensor* const* outputs) {\n";

TEST_CASE("a program with other names, comments and layout is a copy") {
  const std::string program = kHead +
                              "const float* x = in(0); std::vector<float> t(n);\n"
                              "for (int i = 0; i < n; ++i) t[i] = std::exp(x[i]) - x[0]; return 0; }";
  const std::string renamed =
      kHead +
      "const float* from = in(0);\n// other words\nstd::vector<float> kept(n);\n"
      "for (int at = 0; at < n; ++at)\n  kept[at] = std::exp(from[at]) - from[0];\nreturn 0; }";
  CHECK(IsRenamedCopy(program, program));
  CHECK(IsRenamedCopy(program, renamed));
  CHECK(IsRenamedCopy("", ""));
}

TEST_CASE("another function, number, order, operand or pragma is no copy") {
  const std::string body = "float a = in(0); float b = in(1); for (;;) { a = std::sin(a) - b * 2; } }";
  const std::string program = kHead + body;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = program;
    return other.replace(other.rfind(from), from.size(), to);
  };
  CHECK_FALSE(IsRenamedCopy(program, changed("sin", "cos")));
  CHECK_FALSE(IsRenamedCopy(program, changed("* 2", "* 3")));
  CHECK_FALSE(IsRenamedCopy(program, changed("sin(a) - b", "sin(b) - a")));
  CHECK_FALSE(IsRenamedCopy(program, changed("for (;;)", "\n#pragma omp parallel for\nfor (;;)")));
  CHECK(IsRenamedCopy(program, "#include <cmath>\n" + program));
}

}  // namespace
}  // namespace warpsmith
