// A referee that answers by rule, for tests of what stands around it.
#ifndef WARPSMITH_TESTS_SUPPORT_FAKE_REFEREE_H_
#define WARPSMITH_TESTS_SUPPORT_FAKE_REFEREE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reward_service/measure/referee.h"

namespace warpsmith {

// A correct candidate that is twice as fast as its reference, without a library at hand.
inline v1::Measurement TwiceAsFast() {
  v1::Measurement measurement;
  measurement.mutable_advice_facts()->set_num_lane_cores(1);
  v1::Grade& grade = *measurement.mutable_grade();
  grade.set_verdict(v1::VERDICT_CORRECT);
  grade.mutable_correctness()->set_num_draws(5);
  v1::Timing& timing = *grade.mutable_timing();
  timing.set_speedup(2.0);
  timing.set_speedup_low(1.9);
  timing.set_speedup_high(2.1);
  timing.set_distinguishable(true);
  timing.set_quality("realtime");
  timing.set_libraries_withheld(true);
  v1::Profile& profile = *grade.mutable_profile();
  profile.set_num_samples(100);
  profile.set_own_code_share(1.0);
  profile.set_num_threads(1);
  profile.set_vector_bits(512);
  profile.set_gigabytes_per_second(8.0);
  profile.set_gigabytes_per_second_ceiling(10.0);
  profile.set_bound("memory");
  return measurement;
}

// What a test sees and decides; it must outlive the referees that share it.
struct FakeRefereeScript {
  std::function<absl::StatusOr<v1::Measurement>(const JudgeRequest&)> judge = [](const JudgeRequest&) {
    return absl::StatusOr<v1::Measurement>(TwiceAsFast());
  };
  std::function<absl::StatusOr<std::vector<ExtensionRecord>>(const std::string& source)> record =
      [](const std::string&) {
        return absl::StatusOr<std::vector<ExtensionRecord>>(std::vector<ExtensionRecord>());
      };
  std::function<absl::Status()> revive = [] { return absl::OkStatus(); };
  std::atomic<int> num_judged{0};
};

class FakeReferee final : public Referee {
 public:
  explicit FakeReferee(FakeRefereeScript* script) : script_(script) { facts_.lane_cores = "1"; }

  absl::StatusOr<v1::Measurement> Judge(const JudgeRequest& request, absl::Time) override {
    ++script_->num_judged;
    return script_->judge(request);
  }
  absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource&, const std::string& source,
                                                                absl::Time) override {
    return script_->record(source);
  }
  absl::Status Revive() override { return script_->revive(); }
  absl::Status Calibrate() override { return absl::OkStatus(); }
  void Prefetch(const TaskSource&) override {}
  RefereeFacts facts() const override { return facts_; }

 private:
  FakeRefereeScript* const script_;
  RefereeFacts facts_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_REFEREE_H_
