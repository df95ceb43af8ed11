#include "trainer/data/feedback_pool.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "trainer/data/seeds.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {
namespace {

// All answers to such a program are copies of it, and groups of copies have no advantages to learn from.
bool IsToldToStay(const Grade& grade) { return grade.feedback.advice == v1::ADVICE_KEEP; }

}  // namespace

FeedbackPool::FeedbackPool(size_t capacity, TaskFilter may_make)
    : capacity_(capacity), may_make_(std::move(may_make)) {
  WS_CHECK(capacity > 0);
}

void FeedbackPool::AddFrom(const TransitionGroup& group, uint64_t seed) {
  if (group.task.skill != Skill::kGenerate) return;
  std::vector<const Grade*> usable;
  for (const Transition& transition : group.transitions) {
    if (CanBeOptimised(transition.grade) && !IsToldToStay(transition.grade))
      usable.push_back(&transition.grade);
  }
  while (!usable.empty()) {
    const uint64_t choice = UniformWord(seed, HashOf(group.task.id)) % usable.size();
    Task task = MakeOptimiseTask(group.task, *usable[choice]);
    if (may_make_ && !may_make_(task)) {
      usable.erase(usable.begin() + static_cast<ptrdiff_t>(choice));
      continue;
    }
    if (tasks_.size() == capacity_) tasks_.pop_front();
    tasks_.push_back(std::move(task));
    return;
  }
}

std::optional<Task> FeedbackPool::Take() {
  if (tasks_.empty()) return std::nullopt;
  const auto least = std::min_element(tasks_.begin(), tasks_.end(), [](const Task& a, const Task& b) {
    return a.previous_reward < b.previous_reward;
  });
  Task task = std::move(*least);
  tasks_.erase(least);
  return task;
}

void FeedbackPool::Restore(std::deque<Task> tasks) {
  tasks_ = std::move(tasks);
  while (tasks_.size() > capacity_) tasks_.pop_front();
}

bool CanBeOptimised(const Grade& grade) {
  return grade.scored() && grade.verdict != Verdict::kNoCode && grade.verdict != Verdict::kHack &&
         !grade.source.empty() && grade.feedback.advice != 0;
}

Task MakeOptimiseTask(const Task& origin, const Grade& grade) {
  Task task = origin;
  task.id = absl::StrCat(origin.id, "#", grade.source_sha256.substr(0, 16));
  task.skill = Skill::kOptimise;
  task.previous_source = grade.source;
  task.feedback = grade.feedback;
  task.previous_reward = grade.reward.value_or(0);
  return task;
}

}  // namespace warpsmith
