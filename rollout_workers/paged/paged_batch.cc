#include "rollout_workers/paged/paged_batch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "rollout_workers/paged/invariants.h"
#include "rollout_workers/paged/prompt_sharing.h"
#include "rollout_workers/paged/step_builder.h"

namespace warpsmith::paged {
namespace {

absl::Status CheckAtLeast(const char* name, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", value, "; give ", least, " or more"));
}

absl::Status CheckOptions(const PagedBatchOptions& options) {
  RETURN_IF_ERROR(CheckAtLeast("num_pages", options.num_pages, 2));
  RETURN_IF_ERROR(CheckAtLeast("page_tokens", options.page_tokens, 1));
  RETURN_IF_ERROR(CheckAtLeast("sequences_max", options.sequences_max, 1));
  RETURN_IF_ERROR(CheckAtLeast("samples_max", options.samples_max, 1));
  RETURN_IF_ERROR(CheckAtLeast("context_tokens_max", options.context_tokens_max, 2));
  RETURN_IF_ERROR(CheckAtLeast("prefill_tokens_max", options.prefill_tokens_max, 1));
  RETURN_IF_ERROR(CheckAtLeast("steps_in_flight_max", options.steps_in_flight_max, 1));
  RETURN_IF_ERROR(CheckAtLeast("num_token_ids", options.num_token_ids, 1));
  if (int64_t{options.num_pages} * options.page_tokens > INT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat(options.num_pages, " pages of ", options.page_tokens,
                                                   " entries; an entry's index must fit int32"));
  }
  if (!std::is_sorted(options.decode_buckets.begin(), options.decode_buckets.end())) {
    return absl::InvalidArgumentError("decode_buckets are not ascending; sort them");
  }
  return absl::OkStatus();
}

absl::Status CheckRequest(const PagedRequest& request, const PagedBatchOptions& options) {
  if (request.seeds.empty()) return absl::InvalidArgumentError("The request has no seed; give one a sample");
  if (request.prompt_token_ids.empty()) {
    return absl::InvalidArgumentError("The prompt has no token; give at least one");
  }
  for (const int32_t token_id : request.prompt_token_ids) {
    if (token_id >= 0 && token_id < options.num_token_ids) continue;
    return absl::InvalidArgumentError(absl::StrCat("The prompt has the token id ", token_id,
                                                   "; give ids from 0 to ", options.num_token_ids - 1));
  }
  RETURN_IF_ERROR(CheckAtLeast("answer_tokens_max", request.answer_tokens_max, 1));
  const int64_t num_tokens = std::ssize(request.prompt_token_ids) + request.answer_tokens_max;
  if (num_tokens > options.context_tokens_max) {
    return absl::InvalidArgumentError(absl::StrCat(request.prompt_token_ids.size(), " tokens of prompt and ",
                                                   request.answer_tokens_max, " of answer are over the ",
                                                   options.context_tokens_max, " of a context"));
  }
  // The last token is never fed, so it needs no entry.
  const int num_pages = NumPages(static_cast<int>(num_tokens) - 1, options.page_tokens);
  if (num_pages > options.num_pages - 1) {
    return absl::InvalidArgumentError(absl::StrCat("Prompt and answer need ", num_pages, " pages of ",
                                                   options.num_pages - 1, "; ask for a shorter answer"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PagedBatch>> PagedBatch::Create(const PagedBatchOptions& options,
                                                               uint64_t policy_version) {
  RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<PagedBatch>(new PagedBatch(options, policy_version));
}

PagedBatch::PagedBatch(const PagedBatchOptions& options, uint64_t policy_version)
    : options_(options),
      pool_(options.num_pages, options.page_tokens, policy_version, options.block_hash),
      table_(options.sequences_max),
      planner_(StepScheduler(options.prefill_tokens_max, options.page_tokens), table_, pool_) {}

absl::Status PagedBatch::Submit(PagedRequest request) {
  RETURN_IF_ERROR(CheckRequest(request, options_));
  if (table_.Find(request.id) != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("Request ", request.id, " is there already"));
  }
  if (table_.num_sequences() + std::ssize(request.seeds) > options_.samples_max) {
    return absl::ResourceExhaustedError(absl::StrCat(table_.num_sequences(), " samples wait or run and ",
                                                     request.seeds.size(), " would come; at most ",
                                                     options_.samples_max, ". Try again later"));
  }
  table_.Add(std::move(request));
  return absl::OkStatus();
}

void PagedBatch::Abort(int64_t request_id) {
  RequestEntry* const entry = table_.Find(request_id);
  if (entry == nullptr) return;
  std::vector<PagedSequence*> left;
  for (const auto& sample : entry->samples) {
    if (sample != nullptr) left.push_back(sample.get());
  }
  for (PagedSequence* const sequence : left) {
    ReleasePages(pool_, *sequence);
    table_.Remove(sequence);
  }
}

absl::StatusOr<FinishedAnswer> PagedBatch::FinishEarly(int64_t request_id, int sample_index, int num_tokens) {
  RequestEntry* const entry = table_.Find(request_id);
  if (entry == nullptr || sample_index < 0 || sample_index >= std::ssize(entry->samples) ||
      entry->samples[sample_index] == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("Sample ", sample_index, " of request ", request_id, " is not under way"));
  }
  PagedSequence* const sequence = entry->samples[sample_index].get();
  if (num_tokens < 0 || num_tokens > std::ssize(sequence->answer)) {
    return absl::InvalidArgumentError(
        absl::StrCat(num_tokens, " tokens cannot be kept of ", sequence->answer.size()));
  }
  FinishedAnswer answer = Finish(sequence, AnswerEnd::kFinishedEarly);
  answer.token_ids.resize(num_tokens);
  answer.log_probs.resize(num_tokens);
  answer.policy_versions.resize(num_tokens);
  if (!answer.top_tokens.empty()) answer.top_tokens.resize(num_tokens);
  return answer;
}

absl::Status PagedBatch::Pause(int64_t request_id) {
  RequestEntry* const entry = table_.Find(request_id);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("Request ", request_id, " is not there"));
  entry->paused = true;
  for (const auto& sample : entry->samples) {
    if (sample == nullptr) continue;
    sample->leader = nullptr;
    table_.Move(sample.get(), SequenceState::kPaused);
  }
  return absl::OkStatus();
}

absl::Status PagedBatch::Resume(int64_t request_id) {
  RequestEntry* const entry = table_.Find(request_id);
  if (entry == nullptr) return absl::NotFoundError(absl::StrCat("Request ", request_id, " is not there"));
  if (!std::exchange(entry->paused, false)) return absl::OkStatus();
  for (const auto& sample : entry->samples) {
    if (sample != nullptr) table_.Move(sample.get(), SequenceState::kWaiting);
  }
  return absl::OkStatus();
}

absl::Status PagedBatch::ChangeWeights(uint64_t policy_version, EntriesOnChange entries) {
  if (policy_version == pool_.policy_version()) {
    return absl::InvalidArgumentError(absl::StrCat("Version ", policy_version, " is in use already"));
  }
  if (entries == EntriesOnChange::kRequireNone && !drained()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Answers of version ", pool_.policy_version(), " are under way, ", table_.running().size(),
        " of them running; hold new ones and wait until the batch is drained"));
  }
  for (PagedSequence* const sequence : table_.sequences()) {
    if (sequence->pages.empty()) continue;
    if (entries == EntriesOnChange::kKeep && sequence->has_begun()) {
      sequence->prefix = kNoPrefix;
    } else {
      Preempt(*sequence, table_, pool_);
    }
  }
  pool_.ForgetContents(policy_version);
  return absl::OkStatus();
}

