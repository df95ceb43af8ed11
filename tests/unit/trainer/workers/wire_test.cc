#include "trainer/workers/wire.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

constexpr TransitionLimits kLimits = {.vocab_size = 100, .positions_max = 6};

GenerateRequest Request() {
  return {.id = "r",
          .tasks = {{.id = "a", .family = "own"}, {.id = "b"}},
          .num_samples = 2,
          .sampling = {.answer_tokens_max = 3},
          .policy_version = 4};
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

absl::StatusOr<TransitionGroup> Parse(const v1::TransitionGroup& group) {
  const GenerateRequest request = Request();
  return GroupFromWire(group, request.tasks[0], request, kLimits);
}

// What makes the transition of sample 1, the first of WireGroup(), malformed, and a part of the reason.
struct Fault {
  const char* reason;
  void (*make)(v1::Transition& transition);
};

const Fault kFaults[] = {
    {"no prompt", [](v1::Transition& t) { t.clear_prompt_token_ids(); }},
    {"prompt token id 100", [](v1::Transition& t) { t.set_prompt_token_ids(0, 100); }},
    {"prompt token id -1", [](v1::Transition& t) { t.set_prompt_token_ids(0, -1); }},
    {"answer token id 100", [](v1::Transition& t) { t.set_answer_token_ids(0, 100); }},
    {"answer token id -2147483648", [](v1::Transition& t) { t.set_answer_token_ids(0, INT32_MIN); }},
    {"4 answer tokens",
     [](v1::Transition& t) {
       for (int i = 0; i < 3; ++i) {
         t.add_answer_token_ids(1);
         t.add_log_probs(-1);
       }
     }},
    {"7 tokens", [](v1::Transition& t) { t.mutable_prompt_token_ids()->Resize(6, 1); }},
    {"2 log-probs for 1 answer tokens", [](v1::Transition& t) { t.add_log_probs(-1); }},
    {"0 log-probs for 1 answer tokens", [](v1::Transition& t) { t.clear_log_probs(); }},
    {"log-prob nan", [](v1::Transition& t) { t.set_log_probs(0, std::nanf("")); }},
    {"log-prob -inf", [](v1::Transition& t) { t.set_log_probs(0, -INFINITY); }},
    {"log-prob 0.001", [](v1::Transition& t) { t.set_log_probs(0, 0.001f); }},
};

bool Refused(const v1::TransitionGroup& group, const std::string& reason) {
  const absl::Status status = Parse(group).status();
  INFO(status);
  CHECK_THAT(std::string(status.message()), Catch::Contains(reason));
  return absl::IsInternal(status);
}

}  // namespace

TEST_CASE("a skill-2 task goes out whole") {
  const Task task{.id = "a#1",
                  .skill = Skill::kOptimise,
                  .family = "f",
                  .reference_source = "r",
                  .language = "cuda",
                  .device = "cuda",
                  .allowed_libraries = {"blas"},
                  .previous_source = "p",
                  .feedback = {"finding", "evidence", 8},
                  .previous_reward = 0.7};
  const v1::Task wire = TaskToWire(task);
  CHECK(wire.language() == v1::CANDIDATE_LANGUAGE_CUDA);
  CHECK(wire.device() == v1::DEVICE_CUDA);
  CHECK(TaskToWire({.id = "a"}).device() == v1::DEVICE_UNSPECIFIED);
  CHECK(wire.feedback().advice() == v1::ADVICE_VECTORISE);
  CHECK(wire.id() == task.id);
  CHECK(wire.skill() == v1::SKILL_OPTIMISE);
  CHECK(wire.family() == "f");
  CHECK(wire.reference_source() == "r");
  REQUIRE(wire.allowed_libraries_size() == 1);
  CHECK(wire.allowed_libraries(0) == "blas");
  CHECK(wire.previous_source() == "p");
  CHECK(wire.feedback().finding() == "finding");
  CHECK(wire.feedback().evidence() == "evidence");
  CHECK(wire.previous_reward() == 0.7);
}

TEST_CASE("a request carries the tasks that are still missing") {
  const v1::GenerateGroupsRequest wire = RequestToWire(Request(), {1});
  REQUIRE(wire.tasks_size() == 1);
  CHECK(wire.tasks(0).id() == "b");
  CHECK(wire.policy_version() == 4);
}

TEST_CASE("samples are put in their order") {
  const auto group = Parse(WireGroup());
  REQUIRE(group.ok());
  CHECK(group->transitions[0].answer_token_ids == std::vector<int32_t>{10});
  CHECK(group->transitions[1].grade.reward == 1.5);
}

TEST_CASE("UNSCORABLE and INVALID_TASK have no reward, whatever the message says") {
  v1::TransitionGroup wire = WireGroup();
  wire.mutable_transitions(0)->mutable_grade()->set_verdict(v1::VERDICT_UNSCORABLE);
  wire.mutable_transitions(1)->mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
  const auto group = Parse(wire);
  REQUIRE(group.ok());
  CHECK_FALSE(group->transitions[0].grade.scored());
  CHECK_FALSE(group->transitions[1].grade.scored());
}

