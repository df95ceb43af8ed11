#include "tests/support/fake_step_device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/parameters.h"
#include "core/model/weight_source.h"
#include "rollout_workers/device/step_device_group.h"
#include "tests/support/fake_paged_device.h"

namespace warpsmith {
namespace {

constexpr int32_t kUnwritten = -7;

uint64_t HashOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

float HashedLogProb(absl::Span<const int32_t> tokens_before, uint64_t seed, uint64_t draw, uint64_t weights) {
  return -static_cast<float>(HashedToken(tokens_before, ~seed, draw, weights, 1000)) / 100;
}

FakeStepDevice::FakeStepDevice(const paged::PagedBatchOptions& options,
                               std::shared_ptr<FakeStepDeviceState> state)
    : options_(options), state_(std::move(state)), last_tokens_(options.sequences_max + 1, kUnwritten) {
  WS_CHECK(AllocatePages().ok());
}

absl::Status FakeStepDevice::LoadHuggingFace(const std::filesystem::path& directory) {
  state_->weights = HashOf(directory.string());
  return lost_;
}

absl::Status FakeStepDevice::SetParameters(const Parameters& parameters) {
  uint64_t hash = 0;
  for (int i = 0; i < parameters.num_buffers(); ++i) hash = 31 * hash + HashOf(parameters.BufferBytes(i));
  state_->weights = hash;
  return lost_;
}

void FakeStepDevice::HangIfTold() const {
  if (const auto until = state_->hangs_until) until->WaitForNotification();
}

absl::Status FakeStepDevice::LoseIfTold() {
  HangIfTold();
  if (state_->loses_weights) lost_ = absl::DeadlineExceededError("the copy did not end");
  return lost_;
}

absl::Status FakeStepDevice::FillRandom(uint64_t seed) {
  state_->weights = seed;
  return LoseIfTold();
}

absl::Status FakeStepDevice::TakeWeights(WeightSource& source) {
  WS_CHECK(state_->has_weight_memory) << "weights without memory";
  RETURN_IF_ERROR(LoseIfTold());
  if (state_->refuses_weights) return absl::DataLossError("other weights have arrived");
  std::vector<uint16_t> elements(static_cast<size_t>(source.num_elements()));
  if (const absl::Status copied = source.CopyTo(elements.data(), 0, absl::Now() + absl::Seconds(60));
      !copied.ok()) {
    return copied;
  }
  state_->weights =
      HashOf({reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(uint16_t)});
  return lost_;
}

void FakeStepDevice::FreePages() {
  HangIfTold();
  WS_CHECK(launched_.empty()) << launched_.size() << " steps are in flight";
  entries_.clear();
  state_->has_pages = false;
}

// What lay there is gone.
void FakeStepDevice::FreeWeights() {
  HangIfTold();
  WS_CHECK(launched_.empty()) << launched_.size() << " steps are in flight";
  state_->weights = 0;
  state_->has_weight_memory = false;
}

absl::Status FakeStepDevice::AllocateWeights() {
  HangIfTold();
  if (state_->has_weight_memory) return absl::OkStatus();
  if (state_->memory_is_taken) return absl::ResourceExhaustedError("others have the memory of the weights");
  state_->has_weight_memory = true;
  return absl::OkStatus();
}

absl::Status FakeStepDevice::AllocatePages() {
  HangIfTold();
  if (!entries_.empty()) return absl::OkStatus();
  if (state_->memory_is_taken) return absl::ResourceExhaustedError("others have the memory of the pages");
  state_->has_pages = true;
  entries_.assign(static_cast<size_t>(options_.num_pages) * options_.page_tokens, kUnwritten);
  return absl::OkStatus();
}

absl::Status FakeStepDevice::Launch(const paged::StepPlan& plan) {
  if (!lost_.ok()) return lost_;
  WS_CHECK(state_->has_pages && state_->has_weight_memory) << "a step without memory";
  const int64_t number = state_->num_launched++;
  if (number == state_->failing_launch) return absl::InternalError("the launch was refused");
  for (const paged::PageCopy& copy : plan.page_copies) {
    const auto source = entries_.begin() + int64_t{copy.source} * options_.page_tokens;
    std::copy(source, source + copy.num_tokens,
              entries_.begin() + int64_t{copy.destination} * options_.page_tokens);
  }
  for (int row = 0; row < plan.num_rows(); ++row) {
    const int32_t given = plan.token_ids[row];
    entries_[plan.kv_entries[row]] =
        given == paged::kTokenOnDevice ? last_tokens_[plan.token_slots[row]] : given;
  }
  LaunchedStep launched{.number = number, .step = plan.step};
  for (int i = 0; i < plan.num_samples; ++i) launched.results.push_back(Sample(plan, plan.samples[i]));
  for (int i = 0; i < plan.num_samples; ++i) {
    last_tokens_[plan.samples[i].slot] = launched.results[i].token_id;
  }
  if (number == state_->broken_step && !launched.results.empty())
    launched.results[0].token_id = paged::kNoToken;
  launched_.push_back(std::move(launched));
  state_->num_in_flight = static_cast<int>(launched_.size());
  state_->num_in_flight_max = std::max(state_->num_in_flight_max.load(), state_->num_in_flight.load());
  WS_CHECK(launched_.size() <= 2) << launched_.size() << " steps are in flight";
  return absl::OkStatus();
}

paged::TokenResult FakeStepDevice::Sample(const paged::StepPlan& plan, const paged::SampleRow& sample) {
  const int32_t row = plan.logits_rows[sample.logits_row];
  const auto behind = std::upper_bound(plan.row_indptr.begin(), plan.row_indptr.end(), row);
  const auto query = behind - plan.row_indptr.begin() - 1;
  std::vector<int32_t> seen;
  for (int position = 0; position <= plan.positions[row]; ++position) {
    const int32_t page = plan.page_indices[plan.page_indptr[query] + position / options_.page_tokens];
    seen.push_back(entries_[int64_t{page} * options_.page_tokens + position % options_.page_tokens]);
  }
  paged::TokenResult result{
      .token_id = HashedToken(seen, sample.seed, sample.draw, state_->weights, options_.num_token_ids),
      .log_prob = HashedLogProb(seen, sample.seed, sample.draw, state_->weights)};
  // The token, and behind it its neighbours, each half as probable as the one before.
  for (int i = 0; i < sample.num_top_tokens; ++i) {
    result.top_tokens.push_back(
        {(result.token_id + i) % options_.num_token_ids, result.log_prob - static_cast<float>(i) * 0.6931F});
  }
  return result;
}

absl::StatusOr<std::vector<paged::TokenResult>> FakeStepDevice::AwaitOldest() {
  if (!lost_.ok()) return lost_;
  WS_CHECK(!launched_.empty()) << "no step is in flight";
  LaunchedStep oldest = std::move(launched_.front());
  launched_.pop_front();
  state_->num_in_flight = static_cast<int>(launched_.size());
  if (oldest.number != state_->late_step) return std::move(oldest.results);
  lost_ = absl::DeadlineExceededError(absl::StrCat("step ", oldest.step, " did not end"));
  return lost_;
}

void FakeStepDevice::DropSteps() {
  launched_.clear();
  state_->num_in_flight = 0;
}

std::unique_ptr<PagedDeviceBatch> MakeFakeDeviceBatch(const ModelConfig& config, const EngineOptions& options,
                                                      std::shared_ptr<FakeStepDeviceState> state,
                                                      int num_pages, DeviceTurns turns) {
  constexpr int kPageTokens = 4;
  const auto context = static_cast<int>(options.context_tokens_max);
  const int all_contexts = options.num_slots * ((context + kPageTokens - 1) / kPageTokens) + 1;
  const paged::PagedBatchOptions paged{
      .num_pages = num_pages > 0 ? num_pages : all_contexts,
      .page_tokens = kPageTokens,
      .sequences_max = options.num_slots,
      .samples_max = options.samples_max,
      .context_tokens_max = context,
      .prefill_tokens_max = options.scheduler.prefill_tokens_max,
      .decode_buckets = {1, 2, 4},
      .stop_token_ids = options.stop_token_ids,
      .num_token_ids = static_cast<int32_t>(NumTokenIds(config, options.num_token_ids))};
  const absl::Duration timeout = state->call_timeout;
  std::unique_ptr<device::StepDevice> device = std::make_unique<FakeStepDevice>(paged, std::move(state));
  if (timeout < absl::InfiniteDuration()) {
    std::vector<device::StepDeviceGroup::Member> members;
    members.push_back({"cuda:3", std::move(device)});
    device =
        std::make_unique<device::StepDeviceGroup>(std::move(members), nullptr, absl::ZeroDuration(), timeout);
  }
  return PagedDeviceBatch::Create(paged, std::move(device), std::move(turns)).value();
}

}  // namespace warpsmith