absl::Status PagedBatch::Sleep() {
  if (!steps_in_flight_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(steps_in_flight_.size(), " steps are in flight; complete them before sleeping"));
  }
  GiveBackAllPages();
  asleep_ = true;
  return absl::OkStatus();
}

void PagedBatch::DropSteps() {
  steps_in_flight_.clear();
  for (PagedSequence* const sequence : table_.sequences()) sequence->num_in_flight = 0;
  GiveBackAllPages();
}

void PagedBatch::GiveBackAllPages() {
  for (PagedSequence* const sequence : table_.sequences()) Preempt(*sequence, table_, pool_);
  pool_.ForgetContents(pool_.policy_version());
}

StepPlan PagedBatch::Plan(StepPlan plan) {
  ClearPlan(plan);
  if (asleep_ || num_steps_in_flight() >= options_.steps_in_flight_max) return plan;
  StepInFlight step{.policy_version = pool_.policy_version()};
  planner_.Plan(new_requests_, plan, step.arrivals);
  if (plan.empty()) return plan;
  plan.step = next_step_++;
  plan.policy_version = step.policy_version;
  steps_in_flight_.push_back(std::move(step));
  PadToBucket(options_.decode_buckets, options_.sequences_max, plan);
  return plan;
}

StepOutcome PagedBatch::Complete(absl::Span<const TokenResult> results) {
  WS_CHECK(!steps_in_flight_.empty()) << "no step is in flight";
  const StepInFlight step = std::move(steps_in_flight_.front());
  steps_in_flight_.pop_front();
  WS_CHECK(results.size() == step.arrivals.size())
      << results.size() << " results for " << step.arrivals.size() << " samples";
  StepOutcome outcome;
  for (size_t i = 0; i < results.size(); ++i) {
    if (PagedSequence* const sequence = table_.FindSequence(step.arrivals[i])) {
      TakeResult(sequence, results[i], step.policy_version, outcome);
    } else {
      ++num_tokens_dropped_;
    }
  }
  return outcome;
}

