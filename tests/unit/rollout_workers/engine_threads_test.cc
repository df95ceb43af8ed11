// Engines that many threads use at once.
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "rollout_workers/engine.h"
#include "tests/support/catch.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/run_together.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(60);

const EngineOptions kOptions{.num_slots = 8, .context_tokens_max = 64, .num_threads = 2};

// Jobs of six samples each for an engine, and the samples of each that came.
class Crew {
 public:
  explicit Crew(Kind kind)
      : engine_(Tiny(), kOptions,
                {.on_sample =
                     [this](FinishedSample sample) {
                       absl::MutexLock lock(&mutex_);
                       samples_[sample.job_id].push_back(std::move(sample));
                     },
                 .on_failure = [this](const FailedJob&) { CountWrong(); }},
                MakeBatchOf(kind, kOptions)) {}

  // Submits a job for whatever version is loaded, and cancels it or waits for its samples. Counts what is
  // wrong.
  void Work(int64_t id, bool cancels) {
    GenerationJob job =
        Job(id, {Group(static_cast<int>(id), 3, 9), Group(static_cast<int>(id) + 1000, 3, 20)}, 6);
    do {
      job.policy_version = engine_.status().policy_version;
    } while (absl::IsFailedPrecondition(engine_.Submit(job)));  // a swap came between
    if (cancels) return engine_.Cancel(id);
    absl::MutexLock lock(&mutex_);
    const auto whole = [&] { return samples_[id].size() == 6; };
    num_wrong_ += !mutex_.AwaitWithTimeout(absl::Condition(&whole), kPatience);
    for (const FinishedSample& sample : samples_[id])
      num_wrong_ += sample.policy_version != job.policy_version;
  }

  // Tries a few moments in vain, perhaps, then waits for a quiet one.
  void Swap(uint64_t version) {
    for (const absl::Duration patience : {absl::Milliseconds(1), absl::Milliseconds(5), kPatience}) {
      LoadedWeights weights = RandomWeights(Tiny(), version);
      weights.policy_version = version;
      if (engine_.SwapWeights(std::move(weights), absl::Now() + patience).ok()) return;
    }
    CountWrong();
  }

  // Asks after the engine often, and cancels what nobody submitted.
  void CancelNothing() {
    for (int i = 0; i < 400; ++i) {
      engine_.Cancel(-1);
      std::this_thread::yield();
      if (engine_.status().num_active_samples > 8) CountWrong();
    }
  }

  int num_wrong() {
    absl::MutexLock lock(&mutex_);
    return num_wrong_;
  }
  Engine& engine() { return engine_; }

 private:
  void CountWrong() {
    absl::MutexLock lock(&mutex_);
    ++num_wrong_;
  }

  absl::Mutex mutex_;
  std::map<int64_t, std::vector<FinishedSample>> samples_ ABSL_GUARDED_BY(mutex_);
  int num_wrong_ ABSL_GUARDED_BY(mutex_) = 0;
  Engine engine_;
};

}  // namespace

TEST_CASE("jobs that come and go on many threads while weights are swapped end whole and of one version") {
  const Kind kind = GENERATE(Kind::kCpu, Kind::kDevice);
  Crew crew(kind);
  crew.Swap(0);
  constexpr int kNumJobs = 8;
  for (uint64_t version = 1; version <= 4; ++version) {
    RunTogether(5, [&](int thread) {
      if (thread == 0) return crew.Swap(version);
      if (thread == 1) return crew.CancelNothing();
      for (int i = 0; i < kNumJobs; ++i) {
        const int64_t id = 1 + i + kNumJobs * (thread + 5 * static_cast<int64_t>(version));
        crew.Work(id, /*cancels=*/i % 3 == 2);
      }
    });
    CHECK(crew.engine().status().policy_version == version);
  }
  CHECK(crew.num_wrong() == 0);
}

}  // namespace warpsmith
