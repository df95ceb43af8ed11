// Microseconds of a host's core for each step of a PagedBatch, device left out: the time that a step on a GPU, 5 to 20
// ms, must hide. `paged_plan_rates [--running N] [--prompt TOKENS] [--answer TOKENS]`; a line of JSON for each
// load.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "rollout_workers/paged/paged_batch.h"

namespace warpsmith {
namespace {

constexpr int kGroupSize = 8;
constexpr int kNumTokenIds = 151'936;

struct Load {
  std::string name;
  int running, prompt, answer;
  int page_tokens = 16;
  // Chance that a token ends its answer, so that groups come and go.
  double stop = 0;
  // Of the pages that all sequences need; below 1 requests wait for pages while slots are free.
  double pages = 1;
};

struct Times {
  std::vector<double> plan_us, complete_us;
};

paged::PagedRequest SomeRequest(const Load& load, int64_t id) {
  paged::PagedRequest request{.id = id, .answer_tokens_max = load.answer};
  for (int i = 0; i < load.prompt; ++i) {
    request.prompt_token_ids.push_back(static_cast<int32_t>(1 + UniformWord(id, i) % (kNumTokenIds - 1)));
  }
  for (int i = 0; i < kGroupSize; ++i) request.seeds.push_back(UniformWord(7, id * kGroupSize + i));
  return request;
}

paged::PagedBatchOptions OptionsOf(const Load& load) {
  const int pages_each = (load.prompt + load.answer) / load.page_tokens + 2;
  return {.num_pages = static_cast<int>(load.pages * load.running * pages_each),
          .page_tokens = load.page_tokens,
          .sequences_max = load.running,
          .samples_max = 4 * load.running,
          .context_tokens_max = load.prompt + load.answer,
          .prefill_tokens_max = 8192,
          .decode_buckets = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024},
          .stop_token_ids = {0},
          .num_token_ids = kNumTokenIds};
}

// Of this thread's processor time, so that other processes do not count.
double Microseconds() {
  timespec now{};
  WS_CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Only steps in which three quarters of the slots that can be are taken count.
Times Measure(const Load& load, int num_steps) {
  const std::unique_ptr<paged::PagedBatch> batch = *paged::PagedBatch::Create(OptionsOf(load), 1);
  Times times;
  paged::StepPlan plans[2];
  std::vector<paged::TokenResult> results[2];
  int64_t num_submitted = 0;
  uint64_t num_random = 0;
  for (int step = 0; std::ssize(times.plan_us) < num_steps; step ^= 1) {
    while (batch->status().num_waiting < load.running) {
      WS_CHECK(batch->Submit(SomeRequest(load, num_submitted++)).ok());
    }
    const double begin = Microseconds();
    plans[step] = batch->Plan(std::move(plans[step]));
    const double plan_us = Microseconds() - begin;
    results[step].resize(plans[step].num_samples);
    for (paged::TokenResult& result : results[step]) {
      const bool stops = UniformDouble(3, ++num_random) < load.stop;
      result = {.token_id = stops ? 0 : static_cast<int32_t>(1 + num_random % (kNumTokenIds - 1))};
    }
    if (batch->num_steps_in_flight() < 2) continue;
    const double complete = Microseconds();
    batch->Complete(results[step ^ 1]);
    const double complete_us = Microseconds() - complete;
    if (batch->status().num_running < 0.75 * load.pages * load.running) continue;
    times.plan_us.push_back(plan_us);
    times.complete_us.push_back(complete_us);
  }
  return times;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double value = values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
  return std::round(10 * value) / 10;
}

int Main(std::map<std::string, std::string> flags) {
  const auto number = [&](const char* flag, int otherwise) {
    return flags.contains(flag) ? std::stoi(flags[flag]) : otherwise;
  };
  const int running = number("--running", 512);
  const int prompt = number("--prompt", 1024);
  const int answer = number("--answer", 1024);
  for (const Load& load :
       {Load{"decode alone", running, prompt, answer},
        Load{"decode alone, pages of 64", running, prompt, answer, 64},
        Load{"groups come and go", running, prompt, answer, 16, 0.002},
        Load{"long contexts", running, 8 * prompt, answer},
        Load{"long contexts, out of pages", running, 8 * prompt, answer, 16, 0.002, 0.3}}) {
    const Times times = Measure(load, 1000);
    std::cout << nlohmann::json{{"load", load.name},
                                {"running", load.running},
                                {"prompt_tokens", load.prompt},
                                {"page_tokens", load.page_tokens},
                                {"plan_us_p50", Quantile(times.plan_us, 0.5)},
                                {"plan_us_p99", Quantile(times.plan_us, 0.99)},
                                {"plan_us_max", Quantile(times.plan_us, 1)},
                                {"complete_us_p50", Quantile(times.complete_us, 0.5)},
                                {"complete_us_p99", Quantile(times.complete_us, 0.99)},
                                {"complete_us_max", Quantile(times.complete_us, 1)}}
              << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  std::map<std::string, std::string> flags;
  for (int i = 1; i + 1 < argc; i += 2) flags[argv[i]] = argv[i + 1];
  return warpsmith::Main(flags);
}
