#include "tests/bench/gpu_engine_run.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(10);

ModelConfig Qwen3(int64_t hidden, int64_t intermediate, int64_t layers, int64_t heads, bool tied) {
  return {.vocab_size = 151936,
          .hidden_size = hidden,
          .intermediate_size = intermediate,
          .num_hidden_layers = layers,
          .num_attention_heads = heads,
          .num_key_value_heads = 8,
          .head_dim = 128,
          .max_position_embeddings = 40960,
          .rope_theta = 1e6,
          .tie_word_embeddings = tied};
}

}  // namespace

absl::StatusOr<ModelConfig> Qwen3Shape(const std::string& size) {
  if (size == "0.6B") return Qwen3(1024, 3072, 28, 16, true);
  if (size == "1.7B") return Qwen3(2048, 6144, 28, 16, true);
  if (size == "4B") return Qwen3(2560, 9728, 36, 32, true);
  if (size == "8B") return Qwen3(4096, 12288, 36, 32, false);
  if (size == "14B") return Qwen3(5120, 17408, 40, 40, false);
  if (size == "32B") return Qwen3(5120, 25600, 64, 64, false);
  ModelConfig small = Qwen3(256, 512, 3, 16, true);
  small.vocab_size = 2048;
  if (size == "small") return small;
  return absl::InvalidArgumentError(
      absl::StrCat("There is no shape ", size, "; give 0.6B, 1.7B, 4B, 8B, 14B, 32B or small"));
}

int64_t BenchModel::weight_bytes() const {
  const int64_t table = config.vocab_size * config.hidden_size;
  // An embedding that is not the head is read a row a token.
  return ElementBytes(dtype) * (CountParameters(config) - (config.tie_word_embeddings ? 0 : table));
}

int64_t BenchModel::entry_bytes() const {
  return ElementBytes(dtype) * 2 * config.num_hidden_layers * config.key_value_size();
}

LoadedWeights BenchModel::Weights(uint64_t policy_version) const {
  LoadedWeights weights{.policy_version = policy_version, .hugging_face_directory = directory};
  if (directory.empty()) weights.random_seed = policy_version + 1;
  return weights;
}

std::vector<int32_t> BenchPrompt(int family, int num_tokens, const ModelConfig& config) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < num_tokens; ++i) {
    const uint64_t word = UniformWord(static_cast<uint64_t>(family), static_cast<uint64_t>(i));
    tokens.push_back(static_cast<int32_t>(word % static_cast<uint64_t>(config.vocab_size)));
  }
  tokens[0] = static_cast<int32_t>(family % config.vocab_size);
  return tokens;
}

double RunResult::first_ms(double quantile) const {
  const auto last = static_cast<double>(first_tokens.size() - 1);
  return 1e3 * first_tokens[static_cast<size_t>(std::lround(quantile * last))];
}

GpuEngineRun::GpuEngineRun(const BenchModel& model, const EngineOptions& options) : model_(model) {
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(model_.config, options,
                     {.on_sample = [this](FinishedSample sample) { TakeSample(std::move(sample)); },
                      .on_failure = [](FailedJob job) { WS_CHECK(false) << job.status.ToString(); },
                      .on_token = [this](DrawnToken token) { TakeToken(token); }});
  absl::Status status = engine.status();
  if (engine.ok()) status = (*engine)->SwapWeights(model_.Weights(0), absl::InfiniteFuture());
  if (!status.ok()) {
    std::cerr << status.ToString() << "\n";
    std::exit(1);
  }
  engine_ = *std::move(engine);
}

void GpuEngineRun::Reload() {
  const absl::Status status = engine_->SwapWeights(model_.Weights(0), absl::Now() + kPatience);
  WS_CHECK(status.ok()) << status.ToString();
}

RunResult GpuEngineRun::Run(std::vector<GenerationJob> jobs) {
  const EngineStatus before = engine_->status();
  {
    absl::MutexLock lock(&mutex_);
    result_ = {};
    first_.clear();
    num_wanted_ = num_ended_ = 0;
    for (const GenerationJob& job : jobs) {
      for (const GenerationGroup& group : job.groups) num_wanted_ += group.samples.size();
    }
    began_ = absl::Now();
  }
  for (GenerationJob& job : jobs) {
    job.reports_tokens = true;
    const absl::Status status = engine_->Submit(std::move(job));
    WS_CHECK(status.ok()) << status.ToString();
  }
  absl::MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return num_ended_ == num_wanted_; };
  WS_CHECK(mutex_.AwaitWithTimeout(absl::Condition(&ended), kPatience))
      << num_ended_ << " of " << num_wanted_ << " samples ended";
  result_.all_seconds = absl::ToDoubleSeconds(absl::Now() - began_);
  std::sort(result_.first_tokens.begin(), result_.first_tokens.end());
  const EngineStatus after = engine_->status();
  result_.num_steps = after.num_steps - before.num_steps;
  result_.num_prefilled = after.num_tokens_prefilled - before.num_tokens_prefilled;
  return std::move(result_);
}

void GpuEngineRun::TakeToken(const DrawnToken& token) {
  const absl::Time now = absl::Now();
  const std::pair<int64_t, int> place(token.job_id, token.sample_index);
  absl::MutexLock lock(&mutex_);
  ++result_.num_tokens;
  ++num_tokens_since_;
  if (first_.emplace(place, now).second) {
    result_.first_tokens.push_back(absl::ToDoubleSeconds(now - began_));
    last_to_begin_ = place;
    all_began_ = now;
    num_tokens_since_ = 0;
  } else if (place == last_to_begin_ && num_ended_ == 0) {
    // A step tells its tokens in one order, so whole steps lie between two tokens of one sample.
    result_.steady_tokens = num_tokens_since_;
    result_.steady_seconds = absl::ToDoubleSeconds(now - all_began_);
  }
}

void GpuEngineRun::TakeSample(FinishedSample sample) {
  absl::MutexLock lock(&mutex_);
  ++num_ended_;
  const absl::Time first = first_.at({sample.job_id, sample.sample_index});
  result_.samples[sample.job_id].push_back({.first = first, .sample = std::move(sample)});
}

}  // namespace warpsmith
