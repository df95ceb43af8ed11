#include "trainer/wire.h"

#include <limits>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

GenerateRequest Request() {
  return {.id = "r", .tasks = {{.id = "a"}, {.id = "b"}}, .num_samples = 2, .policy_version = 4};
}

// A group that is in order, of two samples that arrived in the wrong order.
v1::TransitionGroup WireGroup() {
  v1::TransitionGroup group;
  group.mutable_task()->set_id("a");
  for (const int index : {1, 0}) {
    v1::Transition& transition = *group.add_transitions();
    transition.set_sample_index(index);
    transition.set_policy_version(4);
    transition.add_prompt_token_ids(1);
    transition.add_answer_token_ids(10 + index);
    transition.add_log_probs(-0.5f);
    transition.mutable_grade()->set_verdict(v1::VERDICT_CORRECT);
    transition.mutable_grade()->mutable_reward()->set_value(1.5);
  }
  return group;
}

bool Refused(const v1::TransitionGroup& group) {
  return absl::IsInternal(GroupFromWire(group, Request()).status());
}

}  // namespace

TEST_CASE("advice in words, as prompts and feedback have it, is one of the closed list") {
  CHECK(AdviceFromText("fix compile error") == v1::ADVICE_FIX_COMPILE_ERROR);
  CHECK(AdviceFromText("avoid the temporary") == v1::ADVICE_AVOID_TEMPORARY);
  CHECK(AdviceFromText("avoid temporary") == v1::ADVICE_AVOID_TEMPORARY);
  CHECK(AdviceFromText("tile") == v1::ADVICE_TILE);
  for (const char* text : {"", "unspecified", "Tile", "tile it", "the"}) CHECK(AdviceFromText(text) == 0);
  CHECK_THAT(AdviceTexts(), Catch::StartsWith("fix compile error, fix crash, ") && Catch::EndsWith(", keep"));
}

TEST_CASE("a skill-2 task survives the wire") {
  const Task task{.id = "a#1",
                  .skill = Skill::kOptimise,
                  .family = "f",
                  .reference_source = "r",
                  .language = "cuda",
                  .allowed_libraries = {"blas"},
                  .previous_source = "p",
                  .feedback = {"finding", "evidence", 8},
                  .previous_reward = 0.7};
  const v1::Task wire = TaskToWire(task);
  CHECK(wire.language() == v1::CANDIDATE_LANGUAGE_CUDA);
  CHECK(wire.feedback().advice() == v1::ADVICE_VECTORISE);
  const Task back = TaskFromWire(wire);
  CHECK(back.id == task.id);
  CHECK(back.skill == task.skill);
  CHECK(back.language == "cuda");
  CHECK(back.allowed_libraries == task.allowed_libraries);
  CHECK(back.previous_source == "p");
  CHECK(back.feedback.advice == 8);
  CHECK(back.previous_reward == 0.7);
}

TEST_CASE("a request carries the tasks that are still missing") {
  const v1::GenerateGroupsRequest wire = RequestToWire(Request(), {1});
  REQUIRE(wire.tasks_size() == 1);
  CHECK(wire.tasks(0).id() == "b");
  CHECK(wire.policy_version() == 4);
}

TEST_CASE("samples are put in their order") {
  const auto group = GroupFromWire(WireGroup(), Request());
  REQUIRE(group.ok());
  CHECK(group->transitions[0].answer_token_ids == std::vector<int32_t>{10});
  CHECK(group->transitions[1].grade.reward == 1.5);
}

TEST_CASE("UNSCORABLE and INVALID_TASK have no reward, whatever the message says") {
  v1::TransitionGroup wire = WireGroup();
  wire.mutable_transitions(0)->mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
  wire.mutable_transitions(1)->mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
  const auto group = GroupFromWire(wire, Request());
  REQUIRE(group.ok());
  CHECK_FALSE(group->transitions[0].grade.scored());
  CHECK_FALSE(group->transitions[1].grade.scored());
}

TEST_CASE("a group that would spoil the update is refused") {
  v1::TransitionGroup missing = WireGroup();
  missing.mutable_transitions()->RemoveLast();
  CHECK(Refused(missing));
  v1::TransitionGroup doubled = WireGroup();
  doubled.mutable_transitions(0)->set_sample_index(0);
  CHECK(Refused(doubled));
  v1::TransitionGroup stale = WireGroup();
  stale.mutable_transitions(0)->set_policy_version(3);
  CHECK(Refused(stale));
  v1::TransitionGroup uneven = WireGroup();
  uneven.mutable_transitions(0)->add_log_probs(-1);
  CHECK(Refused(uneven));
  v1::TransitionGroup infinite = WireGroup();
  infinite.mutable_transitions(0)->set_log_probs(0, -std::numeric_limits<float>::infinity());
  CHECK(Refused(infinite));
  v1::TransitionGroup promptless = WireGroup();
  promptless.mutable_transitions(0)->clear_prompt_token_ids();
  CHECK(Refused(promptless));
}

}  // namespace warpsmith
