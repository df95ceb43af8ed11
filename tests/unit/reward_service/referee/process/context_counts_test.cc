#include "reward_service/referee/process/context_counts.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

TEST_CASE("contexts are told by what they were made for, once") {
  ContextCounts counts;
  CHECK(counts.TakeReport().empty());
  counts.Add(ContextFor::kTimed);
  counts.Add(ContextFor::kOracle);
  counts.Add(ContextFor::kTimed);
  CHECK(counts.TakeReport() == "oracle 1, timed 2");
  CHECK(counts.TakeReport().empty());
}

}  // namespace
}  // namespace warpsmith
