// Two sides that take what functions say, on a clock of their own.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_TIMING_DEVICE_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_TIMING_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reward_service/referee/timed_side.h"

namespace warpsmith {

// A program whose every call takes what a function says, on a clock of its own.
class FakeSide : public TimedSide {
 public:
  FakeSide(std::function<CallResult(int call)> calls, double* lane_seconds, int* num_unsampled)
      : calls_(std::move(calls)), lane_seconds_(lane_seconds), num_unsampled_(num_unsampled) {}
  CallResult Call(Batch sets, ProfileSampler* sampler) override {
    num_sets.push_back(sets.size());
    if (shown) shown(sets);
    CallResult result = calls_(num_calls_++);
    if (us_of_batch) result.us = us_of_batch(sets.size());
    *num_unsampled_ += sampler == nullptr ? 1 : 0;
    *lane_seconds_ += result.us / 1e6;
    return result;
  }
  CallResult Repeat(const Draw& draw) override { return Call({&draw}, nullptr); }
  absl::StatusOr<v1::Profile> Launches(const Draw& draw) override {
    return launches ? launches() : TimedSide::Launches(draw);
  }
  int64_t HeldBytes() const override { return held_bytes(num_calls_); }

  std::function<int64_t(int call)> held_bytes = [](int) { return 0; };

  std::function<absl::StatusOr<v1::Profile>()> launches;  // where there is one
  std::function<double(size_t num_sets)> us_of_batch;     // in place of what calls say, where there is one
  std::vector<size_t> num_sets;                           // of each call
  std::function<void(Batch sets)> shown;

 private:
  std::function<CallResult(int call)> calls_;
  double* const lane_seconds_;
  int* const num_unsampled_;
  int num_calls_ = 0;
};

struct FakeTimingDevice : TimingDevice {
  explicit FakeTimingDevice(std::function<CallResult(int)> reference,
                            std::function<CallResult(int)> candidate)
      : candidate(std::move(candidate)),
        reference_side(std::move(reference), &lane_seconds, &num_unsampled_of_reference) {}

  absl::StatusOr<TimedSide*> Reference(int) override { return &reference_side; }
  int num_references() const override { return 2; }
  absl::StatusOr<StartedSide> StartCandidate() override {
    ++num_started;
    lane_seconds += start_seconds;
    auto side = std::make_unique<FakeSide>(candidate, &lane_seconds, &num_unsampled);
    side->held_bytes = held_bytes;
    side->shown = shown_to_candidate;
    if (launches) side->launches = [this, number = num_started] { return launches(number); };
    return StartedSide{std::move(side), start_fault, is_warm};
  }
  absl::StatusOr<Overhead> MeasureOverhead() override {
    ++num_hot;
    return overhead;
  }
  absl::StatusOr<Overhead> MeasureColdOverhead(size_t num_calls) override {
    Overhead measured = overhead;
    ++num_cold;
    const double further_us = further_call_us * static_cast<double>(num_calls - 1);
    for (EmptyCall* side : {&measured.reference, &measured.candidate}) {
      side->us += further_us + cold_us(num_cold);
    }
    return measured;
  }
  absl::StatusOr<EmptyCall> MeasureMemory() override { return EmptyCall{memory_us(num_started)}; }
  absl::StatusOr<double> MeasureCoreSlowness() override { return core_slowness(num_paces++); }
  double Slowness(double) override { return slowness(num_started); }
  absl::StatusOr<std::optional<cuda::ClockReading>> ReadClocks() override { return clocks(num_readings++); }
  double LaneSeconds() const override { return lane_seconds; }

  double lane_seconds = 0;
  double start_seconds = 0;
  int num_started = 0;
  int num_unsampled = 0;
  int num_unsampled_of_reference = 0;
  Overhead overhead{{10, 0}, {10, 0}};
  double further_call_us = 0;  // of a batch, that does nothing
  int num_hot = 0;
  int num_cold = 0;
  std::function<double(int measurement)> cold_us = [](int) { return 0.0; };
  std::function<double(int process)> memory_us = [](int) { return 0.0; };
  std::function<double(int measurement)> core_slowness = [](int) { return 1.0; };
  int num_paces = 0;
  std::function<absl::StatusOr<std::optional<cuda::ClockReading>>(int reading)> clocks = [](int) {
    return std::nullopt;
  };
  int num_readings = 0;  // of clocks
  std::optional<Fault> start_fault;
  bool is_warm = false;  // the candidate, when it starts
  std::function<double(int)> slowness = [](int) { return 1.0; };
  std::function<int64_t(int call)> held_bytes = [](int) { return 0; };
  std::function<void(Batch sets)> shown_to_candidate;
  std::function<absl::StatusOr<v1::Profile>(int process)> launches;  // of the candidate, where there is one
  std::function<CallResult(int)> candidate;
  FakeSide reference_side;
};

inline std::function<CallResult(int)> Takes(double us) {
  return [us](int) { return CallResult{us, std::nullopt}; };
}

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_TIMING_DEVICE_H_
