#include "reward_service/server/gpu_choice.h"

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("GPUs are chosen by a word or by their indices") {
  CHECK(ParseGpuChoice("all")->wanted);
  CHECK_FALSE(ParseGpuChoice("all")->required);
  CHECK_FALSE(ParseGpuChoice("none")->wanted);
  CHECK(ParseGpuChoice("required")->required);
  CHECK(ParseGpuChoice("required")->indices.empty());
  CHECK(ParseGpuChoice("cuda:1")->indices == std::vector<int>{1});
  CHECK(ParseGpuChoice("cuda:2,0")->indices == std::vector<int>{2, 0});
  CHECK(ParseGpuChoice("cuda:1")->required);
}

TEST_CASE("any other text is refused with what may be given") {
  for (const char* const wrong :
       {"", "some", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1,", "cuda:64", "cuda:1,1", "1"}) {
    INFO(wrong);
    const absl::Status status = ParseGpuChoice(wrong).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("give all, required, none"));
  }
}

}  // namespace warpsmith
