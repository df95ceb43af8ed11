// Samples where a jail's threads are, from outside, by the kernel's CPU clock.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_SAMPLER_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_SAMPLER_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "reward_service/referee/code_origin.h"
#include "reward_service/referee/judgement.h"

namespace warpsmith {

// One thread at a time. The process is stopped whenever a method is called.
class ProfileSampler {
 public:
  // Watches every thread that the process has now, and those it starts, on `cores`. UNAVAILABLE when
  // perf_event_open is forbidden here.
  static absl::StatusOr<std::unique_ptr<ProfileSampler>> Attach(pid_t pid, const std::vector<int>& cores);
  // Whether this machine lets us sample.
  static bool IsPossible();

  ~ProfileSampler();
  ProfileSampler(const ProfileSampler&) = delete;
  ProfileSampler& operator=(const ProfileSampler&) = delete;

  // Takes in what was sampled since the last time: one call of the candidate.
  void Collect();

  // All that was collected so far.
  int num_samples() const;

  // Adds another sampler's counts to these.
  void Merge(const ProfileSampler& other);

  // Shares, threads and vector width of all that was collected. Left out of the whole is what the path costs
  // and not the candidate: what an empty candidate's calls would have shown, as `path_samples_per_call` by
  // origin.
  using SamplesPerCall = std::array<double, kNumCodeOrigins>;
  void Report(const SamplesPerCall& path_samples_per_call, ProfileNumbers& numbers) const;

  // What was collected, by origin and call: of an empty candidate, for the above.
  SamplesPerCall PerCall() const;

 private:
  struct Ring {
    UniqueFd fd;
    void* memory = nullptr;
  };

  explicit ProfileSampler(pid_t pid) : pid_(pid) {}
  absl::Status Open(pid_t thread, int core);
  void Read(Ring& ring, const CodeMap& map);
  void Count(uint64_t address, CodeOrigin origin);

  pid_t pid_;
  std::vector<Ring> rings_;
  std::array<int, kNumCodeOrigins> counts_{};
  std::array<int, 4> width_counts_{};  // scalar, 128, 256, 512, within the candidate's own code
  int num_threads_ = 0;
  int num_calls_ = 0;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_SAMPLER_H_
