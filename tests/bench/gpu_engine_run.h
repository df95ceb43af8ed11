// Runs of an engine on a GPU, with times of first tokens: what engine_gpu_rates measures with.
#ifndef WARPSMITH_TESTS_BENCH_GPU_ENGINE_RUN_H_
#define WARPSMITH_TESTS_BENCH_GPU_ENGINE_RUN_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/kernels/device_dtype.h"
#include "core/model/model_config.h"
#include "rollout_workers/batch.h"
#include "rollout_workers/engine.h"

namespace warpsmith {

// The shapes of Qwen3 by their size ("0.6B" to "32B"), and "small", which is none of theirs. Source: their config.json.
// INVALID_ARGUMENT for another name.
absl::StatusOr<ModelConfig> Qwen3Shape(const std::string& size);

// A checkpoint where `directory` is set, else random weights of `config`.
struct BenchModel {
  ModelConfig config;
  std::filesystem::path directory;
  DeviceDtype dtype = DeviceDtype::kBfloat16;

  // Bytes that a step reads of the weights, and of a token that it attends to.
  int64_t weight_bytes() const;
  int64_t entry_bytes() const;
  LoadedWeights Weights(uint64_t policy_version) const;
};

// A prompt of `num_tokens` that no other `family` begins like.
std::vector<int32_t> BenchPrompt(int family, int num_tokens, const ModelConfig& config);

struct SampleTimes {
  absl::Time first;
  FinishedSample sample;
};

// What came of jobs that were submitted together. Times from the submission, in seconds.
struct RunResult {
  std::map<int64_t, std::vector<SampleTimes>> samples;  // by job
  std::vector<double> first_tokens;                     // ascending, one a sample
  double all_seconds = 0;
  // Whole steps between the last first token and the first end: everybody decodes then.
  double steady_seconds = 0;
  int64_t steady_tokens = 0;
  int64_t num_tokens = 0;
  int64_t num_steps = 0;
  int64_t num_prefilled = 0;

  double first_ms(double quantile) const;
};

class GpuEngineRun {
 public:
  // Ends the program with the error where there is no such GPU or too little memory. `options.cuda` is set.
  GpuEngineRun(const BenchModel& model, const EngineOptions& options);

  // Submits all jobs at once and waits for their samples, at most ten minutes. All report tokens.
  RunResult Run(std::vector<GenerationJob> jobs) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the same weights again, so that no prefix is found that was computed before.
  void Reload();

 private:
  void TakeToken(const DrawnToken& token) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeSample(FinishedSample sample) ABSL_LOCKS_EXCLUDED(mutex_);

  const BenchModel model_;
  absl::Mutex mutex_;
  RunResult result_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<int64_t, int>, absl::Time> first_ ABSL_GUARDED_BY(mutex_);  // by job and sample
  size_t num_wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t num_ended_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time began_ ABSL_GUARDED_BY(mutex_);
  // Whose first token was the last one, when that was, and how many tokens of all have come since.
  std::pair<int64_t, int> last_to_begin_ ABSL_GUARDED_BY(mutex_);
  absl::Time all_began_ ABSL_GUARDED_BY(mutex_);
  int64_t num_tokens_since_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Engine> engine_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_BENCH_GPU_ENGINE_RUN_H_
