#include "reward_service/compiler/sandboxed_compilation.h"

#include <unistd.h>

#include <atomic>
#include <vector>

#include "core/base/memory_file.h"
#include "tests/support/catch.h"
#include "tests/support/run_together.h"

namespace warpsmith {

TEST_CASE("compilations at the same time do not share their limit of processes") {
  // A compiler of 22 processes: four of them are more than one may have. Only root gives uids; for others the
  // user namespace of each sandbox counts alone, and this cannot fail.
  const Compilation compilation{
      .command = {"/bin/sh", "-c",
                  "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 1 & done; "
                  "wait; echo library > /tmp/candidate.so",
                  "sh"}};
  const std::atomic<bool> cancelled{false};
  std::vector<CompilationResult> results(4);
  RunTogether(4, [&](int i) { results[i] = RunCompilation(compilation, "", cancelled).value(); });
  for (const CompilationResult& result : results) {
    INFO(result.diagnostics);
    CHECK(result.succeeded());
  }
}

// A compiler that sleeps uses no CPU time.
TEST_CASE("a compilation ends at its limit of time, whatever the compiler does, as a refused program") {
  Compilation compilation{.command = {"/bin/sh", "-c", "sleep 1000", "sh"}};
  compilation.limits.wall_seconds_max = 0.1;
  const std::atomic<bool> cancelled{false};
  const auto result = RunCompilation(compilation, "", cancelled);
  REQUIRE(result.ok());
  CHECK_FALSE(result->succeeded());
  CHECK(result->diagnostics == "error: compilation exceeded its wall time of 0.1 s\n");
}

TEST_CASE("files go in beside the source, and all outputs come out in their order") {
  const UniqueFd more = *SealedMemoryFile("more ");
  char begin[4];
  REQUIRE(read(more.get(), begin, sizeof(begin)) == 4);  // where a descriptor stands does not matter
  const Compilation compilation{
      .command = {"/bin/sh", "-c", "cat more source > both; cat source > candidate.so", "sh"},
      .source_file = "/tmp/source",
      .input_files = {{"/tmp/more", more.get()}},
      .output_files = {kLibraryFile, "/tmp/both"}};
  const std::atomic<bool> cancelled{false};
  const auto result = RunCompilation(compilation, "text", cancelled);
  REQUIRE(result.ok());
  INFO(result->diagnostics);
  REQUIRE(result->outputs.size() == 2);
  CHECK(*ReadMemoryFile(result->outputs[0].get(), 100) == "text");
  CHECK(*ReadMemoryFile(result->outputs[1].get(), 100) == "more text");
}

TEST_CASE("a compilation that makes only some of its outputs is refused") {
  const Compilation compilation{.command = {"/bin/sh", "-c", "echo x > candidate.so; touch empty", "sh"},
                                .output_files = {kLibraryFile, "/tmp/empty"}};
  const std::atomic<bool> cancelled{false};
  const auto result = RunCompilation(compilation, "", cancelled);
  REQUIRE(result.ok());
  CHECK_FALSE(result->succeeded());
  CHECK_FALSE(result->diagnostics.empty());
}

}  // namespace warpsmith