void PagedBatch::TakeResult(PagedSequence* sequence, const TokenResult& result, uint64_t policy_version,
                            StepOutcome& outcome) {
  --sequence->num_in_flight;
  const PagedRequest& request = *sequence->request;
  if (result.token_id < 0 || result.token_id >= options_.num_token_ids) {
    outcome.broken_request_ids.push_back(request.id);
    Abort(request.id);
    return;
  }
  sequence->answer.push_back(result.token_id);
  sequence->log_probs.push_back(result.log_prob);
  sequence->policy_versions.push_back(policy_version);
  if (request.num_top_tokens > 0) sequence->top_tokens.push_back(result.top_tokens);
  ++num_tokens_decoded_;
  outcome.tokens.push_back({.request_id = request.id,
                            .sample_index = sequence->sample_index,
                            .token_id = result.token_id,
                            .log_prob = result.log_prob,
                            .policy_version = policy_version,
                            .top_tokens = result.top_tokens});
  if (IsStop(result.token_id)) {
    outcome.finished.push_back(Finish(sequence, AnswerEnd::kStopToken));
  } else if (std::ssize(sequence->answer) == request.answer_tokens_max) {
    outcome.finished.push_back(Finish(sequence, AnswerEnd::kLength));
  } else {
    PublishFullPages(pool_, *sequence);
  }
}

FinishedAnswer PagedBatch::Finish(PagedSequence* sequence, AnswerEnd end) {
  HandOverPrompt(*sequence, table_);
  PublishFullPages(pool_, *sequence);
  ReleasePages(pool_, *sequence);
  FinishedAnswer answer{.request_id = sequence->request->id,
                        .sample_index = sequence->sample_index,
                        .seed = sequence->request->seeds[sequence->sample_index],
                        .token_ids = std::move(sequence->answer),
                        .log_probs = std::move(sequence->log_probs),
                        .policy_versions = std::move(sequence->policy_versions),
                        .top_tokens = std::move(sequence->top_tokens),
                        .end = end};
  table_.Remove(sequence);
  return answer;
}

PagedBatchStatus PagedBatch::status() const {
  const auto num_waiting = static_cast<int>(table_.returning().size() + table_.fresh().size());
  const auto num_running = static_cast<int>(table_.running().size());
  return {.num_running = num_running,
          .num_waiting = num_waiting,
          .num_paused = table_.num_sequences() - num_running - num_waiting,
          .num_free_pages = pool_.num_free(),
          .num_cached_pages = pool_.num_cached(),
          .num_tokens_decoded = num_tokens_decoded_,
          .num_tokens_prefilled = planner_.counters().num_tokens_prefilled,
          .num_tokens_reused = planner_.counters().num_tokens_reused,
          .num_preemptions = planner_.counters().num_preemptions,
          .num_tokens_dropped = num_tokens_dropped_};
}

absl::Status PagedBatch::CheckInvariants() const {
  absl::flat_hash_map<int64_t, int> num_in_flight;
  for (const StepInFlight& step : steps_in_flight_) {
    for (const int64_t arrival : step.arrivals) ++num_in_flight[arrival];
  }
  return CheckPagedInvariants(table_, pool_, num_in_flight);
}

bool PagedBatch::IsStop(int32_t token_id) const {
  return std::find(options_.stop_token_ids.begin(), options_.stop_token_ids.end(), token_id) !=
         options_.stop_token_ids.end();
}

}  // namespace warpsmith::paged
