#include "tests/bench/gpu_engine_churn.h"

#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/paged_device_batch.h"
#include "tests/support/run_together.h"

namespace warpsmith {
namespace {

constexpr int kThreads = 4;
constexpr int kPages = 200;  // of 24 slots' 384: some are preempted
constexpr absl::Duration kPatience = absl::Minutes(2);

using Place = std::tuple<int64_t, int, int>;  // job, task, sample

class Churn {
 public:
  Churn(const ModelConfig& config, EngineOptions options) : config_(config) {
    options.cuda->num_pages = kPages;
    absl::StatusOr<std::unique_ptr<Batch>> batch = MakeBatch(config, options);
    if (!batch.ok()) {
      std::cerr << batch.status().ToString() << "\n";
      std::exit(1);
    }
    batch_ = dynamic_cast<const PagedDeviceBatch*>(batch->get());
    engine_ = std::make_unique<Engine>(
        config, options,
        EngineEvents{.on_sample = [this](const FinishedSample& sample) { TakeSample(sample); },
                     .on_failure =
                         [this](const FailedJob& job) {
                           absl::MutexLock lock(&mutex_);
                           std::cerr << job.status.ToString() << "\n";
                           ++result_.num_failed;
                           for (auto& [place, is_open] : open_)
                             is_open = is_open && std::get<0>(place) != job.job_id;
                         },
                     .on_token = [](DrawnToken) {}},
        *std::move(batch));
    Load(0);
  }

  ChurnResult Run(int num_jobs) {
    constexpr int kRounds = 5;
    for (int round = 1; round <= kRounds; ++round) {
      RunTogether(kThreads, [&](int thread) {
        for (int i = thread; i < num_jobs / kRounds; i += kThreads) Work(int64_t{round} * num_jobs + i);
      });
      Load(static_cast<uint64_t>(round));  // also waits until the batch is empty
    }
    absl::MutexLock lock(&mutex_);
    const PagedBatchStatus pages = batch_->paged_status();
    result_.num_pages_missing = kPages - 1 - pages.num_free_pages - pages.num_cached_pages;
    result_.num_weight_changes = kRounds;
    for (const auto& [place, is_open] : open_) result_.num_lost += is_open;
    return result_;
  }

 private:
  void Load(uint64_t version) {
    LoadedWeights weights{.policy_version = version};
    weights.random_seed = version + 1;
    const absl::Status status = engine_->SwapWeights(std::move(weights), absl::Now() + kPatience);
    WS_CHECK(status.ok()) << status.ToString();
  }

  GenerationJob MakeJob(int64_t id) const {
    const auto draw = [&](uint64_t what, uint64_t below) {
      return static_cast<int>(UniformWord(static_cast<uint64_t>(id), what) % below);
    };
    GenerationJob job{.id = id, .sampling = {.answer_tokens_max = 1 + draw(0, 100)}};
    for (int task = 0; task < 1 + draw(1, 2); ++task) {
      GenerationGroup group{.task_index = task};
      const int length = 1 + draw(10 + static_cast<uint64_t>(task), 150);
      for (int i = 0; i < length; ++i)
        group.prompt_token_ids.push_back((draw(2, 9) + i) % static_cast<int>(config_.vocab_size));
      for (int s = 0; s < 1 + draw(3, 4); ++s) {
        group.samples.push_back({.sample_index = s, .seed = UniformWord(static_cast<uint64_t>(id), 50 + s)});
      }
      job.groups.push_back(std::move(group));
    }
    return job;
  }

  void Work(int64_t id) {
    GenerationJob job = MakeJob(id);
    {
      absl::MutexLock lock(&mutex_);
      ++result_.num_jobs;
      for (const GenerationGroup& group : job.groups) {
        for (const WantedSample& sample : group.samples) {
          open_[{id, group.task_index, sample.sample_index}] = true;
          ++result_.num_samples;
        }
      }
    }
    job.policy_version = engine_->status().policy_version;
    const absl::Status status = engine_->Submit(std::move(job));
    WS_CHECK(status.ok()) << status.ToString();
    const uint64_t fate = UniformWord(static_cast<uint64_t>(id), 99) % 6;
    if (fate == 0) Cancel(id);
    if (fate == 1) CancelFirst(id);
    if (fate >= 2) AwaitAll(id);
  }

  void Cancel(int64_t id) {
    engine_->Cancel(id);
    absl::MutexLock lock(&mutex_);
    for (auto& [place, is_open] : open_) is_open = is_open && std::get<0>(place) != id;
  }
  void CancelFirst(int64_t id) {
    engine_->CancelSample(id, 0, 0);
    absl::MutexLock lock(&mutex_);
    open_[{id, 0, 0}] = false;
  }
  void AwaitAll(int64_t id) {
    absl::MutexLock lock(&mutex_);
    const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      for (auto at = open_.lower_bound({id, 0, 0}); at != open_.end() && std::get<0>(at->first) == id; ++at) {
        if (at->second) return false;
      }
      return true;
    };
    mutex_.AwaitWithTimeout(absl::Condition(&ended), kPatience);  // what is open after it counts as lost
  }

  void TakeSample(const FinishedSample& sample) {
    const Place place(sample.job_id, sample.task_index, sample.sample_index);
    absl::MutexLock lock(&mutex_);
    ++result_.num_answered;
    result_.num_answered_twice += !answered_.insert(place).second;
    open_[place] = false;
  }

  const ModelConfig config_;
  absl::Mutex mutex_;
  std::map<Place, bool> open_ ABSL_GUARDED_BY(mutex_);
  std::set<Place> answered_ ABSL_GUARDED_BY(mutex_);
  ChurnResult result_ ABSL_GUARDED_BY(mutex_);
  const PagedDeviceBatch* batch_ = nullptr;  // the engine's; read while it is idle
  std::unique_ptr<Engine> engine_;
};

}  // namespace

ChurnResult RunChurn(const ModelConfig& config, EngineOptions options, int num_jobs) {
  return Churn(config, std::move(options)).Run(num_jobs);
}

}  // namespace warpsmith
