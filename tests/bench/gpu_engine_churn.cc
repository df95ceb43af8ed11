#include "tests/bench/gpu_engine_churn.h"

#include <algorithm>
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
  Churn(const ModelConfig& config, EngineOptions options, ChurnWeights weights_of)
      : config_(config), weights_of_(std::move(weights_of)) {
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
    Load(paged::EntriesOnChange::kRequireNone);
  }

  ChurnResult Run(int num_jobs) {
    constexpr int kRounds = 5;
    for (int round = 1; round <= kRounds; ++round) {
      RunTogether(kThreads + 1, [&](int thread) {
        if (thread == kThreads) return Disturb(std::max(4, num_jobs / 400));
        for (int i = thread; i < num_jobs / kRounds; i += kThreads) Work(int64_t{round} * num_jobs + i);
        absl::MutexLock lock(&mutex_);
        ++num_threads_done_;
      });
      {
        absl::MutexLock lock(&mutex_);
        num_threads_done_ = 0;
      }
      Load(paged::EntriesOnChange::kRequireNone);  // waits until the batch is empty
    }
    absl::MutexLock lock(&mutex_);
    const paged::PagedBatchStatus pages = batch_->paged_status();
    result_.num_pages_missing = kPages - 1 - pages.num_free_pages - pages.num_cached_pages;
    for (const auto& [place, is_open] : open_) result_.num_lost += is_open;
    return result_;
  }

 private:
  // The next version.
  void Load(paged::EntriesOnChange entries) {
    uint64_t version;
    {
      absl::MutexLock lock(&mutex_);
      version = ++newest_version_;
      ++result_.num_weight_changes;
    }
    LoadedWeights weights = weights_of_(version);
    weights.policy_version = version;
    Check(engine_->SwapWeights(std::move(weights), absl::Now() + kPatience, entries));
    absl::MutexLock lock(&mutex_);
    ++num_loads_;
  }

  // Until all jobs of the round have ended: after each `samples_between` answers the engine sleeps and wakes, or takes
  // other weights while samples are under way.
  void Disturb(int samples_between) {
    for (int turn = 0;; ++turn) {
      {
        absl::MutexLock lock(&mutex_);
        const int wanted = result_.num_answered + samples_between;
        const auto is_time = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
          return result_.num_answered >= wanted || num_threads_done_ == kThreads;
        };
        mutex_.AwaitWithTimeout(absl::Condition(&is_time), kPatience);
        if (num_threads_done_ == kThreads) return;
        result_.num_sleeps += turn % 2;
      }
      const SleepDepth depth = turn % 4 == 1 ? SleepDepth::kPages : SleepDepth::kPagesAndWeights;
      if (turn % 2 == 1) {
        Check(engine_->Sleep(depth, absl::Now() + kPatience));
        Check(engine_->Wake(absl::Now() + kPatience));
      }
      if (turn % 4 != 1)
        Load(turn % 4 == 0 ? paged::EntriesOnChange::kKeep : paged::EntriesOnChange::kRecompute);
    }
  }

  static void Check(const absl::Status& status) { WS_CHECK(status.ok()) << status.ToString(); }

  // Under the version that is loaded, which may change before the engine has the job.
  void Submit(GenerationJob job) {
    constexpr int kAttempts = 100;
    absl::Status status;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      int num_loads;
      {
        absl::MutexLock lock(&mutex_);
        num_loads = num_loads_;
      }
      job.policy_version = engine_->status().policy_version;
      status = engine_->Submit(job);
      if (!absl::IsFailedPrecondition(status)) break;
      absl::MutexLock lock(&mutex_);
      const auto changed = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return num_loads_ != num_loads; };
      mutex_.AwaitWithTimeout(absl::Condition(&changed), absl::Seconds(1));
    }
    Check(status);
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
    Submit(std::move(job));
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
    result_.num_untold_versions += !TellsVersions(sample);
    result_.num_answered_twice += !answered_.insert(place).second;
    open_[place] = false;
  }

  // Each token's version, in the order of versions, none older than asked for.
  bool TellsVersions(const FinishedSample& sample) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    const std::vector<uint64_t>& versions = sample.token_policy_versions;
    if (versions.empty()) return true;
    return versions.size() == sample.answer_token_ids.size() &&
           std::is_sorted(versions.begin(), versions.end()) && versions.front() >= sample.policy_version &&
           versions.back() <= newest_version_;
  }

  const ModelConfig config_;
  const ChurnWeights weights_of_;
  absl::Mutex mutex_;
  uint64_t newest_version_ ABSL_GUARDED_BY(mutex_) = 0;  // loaded or being loaded
  int num_loads_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_threads_done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Place, bool> open_ ABSL_GUARDED_BY(mutex_);
  std::set<Place> answered_ ABSL_GUARDED_BY(mutex_);
  ChurnResult result_ ABSL_GUARDED_BY(mutex_);
  const PagedDeviceBatch* batch_ = nullptr;  // the engine's; read while it is idle
  std::unique_ptr<Engine> engine_;
};

}  // namespace

ChurnResult RunChurn(const ModelConfig& config, EngineOptions options, int num_jobs,
                     ChurnWeights weights_of) {
  return Churn(config, std::move(options), std::move(weights_of)).Run(num_jobs);
}

}  // namespace warpsmith
