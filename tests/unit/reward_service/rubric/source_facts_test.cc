#include "reward_service/rubric/source_facts.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::string kHead = "extern \"C\" int run(const DLTensor* const* inputs, DLTensor* const* outputs) {\n";

TEST_CASE("loops are counted by nest and depth") {
  const SourceFacts facts =
      ReadSourceFacts(kHead +
                      "for (int i = 0; i < n; ++i) { for (int j = 0; j < m; ++j) out[i] += x[j]; }\n"
                      "for (int i = 0; i < n; ++i) out[i] *= 2;\n"
                      "while (more) step();\n return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_loop_nests == 3);
  CHECK(facts.loop_depth_max == 2);
}

TEST_CASE("comments, strings, dead branches and disabled text do not count") {
  const SourceFacts facts = ReadSourceFacts(kHead +
                                            "// for (;;) {}\n/* for (;;) {} */ puts(\"for (;;) {}\");\n"
                                            "#if 0\nfor (;;) {}\nstd::vector<float> v;\n#endif\n"
                                            "if (false) { for (;;) {} malloc(4); }\nif (0) for (;;) {}\n"
                                            "for (int i = 0; i < n; ++i) out[i] = x[i];\n return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_loop_nests == 1);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("functions count where run reaches them, and only there") {
  const SourceFacts facts = ReadSourceFacts(
      "static void used(float* x) { for (;;) { for (;;) {} } }\n"
      "static void never(float* x) { for (;;) {} for (;;) {} std::vector<float> v(3); }\n"
      "namespace deep { template <typename T> T middle(T a) { used(a); return a; } }\n" +
      kHead + "return deep::middle(0); }");
  REQUIRE(facts.valid);
  CHECK(facts.num_loop_nests == 1);
  CHECK(facts.loop_depth_max == 2);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("allocations are counted") {
  const SourceFacts facts = ReadSourceFacts(
      kHead + "std::vector<float> a(n); float* b = (float*)malloc(n); auto c = new float[n]; return 0; }");
  CHECK(facts.num_allocations == 3);
}

TEST_CASE("lambdas, do loops, else branches and switches are read") {
  const SourceFacts facts = ReadSourceFacts(
      kHead +
      "auto f = [&](int a) { for (;;) {} };\n do { g(); } while (a < b);\n"
      "if (a) { for (;;) {} } else for (;;) {}\n switch (a) { case 1: while (b) {} break; default: ; }\n"
      "return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_loop_nests == 5);
}

TEST_CASE("text without run, or nested beyond reason, has no facts") {
  CHECK_FALSE(ReadSourceFacts("int main() { for (;;) {} }").valid);
  CHECK_FALSE(ReadSourceFacts("").valid);
  CHECK_FALSE(ReadSourceFacts(kHead + std::string(100000, '{')).valid);
  CHECK_FALSE(ReadSourceFacts(kHead + std::string(1000, '{') + std::string(1000, '}')).valid);
  CHECK_FALSE(ReadSourceFacts("\"open R\"(").valid);
  ReadSourceFacts(kHead + "for (((((");
  ReadSourceFacts(kHead + "if (");
}

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
