// Compiled extensions of Python programs where libraries are withheld, on each tier of headers.
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "tests/support/catch.h"
#include "tests/support/sealed_jail.h"

namespace warpsmith {
namespace {

std::string Source(const std::string& name) {
  const auto source = ReadFile("tests/data/facade/" + name + ".cc");
  REQUIRE(source.ok());
  return *source;
}

std::string Program(const std::string& forward, bool at_first_call = false) {
  const std::string load = "torch.utils.cpp_extension.load_inline(name='own', cpp_sources='', functions=[])";
  return absl::StrCat(
      "import torch\nimport torch.utils.cpp_extension\nown = ", at_first_call ? "None" : load,
      "\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, scale):\n        global own\n"
      "        own = own or ",
      load, "\n        ", forward, "\n");
}

SealedRun Run(const UniqueFd& library, const std::string& forward, bool at_first_call = false) {
  return RunPython(Program(forward, at_first_call), {library.get()},
                   {.sealed = true, .withhold = true, .num_threads = 2});
}

void CheckTier(ExtensionHeaders headers) {
  const UniqueFd library = CompileExtension(Source("own_work"), headers);
  const std::string raising =
      "\n        try:\n            own.doubled(x[0])\n        except RuntimeError as error:\n"
      "            assert 'want two dimensions' in str(error)\n        return own.doubled(x)";
  for (const std::string& forward :
       {std::string("return own.doubled(x)"), std::string("return own.fails(x)"), raising}) {
    for (const bool at_first_call : {false, true}) {
      const SealedRun run = Run(library, forward, at_first_call);
      INFO(forward << ", at the first call: " << at_first_call << ": "
                   << (run.fault ? run.fault->reason : ""));
      REQUIRE_FALSE(run.fault);
      CHECK(run.num_calls == 2);
      CHECK(run.output[77] == 2 * run.input[77]);
    }
  }
  for (const char* forward : {"return own.relu(x)", "return own.copy(x)"}) {
    const SealedRun run = Run(library, forward);
    INFO(forward);
    REQUIRE(run.fault);
    CHECK(run.fault->withheld);
  }
}

TEST_CASE("extensions over the facade do their own work") { CheckTier(ExtensionHeaders::kFacade); }
TEST_CASE("extensions over the real tensors do their own work") { CheckTier(ExtensionHeaders::kLight); }
TEST_CASE("extensions over Torch's real headers do their own work") { CheckTier(ExtensionHeaders::kTorch); }

TEST_CASE("code that was copied in the constructor runs from no memory") {
  const UniqueFd library = CompileExtension(Source("copied_code"), ExtensionHeaders::kFacade);
  for (const char* forward :
       {"own.run_from_heap()", "own.run_from_own_page()", "own.catch_faults(); torch.relu(x)"}) {
    const SealedRun run = Run(library, absl::StrCat(forward,
                                                    "\n    def __init__(self):\n        super().__init__()\n"
                                                    "        own.keep()"));
    INFO(forward << ": " << (run.fault ? run.fault->reason : ""));
    REQUIRE(run.fault);
    CHECK(run.fault->verdict == v1::VERDICT_RUNTIME_ERROR);
    CHECK(run.num_calls == 0);
  }
}

}  // namespace
}  // namespace warpsmith
