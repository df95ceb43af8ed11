#include "trainer/prompts.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "trainer/cold_start_data.h"

namespace warpsmith {
namespace {

Prompts Load() { return Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small").value(); }

std::string Text(const Prompts& prompts, const std::vector<int32_t>& ids) {
  return prompts.tokenizer().Decode(ids, DecodeSpecial::kKeep);
}

}  // namespace

TEST_CASE("a prompt holds the reference and leaves the turn to the Coder") {
  const Prompts prompts = Load();
  const std::string text = Text(prompts, prompts.Generate({.reference = "x = 1"}).value());
  CHECK(text == "<|im_start|>user\nx = 1\n<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("the second skill shows program, finding, evidence and advice in one line each") {
  const Prompts prompts = Load();
  const auto ids = prompts.Optimise({.reference = "r\n\n",
                                     .previous = "p",
                                     .finding = "scalar code",
                                     .evidence = "two\nlines",
                                     .advice = "vectorise"});
  const std::string text = Text(prompts, ids.value());
  CHECK(text.find("r\np\nfinding: scalar code\nevidence: two lines\nadvice: vectorise") != std::string::npos);
}

TEST_CASE("an answer ends with the stop token and cannot hold one") {
  const Prompts prompts = Load();
  const auto ids = prompts.Answer("a<|im_end|>b").value();
  CHECK(std::count(ids.begin(), ids.end(), prompts.stop_token_id()) == 1);
  CHECK(ids.back() == prompts.stop_token_id());
}

TEST_CASE("templates with other slots are refused") {
  CHECK_FALSE(Prompts::Load("datasets/tokenizer/small", "datasets/tokenizer/small").ok());
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
  ColdStartData whole(pairs, &prompts, 100, 3), resumed(pairs, &prompts, 100, 3);
  const auto first = whole.Draw(8).value(), second = whole.Draw(8).value();
  CHECK(first != second);
  resumed.set_cursor(8);
  CHECK(resumed.Draw(8).value() == second);
}

TEST_CASE("pairs that are too long are passed over, and none short enough is an error") {
  const Prompts prompts = Load();
  const ColdStartPair shortest{.parts = {.reference = "x"}, .answer = "y"};
  ColdStartPair longest = shortest;
  longest.answer = std::string(300, 'z');
  ColdStartData mixed({shortest, longest}, &prompts, 60, 3);
  const auto drawn = mixed.Draw(4).value();
  for (const TrainingSequence& sequence : drawn) CHECK(sequence.num_tokens() <= 60);
  ColdStartData hopeless({longest}, &prompts, 60, 3);
  CHECK(absl::IsInvalidArgument(hopeless.Draw(1).status()));
}

}  // namespace warpsmith
