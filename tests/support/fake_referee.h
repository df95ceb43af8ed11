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
inline Judgement TwiceAsFast() {
  Judgement judgement;
  judgement.outcome = Outcome::kCorrect;
  judgement.correctness.num_draws = 5;
  judgement.timing = TimingNumbers{.speedup = 2.0,
                                   .speedup_low = 1.9,
                                   .speedup_high = 2.1,
                                   .distinguishable = true,
                                   .quality = "realtime",
                                   .libraries_withheld = true};
  judgement.profile = ProfileNumbers{.num_samples = 100,
                                     .own_code_share = 1.0,
                                     .num_threads = 1,
                                     .vector_bits = 512,
                                     .gigabytes_per_second = 8.0,
                                     .gigabytes_per_second_ceiling = 10.0,
                                     .bound = "memory"};
  return judgement;
}

// What a test sees and decides; it must outlive the referees that share it.
struct FakeRefereeScript {
  std::function<absl::StatusOr<Judgement>(const JudgeRequest&)> judge = [](const JudgeRequest&) {
    return absl::StatusOr<Judgement>(TwiceAsFast());
  };
  std::function<absl::StatusOr<std::vector<ExtensionRecord>>(const std::string& source)> record =
      [](const std::string&) {
        return absl::StatusOr<std::vector<ExtensionRecord>>(std::vector<ExtensionRecord>());
      };
  std::atomic<int> num_judged{0};
};

class FakeReferee final : public Referee {
 public:
  explicit FakeReferee(FakeRefereeScript* script) : script_(script) { facts_.lane_cores = "1"; }

  absl::StatusOr<Judgement> Judge(const JudgeRequest& request, absl::Time) override {
    ++script_->num_judged;
    return script_->judge(request);
  }
  absl::StatusOr<std::vector<ExtensionRecord>> RecordExtensions(const TaskSource&, const std::string& source,
                                                                absl::Time) override {
    return script_->record(source);
  }
  absl::Status Calibrate() override { return absl::OkStatus(); }
  void Prefetch(const TaskSource&) override {}
  const RefereeFacts& facts() const override { return facts_; }

 private:
  FakeRefereeScript* const script_;
  RefereeFacts facts_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_FAKE_REFEREE_H_
