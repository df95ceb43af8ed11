#include "reward_service/referee/lane_timing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

// Returns what a process holds that outputs cleared ahead would lie in [bytes]: on a GPU nothing tells that but the
// memory that it has returned, none of which serves twice.
int64_t HeldBytesOf(Jail& jail) {
  return jail.on_gpu() ? jail.returned_bytes() : jail.process().anonymous_bytes();
}

// Runs `call` with the process's threads sampled, where a sampler is given and this machine lets us.
template <typename Call>
void Sampled(ProfileSampler* sampler, Jail& jail, const Lane& lane, double expected_us, Call call) {
  const bool attached =
      sampler != nullptr && sampler->Attach(jail.process().pid(), lane.core_list(), expected_us).ok();
  call();
  if (attached) sampler->Collect();
}

}  // namespace

class LaneTiming::ReferenceSide : public TimedSide {
 public:
  ReferenceSide(Jail* jail, const Lane* lane) : jail_(jail), lane_(lane) { jail_->TellSteady(false); }

  // What the reference leaves is what is expected, so it is not compared.
  CallResult Call(Batch sets, ProfileSampler* sampler) override {
    CallResult result;
    Sampled(sampler, *jail_, *lane_, us_,
            [&] {  // which comes before loading on both sides: it uses the caches
              jail_->Load(sets);
              result.fault = jail_->Run();
            });
    us_ = jail_->seconds() * 1e6;
    result.us = us_;
    result.after_us = jail_->after_seconds() * 1e6;
    result.waited_us = jail_->waited_us();
    result.steady_us = jail_->steady_us();
    return result;
  }
  void TellSteady() override { jail_->TellSteady(jail_->on_gpu()); }
  CallResult Repeat(const Draw& draw) override { return Call({&draw}, nullptr); }
  int64_t HeldBytes() const override { return HeldBytesOf(*jail_); }

 private:
  Jail* const jail_;
  const Lane* const lane_;
  double us_ = 0;  // of the last call
};

class LaneTiming::CandidateSide : public TimedSide {
 public:
  // With `kept` the process stays there when it was timed without a fault.
  CandidateSide(std::unique_ptr<CheckedJail> jail, const Lane* lane, bool tells_launches, TensorStore* store,
                KeptJails* kept)
      : jail_(std::move(jail)), lane_(lane), tells_launches_(tells_launches), store_(store), kept_(kept) {}
  ~CandidateSide() override {
    if (kept_ != nullptr && !has_failed_ && store_->HasPlenty()) kept_->AddEnded(std::move(jail_));
  }

  CallResult Call(Batch sets, ProfileSampler* sampler) override {
    CallResult result;
    Sampled(sampler, jail_->jail(), *lane_, us_,
            [&] { result.fault = jail_->CallAll(sets, Comparing::kFast); });
    has_failed_ |= result.fault.has_value();
    us_ = jail_->us();
    result.us = us_;
    result.after_us = jail_->jail().after_seconds() * 1e6;
    return result;
  }
  CallResult Repeat(const Draw&) override {
    CallResult result;
    result.fault = jail_->Repeat();
    has_failed_ |= result.fault.has_value();
    result.us = jail_->us();
    return result;
  }
  absl::StatusOr<v1::Profile> Launches(const Draw& draw) override {
    if (!tells_launches_) return TimedSide::Launches(draw);
    absl::StatusOr<v1::Profile> launches = jail_->jail().Profile(draw);
    has_failed_ |= !launches.ok();
    return launches;
  }
  int64_t HeldBytes() const override { return HeldBytesOf(jail_->jail()); }

 private:
  std::unique_ptr<CheckedJail> jail_;
  const Lane* const lane_;
  const bool tells_launches_;
  TensorStore* const store_;
  KeptJails* const kept_;
  bool has_failed_ = false;
  double us_ = 0;
};

LaneTiming::LaneTiming(const CandidateJails& jails, PreparedTask* task, const Lane* lane,
                       EmptyCandidate* empty_candidate, EmptyCandidate* empty_reference,
                       absl::Time lane_since, const GpuClockReader* clocks, KeptJails* kept, CorePace* pace)
    : jails_(jails),
      task_(task),
      lane_(lane),
      empty_candidate_(empty_candidate),
      empty_reference_(empty_reference),
      lane_since_(lane_since),
      clocks_(clocks),
      kept_(kept),
      pace_(pace) {}

