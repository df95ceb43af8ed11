#include "trainer/data/training_sequence.h"

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

std::vector<TrainingSequence> Examples() {
  return {
      {.tokens = {1, 2, 3, 4}, .num_prompt_tokens = 2, .worker_log_probs = {-0.5f, -1.5f}, .advantage = 1.25},
      {.tokens = {7}, .num_prompt_tokens = 1}};
}

}  // namespace

TEST_CASE("sequences come back as they were sent") {
  const auto decoded = DecodeSequences(EncodeSequences(Examples()));
  REQUIRE(decoded.ok());
  CHECK(*decoded == Examples());
  CHECK(DecodeSequences("")->empty());
}

TEST_CASE("bytes cut anywhere are refused") {
  const std::string bytes = EncodeSequences(Examples());
  int num_accepted = 0;
  for (size_t size = 1; size < bytes.size(); ++size)
    num_accepted += DecodeSequences(bytes.substr(0, size)).ok();
  CHECK(num_accepted == 1);  // the cut between the two sequences
}

TEST_CASE("a count that no memory could hold is refused") {
  std::string bytes = EncodeSequences(Examples());
  bytes.replace(0, 8, 8, '\xff');
  CHECK(absl::IsInvalidArgument(DecodeSequences(bytes).status()));
}

TEST_CASE("only answer tokens count in the loss") { CHECK(CountAnswerTokens(Examples()) == 2); }

}  // namespace warpsmith
