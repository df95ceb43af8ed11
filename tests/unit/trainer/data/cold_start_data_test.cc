#include "trainer/data/cold_start_data.h"

#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace warpsmith {
namespace {

absl::StatusOr<std::vector<ColdStartPair>> LoadWithAdvice(const std::string& advice) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "pairs.jsonl";
  std::ofstream(path)
      << R"({"skill": "optimise", "reference_source": "r", "answer": "a", )"
      << R"("previous_source": "p", "feedback": {"finding": "f", "evidence": "e", "advice": ")" << advice
      << "\"}}\n";
  return LoadColdStartPairs(path);
}

Prompts Load() { return Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value(); }

}  // namespace

TEST_CASE("a pair teaches only advice that GRPO's prompts have") {
  REQUIRE(LoadWithAdvice("avoid the temporary").ok());
  for (const char* advice : {"avoid temporary", "Tile", ""}) {
    const absl::Status status = LoadWithAdvice(advice).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("pairs.jsonl:1") && Catch::Contains("is none of: fix"));
  }
}

TEST_CASE("a pair's prompt tells of the libraries that its task allows: none where the pair does not say") {
  const auto load = [](const std::string& field) {
    const TemporaryDirectory directory;
    const auto path = directory.path() / "pairs.jsonl";
    std::ofstream(path) << R"({"skill": "generate", "reference_source": "r", "answer": "a")" << field
                        << "}\n";
    return LoadColdStartPairs(path);
  };
  CHECK(load("")->front().parts.allowed_libraries.empty());
  CHECK(load(R"(, "allowed_libraries": ["blas"])")->front().parts.allowed_libraries ==
        std::vector<std::string>{"blas"});
  const absl::Status status = load(R"(, "allowed_libraries": "blas")").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("allowed_libraries"));
}

TEST_CASE("a pair becomes its prompt and its answer") {
  const Prompts prompts = Load();
  const ColdStartPair pair{.parts = {.reference = "x"}, .answer = "y"};
  const auto sequence = TokenisePair(pair, prompts);
  REQUIRE(sequence.ok());
  CHECK(sequence->num_prompt_tokens == static_cast<int>(prompts.Generate(pair.parts)->size()));
  CHECK(sequence->num_answer_tokens() == static_cast<int>(prompts.Answer("y")->size()));
}

TEST_CASE("pairs are drawn in another order each pass, and from a cursor") {
  const Prompts prompts = Load();
  std::vector<ColdStartPair> pairs;
  for (char c = 'a'; c < 'i'; ++c)
    pairs.push_back({.parts = {.reference = "x"}, .answer = std::string(1, c)});
  ColdStartData whole = ColdStartData::Create(pairs, &prompts, 100, 3).value();
  ColdStartData resumed = ColdStartData::Create(pairs, &prompts, 100, 3).value();
  const auto first = whole.Draw(8).value(), second = whole.Draw(8).value();
  CHECK(first != second);
  resumed.set_cursor(8);
  CHECK(resumed.Draw(8).value() == second);
}

TEST_CASE("pairs that are too long are left out and counted, and none short enough is an error") {
  const Prompts prompts = Load();
  const ColdStartPair shortest{.parts = {.reference = "x"}, .answer = "y"};
  ColdStartPair longest = shortest;
  longest.answer = std::string(300, 'z');
  // In two passes one after the other the long ones may come together: more of them than there are pairs.
  std::vector<ColdStartPair> pairs(7, longest);
  pairs.push_back(shortest);
  ColdStartData mixed = ColdStartData::Create(pairs, &prompts, 60, 3).value();
  const auto drawn = mixed.Draw(40).value();
  for (const TrainingSequence& sequence : drawn) CHECK(sequence.num_tokens() <= 60);
  CHECK(mixed.num_left_out() == 7);
  CHECK(mixed.longest() == drawn.front().num_tokens());
  CHECK(mixed.num_pairs() == 8);
  CHECK(TokenisePairsThatFit(pairs, prompts, 60, "key")->size() == 1);
  CHECK(LeftOutText(7, 8, 60, "key") ==
        "7 of 8 pairs of key are left out: they have more than 60 tokens, the positions of the model "
        "(max_position_embeddings)");
  CHECK(LeftOutText(0, 8, 60, "key").empty());
  const absl::Status hopeless = ColdStartData::Create({longest}, &prompts, 60, 3).status();
  CHECK(absl::IsInvalidArgument(hopeless));
  CHECK_THAT(std::string(hopeless.message()),
             Catch::Contains("none of the 1 pairs of data.cold_start has at most 60 tokens"));
  CHECK(absl::IsInvalidArgument(TokenisePairsThatFit({longest}, prompts, 60, "key").status()));
}

}  // namespace warpsmith
