#include "reward_service/referee/task/prepared_task.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/absl_view.h"
#include "core/base/check.h"
#include "core/base/counter_random.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/shared_buffer.h"
#include "reward_service/referee/process/fault.h"

namespace warpsmith {
namespace {

using Style = oracle::Draw;

// Over an oracle's life: about twenty draws, or more of small ones. After half of it another one is started.
constexpr int kOracleCpuSeconds = 20;

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

absl::StatusOr<std::unique_ptr<DeviceTurn::Held>> PreparedTask::TakeTurn(TurnFor what) {
  ASSIGN_OR_RETURN(auto turn, turns_.Take(what));
  step_deadline_ += turn->waited();
  return turn;
}

absl::Status PreparedTask::SeeAloneIfItFails(absl::FunctionRef<absl::Status()> work) {
  const absl::Status status = turns_.SeeAloneIfItFails(work, [this] {
    CloseOracle();
    BeginStep();
  });
  if (!absl::IsInvalidArgument(status) || !SaysWantOfMemory(StdView(status.message()))) return status;
  CloseOracle();
  return on_device_->IsCrowded() ? absl::ResourceExhaustedError(status.message()) : status;
}

absl::StatusOr<std::vector<Packet>> PreparedTask::AskOracle(const std::vector<nlohmann::json>& requests,
                                                            const std::vector<int>& descriptors,
                                                            Ending* ending) {
  using Behind = TaskOnDevice::Behind;
  const bool is_alone = on_device_->turn() != nullptr && !turns_.has_shared();
  // What others have left there is not this one's fault.
  if (is_alone && absl::IsDeadlineExceeded(on_device_->AwaitIdle(Behind::kKilled))) {
    oracle_.reset();
    return absl::ResourceExhaustedError("another process keeps the GPU busy");
  }
  std::vector<Packet> answers;
  absl::Status status;
  for (const nlohmann::json& request : requests) {
    absl::StatusOr<Packet> answer = oracle_->Ask(request, descriptors, AnswerDeadline());
    status = answer.status();
    if (!answer.ok()) break;
    answers.push_back(*std::move(answer));
  }
  if (absl::IsUnavailable(status)) {
    const Ending ended = oracle_->AwaitEnd();
    if (ending != nullptr) *ending = ended;
    if (ended.signal == SIGKILL && !UsedUp(ended, kOracleCpuSeconds)) {
      oracle_.reset();
      return absl::ResourceExhaustedError("the oracle was killed: the host may lack memory");
    }
  }
  if (turns_.has_shared() && !status.ok()) oracle_.reset();
  if (is_alone && !(status.ok() && on_device_->AwaitIdle(Behind::kAnswer).ok())) {
    oracle_.reset();
    const absl::Status idle =
        on_device_->AwaitIdle(Behind::kKilled);  // or whoever has the next turn finds out
    // What goes on without the oracle is another's.
    if (status.ok() && absl::IsDeadlineExceeded(idle))
      return absl::ResourceExhaustedError("another process keeps the GPU busy");
    if (status.ok()) return TaskAtFault("the reference leaves work on the GPU behind");
  }
  RETURN_IF_ERROR(status);
  return answers;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> PreparedTask::StartOracle() {
  ASSIGN_OR_RETURN(auto oracle, parent_->Fork({.role = zygote::Fork::kOracle,
                                               .memory_bytes_max = limits_.oracle_memory_bytes_max,
                                               .cpu_seconds_max = kOracleCpuSeconds,
                                               .num_threads = num_threads_,
                                               .gpu = on_device_->turn() != nullptr}));
  RETURN_IF_ERROR(oracle->AwaitHello(absl::Now() + limits_.answer_time_max));
  return oracle;
}

absl::StatusOr<Packet> PreparedTask::LoadOracle() {
  // Made once: whoever times the reference has its descriptor.
  if (!source_fd_.valid()) {
    ASSIGN_OR_RETURN(source_fd_, SharedBuffer::SealedText(source_.reference_source));
  }
  // Beside whoever has the turn, as spare jails start: a context takes long, and nobody's code runs yet. Who has the
  // turn may also have all memory of the device.
  absl::StatusOr<std::unique_ptr<ChildProcess>> started = StartOracle();
  turns_.Begin();
  ASSIGN_OR_RETURN(const auto turn, TakeTurn(TurnFor::kLoading));
  oracle_ended_ = false;
  if (!started.ok() && on_device_->turn() != nullptr) started = StartOracle();
  ASSIGN_OR_RETURN(oracle_, std::move(started));
  if (construction_seed_ == 0) construction_seed_ = NextSeed() | 1;
  auto request = Make<oracle::Load>({{oracle::Load::construction_seed, construction_seed_},
                                     {oracle::Load::beside_others, turns_.has_shared()}});
  if (other_inputs_) request[oracle::Load::other_inputs.name] = *other_inputs_;
  Ending ending;
  absl::StatusOr<std::vector<Packet>> answers = AskOracle({request}, {source_fd_.get()}, &ending);
  if (absl::IsInvalidArgument(answers.status()) || absl::IsResourceExhausted(answers.status()))
    return answers.status();
  if (!answers.ok()) {
    const bool endless = absl::IsDeadlineExceeded(answers.status()) || UsedUp(ending, kOracleCpuSeconds);
    return TaskAtFault(endless ? "the reference does not end"
                               : absl::StrCat("the reference ", DescribeEnding(ending)));
  }
  Packet& answer = answers->front();
  if (Is<oracle::Loaded>(answer.fields)) return std::move(answer);
  const std::string error = Read(answer.fields, oracle::Failed::error);
  return TaskAtFault(error.empty() ? "the reference crashed" : error);
}

absl::Status PreparedTask::Examine() {
  BeginStep();
  return SeeAloneIfItFails([this] { return ExamineInStep(); });
}

absl::Status PreparedTask::ExamineInStep() {
  verification_draws_.clear();  // of what has failed beside others
  construction_draws_.clear();
  verification_pool_.clear();
  on_other_inputs_.clear();
  ASSIGN_OR_RETURN(const Packet answer, LoadOracle());
  ASSIGN_OR_RETURN(layout_, MakeLayout(answer.fields, limits_.buffer_bytes_max));
  const nlohmann::json* const init_inputs = Find(answer.fields, oracle::Loaded::init_inputs);
  if (init_inputs != nullptr) init_inputs_ = *init_inputs;
  RETURN_IF_ERROR(OpenWindow());
  // Other parameters first with usual inputs: a candidate that passes and then fails is wrong about the
  // inputs.
  std::vector<DrawRequest> wanted = {{Style::kOwn, 0}};
  if (has_parameters()) wanted.push_back({Style::kOwn, NextParameterSeed()});
  wanted.insert(wanted.end(), {{Style::kLarge, NextParameterSeed()},
                               {Style::kSmall, 0},
                               {Style::kMixed, NextParameterSeed()},
                               {Style::kOutliers, 0}});
  if (Read(answer.fields, oracle::Loaded::unfamiliar)) wanted.push_back({Style::kUnfamiliar, 0});
  for (const DrawRequest& request : wanted) {
    ASSIGN_OR_RETURN(auto draw, MakeUsableDraw(request));
    verification_draws_.push_back(draw.get());
    if (draw->parameter_seed == 0) construction_draws_.push_back(draw.get());
    verification_pool_.push_back(std::move(draw));
  }
  if (other_inputs_) {
    CloseOracle();
    return absl::OkStatus();
  }
  return ExamineOnOtherInputs(static_cast<int>(Read(answer.fields, oracle::Loaded::num_other_inputs)));
}

absl::Status PreparedTask::ExamineOnOtherInputs(int num_other_inputs) {
  for (int i = 0; i < num_other_inputs; ++i) {
    auto other = std::make_unique<PreparedTask>(source_, static_cast<uint64_t>(NextSeed()), limits_, parent_,
                                                num_threads_, place_, i);
    other->step_deadline_ = step_deadline_;
    const absl::Status status = other->ExamineInStep();
    step_deadline_ = other->step_deadline_;  // it may have waited for its turn
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("get_other_inputs()[", i, "]: ", status.message()));
    }
    on_other_inputs_.push_back(std::move(other));
  }
  return absl::OkStatus();
}

void PreparedTask::CloseOracle() {
  // The end of a context is work for a GPU, too. It ends without a turn that does not come.
  const auto turn = TakeTurn(TurnFor::kEnding);
  if (!turn.ok()) LogWarning(turn.status().ToString());
  oracle_.reset();
  input_window_.reset();
  expected_window_.reset();
}

void PreparedTask::EndOracle() {
  if (oracle_ == nullptr) return;
  turns_.Suspect();
  oracle_ended_ = true;
  kill(oracle_->pid(), SIGKILL);
}

absl::StatusOr<std::unique_ptr<Draw>> PreparedTask::MakeUsableDraw(DrawRequest wanted) {
  for (;;) {
    ASSIGN_OR_RETURN(auto draws, MakeDraws({wanted}));
    if (draws.front() != nullptr) return std::move(draws.front());
    if (wanted.style == Style::kOutliers) {
      wanted.style = Style::kSparse;
    } else if (wanted.style != Style::kOwn) {
      wanted.style = Style::kOwn;
    } else {
      wanted.parameter_seed = 0;
    }
  }
}

int64_t PreparedTask::DeviceBytes(TaskUse use) const {
  int64_t bytes = 0;
  for (const auto& other : on_other_inputs_) {  // nothing more than examined
    const TaskLayout& layout = other->layout_;
    if (!on_device_->store().on_gpu()) break;
    bytes += static_cast<int64_t>(other->verification_pool_.size()) *
             (layout.input_buffer_bytes + layout.output_buffer_bytes);
  }
  auto num_draws = static_cast<int64_t>(verification_pool_.size());
  if (use == TaskUse::kTiming) {
    num_draws += TimingDraws(num_batched_calls()) + FreshDrawsWanted(num_batched_calls());
  }
  return bytes + on_device_->BytesOf(layout_, num_draws, use);
}

int64_t PreparedTask::NextSeed() { return static_cast<int64_t>(UniformWord(seed_, num_seeds_used_++) >> 1); }

absl::Status PreparedTask::Complete() {
  BeginStep();
  RETURN_IF_ERROR(on_device_->StartReference(*this));
  for (const Draw* draw : verification_draws_) {
    const bool other_parameters = draw->parameter_seed != 0;
    if (draw->own_distribution && other_parameters == has_parameters()) timing_draws_.push_back(draw);
  }
  const auto num_timing_draws = static_cast<size_t>(TimingDraws(num_batched_calls()));
  // Verification may have had more of them than are needed: a reference that refuses all styles has its own alone.
  const size_t num_had = timing_draws_.size() + num_fresh_draws();
  RETURN_IF_ERROR(FillUp(num_timing_draws - std::min(num_timing_draws, num_had), &timing_pool_));
  for (const auto& draw : timing_pool_) timing_draws_.push_back(draw.get());
  return on_device_->WarmReference(*this, step_deadline_);
}

absl::StatusOr<FreshDraws> PreparedTask::MakeFresh(FreshDraws unshown) {
  BeginStep();
  absl::Status status = FillUp(num_fresh_draws(), &unshown);
  const bool has_failed = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  if (has_failed && absl::Now() < step_deadline_) {
    // The task has made many draws: what has ended may be its oracle alone, for want of memory.
    CloseOracle();
    status = FillUp(num_fresh_draws(), &unshown);
  }
  RETURN_IF_ERROR(status);
  return unshown;
}

absl::Status PreparedTask::RenewOracle() {
  if (oracle_ != nullptr && (oracle_ended_ || OracleIsWorn())) CloseOracle();
  if (oracle_ != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(LoadOracle().status());
  return OpenWindow();
}

absl::Status PreparedTask::FillUp(size_t num_draws, std::vector<std::unique_ptr<Draw>>* draws) {
  return SeeAloneIfItFails([&]() -> absl::Status {
    while (draws->size() < num_draws) {
      RETURN_IF_ERROR(RenewOracle());
      const size_t num_wanted = std::min(num_draws - draws->size(), static_cast<size_t>(num_batched_calls()));
      // Other parameters at every call, too: what is worked out from them is work of that call.
      std::vector<DrawRequest> wanted(num_wanted);
      for (DrawRequest& request : wanted) request = {.parameter_seed = NextParameterSeed(), .exact = false};
      ASSIGN_OR_RETURN(auto made, MakeDraws(wanted));
      for (size_t i = 0; i < num_wanted; ++i) {
        if (made[i] == nullptr) {
          ASSIGN_OR_RETURN(made[i], MakeUsableDraw(wanted[i]));
        }
        draws->push_back(std::move(made[i]));
      }
    }
    return absl::OkStatus();
  });
}

void PreparedTask::Renew(FreshDraws fresh) {
  WS_CHECK(fresh_.empty() && fresh.size() == num_fresh_draws()) << fresh.size();
  fresh_ = std::move(fresh);
  verification_draws_.push_back(fresh_.front().get());
  // Behind what warms up first; the one that verification shows anyway is sure to be used.
  for (size_t i = 0; i < fresh_.size(); ++i)
    timing_draws_.insert(timing_draws_.begin() + 1 + static_cast<ptrdiff_t>(i), fresh_[i].get());
}

FreshDraws PreparedTask::Forget() {
  if (!is_renewed()) return {};
  verification_draws_.pop_back();
  timing_draws_.erase(timing_draws_.begin() + 1,
                      timing_draws_.begin() + 1 + static_cast<ptrdiff_t>(num_fresh_draws()));
  return std::exchange(fresh_, {});
}

bool PreparedTask::OracleIsWorn() const {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(oracle_->pid(), &clock) != 0 || clock_gettime(clock, &used) != 0) return true;
  return used.tv_sec >= kOracleCpuSeconds / 2;
}

absl::Status PreparedTask::OpenWindow() {
  ASSIGN_OR_RETURN(const auto turn, TakeTurn(TurnFor::kWindow));
  TensorStore& store = on_device_->store();
  const int num_slots = num_batched_calls();
  ASSIGN_OR_RETURN(input_window_, store.Make(num_slots * layout_.input_buffer_bytes));
  ASSIGN_OR_RETURN(expected_window_, store.Make(num_slots * layout_.output_buffer_bytes));
  using oracle::Window;
  const auto request = Make<Window>({{Window::input_offsets, Offsets(layout_, false)},
                                     {Window::output_offsets, Offsets(layout_, true)},
                                     {Window::input_bytes, layout_.input_buffer_bytes},
                                     {Window::output_bytes, layout_.output_buffer_bytes},
                                     {Window::num_slots, num_slots}});
  const auto answers = AskOracle({request}, {input_window_->fd(), expected_window_->fd()});
  if (absl::IsResourceExhausted(answers.status())) return answers.status();
  if (!answers.ok()) return TaskAtFault("the reference crashed or does not end after its first call");
  const nlohmann::json& answer = answers->front().fields;
  return Is<oracle::Open>(answer) ? absl::OkStatus() : TaskAtFault(Read(answer, oracle::Failed::error));
}

absl::StatusOr<std::vector<std::unique_ptr<Draw>>> PreparedTask::MakeDraws(
    const std::vector<DrawRequest>& wanted) {
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
  ASSIGN_OR_RETURN(const auto turn, TakeTurn(TurnFor::kDrawing));
  const absl::StatusOr<std::vector<Packet>> answers = AskOracle(requests, {});
  if (absl::IsResourceExhausted(answers.status())) return answers.status();
  if (!answers.ok()) return TaskAtFault("the reference crashed or does not end on a later draw of inputs");
  std::vector<std::unique_ptr<Draw>> draws;
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
  draw->style = wanted.style;
  draw->own_distribution = own_distribution;
  draw->parameter_seed = wanted.parameter_seed;
  TensorStore& store = on_device_->store();
  const int64_t input_bytes = layout_.input_buffer_bytes, output_bytes = layout_.output_buffer_bytes;
  ASSIGN_OR_RETURN(draw->inputs, store.Keep(*input_window_, slot * input_bytes, input_bytes));
  ASSIGN_OR_RETURN(draw->expected, store.Keep(*expected_window_, slot * output_bytes, output_bytes));
  const nlohmann::json* const tolerances = Find(answer.fields, oracle::Drawn::tolerances);
  if (tolerances == nullptr) return TaskAtFault("the oracle's answer is malformed");
  RETURN_IF_ERROR(ReadTolerances(*tolerances, *draw));
  return draw;
}

absl::Status PreparedTask::ReadTolerances(const nlohmann::json& list, Draw& draw) const {
  if (list.size() != layout_.outputs.size()) return TaskAtFault("the oracle's answer is malformed");
  for (const nlohmann::json& fields : list) {
    if (!fields.is_object()) return TaskAtFault("the oracle's answer is malformed");
    using Field = oracle::Tolerance;
    Tolerance tolerance;
    tolerance.absolute = Read(fields, Field::absolute);
    tolerance.relative = Read(fields, Field::relative);
    tolerance.rounding = Read(fields, Field::rounding);
    tolerance.centre = Read(fields, Field::centre);
    tolerance.spread = Read(fields, Field::spread);
    draw.tolerances.push_back(tolerance);
  }
  return absl::OkStatus();
}

}  // namespace warpsmith
