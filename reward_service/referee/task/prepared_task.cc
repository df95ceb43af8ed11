#include "reward_service/referee/task/prepared_task.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

using Style = oracle::Draw;

// Two of the task's own, and one of each other style that is asked for.
constexpr int64_t kVerificationDrawsMax = 6;

// By which a reference names what libraries compute on several streams.
constexpr const char* kOnStreams[] = {"RNN",     "LSTM", "GRU",      "lstm",  "gru",   "linalg",
                                      "inverse", "svd",  "cholesky", "solve", "Stream"};
constexpr int kQueuesOfStreams = 2;

// Beside those of verification, when all is made that this use needs.
int64_t NumOtherDraws(KeptIn where, TaskUse use, int num_batched_calls) {
  if (use == TaskUse::kVerifying) return num_batched_calls;
  const int64_t num_timing = TimingDraws(num_batched_calls, NumRounds(where));
  if (where == KeptIn::kHost) return num_timing;
  return num_timing + FreshDrawsWanted(num_batched_calls);  // those of the next judgement, too
}

}  // namespace

absl::Status TaskAtFault(std::string_view reason) { return absl::InvalidArgumentError(Escape(reason, 600)); }

PreparedTask::PreparedTask(TaskSource source, uint64_t seed, TaskLimits limits, Zygote* parent,
                           int num_threads, PlaceTask place, std::optional<int> other_inputs)
    : source_(std::move(source)),
      seed_(seed),
      limits_(limits),
      parent_(parent),
      num_threads_(num_threads),
      place_(std::move(place)),
      other_inputs_(other_inputs),
      on_device_(place_()),
      // On other inputs it is part of another task's step, which has one oracle that others can end.
      turns_(on_device_->turn(), other_inputs.has_value()) {}

absl::Status PreparedTask::Examine() {
  BeginStep();
  const absl::Status status = SeeAloneIfItFails([this] { return ExamineInStep(); });
  if (absl::IsCancelled(status)) CloseOracle();
  return status;
}

absl::Status PreparedTask::ExamineInStep() {
  verification_draws_.clear();  // of what has failed beside others
  construction_draws_.clear();
  verification_pool_.clear();
  on_other_inputs_.clear();
  ASSIGN_OR_RETURN(const Packet answer, LoadOracle(&layout_));
  const nlohmann::json* const init_inputs = Find(answer.fields, oracle::Loaded::init_inputs);
  if (init_inputs != nullptr) init_inputs_ = *init_inputs;
  // Other parameters first with usual inputs: a candidate that passes and then fails is wrong about the
  // inputs.
  std::vector<DrawRequest> wanted = {{Style::kOwn, 0}};
  if (has_parameters()) wanted.push_back({Style::kOwn, NextParameterSeed()});
  wanted.insert(wanted.end(), {{Style::kLarge, NextParameterSeed()},
                               {Style::kSmall, 0},
                               {Style::kMixed, NextParameterSeed()},
                               {Style::kOutliers, 0}});
  ASSIGN_OR_RETURN(verification_pool_, MakeUsableDraws(wanted));
  for (const auto& draw : verification_pool_) {
    verification_draws_.push_back(draw.get());
    if (draw->parameter_seed == 0) construction_draws_.push_back(draw.get());
  }
  if (other_inputs_) {
    CloseOracle();
    return absl::OkStatus();
  }
  return ExamineOnOtherInputs(static_cast<int>(Read(answer.fields, oracle::Loaded::num_other_inputs)));
}

absl::Status PreparedTask::ExamineOnOtherInputs(int num_other_inputs) {
  const auto set_in_making = [this](PreparedTask* other) {
    absl::MutexLock lock(&in_making_mutex_);
    in_making_ = other;
  };
  for (int i = 0; i < num_other_inputs; ++i) {
    auto other = std::make_unique<PreparedTask>(source_, static_cast<uint64_t>(NextSeed()), limits_, parent_,
                                                num_threads_, place_, i);
    other->owner_ = this;
    other->step_deadline_ = step_deadline_;
    set_in_making(other.get());
    const absl::Status status = other->ExamineInStep();
    set_in_making(nullptr);
    step_deadline_ = other->step_deadline_;  // it may have waited for its turn
    has_made_room_ |= other->has_made_room_;
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("get_other_inputs()[", i, "]: ", status.message()));
    }
    on_other_inputs_.push_back(std::move(other));
    RETURN_IF_ERROR(CheckBytes());
  }
  return absl::OkStatus();
}

