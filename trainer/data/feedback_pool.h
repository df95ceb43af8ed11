// Graded answers to skill 1 waiting to become tasks of skill 2.
#ifndef WARPSMITH_TRAINER_DATA_FEEDBACK_POOL_H_
#define WARPSMITH_TRAINER_DATA_FEEDBACK_POOL_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "trainer/data/transition.h"

namespace warpsmith {

// Tells whether a run may make this task of skill 2; an empty one: it may make any.
using TaskFilter = std::function<bool(const Task& task)>;

// What has most to gain goes first: a Coder that has become good would otherwise be asked to improve its own
// good programs only, and no longer practise to repair wrong ones and to speed up slow ones. When full the
// oldest makes room. Part of the checkpoint.
class FeedbackPool {
 public:
  explicit FeedbackPool(size_t capacity, TaskFilter may_make = {});

  // Takes one answer of each skill-1 group: a uniform choice, drawn from `seed` and the task's id, among
  // those that have code, are told to change it, and give a task that may be made. Groups of skill 2 are passed over:
  // transitions stay single-turn.
  void AddFrom(const TransitionGroup& group, uint64_t seed);

  // The task whose previous program had the least reward, of equal ones the oldest, removed; nothing when
  // empty.
  std::optional<Task> Take();

  size_t size() const { return tasks_.size(); }
  const std::deque<Task>& tasks() const { return tasks_; }

  // Replaces the content, as saved by tasks().
  void Restore(std::deque<Task> tasks);

 private:
  const size_t capacity_;
  const TaskFilter may_make_;
  std::deque<Task> tasks_;
};

// Whether a graded answer can be the previous program of a skill-2 task.
bool CanBeOptimised(const Grade& grade);

// The skill-2 task "improve this answer to `origin`"; its id is "<origin>#<first 16 digits of the source's
// hash>".
Task MakeOptimiseTask(const Task& origin, const Grade& grade);

}  // namespace warpsmith

#endif  // WARPSMITH_TRAINER_DATA_FEEDBACK_POOL_H_
