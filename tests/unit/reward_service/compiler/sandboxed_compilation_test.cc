#include "reward_service/compiler/sandboxed_compilation.h"

#include <atomic>
#include <vector>

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
  std::vector<CompiledProgram> programs(4);
  RunTogether(4, [&](int i) { programs[i] = RunCompilation(compilation, "", cancelled).value(); });
  for (const CompiledProgram& program : programs) {
    INFO(program.diagnostics);
    CHECK(program.succeeded());
  }
}

// A compiler that sleeps uses no CPU time.
TEST_CASE("a compilation ends at its limit of time, whatever the compiler does, as a refused program") {
  Compilation compilation{.command = {"/bin/sh", "-c", "sleep 1000", "sh"}};
  compilation.limits.wall_seconds_max = 0.1;
  const std::atomic<bool> cancelled{false};
  const auto program = RunCompilation(compilation, "", cancelled);
  REQUIRE(program.ok());
  CHECK_FALSE(program->succeeded());
  CHECK(program->diagnostics == "error: compilation exceeded its wall time of 0.1 s\n");
}

}  // namespace warpsmith
