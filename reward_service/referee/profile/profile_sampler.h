// Samples where a jail's threads are, from outside, by the kernel's CPU clock, and whose work that is: what
// the C library or the kernel does counts as that of the code that called it, as far as its stack tells.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_PROFILE_SAMPLER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_PROFILE_SAMPLER_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/referee/profile/code_origin.h"
#include "warpsmith/v1/grade.pb.h"

namespace warpsmith {

// From one sample to the next, over what one costs: the time of whoever is sampled grows by a quarter at most.
inline constexpr double kSamplePeriodFactor = 4;

// One thread at a time. The process is stopped whenever a method is called.
class ProfileSampler {
 public:
  // Samples come as often, but for long calls. The kernel's least period is 10 us.
  explicit ProfileSampler(double period_us);
  // Watches every thread that the process has now, and those it starts, on `cores`, until Collect(). A call
  // that is expected to be long is sampled less often, so that all of it is seen. UNAVAILABLE when
  // perf_event_open is forbidden here.
  absl::Status Attach(pid_t pid, const std::vector<int>& cores, double expected_us = 0);
  // Watches one thread alone, 0 for the caller's, until this object ends.
  absl::Status AttachThread(pid_t thread, const std::vector<int>& cores);
  // Whether this machine lets us sample.
  static bool IsPossible();

  ~ProfileSampler();
  ProfileSampler(const ProfileSampler&) = delete;
  ProfileSampler& operator=(const ProfileSampler&) = delete;

  // Takes in what was sampled since Attach(): one call of the candidate. Watches no longer. Where samples were
  // lost, or the candidate's own code came to new places, none of it counts as its own: what was not seen
  // need not be like what was.
  void Collect();

  // All that was collected so far.
  int num_samples() const { return NumSamples(sum_); }

  // Writes down shares, threads and vector width of all that was collected.
  void Report(v1::Profile* profile) const;

 private:
  struct Ring {
    UniqueFd fd;
    void* memory = nullptr;
  };

  // Of one call, or of several.
  struct Tally {
    std::array<int, kNumCodeOrigins> counts{};
    std::array<int, 4> width_counts{};  // of own work: scalar, 128, 256, 512; not in the C library
    int num_libc = 0;                   // by place
  };

  absl::Status Open(pid_t thread, int core);
  void Detach();
  // Whether all of the call was seen, and the candidate's own code stayed where it was.
  bool Read(Ring& ring, const CodeMap& map, Tally& tally) const;
  void CountWidth(uint64_t address, Tally& tally) const;
  static int NumSamples(const Tally& tally);

  const uint64_t usual_period_ns_;
  uint64_t period_ns_;  // now
  pid_t pid_ = 0;
  std::vector<Ring> rings_;
  Tally sum_;  // of all calls
  int num_threads_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_PROFILE_SAMPLER_H_
