// Jobs that come and go at random on a GPU while it sleeps and weights change.
#ifndef WARPSMITH_TESTS_BENCH_GPU_ENGINE_CHURN_H_
#define WARPSMITH_TESTS_BENCH_GPU_ENGINE_CHURN_H_

#include <cstdint>
#include <functional>

#include "core/model/model_config.h"
#include "rollout_workers/engine.h"

namespace warpsmith {

struct ChurnResult {
  int num_jobs = 0;
  int num_samples = 0;
  int num_answered = 0;
  int num_answered_twice = 0;
  int num_lost = 0;  // neither answered nor cancelled
  int num_failed = 0;
  int num_untold_versions = 0;  // answers whose tokens do not say which weights drew them
  int num_weight_changes = 0, num_sleeps = 0;
  int num_pages_missing = 0;  // neither free nor cached at the end

  bool ok() const {
    return num_answered_twice == 0 && num_lost == 0 && num_failed == 0 && num_untold_versions == 0 &&
           num_pages_missing == 0 && num_answered > 0;
  }
};

// `num_jobs` jobs on four threads, of which a third is cancelled in part or whole, over few pages, while the engine
// sleeps and wakes and takes new weights, samples under way or not. Ends the program where there is no such GPU.
// `options.cuda` is set.
using ChurnWeights = std::function<LoadedWeights(uint64_t version)>;
ChurnResult RunChurn(const ModelConfig& config, EngineOptions options, int num_jobs, ChurnWeights weights_of);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_BENCH_GPU_ENGINE_CHURN_H_
