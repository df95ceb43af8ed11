// Whatever a jail answers, and whatever its oracle said before, is a right output or a fault of the program
// in words. The first line is "native" or "python" and the oracle's description of the task; each further
// line is what the jail answers to the next packet, "$memory" in it standing for an address that can be read.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/check.h"
#include "reward_service/referee/process/jail.h"
#include "reward_service/referee/tensors/comparison.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/puppet.h"

namespace warpsmith {
namespace {

constexpr int64_t kBufferBytesMax = 1 << 16;
constexpr size_t kInputBytesMax = 16 << 10;
constexpr int kNumCalls = 3;

void CheckFault(const std::optional<Fault>& fault) {
  if (fault.has_value()) WS_CHECK(!fault->reason.empty() && fault->verdict != v1::VERDICT_CORRECT);
}

// As a judge looks at what a call has left.
void LookAtOutputs(Jail& jail, const TaskLayout& layout, const Draw& draw) {
  CheckFault(jail.CheckBuffers(draw));
  jail.WithdrawInputs();
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    Fault fault;
    const absl::StatusOr<const void*> actual = jail.Output(i, fault);
    if (!actual.ok()) return CheckFault(fault);
    Compare(layout.outputs[i], draw.tolerances[i], draw.Expected(layout, i), *actual);
  }
  jail.RestoreInputs(draw);
}

void Judge(CandidateKind kind, const TaskLayout& layout, std::unique_ptr<ChildProcess> process) {
  auto buffers = MakeBuffers(HostStore(), layout, kind);
  WS_CHECK(buffers.ok()) << buffers.status();
  Draw draw;
  draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
  draw.expected = std::make_unique<char[]>(static_cast<size_t>(layout.output_buffer_bytes));
  draw.tolerances.resize(layout.outputs.size());
  Jail jail(std::move(process), *std::move(buffers), layout, {.cpu_seconds_max = 1, .call_seconds_max = 2});
  Program program{.kind = kind, .library_fd = 0, .source_fd = 0};
  std::optional<Fault> fault = *jail.Begin(program, nullptr);
  for (int call = 0; call < kNumCalls && !fault; ++call) {
    jail.Load(draw);
    fault = jail.Run();
    if (!fault) LookAtOutputs(jail, layout, draw);
    if (!fault && call == 0) fault = jail.Refresh();
  }
  CheckFault(fault);
}

}  // namespace
}  // namespace warpsmith

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  static const auto* const puppets = new warpsmith::PuppetMaster;
  if (num_bytes > warpsmith::kInputBytesMax) return 0;
  const std::string_view text = warpsmith::AsText(bytes, num_bytes);
  const size_t line_end = std::min(text.find('\n'), text.size());
  const size_t kind_end = std::min(text.find(' '), line_end);
  const std::string_view described = text.substr(kind_end, line_end - kind_end);
  const auto fields = nlohmann::json::parse(described, nullptr, /*allow_exceptions=*/false);
  if (!fields.is_object()) return 0;
  const auto layout = warpsmith::MakeLayout(fields, warpsmith::kBufferBytesMax);
  if (!layout.ok()) return 0;
  const auto kind = text.substr(0, kind_end) == "native" ? warpsmith::CandidateKind::kNative
                                                         : warpsmith::CandidateKind::kKernelBenchPython;
  const std::string answers =
      absl::StrReplaceAll(std::string(text.substr(std::min(line_end + 1, text.size()))),
                          {{"$memory", absl::StrCat(puppets->memory())}});
  warpsmith::Judge(kind, *layout, puppets->Make(answers));
  return 0;
}
