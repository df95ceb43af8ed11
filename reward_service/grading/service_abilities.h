// What one service can grade and on what, and what becomes of a request for something else.
#ifndef WARPSMITH_REWARD_SERVICE_GRADING_SERVICE_ABILITIES_H_
#define WARPSMITH_REWARD_SERVICE_GRADING_SERVICE_ABILITIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "warpsmith/v1/task.pb.h"

namespace warpsmith {

struct RequestLimits {
  int64_t answer_bytes_max = int64_t{1} << 20;
  int64_t reference_bytes_max = int64_t{1} << 20;
  int64_t program_bytes_max = int64_t{256} << 10;
};

struct ServiceAbilities {
  RequestLimits limits;
  // What it has lanes for, each with the text that stands for machine and toolchain in cache keys.
  std::map<v1::Device, std::string> devices;
  std::string why_no_gpu;  // where there is no DEVICE_CUDA; for whoever asks for one
};

// Those that may be graded on one of the service's devices, in the order of their values.
std::vector<v1::CandidateLanguage> GradedLanguages(const ServiceAbilities& abilities);

// What it grades, for people: "cpp and kernelbench_python on cpu".
std::string GradedText(const ServiceAbilities& abilities);

// What a candidate in `language` is graded on: `wanted`, or where that is DEVICE_UNSPECIFIED the first of the
// language's devices that the service has. INVALID_ARGUMENT, with what to write, for a value that is no language or no
// device and for a pair of them that no service grades. FAILED_PRECONDITION, with what this one grades and why no more,
// where it lacks the device.
absl::StatusOr<v1::Device> ChooseDevice(v1::CandidateLanguage language, v1::Device wanted,
                                        const ServiceAbilities& abilities);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_GRADING_SERVICE_ABILITIES_H_
