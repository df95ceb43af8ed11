#include "reward_service/compiler/precompiled_headers.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

const Toolchain& Compiler() {
  static const Toolchain toolchain = *ProbeToolchain();
  return toolchain;
}

TEST_CASE("headers are made once a set of flags, and for as many sets as are allowed") {
  const TemporaryDirectory folder;
  PrecompiledHeaders headers(&Compiler(), folder.path());
  const std::vector<std::string> first =
      headers.Include("#include <cstdint>\n", {"-O1"}, {.num_sets_max = 2});
  REQUIRE(first.size() == 2);
  CHECK(first[0] == "-include");
  CHECK(std::filesystem::exists(first[1] + ".gch"));
  CHECK(headers.Include("#include <cstdint>\n", {"-O1"}, {.num_sets_max = 2}) == first);
  CHECK(headers.Include("#include <cstdint>\n", {"-O2"}, {.num_sets_max = 2}) != first);
  CHECK(headers.Include("#include <cstdint>\n", {"-O3"}, {.num_sets_max = 2}).empty());
  CHECK(headers.Include("#include <cstddef>\n", {"-O3"}, {.num_sets_max = 2}).size() == 2);
}

TEST_CASE("what is used once or twice is not made, what an earlier service made is used") {
  const TemporaryDirectory folder;
  const std::string text = "#include <cstdint>\n";
  const PrecompilePolicy policy{.num_plain_uses = 2};
  PrecompiledHeaders headers(&Compiler(), folder.path());
  CHECK(headers.Include(text, {}, policy).empty());
  CHECK(headers.Include(text, {}, policy).empty());
  const std::vector<std::string> third = headers.Include(text, {}, policy);
  CHECK(third.size() == 2);
  PrecompiledHeaders later(&Compiler(), folder.path());
  CHECK(later.Include(text, {}, policy) == third);
}

TEST_CASE("headers that do not compile are left out, again and again") {
  const TemporaryDirectory folder;
  PrecompiledHeaders headers(&Compiler(), folder.path());
  CHECK(headers.Include("#include <no/such/header.h>\n", {}, {}).empty());
  CHECK(headers.Include("#include <no/such/header.h>\n", {}, {}).empty());
}

}  // namespace
}  // namespace warpsmith
