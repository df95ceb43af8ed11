#include "reward_service/compiler/halves/cuda_text.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

CudaText Of(std::string_view source) {
  auto lexemes = LexCuda(source);
  REQUIRE(lexemes.has_value());
  return CudaText(*std::move(lexemes));
}

TEST_CASE("brackets and angles end where they are closed, or nowhere") {
  const CudaText text = Of("f<a, (b > c)>(x[1], {2})");
  CHECK(text.BehindAngles(1) == 10);
  CHECK(text.BehindBrackets(10) == text.size());
  CHECK(Of("(a[b)").BehindBrackets(0) == kNoLexeme);
  CHECK(Of("<a; b>").BehindAngles(0) == kNoLexeme);
  CHECK(Of("<(a>").BehindAngles(0) == kNoLexeme);
}

TEST_CASE("words are counted outside of literals") {
  const CudaText text = Of("f(a, \"a\", a);");
  CHECK(text.Count("a") == 2);
  CHECK(text.Count("b") == 0);
}

TEST_CASE("angles that are looked for again and again have no end") {
  std::string source;
  for (int i = 0; i < 10000; ++i) source += "a<";
  const CudaText text = Of(source);
  for (size_t i = 1; i < text.size() && !text.IsTooLong(); i += 2) CHECK(text.BehindAngles(i) == kNoLexeme);
  CHECK(text.IsTooLong());
  CHECK_FALSE(Of("f<a>(b)").IsTooLong());
}

TEST_CASE("three signs are a launch's only where nothing stands between them") {
  CHECK(Of("k<<<1, 2>>>()").IsTriple(1, "<"));
  CHECK_FALSE(Of("k< <<1").IsTriple(1, "<"));
  CHECK_FALSE(Of("k<<").IsTriple(1, "<"));
}

TEST_CASE("a kernel's name stands before its parameters, not before those of its attributes") {
  const CudaText text = Of("__global__ void __launch_bounds__(256, 2) scale(float* x)");
  CHECK(text[text.NameBehind(0)].text == "scale");
  CHECK(Of("__global__ void").NameBehind(0) == kNoLexeme);
  CHECK(Of("__global__ __launch_bounds__(").NameBehind(0) == kNoLexeme);
}

TEST_CASE("a declaration is a function, a type or a value, and ends with it") {
  const CudaText text =
      Of("struct A { int a; }; static const int n[] = {1}; inline int f(int a) { return a; } int g;");
  const auto type = text.ReadItem(0, text.size());
  REQUIRE(type);
  CHECK(type->is_type);
  const auto value = text.ReadItem(type->end, text.size());
  REQUIRE(value);
  CHECK((value->has_value && value->Has("const") && value->body == kNoLexeme));
  CHECK(text.HasSign(*value, "{"));
  const auto function = text.ReadItem(value->end, text.size());
  REQUIRE(function);
  CHECK(function->body != kNoLexeme);
  CHECK(text.NameOf(*function) == "f");
  CHECK(text.Text(function->end, text.size()) == "int g;");
  CHECK_FALSE(text.ReadItem(text.size() - 2, text.size() - 1));
  CHECK_FALSE(Of("int f() {\n#define A\n}").ReadItem(0, 8));
}

TEST_CASE("namespaces and blocks with C linkage open a scope") {
  CHECK(Of("namespace { }").OpensScope(0) == 1);
  CHECK(Of("inline namespace a::b { }").OpensScope(0) == 6);
  CHECK(Of("extern \"C\" { }").OpensScope(0) == 2);
  CHECK(Of("extern \"C\" int f();").OpensScope(0) == kNoLexeme);
  CHECK(Of("namespace a = b;").OpensScope(0) == kNoLexeme);
  CHECK(Of("namespace").OpensScope(0) == kNoLexeme);
}

}  // namespace
}  // namespace warpsmith
