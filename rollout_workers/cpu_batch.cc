#include "rollout_workers/cpu_batch.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/kernels/thread_pool.h"
#include "core/model/decoder.h"
#include "core/model/parameters.h"

namespace warpsmith {
namespace {

// Below this many logits a step, threads cost more than they save.
constexpr int64_t kLogitsForThreads = 1 << 14;

}  // namespace

struct CpuBatch::Group {
  int64_t job_id = 0;
  SamplingParameters sampling;
  uint64_t policy_version = 0;
  bool reports_tokens = false;
  int num_top_tokens = 0;
  GenerationGroup prompt;
  int num_admitted = 0;
  absl::Time started = absl::InfiniteFuture();

  int num_waiting() const { return static_cast<int>(prompt.samples.size()) - num_admitted; }
  int num_prompt_tokens() const { return static_cast<int>(prompt.prompt_token_ids.size()); }
};

struct CpuBatch::Slot {
  std::shared_ptr<Group> group;  // null: free
  WantedSample wanted;
  std::vector<int32_t> answer;
  std::vector<float> log_probs;
  std::vector<std::vector<TokenLogProb>> top_tokens;  // where the job wants some
  bool broken = false;                                // its logits were no numbers
};

struct CpuBatch::Logits {
  at::Tensor rows;  // [rows that were asked for, num_token_ids], float32
};

CpuBatch::CpuBatch(const ModelConfig& config, const EngineOptions& options)
    : options_(options),
      num_token_ids_(NumTokenIds(config, options.num_token_ids)),
      logits_(std::make_unique<Logits>()) {
  pool_ = std::make_unique<ThreadPool>(options.num_threads);
  // Kernels exist for float32 on a CPU, whatever the configuration.
  decoder_ = std::make_unique<Decoder>(*Decoder::Create(
      config, Backend::kKernels, {.pool = pool_.get(), .num_token_ids = options.num_token_ids}));
  cache_ = std::make_unique<KvCache>(decoder_->MakeCache(options.num_slots, options.context_tokens_max));
  for (int i = 0; i < options.num_threads; ++i) samplers_.emplace_back(static_cast<int>(num_token_ids_));
  slots_.resize(options.num_slots);
  for (int slot = options.num_slots - 1; slot >= 0; --slot) free_.push_back(slot);
}

CpuBatch::~CpuBatch() = default;

absl::Status CpuBatch::Sleep(SleepDepth) {
  return absl::UnimplementedError("An engine on the CPU has no memory of a device to give back");
}

absl::Status CpuBatch::Wake() {
  return absl::UnimplementedError("An engine on the CPU does not sleep, so that nothing is to be woken");
}

absl::Status CpuBatch::SetWeights(const LoadedWeights& weights, paged::EntriesOnChange entries) {
  WS_CHECK(entries == paged::EntriesOnChange::kRequireNone)
      << "samples on the CPU do not go on with other weights";
  WS_CHECK(empty()) << num_active() << " samples decode while weights are swapped";
  has_weights_ = false;
  if (weights.parameters == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("The weights of version ", weights.policy_version,
                     " are not in this process's memory, where a CPU needs them: publish a file"));
  }
  try {
    RETURN_IF_ERROR(decoder_->SetParameters(*weights.parameters));
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("Taking the weights of version ", weights.policy_version,
                                            " failed: ", Escape(error.what(), 512)));
  }
  has_weights_ = true;
  return absl::OkStatus();
}

Batch::Outcome CpuBatch::GiveUp(const absl::Status& status) {
  Outcome outcome;
  LogWarning(absl::StrCat(num_active() + num_waiting(), " samples fail: ", std::string(status.message())));
  FailActiveJobs(status, &outcome);
  while (!waiting_.empty()) FailJob(waiting_.front()->job_id, status, &outcome);
  return outcome;
}

void CpuBatch::Add(GenerationJob job) {
  for (GenerationGroup& prompt : job.groups) {
    auto group = std::make_shared<Group>();
    group->job_id = job.id;
    group->sampling = job.sampling;
    group->policy_version = job.policy_version;
    group->reports_tokens = job.reports_tokens;
    group->num_top_tokens = job.num_top_tokens;
    group->prompt = std::move(prompt);
    if (group->num_waiting() > 0) waiting_.push_back(std::move(group));
  }
}

void CpuBatch::Remove(int64_t job_id) {
  std::erase_if(waiting_, [&](const auto& group) { return group->job_id == job_id; });
  const std::vector<int> before = active_;
  for (const int slot : before) {
    if (slots_[slot].group->job_id == job_id) FreeSlot(slot);
  }
}