LaneTiming::~LaneTiming() {
  if (pace_ != nullptr) pace_->Learn(paces_us_);
}

double LaneTiming::LaneSeconds() const { return absl::ToDoubleSeconds(absl::Now() - lane_since_); }

absl::StatusOr<std::optional<cuda::ClockReading>> LaneTiming::ReadClocks() {
  if (clocks_ == nullptr) return std::nullopt;
  RETURN_IF_ERROR(clocks_->status());
  LaneTask::Of(*task_).store().MakeCold();  // an idle GPU may say less than the clocks at which it works
  return clocks_->value()->Read();
}

absl::StatusOr<TimedSide*> LaneTiming::Reference(int instance) {
  auto& baselines = LaneTask::Of(*task_).baselines();
  baseline_ = baselines[static_cast<size_t>(instance) % baselines.size()].get();
  RETURN_IF_ERROR(lane_->Admit(baseline_->process().pid()));
  // It has waited for long: what only masked loads read may have been taken from it.
  if (auto fault = baseline_->Refresh()) return BrokenReference(*fault);
  reference_ = std::make_unique<ReferenceSide>(baseline_, lane_);
  return reference_.get();
}

absl::StatusOr<StartedSide> LaneTiming::StartCandidate() {
  std::unique_ptr<CheckedJail> jail = kept_ == nullptr ? nullptr : kept_->TakeWarm();
  // It was made ready on other cores.
  if (jail != nullptr && !lane_->Admit(jail->jail().process().pid()).ok()) jail = nullptr;
  const bool is_warm = jail != nullptr;
  std::optional<Fault> fault;
  if (!is_warm) {
    ASSIGN_OR_RETURN(StartedJail started, jails_.Start(*task_, baseline_, lane_->num_threads()));
    lane_since_ += started.waited;
    // Of further ones it is: how many there are then shows what there is time for.
    lane_since_ += std::exchange(may_construct_, false) ? started.constructing : absl::ZeroDuration();
    jail = std::move(started.jail);
    fault = std::move(started.fault);
  }
  auto side = std::make_unique<CandidateSide>(std::move(jail), lane_, jails_.tells_launches(),
                                              &LaneTask::Of(*task_).store(), fault ? nullptr : kept_);
  return StartedSide{std::move(side), std::move(fault), is_warm};
}

absl::StatusOr<Overhead> LaneTiming::OfBothSides(
    absl::FunctionRef<absl::StatusOr<EmptyCall>(EmptyCandidate*)> measure) {
  Overhead overhead;
  ASSIGN_OR_RETURN(overhead.reference, measure(empty_reference_));
  overhead.candidate = overhead.reference;
  if (empty_candidate_ != empty_reference_) {
    ASSIGN_OR_RETURN(overhead.candidate, measure(empty_candidate_));
  }
  return overhead;
}

absl::StatusOr<Overhead> LaneTiming::MeasureOverhead() {
  return OfBothSides([](EmptyCandidate* empty) { return empty->Measure(); });
}

absl::StatusOr<Overhead> LaneTiming::MeasureColdOverhead(size_t num_calls) {
  return OfBothSides([num_calls](EmptyCandidate* empty) { return empty->MeasureOnce(num_calls); });
}

absl::StatusOr<EmptyCall> LaneTiming::MeasureMemory() {
  if (!LaneTask::Of(*task_).store().on_gpu()) return EmptyCall();
  // Of the candidate's own process nobody asks: it could be slow when it has nothing to do.
  ASSIGN_OR_RETURN(const EmptyCall small, empty_reference_->MeasureTurns());
  ASSIGN_OR_RETURN(const EmptyCall large, MeasureTurns(*baseline_));
  return EmptyCall{.us = std::max(0.0, large.us - small.us),
                   .scatter_us = large.scatter_us,
                   .after_us = std::max(0.0, large.after_us - small.after_us)};
}

absl::StatusOr<double> LaneTiming::MeasureCoreSlowness() {
  if (pace_ == nullptr) return 1;
  ASSIGN_OR_RETURN(const double now_us, MeasurePace(empty_reference_, empty_candidate_));
  paces_us_.push_back(now_us);
  return pace_->Slowness(now_us);
}

}  // namespace warpsmith
