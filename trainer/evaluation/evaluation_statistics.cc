#include "trainer/evaluation/evaluation_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr double kFastSpeedup = 1.03;
constexpr int kNumResamples = 2000;

// Sums over answers, from which every figure follows.
struct Tally {
  double answers = 0;
  double compiled = 0;
  double correct = 0;
  double fast = 0;
  double log_speedup = 0;  // of correct answers
  double reward = 0;
  double hacks = 0;

  void Add(const Tally& other) {
    answers += other.answers;
    compiled += other.compiled;
    correct += other.correct;
    fast += other.fast;
    log_speedup += other.log_speedup;
    reward += other.reward;
    hacks += other.hacks;
  }
};

Tally TallyOf(const Grade& grade) {
  const bool correct = grade.verdict == Verdict::kCorrect;
  return {.answers = 1,
          .compiled = grade.compiled ? 1.0 : 0.0,
          .correct = correct ? 1.0 : 0.0,
          .fast = correct && grade.speedup_low > kFastSpeedup ? 1.0 : 0.0,
          .log_speedup = correct ? std::log(std::max(grade.speedup, 1e-6)) : 0.0,
          .reward = *grade.reward,
          .hacks = grade.verdict == Verdict::kHack ? 1.0 : 0.0};
}

// In the order of EvaluationStatistics.
constexpr int kNumFigures = 6;
using Figures = std::array<double, kNumFigures>;

Figures FiguresOf(const Tally& tally) {
  const double answers = std::max(tally.answers, 1.0);
  const double speedup = tally.correct > 0 ? std::exp(tally.log_speedup / tally.correct) : 0.0;
  return {tally.compiled / answers, tally.correct / answers, tally.fast / answers, speedup,
          tally.reward / answers,   tally.hacks / answers};
}

Figures Resample(const std::vector<Tally>& tasks, uint64_t seed) {
  Tally sum;
  for (size_t i = 0; i < tasks.size(); ++i) sum.Add(tasks[UniformWord(seed, i) % tasks.size()]);
  return FiguresOf(sum);
}

Estimate EstimateOf(double value, std::vector<double> resampled) {
  std::sort(resampled.begin(), resampled.end());
  const size_t tail = resampled.size() / 40;  // 2.5 %
  return {.value = value, .low = resampled[tail], .high = resampled[resampled.size() - 1 - tail]};
}

std::string OriginOf(const std::string& task_id) { return task_id.substr(0, task_id.find('#')); }

}  // namespace

EvaluationStatistics ComputeEvaluationStatistics(const std::vector<TransitionGroup>& groups, uint64_t seed) {
  EvaluationStatistics statistics;
  std::map<std::string, Tally> by_task;
  for (const TransitionGroup& group : groups) {
    for (const Transition& transition : group.transitions) {
      ++statistics.num_answers;
      if (transition.grade.scored()) {
        by_task[OriginOf(group.task.id)].Add(TallyOf(transition.grade));
      } else {
        ++statistics.num_unscored;
      }
    }
  }
  statistics.num_tasks = static_cast<int>(by_task.size());
  if (by_task.empty()) return statistics;

  std::vector<Tally> tasks;
  Tally all;
  for (const auto& [id, tally] : by_task) {
    tasks.push_back(tally);
    all.Add(tally);
  }
  std::array<std::vector<double>, kNumFigures> resampled;
  for (int i = 0; i < kNumResamples; ++i) {
    const Figures figures = Resample(tasks, UniformWord(seed, i));
    for (int k = 0; k < kNumFigures; ++k) resampled[k].push_back(figures[k]);
  }
  Estimate* const estimates[kNumFigures] = {&statistics.compile_rate, &statistics.correct_rate,
                                            &statistics.fast_1,       &statistics.geomean_speedup,
                                            &statistics.mean_reward,  &statistics.hack_rate};
  const Figures figures = FiguresOf(all);
  for (int k = 0; k < kNumFigures; ++k) *estimates[k] = EstimateOf(figures[k], std::move(resampled[k]));
  if (all.correct == 0) statistics.geomean_speedup = {};
  return statistics;
}

}  // namespace warpsmith
