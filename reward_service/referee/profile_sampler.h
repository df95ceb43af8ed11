// Samples where a jail's threads are, from outside, by the kernel's CPU clock, and whose work that is: what
// the C library or the kernel does counts as that of the code that called it, as far as its stack tells.
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
  // How often; a usual sample costs a call a few per cent of its time.
  enum class Rate { kUsual, kDense };

  explicit ProfileSampler(Rate rate = Rate::kUsual) : rate_(rate) {}
  // Watches every thread that the process has now, and those it starts, on `cores`, until Collect().
  // UNAVAILABLE when perf_event_open is forbidden here.
  absl::Status Attach(pid_t pid, const std::vector<int>& cores);
  // Whether this machine lets us sample.
  static bool IsPossible();

  ~ProfileSampler();
  ProfileSampler(const ProfileSampler&) = delete;
  ProfileSampler& operator=(const ProfileSampler&) = delete;

  // Takes in what was sampled since Attach(): one call of the candidate. Watches no longer.
  void Collect();

  // All that was collected so far.
  int num_samples() const;

  // Shares, threads and vector width of all that was collected. Left out of the whole is what the path costs
  // and not the candidate: what an empty candidate's calls have shown at the dense rate, as
  // `path_samples_per_call` by origin.
  using SamplesPerCall = std::array<double, kNumCodeOrigins>;
  void Report(const SamplesPerCall& path_samples_per_call, ProfileNumbers& numbers) const;

  // Samples in libraries, a call, less what the path costs.
  double LibrarySamplesPerCall(const SamplesPerCall& path_samples_per_call) const;

  // What was collected, by origin and call: of an empty candidate, for the above.
  SamplesPerCall PerCall() const;

 private:
  struct Ring {
    UniqueFd fd;
    void* memory = nullptr;
  };

  absl::Status Open(pid_t thread, int core);
  void Detach();
  void Read(Ring& ring, const CodeMap& map);
  void Count(uint64_t address, CodeOrigin origin);
  // Of all that was collected, without what the path costs.
  SamplesPerCall OffThePath(const SamplesPerCall& path_samples_per_call) const;

  Rate rate_;
  pid_t pid_ = 0;
  std::vector<Ring> rings_;
  std::array<int, kNumCodeOrigins> counts_{};
  std::array<int, 4> width_counts_{};  // scalar, 128, 256, 512, within the candidate's own code
  int num_threads_ = 0;
  int num_calls_ = 0;
  int num_libc_ = 0;             // by place
  int num_clear_calls_ = 0;      // with samples enough to tell whose they are,
  int num_delegated_calls_ = 0;  // and of those, nearly all of them libraries'
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROFILE_SAMPLER_H_
