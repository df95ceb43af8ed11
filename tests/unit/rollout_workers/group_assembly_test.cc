#include "rollout_workers/group_assembly.h"

#include <set>

#include "tests/support/catch.h"

namespace warpsmith {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

v1::GenerateGroupsRequest Request(int num_tasks, int num_samples) {
  v1::GenerateGroupsRequest request;
  request.set_request_id("r");
  request.set_num_samples(num_samples);
  request.set_seed(5);
  for (int t = 0; t < num_tasks; ++t) request.add_tasks()->set_id("task-" + std::to_string(t));
  return request;
}

std::vector<absl::StatusOr<std::vector<int32_t>>> Prompts(int num_tasks) {
  std::vector<absl::StatusOr<std::vector<int32_t>>> prompts;
  for (int t = 0; t < num_tasks; ++t) prompts.push_back(std::vector<int32_t>{t, t + 1});
  return prompts;
}

FinishedSample Sample(int task, int sample) {
  return {.task_index = task,
          .sample_index = sample,
          .answer_token_ids = {7, 8},
          .log_probs = {-1, -2},
          .started = kStart,
          .finished = kStart + absl::Seconds(2)};
}

v1::Grade Correct(double reward) {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_reward()->set_value(reward);
  return grade;
}

v1::Grade Unscorable() {
  v1::Grade grade;
  grade.set_verdict(v1::VERDICT_UNSCORABLE);
  return grade;
}

}  // namespace

TEST_CASE("a group is complete with its last grade, whatever the order of the others") {
  GroupAssembly assembly(Request(2, 2), Prompts(2));
  const auto second = assembly.AddSample(Sample(1, 1), "b");
  const auto first = assembly.AddSample(Sample(1, 0), "a");
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  assembly.AddGrade(second->request_id(), Correct(2), kStart + absl::Seconds(3));
  CHECK(assembly.completed().empty());
  assembly.AddGrade(first->request_id(), Correct(1), kStart + absl::Seconds(6));
  REQUIRE(assembly.completed().size() == 1);
  const v1::TransitionGroup& group = assembly.completed()[0]->group();
  CHECK(group.task_index() == 1);
  CHECK(group.transitions(0).grade().reward().value() == 1);
  CHECK(group.transitions(1).answer() == "b");
  CHECK(group.decode_seconds() == 2);
  CHECK(group.grade_tail_seconds() == 4);
  CHECK_FALSE(assembly.complete());
}

TEST_CASE("equal answers to a task share one grade, also one that is there already") {
  GroupAssembly assembly(Request(2, 3), Prompts(2));
  const auto asked = assembly.AddSample(Sample(0, 0), "same");
  REQUIRE(asked.has_value());
  CHECK_FALSE(assembly.AddSample(Sample(0, 2), "same").has_value());
  assembly.AddGrade(asked->request_id(), Correct(1.5), kStart);
  CHECK_FALSE(assembly.AddSample(Sample(0, 1), "same").has_value());
  REQUIRE(assembly.completed().size() == 1);
  for (const v1::Transition& transition : assembly.completed()[0]->group().transitions()) {
    CHECK(transition.grade().reward().value() == 1.5);
  }
  const auto other_task = assembly.AddSample(Sample(1, 0), "same");
  REQUIRE(other_task.has_value());
  CHECK(other_task->request_id() != asked->request_id());
  CHECK(assembly.num_grades_shared() == 2);
}

TEST_CASE("repeated samples and grades, and grades nobody asked for, change nothing") {
  GroupAssembly assembly(Request(1, 2), Prompts(1));
  const auto asked = assembly.AddSample(Sample(0, 0), "a");
  CHECK_FALSE(assembly.AddSample(Sample(0, 0), "another").has_value());
  assembly.AddGrade("unknown", Correct(3), kStart);
  assembly.AddGrade(asked->request_id(), Correct(1), kStart);
  assembly.AddGrade(asked->request_id(), Correct(2), kStart);
  CHECK(assembly.completed().empty());
  assembly.AddGrade(assembly.AddSample(Sample(0, 1), "b")->request_id(), Correct(2), kStart);
  CHECK(assembly.completed()[0]->group().transitions(0).grade().reward().value() == 1);
}

TEST_CASE("seeds of missing samples do not depend on the other tasks of the request") {
  GroupAssembly whole(Request(3, 2), Prompts(3));
  v1::GenerateGroupsRequest part = Request(3, 2);
  part.mutable_tasks()->DeleteSubrange(0, 2);
  GroupAssembly alone(part, Prompts(1));
  CHECK(whole.MissingSamples().groups[2].samples[1].seed == alone.MissingSamples().groups[0].samples[1].seed);
  std::set<uint64_t> seeds;
  for (const GenerationGroup& group : whole.MissingSamples().groups) {
    for (const WantedSample& sample : group.samples) seeds.insert(sample.seed);
  }
  CHECK(seeds.size() == 6);
}

TEST_CASE("a task without a prompt is complete from the start, INVALID_TASK with the reason") {
  auto prompts = Prompts(2);
  prompts[0] = absl::InvalidArgumentError("prompt of 9000 tokens");
  GroupAssembly assembly(Request(2, 2), prompts);
  REQUIRE(assembly.completed().size() == 1);
  const v1::Grade& grade = assembly.completed()[0]->group().transitions(1).grade();
  CHECK(grade.verdict() == v1::VERDICT_INVALID_TASK);
  CHECK(grade.verdict_reason() == "prompt of 9000 tokens");
  CHECK_FALSE(grade.reward().has_value());
  REQUIRE(assembly.MissingSamples().groups.size() == 1);
  CHECK(assembly.MissingSamples().groups[0].task_index == 1);
}

TEST_CASE("what was decoded and graded is adopted; failed grades are asked for again") {
  GroupAssembly old(Request(3, 2), Prompts(3));
  const auto good = old.AddSample(Sample(2, 0), "good");
  const auto failed = old.AddSample(Sample(2, 1), "failed");
  const auto pending = old.AddSample(Sample(1, 0), "pending");
  old.AddGrade(good->request_id(), Correct(1), kStart);
  old.AddGrade(failed->request_id(), Unscorable(), kStart);
  CHECK(old.HasUnscorable());

  v1::GenerateGroupsRequest part = Request(3, 2);
  part.mutable_tasks()->DeleteSubrange(0, 1);
  GroupAssembly taken_up(part, {std::vector<int32_t>{1, 2}, std::vector<int32_t>{2, 3}});
  taken_up.Adopt(old);
  REQUIRE(taken_up.MissingSamples().groups.size() == 1);
  CHECK(taken_up.MissingSamples().groups[0].task_index == 0);
  CHECK(taken_up.MissingSamples().groups[0].samples.size() == 1);
  std::set<std::string> missing;
  for (const v1::GradeRequest& request : taken_up.MissingGrades()) missing.insert(request.request_id());
  CHECK(missing == std::set<std::string>{failed->request_id(), pending->request_id()});

  taken_up.AddGrade(failed->request_id(), Correct(2), kStart);
  REQUIRE(taken_up.completed().size() == 1);
  CHECK(taken_up.completed()[0]->group().transitions(0).grade().reward().value() == 1);
  CHECK(taken_up.completed()[0]->group().transitions(1).grade().reward().value() == 2);
  CHECK_FALSE(taken_up.HasUnscorable());
  CHECK(old.completed()[0]->group().transitions(1).grade().verdict() == v1::VERDICT_UNSCORABLE);
}

}  // namespace warpsmith
