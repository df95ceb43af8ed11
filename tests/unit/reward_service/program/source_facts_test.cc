#include "reward_service/program/source_facts.h"

#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const std::string kHead = "extern \"C\" int run(const DLTensor* const* inputs, DLTensor* const* outputs) {\n";

TEST_CASE("passes are the nests that are as deep as the deepest") {
  const std::string deep = "for (int i = 0; i < n; ++i) { for (int j = 0; j < m; ++j) out[i] += x[j]; }\n";
  const std::string flat = "for (int i = 0; i < n; ++i) out[i] *= 2;\n";
  const SourceFacts facts =
      ReadSourceFacts(kHead + deep + flat + "while (more) step();\n" + deep + " return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 2);
  CHECK(facts.loop_depth_max == 2);
  CHECK(ReadSourceFacts(kHead + flat + flat + flat + "return 0; }").num_passes == 3);
  CHECK(ReadSourceFacts(kHead + "return 0; }").num_passes == 0);
}

TEST_CASE("loops of a function that a loop calls are deeper, and no pass of their own") {
  const SourceFacts facts = ReadSourceFacts(
      "static float add(const float* x) { float s = 0; for (;;) s += *x; return s; }\n"
      "static float row(const float* x) { return add(x) + row(x); }\n" +
      kHead + "for (long r = 0; r < rows; ++r) out[r] = row(x + r); return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.loop_depth_max == 2);
}

TEST_CASE("comments, strings, dead branches and disabled text do not count") {
  const SourceFacts facts = ReadSourceFacts(kHead +
                                            "// for (;;) {}\n/* for (;;) {} */ puts(\"for (;;) {}\");\n"
                                            "#if 0\nfor (;;) {}\nstd::vector<float> v;\n#endif\n"
                                            "if (false) { for (;;) {} malloc(4); }\nif (0) for (;;) {}\n"
                                            "for (int i = 0; i < n; ++i) out[i] = x[i];\n return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("functions count where run reaches them, and only there") {
  const SourceFacts facts = ReadSourceFacts(
      "static void used(float* x) { for (;;) { for (;;) {} } }\n"
      "static void never(float* x) { for (;;) {} for (;;) {} std::vector<float> v(3); }\n"
      "namespace deep { template <typename T> T middle(T a) { used(a); return a; } }\n" +
      kHead + "return deep::middle(0); }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 1);
  CHECK(facts.loop_depth_max == 2);
  CHECK(facts.num_allocations == 0);
}

TEST_CASE("allocations are counted") {
  const SourceFacts facts = ReadSourceFacts(
      kHead + "std::vector<float> a(n); float* b = (float*)malloc(n); auto c = new float[n]; return 0; }");
  CHECK(facts.num_allocations == 3);
}

TEST_CASE("an innermost loop that multiplies its variable into an index is strided") {
  const auto strided = [](const std::string& body) {
    return ReadSourceFacts(kHead + body + " return 0; }").strided;
  };
  CHECK(
      strided("for (long c = 0; c < cols; ++c) for (long r = 0; r < rows; ++r) out[r * cols + c] = x[r * "
              "cols + c];"));
  CHECK(
      strided("for (long c = 0; c < cols; ++c) { for (long r = 0; r < rows; ++r) {\n"
              "const long i = r * cols + c; float v = x[i]; out[i] = v; } }"));
  CHECK(
      strided("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) { float s = 0;\n"
              "for (int k = 0; k < n; ++k) s += a[i * n + k] * b[n * k + j]; }"));
}

TEST_CASE("rows, blocks, addresses and values that are multiplied are no strides") {
  const auto strided = [](const std::string& body) {
    return ReadSourceFacts("static float row(const float* x) { float s = 0; for (;;) s += 1; return s; }\n" +
                           kHead + body + " return 0; }")
        .strided;
  };
  CHECK_FALSE(
      strided("for (long r = 0; r < rows; ++r) { const float* p = x + r * cols; const long base = r * cols;\n"
              "for (long c = 0; c < cols; ++c) out[base + c] = p[c]; }"));
  CHECK_FALSE(
      strided("for (long b = 0; b < n; b += 1024) for (long i = 0; i < 1024; ++i) out[b + i] = x[b + i];"));
  CHECK_FALSE(strided("for (long r = 0; r < rows; ++r) out[r] = row(&x[r * cols]);"));
  CHECK_FALSE(strided("for (long r = 0; r < rows; ++r) { const long i = r * cols; out[r] = row(x + i); }"));
  CHECK_FALSE(
      strided("for (long i = 0; i < n; ++i) { float v = i * scale; out[i] = v * w[i]; out[i * 2] = v; }"));
  CHECK_FALSE(strided("for (long i = 0; i < n; ++i) out[i] = x[i]; const long m = i * n;"));
  CHECK_FALSE(strided("if (0) { for (long r = 0; r < n; ++r) out[r * n] = 0; }"));
}

TEST_CASE("functions of libm are seen where they are live") {
  const auto calls = [](const std::string& body) {
    return ReadSourceFacts(kHead + body + " return 0; }").calls_libm;
  };
  CHECK(calls("for (;;) out[i] = std::exp(x[i]);"));
  CHECK(calls("for (;;) out[i] = tanhf(x[i]);"));
  CHECK_FALSE(calls("memcpy(out, x, n); float f = sqrtf(x[0]) + fmaxf(a, b);"));
  CHECK_FALSE(calls("if (false) { out[0] = expf(1); }"));
}

TEST_CASE("lambdas, do loops, else branches and switches are read") {
  const SourceFacts facts = ReadSourceFacts(
      kHead +
      "auto f = [&](int a) { for (;;) {} };\n do { g(); } while (a < b);\n"
      "if (a) { for (;;) {} } else for (;;) {}\n switch (a) { case 1: while (b) {} break; default: ; }\n"
      "return 0; }");
  REQUIRE(facts.valid);
  CHECK(facts.num_passes == 5);
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

}  // namespace
}  // namespace warpsmith