void CpuBatch::RemoveSample(const SamplePlace& place) {
  const auto found = std::find_if(active_.begin(), active_.end(), [&](int slot) {
    const Slot& sample = slots_[slot];
    return sample.group->job_id == place.job_id && sample.group->prompt.task_index == place.task_index &&
           sample.wanted.sample_index == place.sample_index;
  });
  if (found != active_.end()) FreeSlot(*found);
}

int CpuBatch::num_waiting() const {
  int count = 0;
  for (const auto& group : waiting_) count += group->num_waiting();
  return count;
}

Batch::Outcome CpuBatch::Step() {
  Outcome outcome{.num_steps = 1};
  sequences_.clear();
  draws_.clear();
  followers_.clear();
  ScheduleDecodes();
  AdmitWaiting(&outcome);
  if (const absl::Status status = RunModel(); !status.ok()) {
    FailActiveJobs(status, &outcome);
    return outcome;
  }
  CopyPromptsToFollowers();
  DrawTokens(&outcome);
  Retire(&outcome);
  return outcome;
}

// Every sample that is in a slot feeds the token it drew last.
void CpuBatch::ScheduleDecodes() {
  for (const int slot : active_) {
    const Slot& sample = slots_[slot];
    const int64_t position = sample.group->num_prompt_tokens() + std::ssize(sample.answer) - 1;
    draws_.push_back({.slot = slot, .row = static_cast<int>(sequences_.size())});
    sequences_.push_back({.slot = slot, .first_position = position, .token_ids = {sample.answer.back()}});
  }
}

void CpuBatch::AdmitWaiting(Outcome* outcome) {
  std::vector<WaitingGroup> snapshot;
  std::vector<int> siblings;
  for (const auto& group : waiting_) {
    if (snapshot.size() == free_.size()) break;  // each admits at least one sample, so more cannot enter
    siblings.push_back(FindSibling(*group));
    snapshot.push_back({.num_prompt_tokens = group->num_prompt_tokens(),
                        .num_waiting = group->num_waiting(),
                        .prompt_resident = siblings.back() >= 0});
  }
  const std::vector<Admission> admissions =
      PlanAdmissions(snapshot, static_cast<int>(free_.size()), options_.scheduler);
  for (const Admission& admission : admissions) {
    const std::shared_ptr<Group> group = waiting_[admission.group];
    if (const int sibling = siblings[admission.group]; sibling >= 0) {
      AdmitBesideSibling(group, admission.num_samples, sibling);
    } else {
      AdmitWithPrefill(group, admission.num_samples);
      outcome->num_prefilled += group->num_prompt_tokens();
    }
  }
  std::erase_if(waiting_, [](const auto& group) { return group->num_waiting() == 0; });
}

void CpuBatch::AdmitWithPrefill(std::shared_ptr<Group> group, int num_samples) {
  group->started = std::min(group->started, absl::Now());
  const int source = OccupySlot(group);
  const int row = static_cast<int>(sequences_.size());
  sequences_.push_back({.slot = source, .first_position = 0, .token_ids = group->prompt.prompt_token_ids});
  draws_.push_back({.slot = source, .row = row});
  for (int i = 1; i < num_samples; ++i) {
    const int slot = OccupySlot(group);
    draws_.push_back({.slot = slot, .row = row});
    followers_.push_back({.slot = slot, .source = source});
  }
}

// The sibling's slot begins with the prompt: all of it but the last token is copied, and that one runs again
// for its logits, which are the same to the bit however a prompt is cut.
void CpuBatch::AdmitBesideSibling(std::shared_ptr<Group> group, int num_samples, int sibling) {
  const int64_t last = group->num_prompt_tokens() - 1;
  for (int i = 0; i < num_samples; ++i) {
    const int slot = OccupySlot(group);
    cache_->CopyPrefix(sibling, slot, last);
    draws_.push_back({.slot = slot, .row = static_cast<int>(sequences_.size())});
    sequences_.push_back(
        {.slot = slot, .first_position = last, .token_ids = {group->prompt.prompt_token_ids.back()}});
  }
}

int CpuBatch::OccupySlot(std::shared_ptr<Group> group) {
  const int slot = free_.back();
  free_.pop_back();
  active_.push_back(slot);
  Slot& sample = slots_[slot];
  sample.wanted = group->prompt.samples[group->num_admitted++];
  sample.answer.clear();
  sample.log_probs.clear();
  sample.top_tokens.clear();
  sample.broken = false;
  sample.group = std::move(group);
  return slot;
}

void CpuBatch::FreeSlot(int slot) {
  slots_[slot].group.reset();
  std::erase(active_, slot);
  free_.push_back(slot);
}

