#include "reward_service/measure/reference_form.h"

#include "reward_service/jail/messages.h"

namespace warpsmith {
namespace {

// A context, some calls, a recording, and a second of timing.
constexpr absl::Duration kGraphTimeMax = absl::Seconds(30);
// Imports, and a kernel after the other through Triton and ptxas.
constexpr absl::Duration kCompileTimeMax = absl::Seconds(120);

constexpr ReferenceForm kReferenceForms[] = {
    {.key = jail::Begin::kTorchCompile,
     .name = kTorchCompileName,
     .time_max = kCompileTimeMax,
     .compiles = true},
    {.key = jail::Begin::kCudaGraph, .name = "cuda graph", .time_max = kGraphTimeMax},
};

}  // namespace

std::span<const ReferenceForm> ReferenceForms() { return kReferenceForms; }

const ReferenceForm* FindReferenceForm(std::string_view key) {
  for (const ReferenceForm& form : kReferenceForms) {
    if (form.key == key) return &form;
  }
  return nullptr;
}

absl::Duration FormsTimeMax(const std::vector<std::string>& keys) {
  absl::Duration sum;
  for (const std::string& key : keys) {
    const ReferenceForm* const form = FindReferenceForm(key);
    if (form != nullptr) sum += form->time_max;
  }
  return sum;
}

}  // namespace warpsmith