TEST_CASE("a transition that the update cannot take is dropped, and its reward with it") {
  for (const Fault& fault : kFaults) {
    CAPTURE(fault.reason);
    v1::TransitionGroup wire = WireGroup();
    fault.make(*wire.mutable_transitions(0));
    const auto group = Parse(wire);
    INFO(group.status());
    REQUIRE(group.ok());
    const Transition& dropped = group->transitions[1];
    CHECK_THAT(dropped.malformed, Catch::Contains(fault.reason));
    CHECK_FALSE(dropped.grade.scored());
    CHECK(dropped.grade.verdict == Verdict::kUnscorable);
    CHECK(dropped.prompt_token_ids.empty());
    CHECK(dropped.answer_token_ids.empty());
    CHECK(dropped.log_probs.empty());
    CHECK_THAT(dropped.json, Catch::Contains(fault.reason) && !Catch::Contains("CORRECT"));
    CHECK(group->transitions[0].malformed.empty());
    CHECK(group->transitions[0].grade.scored());
  }
}

TEST_CASE("what is just within the limits is taken") {
  v1::TransitionGroup wire = WireGroup();
  v1::Transition& transition = *wire.mutable_transitions(0);
  transition.mutable_prompt_token_ids()->Resize(3, 99);
  transition.mutable_answer_token_ids()->Resize(3, 0);
  transition.mutable_log_probs()->Resize(3, 0.0f);
  transition.set_log_probs(2, 5e-5f);  // a rounding error of a token that is certain
  const auto group = Parse(wire);
  REQUIRE(group.ok());
  CHECK(group->transitions[1].malformed == "");
  CHECK(group->transitions[1].log_probs.size() == 3);
}

TEST_CASE("a task without a prompt is INVALID_TASK, not malformed") {
  v1::TransitionGroup wire = WireGroup();
  for (v1::Transition& transition : *wire.mutable_transitions()) {
    transition.clear_prompt_token_ids();
    transition.clear_answer_token_ids();
    transition.clear_log_probs();
    transition.mutable_grade()->set_verdict(v1::VERDICT_INVALID_TASK);
  }
  const auto group = Parse(wire);
  REQUIRE(group.ok());
  CHECK(group->transitions[0].malformed.empty());
  CHECK(group->transitions[0].grade.verdict == Verdict::kInvalidTask);
}

TEST_CASE("the task of a group is the trainer's own, whatever came back") {
  v1::TransitionGroup wire = WireGroup();
  wire.mutable_task()->set_family("changed");
  const auto group = Parse(wire);
  REQUIRE(group.ok());
  CHECK(group->task.family == "own");
}

TEST_CASE("a verdict that the trainer does not know earns nothing") {
  v1::TransitionGroup wire = WireGroup();
  wire.mutable_transitions(0)->mutable_grade()->set_verdict(static_cast<v1::Verdict>(99));
  wire.mutable_transitions(1)->mutable_grade()->set_verdict(v1::VERDICT_UNSPECIFIED);
  const auto group = Parse(wire);
  REQUIRE(group.ok());
  CHECK_FALSE(group->transitions[0].grade.scored());
  CHECK_FALSE(group->transitions[1].grade.scored());
}

TEST_CASE("a group that cannot be believed as a whole is refused") {
  v1::TransitionGroup missing = WireGroup();
  missing.mutable_transitions()->RemoveLast();
  CHECK(Refused(missing, "1 transitions, not 2"));
  v1::TransitionGroup doubled = WireGroup();
  doubled.mutable_transitions(0)->set_sample_index(0);
  CHECK(Refused(doubled, "sample 0 is there twice"));
  v1::TransitionGroup beyond = WireGroup();
  beyond.mutable_transitions(0)->set_sample_index(2);
  CHECK(Refused(beyond, "sample index 2"));
  v1::TransitionGroup stale = WireGroup();
  stale.mutable_transitions(0)->set_policy_version(3);
  CHECK(Refused(stale, "policy version 3, not 4"));
  v1::TransitionGroup mixed = WireGroup();
  mixed.mutable_transitions(1)->add_token_policy_versions(5);
  CHECK(Refused(mixed, "tokens of other policy versions than 4"));
  v1::TransitionGroup exchanged = WireGroup();
  exchanged.mutable_task()->set_id("b");
  CHECK(Refused(exchanged, "task \"b\""));
}

TEST_CASE("a manifest says what decides the logits of the trainer's model") {
  const v1::WeightsManifest manifest =
      ManifestToWire({.layout_sha256 = "l", .model_fields = {{"rope_theta", "5000.0"}}});
  CHECK(manifest.layout_sha256() == "l");
  CHECK(manifest.model_fields().at("rope_theta") == "5000.0");
}

}  // namespace warpsmith