int CpuBatch::FindSibling(const Group& group) const {
  if (group.num_admitted == 0) return -1;
  const auto sibling = std::find_if(active_.begin(), active_.end(),
                                    [&](int slot) { return slots_[slot].group.get() == &group; });
  return sibling == active_.end() ? -1 : *sibling;
}

absl::Status CpuBatch::RunModel() {
  try {
    absl::StatusOr<at::Tensor> rows = decoder_->Step(sequences_, *cache_);
    if (!rows.ok()) return rows.status();
    logits_->rows = *std::move(rows);
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("A decoding step of ", sequences_.size(),
                                            " sequences failed: ", Escape(error.what(), 512)));
  }
}

void CpuBatch::CopyPromptsToFollowers() {
  for (const Follower& follower : followers_) {
    cache_->CopyPrefix(follower.source, follower.slot, slots_[follower.slot].group->num_prompt_tokens());
  }
}

void CpuBatch::DrawTokens(Outcome* outcome) {
  const auto num_draws = static_cast<int64_t>(draws_.size());
  const bool is_small = num_draws * num_token_ids_ < kLogitsForThreads;
  ParallelFor(is_small ? nullptr : pool_.get(), num_draws,
              [&](int64_t i, int worker) { DrawOne(samplers_[worker], draws_[i]); });
  outcome->num_drawn = static_cast<int>(num_draws);
}

void CpuBatch::DrawOne(Sampler& sampler, Draw draw) {
  Slot& sample = slots_[draw.slot];
  const float* const row = logits_->rows.const_data_ptr<float>() + draw.row * num_token_ids_;
  const absl::Span<const float> logits(row, num_token_ids_);
  const SamplingParameters& sampling = sample.group->sampling;
  const std::optional<SampledToken> token =
      sampler.Draw(logits, sampling, UniformDouble(sample.wanted.seed, sample.answer.size()));
  sample.broken = !token.has_value();
  if (sample.broken) return;
  sample.answer.push_back(token->token_id);
  sample.log_probs.push_back(token->log_prob);
  if (sample.group->num_top_tokens == 0) return;
  sample.top_tokens.push_back(
      TopTokensOf(logits, sampling.temperature, *token, sample.group->num_top_tokens));
}

void CpuBatch::Retire(Outcome* outcome) {
  const absl::Time now = absl::Now();
  for (const Draw& draw : draws_) {
    Slot& sample = slots_[draw.slot];
    if (sample.group == nullptr) continue;  // went with its broken job
    const Group& group = *sample.group;
    if (sample.broken) {
      outcome->failed.push_back(
          {.job_id = group.job_id,
           .status = absl::InternalError(absl::StrCat("The logits of version ", group.policy_version,
                                                      " are not finite; publish sound weights"))});
      Remove(group.job_id);
      continue;
    }
    if (group.reports_tokens) {
      outcome->drawn.push_back({.job_id = group.job_id,
                                .task_index = group.prompt.task_index,
                                .sample_index = sample.wanted.sample_index,
                                .token_id = sample.answer.back(),
                                .log_prob = sample.log_probs.back()});
      if (group.num_top_tokens > 0) outcome->drawn.back().top_tokens = sample.top_tokens.back();
    }
    const bool stopped = IsStop(sample.answer.back());
    if (!stopped && std::ssize(sample.answer) < group.sampling.answer_tokens_max) continue;
    outcome->finished.push_back({.job_id = group.job_id,
                                 .task_index = group.prompt.task_index,
                                 .sample_index = sample.wanted.sample_index,
                                 .seed = sample.wanted.seed,
                                 .policy_version = group.policy_version,
                                 .answer_token_ids = std::move(sample.answer),
                                 .log_probs = std::move(sample.log_probs),
                                 .top_tokens = std::move(sample.top_tokens),
                                 .finish_reason = stopped ? FinishReason::kStop : FinishReason::kLength,
                                 .started = group.started,
                                 .finished = now});
    FreeSlot(draw.slot);
  }
}

void CpuBatch::FailActiveJobs(const absl::Status& status, Outcome* outcome) {
  while (!active_.empty()) FailJob(slots_[active_.front()].group->job_id, status, outcome);
}

void CpuBatch::FailJob(int64_t job_id, const absl::Status& status, Outcome* outcome) {
  outcome->failed.push_back({.job_id = job_id, .status = status});
  Remove(job_id);
}

bool CpuBatch::IsStop(int32_t token_id) const {
  return std::find(options_.stop_token_ids.begin(), options_.stop_token_ids.end(), token_id) !=
         options_.stop_token_ids.end();
}

}  // namespace warpsmith
