// What a judgement costs and how well it repeats: distinct native candidates of a few tasks, compiled ahead.
//   referee_bench [candidates a task] [repeats]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "reward_service/measure/referee.h"
#include "tests/support/candidate_library.h"
#include "tests/support/referee_fixture.h"

namespace warpsmith {
namespace {

struct Case {
  std::string name;
  TaskSource task;
  std::string right;  // statements of a right candidate
};

std::vector<Case> Cases() {
  const std::string chain = "{ float v = 2 * x[i] + 1; v = v > 0 ? v : 0; y[i] = v * v; }";
  return {{"element-wise chain", TestTask("scaled_relu_square"), "for (int64_t i = 0; i < n; ++i) " + chain},
          {"softmax", TestTask("softmax_rows"), R"(
    for (int r = 0; r < 128; ++r, x += 1024, y += 1024) {
      float top = x[0], sum = 0;
      for (int i = 1; i < 1024; ++i) top = x[i] > top ? x[i] : top;
      for (int i = 0; i < 1024; ++i) { y[i] = expf(x[i] - top); sum += y[i]; }
      for (int i = 0; i < 1024; ++i) y[i] /= sum;
    })"}};
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

v1::Measurement MustJudge(const TaskSource& task, const UniqueFd& library) {
  JudgeRequest request;
  request.task = task;
  request.library_fd = library.get();
  return *TestReferee().Judge(request, absl::Now() + absl::Minutes(2));
}

// One in three is wrong: that is what a Coder sends.
void MeasureRate(const Case& c, int count) {
  std::vector<UniqueFd> libraries;
  for (int k = 0; k < count; ++k) {
    const std::string mark = "volatile int mark = " + std::to_string(k) + "; (void)mark;";
    libraries.push_back(
        CompileCandidate(CandidateBody(k % 3 == 2 ? mark + "n /= 2;" + c.right : mark + c.right)));
  }
  std::vector<double> right_ms, wrong_ms, verify_ms, time_ms, profile_ms;
  double first_ms = 0;
  const absl::Time start = absl::Now();
  for (const UniqueFd& library : libraries) {
    const absl::Time begin = absl::Now();
    const v1::Measurement j = MustJudge(c.task, library);
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - begin);
    if (&library == &libraries.front()) {
      first_ms = ms;
      continue;
    }
    (j.grade().verdict() == v1::VERDICT_CORRECT ? right_ms : wrong_ms).push_back(ms);
    if (j.grade().verdict() != v1::VERDICT_CORRECT) continue;
    verify_ms.push_back(j.grade().cost().verify_seconds() * 1e3);
    time_ms.push_back(j.grade().cost().time_seconds() * 1e3);
    profile_ms.push_back(j.grade().cost().profile_seconds() * 1e3);
  }
  const double minutes = absl::ToDoubleMinutes(absl::Now() - start);
  std::printf(
      "%-20s first of the task %6.0f ms; right p50 %5.0f p95 %5.0f ms (verify %3.0f, time %4.0f, profile "
      "%3.0f);"
      " wrong p50 %4.0f ms; %5.0f a minute\n",
      c.name.c_str(), first_ms, Quantile(right_ms, 0.5), Quantile(right_ms, 0.95), Quantile(verify_ms, 0.5),
      Quantile(time_ms, 0.5), Quantile(profile_ms, 0.5), Quantile(wrong_ms, 0.5), count / minutes);
}

void MeasureRepeatability(const Case& c, int repeats) {
  const UniqueFd library = CompileCandidate(CandidateBody(c.right));
  std::vector<double> speedups, widths;
  v1::Timing last;
  v1::Profile profile;
  for (int k = 0; k < repeats; ++k) {
    const v1::Measurement j = MustJudge(c.task, library);
    if (!j.grade().has_timing()) continue;
    last = j.grade().timing();
    profile = j.grade().profile();
    speedups.push_back(last.speedup());
    widths.push_back((last.speedup_high() - last.speedup_low()) / last.speedup());
  }
  const double median = Quantile(speedups, 0.5);
  std::printf(
      "%-20s %d gradings: speed-up %.3f, IQR/median %.2f %%, range/median %.2f %%, interval width p50 %.1f "
      "%%;"
      " reference %.0f us, candidate %.0f us, %d samples, own %.2f, %d bits, %s\n",
      c.name.c_str(), repeats, median, 100 * (Quantile(speedups, 0.75) - Quantile(speedups, 0.25)) / median,
      100 * (Quantile(speedups, 1) - Quantile(speedups, 0)) / median, 100 * Quantile(widths, 0.5),
      last.reference().median_us(), last.candidate().median_us(), profile.num_samples(),
      profile.own_code_share(), profile.vector_bits(), last.quality().c_str());
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 24;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 20;
  for (const warpsmith::Case& c : warpsmith::Cases()) warpsmith::MeasureRate(c, count);
  for (const warpsmith::Case& c : warpsmith::Cases()) warpsmith::MeasureRepeatability(c, repeats);
  return 0;
}
