#include "trainer/run_folder/progress_line.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("a bar shows share, elapsed time and what is left of it") {
  CHECK(FormatProgress("grpo", 0.25, absl::Seconds(30), "reward 1.2", true) ==
        "grpo        [######------------------]  25% 30s, 1m30s left  reward 1.2");
}

TEST_CASE("a long name of a phase stays apart from what follows") {
  CHECK(FormatProgress("before_unseen_operator", 0.5, absl::Seconds(3), "", false) ==
        "before_unseen_operator  50% 3s, 3s left");
}

TEST_CASE("a log line has no bar, and no estimate at the ends") {
  CHECK(FormatProgress("cold start", 0.0, absl::Seconds(1), "", false) == "cold start    0% 1s");
  CHECK(FormatProgress("cold start", 1.7, absl::Seconds(200), "", false) == "cold start  100% 3m20s");
}

}  // namespace warpsmith
