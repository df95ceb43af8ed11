// A rollout worker without a model, for tests of those who ask for groups.
#ifndef WARPSMITH_TESTS_UNIT_TRAINER_FAKE_GENERATOR_H_
#define WARPSMITH_TESTS_UNIT_TRAINER_FAKE_GENERATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/trainer/groups.h"
#include "trainer/data/group_generator.h"

namespace warpsmith {

// Answers with rewards that a function of task and sample gives.
class FakeGenerator : public GroupGenerator {
 public:
  using Reward = std::function<std::optional<double>(const Task& task, int sample)>;

  explicit FakeGenerator(Reward reward) : reward_(std::move(reward)) {}

  absl::StatusOr<std::vector<TransitionGroup>> Generate(const GenerateRequest& request) override {
    requests.push_back(request);
    std::vector<TransitionGroup> groups;
    for (const Task& task : request.tasks) {
      TransitionGroup& group = groups.emplace_back();
      group.task = task;
      for (int sample = 0; sample < request.num_samples; ++sample) {
        Transition& transition = group.transitions.emplace_back();
        transition.sample_index = sample;
        transition.json = "{}";
        transition.prompt_token_ids = {1, 2};
        transition.answer_token_ids = answer_token_ids;
        transition.log_probs.assign(answer_token_ids.size(), -1.0f);
        transition.grade = GradeOf(reward_(task, sample), absl::StrCat(task.id, "/", sample));
      }
      if (request.on_group)
        request.on_group(static_cast<int>(groups.size()), static_cast<int>(request.tasks.size()));
    }
    return groups;
  }

  std::vector<GenerateRequest> requests;
  std::vector<int32_t> answer_token_ids = {3, 4, 5};

 private:
  const Reward reward_;
};

inline std::vector<Task> ManyTasks() {
  std::vector<Task> tasks;
  for (int i = 0; i < 40; ++i) tasks.push_back({.id = absl::StrCat("task", i)});
  return tasks;
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_UNIT_TRAINER_FAKE_GENERATOR_H_
