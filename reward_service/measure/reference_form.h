// Forms of the reference, beside the eager one, that a candidate on a GPU can be compared with.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_REFERENCE_FORM_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_REFERENCE_FORM_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace warpsmith {

inline constexpr std::string_view kTorchCompileName = "torch.compile";

struct ReferenceForm {
  std::string_view key;     // in a configuration, and of jail::Begin::form
  std::string_view name;    // in a Grade
  absl::Duration time_max;  // to make it ready and to time it, once a task
  bool compiles = false;    // it needs compilers
};

// All that there are.
std::span<const ReferenceForm> ReferenceForms();
// Null where there is none of this key.
const ReferenceForm* FindReferenceForm(std::string_view key);

// So much longer than others a judgement may take that measures all of these.
absl::Duration FormsTimeMax(const std::vector<std::string>& keys);

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_REFERENCE_FORM_H_