absl::Status PreparedTask::CheckBytes() const {
  if (!on_device_->store().on_gpu()) return absl::OkStatus();
  const auto gigabytes = [](int64_t bytes) {
    return absl::StrFormat("%.1f GB", 1e-9 * static_cast<double>(bytes));
  };
  const TaskUse use = other_inputs_ ? TaskUse::kVerifying : TaskUse::kTiming;
  const int64_t device_bytes = BytesIn(KeptIn::kDevice, use), host_bytes = BytesIn(KeptIn::kHost, use);
  std::string lacking;
  if (device_bytes > limits_.device_bytes_max) {
    lacking = absl::StrCat("with all that it keeps the task holds ", gigabytes(device_bytes),
                           " of the GPU's memory, and ", gigabytes(limits_.device_bytes_max),
                           " are there for one task");
  } else if (host_bytes > limits_.host_draw_bytes_max) {
    lacking =
        absl::StrCat("its draws, for which the GPU has no room, take ", gigabytes(host_bytes),
                     " of the host's memory, and ", gigabytes(limits_.host_draw_bytes_max), " are there");
  } else {
    return absl::OkStatus();
  }
  return TaskAtFault(absl::StrCat("inputs and outputs of a call take ", gigabytes(layout_.buffer_bytes()),
                                  "; ", lacking,
                                  ": make its tensors smaller, or use a machine with more memory"));
}

absl::StatusOr<FreshDraws> PreparedTask::MakeUsableDraws(const std::vector<DrawRequest>& wanted) {
  const auto num_slots = static_cast<size_t>(num_batched_calls());
  FreshDraws draws;
  while (draws.size() < wanted.size()) {
    const auto first = wanted.begin() + static_cast<ptrdiff_t>(draws.size());
    const size_t num_made = std::min(num_slots, wanted.size() - draws.size());
    ASSIGN_OR_RETURN(FreshDraws made, MakeDraws({first, first + static_cast<ptrdiff_t>(num_made)}));
    for (size_t i = 0; i < num_made; ++i) {
      for (DrawRequest tamer = first[static_cast<ptrdiff_t>(i)]; made[i] == nullptr;) {
        tamer = Tamer(tamer);
        ASSIGN_OR_RETURN(FreshDraws again, MakeDraws({tamer}));
        made[i] = std::move(again.front());
      }
      draws.push_back(std::move(made[i]));
    }
  }
  return draws;
}

int64_t PreparedTask::BytesIn(KeptIn where, TaskUse use) const {
  int64_t bytes = 0, num_draws = 0;
  const bool on_gpu = on_device_->store().on_gpu();
  const int64_t margin_bytes = on_gpu ? layout_.margin_bytes : 0;
  for (const auto& other : on_other_inputs_) {  // nothing more than examined
    if (other->kept_in_ == where && on_gpu)
      bytes += static_cast<int64_t>(other->verification_pool_.size()) *
               (other->layout_.buffer_bytes() + other->layout_.margin_bytes);
  }
  if (kept_in_ == where) {
    num_draws =
        verification_pool_.empty() ? kVerificationDrawsMax : static_cast<int64_t>(verification_pool_.size());
    bytes += num_draws * margin_bytes;
    if (!other_inputs_) num_draws += NumOtherDraws(where, use, num_batched_calls());
  }
  if (where == KeptIn::kDevice) bytes += num_batched_calls() * margin_bytes;  // where the oracle draws
  return bytes + (where == KeptIn::kDevice ? on_device_->BytesOf(layout_, num_draws, use)
                                           : num_draws * layout_.buffer_bytes());
}

int64_t PreparedTask::OwnDeviceBytes() const {
  int64_t bytes = 0;
  if (kept_in_ == KeptIn::kDevice) {
    bytes = (counted_.use_count() - 1) * layout_.buffer_bytes() +
            static_cast<int64_t>(verification_pool_.size()) * layout_.margin_bytes;
  } else if (!other_inputs_) {
    bytes = on_device_->BytesOf(layout_, /*num_draws=*/0, TaskUse::kTiming);
  }
  for (const auto& other : on_other_inputs_) bytes += other->OwnDeviceBytes();
  return bytes;
}

int PreparedTask::num_launch_queues() const {
  const bool has_streams = std::any_of(
      std::begin(kOnStreams), std::end(kOnStreams),
      [this](const char* name) { return source_.reference_source.find(name) != std::string::npos; });
  return has_streams ? kQueuesOfStreams : 1;
}

int64_t PreparedTask::NextSeed() { return static_cast<int64_t>(UniformWord(seed_, num_seeds_used_++) >> 1); }

absl::Status PreparedTask::Complete() {
  BeginStep();
  RETURN_IF_ERROR(on_device_->StartReference(*this));  // it opens a GPU while draws are made
  // Draws that verification shows are left out, for the process that was verified is timed.
  const auto num_timing_draws = static_cast<size_t>(TimingDraws(num_batched_calls(), NumRounds(kept_in_)));
  RETURN_IF_ERROR(FillUp(num_timing_draws - num_fresh_draws(), &timing_pool_));
  for (const auto& draw : timing_pool_) timing_draws_.push_back(draw.get());
  return on_device_->WarmReference(*this, step_deadline_);
}

absl::StatusOr<FreshDraws> PreparedTask::MakeFresh(size_t num_draws) {
  BeginStep();
  FreshDraws fresh;
  absl::Status status = FillUp(num_draws, &fresh);
  const bool has_failed = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  if (has_failed && absl::Now() < step_deadline_) {
    // The task has made many draws: what has ended may be its oracle alone, for want of memory.
    CloseOracle();
    status = FillUp(num_draws, &fresh);
  }
  RETURN_IF_ERROR(status);
  return fresh;
}

