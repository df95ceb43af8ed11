#include "trainer/data/prompt_room.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {
namespace {

Task TaskOf(const std::string& id, const std::string& reference) {
  return {.id = id, .reference_source = reference};
}

Prompts Load() { return Prompts::Load("datasets/tokenizer/small", "datasets/prompts/small", "").value(); }

}  // namespace

TEST_CASE("tasks whose prompts are too long are left out, and room for none is an error") {
  const Prompts prompts = Load();
  const Task small = TaskOf("small", "x"), large = TaskOf("large", std::string(300, 'z'));
  const auto tokens = static_cast<int64_t>(prompts.Generate({.reference = "x"})->size());
  const PromptRoom room(&prompts, tokens);
  CHECK(room.Has(small));
  CHECK_FALSE(PromptRoom(&prompts, tokens - 1).Has(small));
  const auto kept = room.Keep({large, small, large}, "data.train");
  REQUIRE(kept.ok());
  REQUIRE(kept->size() == 1);
  CHECK(kept->front().id == "small");
  CHECK(room.Keep({}, "data.optimise")->empty());
  const absl::Status none = room.Keep({large, large}, "data.held_out").status();
  CHECK(absl::IsInvalidArgument(none));
  CHECK_THAT(std::string(none.message()),
             Catch::StartsWith("none of the 2 tasks of data.held_out has a prompt"));
}

TEST_CASE("a task of skill 2 needs room for its program and feedback too") {
  const Prompts prompts = Load();
  const auto tokens = static_cast<int64_t>(prompts.Generate({.reference = "x"})->size());
  Task task = TaskOf("t", "x");
  task.skill = Skill::kOptimise;
  task.previous_source = std::string(300, 'z');
  task.feedback = {.finding = "f", .evidence = "e", .advice = v1::ADVICE_VECTORISE};
  PromptRoom room(&prompts, tokens + 20);
  CHECK_FALSE(room.HasForMade(task));
  CHECK(PromptRoom(&prompts, 10'000).HasForMade(task));
}

}  // namespace warpsmith
