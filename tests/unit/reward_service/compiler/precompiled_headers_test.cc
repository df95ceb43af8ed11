#include "reward_service/compiler/precompiled_headers.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const Toolchain& Compiler() {
  static const Toolchain toolchain = *ProbeToolchain();
  return toolchain;
}

TEST_CASE("headers are made in the background once a set of flags, and for as many sets as are allowed") {
  const TemporaryDirectory folder;
  PrecompiledHeaders headers(&Compiler(), folder.path());
  const std::string text = "#include <cstdint>\n";
  const PrecompilePolicy policy{.num_sets_max = 2};
  CHECK(headers.Include(text, {"-O1"}, policy).empty());
  CHECK(headers.Include(text, {"-O2"}, policy).empty());
  CHECK(headers.Include(text, {"-O3"}, policy).empty());
  headers.AwaitIdle();
  const std::vector<std::string> first = headers.Include(text, {"-O1"}, policy);
  REQUIRE(first.size() == 2);
  CHECK(first[0] == "-include");
  CHECK(std::filesystem::exists(first[1] + ".gch"));
  CHECK(headers.Include(text, {"-O2"}, policy).size() == 2);
  CHECK(headers.Include(text, {"-O2"}, policy) != first);
  CHECK(headers.Include(text, {"-O3"}, policy).empty());
}

TEST_CASE("what is used once or twice is not made, what an earlier service made is used") {
  const TemporaryDirectory folder;
  const std::string text = "#include <cstdint>\n";
  const PrecompilePolicy policy{.num_plain_uses = 2};
  PrecompiledHeaders headers(&Compiler(), folder.path());
  for (int use = 0; use < 2; ++use) CHECK(headers.Include(text, {}, policy).empty());
  headers.AwaitIdle();
  CHECK(headers.Include(text, {}, policy).empty());
  headers.AwaitIdle();
  const std::vector<std::string> fourth = headers.Include(text, {}, policy);
  CHECK(fourth.size() == 2);
  PrecompiledHeaders later(&Compiler(), folder.path());
  CHECK(later.Include(text, {}, policy) == fourth);
}

TEST_CASE("headers that do not compile are left out, again and again") {
  const TemporaryDirectory folder;
  PrecompiledHeaders headers(&Compiler(), folder.path());
  for (int use = 0; use < 3; ++use) {
    CHECK(headers.Include("#include <no/such/header.h>\n", {}, {}).empty());
    headers.AwaitIdle();
  }
}

TEST_CASE("headers that nobody waits for do not hold up the end") {
  const TemporaryDirectory folder;
  const absl::Time begin = absl::Now();
  {
    PrecompiledHeaders headers(&Compiler(), folder.path());
    // Minutes of work for the compiler.
    const char* const text =
        "constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i; return s; }\n"
        "static_assert(f(1L << 40) > 0);\n";
    headers.Include(text, {"-fconstexpr-loop-limit=2147483647", "-fconstexpr-ops-limit=9000000000000"}, {});
  }
  CHECK(absl::Now() - begin < absl::Seconds(20));
}

}  // namespace
}  // namespace warpsmith