absl::Status PreparedTask::FillUp(size_t num_draws, std::vector<std::unique_ptr<Draw>>* draws) {
  return SeeAloneIfItFails([&]() -> absl::Status {
    while (draws->size() < num_draws) {
      RETURN_IF_ERROR(RenewOracle());
      const size_t num_wanted = std::min(num_draws - draws->size(), static_cast<size_t>(num_batched_calls()));
      // Other parameters at every call, too: what is worked out from them is work of that call.
      std::vector<DrawRequest> wanted(num_wanted);
      for (DrawRequest& request : wanted) request = {.parameter_seed = NextParameterSeed(), .exact = false};
      ASSIGN_OR_RETURN(FreshDraws made, MakeUsableDraws(wanted));
      for (auto& draw : made) draws->push_back(std::move(draw));
    }
    return absl::OkStatus();
  });
}

void PreparedTask::Renew(FreshDraws fresh) {
  WS_CHECK(fresh_.size() + fresh.size() <= num_fresh_draws()) << fresh.size();
  if (fresh.empty()) return;
  if (fresh_.empty()) verification_draws_.push_back(fresh.front().get());
  std::move(fresh.begin(), fresh.end(), std::back_inserter(fresh_));
  if (fresh_.size() < num_fresh_draws()) return;
  // Behind what warms up first; the one that verification shows anyway is sure to be used.
  for (size_t i = 0; i < fresh_.size(); ++i)
    timing_draws_.insert(timing_draws_.begin() + 1 + static_cast<ptrdiff_t>(i), fresh_[i].get());
}

FreshDraws PreparedTask::Forget() {
  if (fresh_.empty()) return {};
  verification_draws_.pop_back();
  if (fresh_.size() == num_fresh_draws()) {
    timing_draws_.erase(timing_draws_.begin() + 1,
                        timing_draws_.begin() + 1 + static_cast<ptrdiff_t>(fresh_.size()));
  }
  return std::exchange(fresh_, {});
}

absl::StatusOr<FreshDraws> PreparedTask::MakeDraws(const std::vector<DrawRequest>& wanted) {
  std::vector<nlohmann::json> requests;
  for (const DrawRequest& request : wanted) {
    requests.push_back(Make<oracle::Draw>({{oracle::Draw::style, request.style},
                                           {oracle::Draw::exact, request.exact},
                                           {oracle::Draw::seed, NextSeed()},
                                           {oracle::Draw::parameter_seed, request.parameter_seed},
                                           {oracle::Draw::slot, static_cast<int64_t>(requests.size())}}));
  }
  const FewAtATime::Held place(on_device_->store().drawing());
  step_deadline_ += place.waited();
  ASSIGN_OR_RETURN(const auto turn, TakeTurn());
  const absl::StatusOr<std::vector<Packet>> answers = AskOracle(requests, {});
  if (absl::IsResourceExhausted(answers.status())) return answers.status();
  if (!answers.ok()) return TaskAtFault("the reference crashed or does not end on a later draw of inputs");
  FreshDraws draws;
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSIGN_OR_RETURN(auto draw, TakeDraw(wanted[i], (*answers)[i], static_cast<int>(i)));
    draws.push_back(std::move(draw));
  }
  on_device_->store().Settle();  // before the oracle writes there again
  return draws;
}

absl::StatusOr<std::unique_ptr<Draw>> PreparedTask::TakeDraw(const DrawRequest& wanted, const Packet& answer,
                                                             int slot) {
  const bool own_distribution = wanted.style == Style::kOwn;
  const bool is_own = own_distribution && wanted.parameter_seed == 0;
  if (Is<oracle::Unusable>(answer.fields) && !is_own) return nullptr;
  if (!Is<oracle::Drawn>(answer.fields)) return TaskAtFault(Read(answer.fields, oracle::Failed::error));
  auto draw = std::make_unique<Draw>();
  draw->counted = counted_;
  draw->style = wanted.style;
  draw->own_distribution = own_distribution;
  draw->parameter_seed = wanted.parameter_seed;
  TensorStore& store = on_device_->store();
  const int64_t input_bytes = layout_.input_buffer_bytes, slot_bytes = layout_.exact_output_bytes();
  const int64_t output_bytes = wanted.exact ? slot_bytes : layout_.output_buffer_bytes;
  ASSIGN_OR_RETURN(draw->inputs, store.Keep(*input_window_, slot * input_bytes, input_bytes, kept_in_));
  ASSIGN_OR_RETURN(draw->expected, store.Keep(*expected_window_, slot * slot_bytes, output_bytes, kept_in_));
  ASSIGN_OR_RETURN(draw->tolerances, ReadTolerances(answer.fields, layout_.outputs.size()));
  return draw;
}

}  // namespace warpsmith
