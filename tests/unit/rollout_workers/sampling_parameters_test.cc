#include "rollout_workers/sampling_parameters.h"

#include <cmath>
#include <set>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {

TEST_CASE("seeds differ between requests, tasks and samples, and repeat") {
  std::set<uint64_t> seeds;
  for (const uint64_t request : {0ULL, 1ULL, 2ULL}) {
    for (const char* const task : {"relu", "gelu", ""}) {
      for (int sample = 0; sample < 8; ++sample) seeds.insert(SampleSeed(request, task, sample));
    }
  }
  CHECK(seeds.size() == 3 * 3 * 8);
  CHECK(SampleSeed(5, "relu", 3) == SampleSeed(5, "relu", 3));
}

TEST_CASE("parameters out of range are refused by name") {
  CHECK(Validate({.temperature = 0, .top_p = 1, .top_k = 0, .answer_tokens_max = 1}).ok());
  CHECK_THAT(std::string(Validate({.temperature = -1}).message()), Catch::Contains("temperature is -1"));
  CHECK(Validate({.temperature = 1e-30}).ok());
  CHECK_THAT(std::string(Validate({.temperature = 1e-40}).message()),
             Catch::Contains("temperature is 1e-40"));
  CHECK_THAT(std::string(Validate({.temperature = std::nan("")}).message()), Catch::Contains("temperature"));
  CHECK_THAT(std::string(Validate({.top_p = 0}).message()), Catch::Contains("top_p is 0"));
  CHECK_THAT(std::string(Validate({.top_k = -2}).message()), Catch::Contains("top_k is -2"));
  CHECK(Validate({.min_p = 1}).ok());
  CHECK_THAT(std::string(Validate({.min_p = -0.1}).message()), Catch::Contains("min_p is -0.1"));
  CHECK_THAT(std::string(Validate({.min_p = 1.5}).message()), Catch::Contains("min_p is 1.5"));
  CHECK_THAT(std::string(Validate({.min_p = std::nan("")}).message()), Catch::Contains("min_p"));
  CHECK_THAT(std::string(Validate({.answer_tokens_max = 0}).message()),
             Catch::Contains("answer_tokens_max is 0"));
}

}  // namespace warpsmith
