#include "reward_service/compiler/refusal.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/file.h"
#include "reward_service/compiler/diagnostics.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

HeaderNames Names(const std::string& lines) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "names") << lines;
  return *HeaderNames::Load(folder.path() / "names");
}

TEST_CASE("names are those of the file, and a missing file is an error") {
  const HeaderNames names = Names("einsum\nTORCH_WARN\n");
  CHECK(names.Contains("einsum"));
  CHECK_FALSE(names.Contains("eins"));
  CHECK_FALSE(names.Contains(""));
  CHECK_FALSE(HeaderNames::Load("/no/such/file").ok());
}

TEST_CASE("a name that no header has is the program's own fault, one that some header has is not") {
  const HeaderNames names = Names("einsum\n");
  CHECK_FALSE(MayNeedOtherHeaders("3:1: error: 'twice' was not declared in this scope\n", &names));
  CHECK_FALSE(
      MayNeedOtherHeaders("3:1: error: 'einsumm' is not a member of 'torch'; did you mean 'x'?\n", &names));
  CHECK(MayNeedOtherHeaders("3:1: error: 'einsum' is not a member of 'torch'\n", &names));
  CHECK(MayNeedOtherHeaders("3:1: error: 'twice' was not declared in this scope\n", nullptr));
}

TEST_CASE("a module that is defined twice is the program's own fault, two modules are not") {
  const std::string of_module = "3:1: error: redefinition of 'void* PyInit_twice()'\n";
  const std::string of_binding =
      "3:1: error: redefinition of 'void warpsmith_facade_bind(pybind11::module_&)'\n";
  CHECK_FALSE(MayNeedOtherHeaders(of_module + of_binding, nullptr));
  CHECK_FALSE(MayNeedOtherHeaders("error: redefinition of 'PyObject* PyInit_twice()'\n", nullptr));
  CHECK(MayNeedOtherHeaders(of_binding, nullptr));
}

TEST_CASE("what is told of a program that no header mends leaves out names that headers have") {
  const HeaderNames names = Names("einsum\n");
  const std::string own = "3:1: error: redefinition of 'void* PyInit_twice()'\n2:1: note: here\n";
  CHECK(WithoutKnownNames("9:1: error: 'einsum' is not a member of 'at'\n" + own, names) == own);
  const std::string nowhere = "9:1: error: 'twice' was not declared in this scope\n";
  CHECK(WithoutKnownNames(nowhere + own, names) == nowhere + own);
  CHECK(WithoutKnownNames("", names).empty());
}

TEST_CASE("broken grammar is the program's own fault") {
  CHECK_FALSE(MayNeedOtherHeaders("3:1: error: expected ';' before 'float'\n3:9: note: here\n", nullptr));
}

TEST_CASE("one error that headers could mend is enough, and so is none that was understood") {
  const HeaderNames names = Names("einsum\n");
  CHECK(MayNeedOtherHeaders(
      "3:1: error: expected ';' before 'x'\n4:1: error: 'einsum' was not declared in this scope\n", &names));
  CHECK(MayNeedOtherHeaders("3:1: error: no matching function for call to 'empty(int)'\n", &names));
  CHECK(MayNeedOtherHeaders("3:1: error: expected constructor before '(' token\n", &names));
  CHECK(MayNeedOtherHeaders("ld: undefined symbol: f\n", &names));
  CHECK(MayNeedOtherHeaders("", &names));
}

// What nvcc 13.0.88 wrote, as the program's author sees it.
std::string Kept(const char* name) {
  return TrimDiagnostics(*ReadFile(absl::StrCat("tests/data/nvcc/", name, ".txt")));
}

TEST_CASE("nvcc's words for broken grammar, and what its assembler refuses, are the program's own fault") {
  CHECK_FALSE(MayNeedOtherHeaders(Kept("assembler"), nullptr));
  CHECK_FALSE(MayNeedOtherHeaders(Kept("shared_memory"), nullptr));
  CHECK_FALSE(MayNeedOtherHeaders(Kept("unresolved"), nullptr));
  CHECK_FALSE(MayNeedOtherHeaders(Kept("unterminated"), nullptr));
  CHECK_FALSE(MayNeedOtherHeaders("3: error: expected a \";\"\n", nullptr));
  CHECK(MayNeedOtherHeaders(Kept("arguments"), nullptr));
  CHECK(MayNeedOtherHeaders(Kept("missing_header"), nullptr));
}

TEST_CASE("a name that nvcc misses is told by whether any header has it") {
  const HeaderNames names = Names("einsum\n");
  for (const char* words : {"identifier \"%\" is undefined", "namespace \"torch\" has no member \"%\"",
                            "class \"warpsmith_facade::Tensor\" has no member \"%\""}) {
    const auto about = [&](const char* name) {
      return absl::StrCat("cuda.cu:3: error: ", absl::StrReplaceAll(words, {{"%", name}}), "\n");
    };
    INFO(words);
    CHECK_FALSE(MayNeedOtherHeaders(about("twice"), &names));
    CHECK(MayNeedOtherHeaders(about("einsum"), &names));
    CHECK(LacksAName(about("twice"), names));
    CHECK_FALSE(LacksAName(about("einsum"), names));
  }
  CHECK(LacksAName(Kept("names"), names));
  CHECK(MayNeedOtherHeaders(Kept("names"), &names));  // for one of its errors names nothing
}

TEST_CASE("headers without a name that is missed are passed by") {
  const HeaderNames names = Names("einsum\n");
  CHECK(LacksAName("3:1: error: 'nn' is not a member of 'torch'\n", names));
  CHECK(LacksAName("3:1: error: 'torch::nn' has not been declared\n", names));
  CHECK_FALSE(LacksAName("3:1: error: 'torch::einsum' has not been declared\n", names));
  CHECK_FALSE(LacksAName("3:1: error: no matching function for call to 'empty(int)'\n", names));
  CHECK_FALSE(LacksAName("3:1: note: 'nn' is not a member of 'torch'\n", names));
  CHECK_FALSE(LacksAName("", names));
}

}  // namespace
}  // namespace warpsmith
