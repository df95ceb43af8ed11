#include "reward_service/referee/calibration.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "reward_service/measure/statistics.h"

namespace warpsmith {
namespace {

constexpr int kCalls = 9;  // of each measurement
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int kCpuSeconds = 86400;  // of a life as long as the referee's
constexpr char kEmptySource[] = "class ModelNew:\n    def __call__(self, x):\n        return x\n";

TaskLayout SmallLayout() {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {1}}};
  const nlohmann::json one = nlohmann::json::array({tensor});
  return *MakeLayout({{"inputs", one}, {"parameters", nlohmann::json::array()}, {"outputs", one}}, 1 << 20);
}

}  // namespace

EmptyCandidate::EmptyCandidate(std::unique_ptr<ChildProcess> process, Buffers buffers,
                               const TaskLayout& layout, const Lane& lane)
    : lane_(lane), jail_(std::move(process), std::move(buffers), layout, JudgeLimits{}) {
  draw_.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
}

absl::StatusOr<std::unique_ptr<EmptyCandidate>> EmptyCandidate::Start(
    Zygote& parent, CandidateKind kind, const std::filesystem::path& share_directory, const Lane& lane) {
  const TaskLayout layout = SmallLayout();
  const std::filesystem::path library = share_directory / "jail" / "libwarpsmith_empty.so";
  const UniqueFd library_fd(open(library.c_str(), O_RDONLY | O_CLOEXEC));
  if (!library_fd.valid()) return ErrnoStatus("open", library.string());
  ASSIGN_OR_RETURN(const UniqueFd source_fd, SharedBuffer::SealedText(kEmptySource));
  ASSIGN_OR_RETURN(auto process, parent.Fork({"python", kMemoryBytes, kCpuSeconds, lane.num_threads()}));
  Buffers buffers;
  ASSIGN_OR_RETURN(buffers.inputs, MakeInputs(layout));
  ASSIGN_OR_RETURN(buffers.outputs, MakeOutputs(layout, kind));
  auto empty = absl::WrapUnique(new EmptyCandidate(std::move(process), std::move(buffers), layout, lane));
  Program program;
  program.kind = kind;
  program.library_fd = library_fd.get();
  program.source_fd = source_fd.get();
  if (auto fault = empty->jail_.Begin(program, &lane))
    return absl::InternalError(absl::StrCat("the empty candidate does not start: ", fault->reason));
  return empty;
}

absl::StatusOr<double> EmptyCandidate::Microseconds() {
  std::vector<double> microseconds;
  for (int call = -kWarmUpCalls; call < kCalls; ++call) {
    RETURN_IF_ERROR(Call());
    if (call >= 0) microseconds.push_back(jail_.seconds() * 1e6);
  }
  return Median(std::move(microseconds));
}

absl::Status EmptyCandidate::SampleCall(ProfileSampler& sampler) {
  RETURN_IF_ERROR(Call());
  if (!sampler.Attach(jail_.process().pid(), lane_.core_list()).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(Call());
  sampler.Collect();
  return absl::OkStatus();
}

absl::Status EmptyCandidate::Call() {
  jail_.Load(draw_);
  if (auto fault = jail_.Run())
    return absl::InternalError(absl::StrCat("the empty candidate fails: ", fault->reason));
  return absl::OkStatus();
}

double MeasureMemoryCeiling() {
  constexpr size_t kBytes = size_t{64} << 20;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  double best = 0;
  for (int call = 0; call < kCalls; ++call) {
    const absl::Time start = absl::Now();
    std::memcpy(to.data(), from.data(), kBytes);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    from[0] = to[kBytes / 2];  // so that the copy is needed
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds / 1e9);
  }
  return best;
}

}  // namespace warpsmith
