#include "reward_service/referee/calibration.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "reward_service/referee/statistics.h"

namespace warpsmith {
namespace {

constexpr int kBatches = 5;
constexpr int kCallsPerBatch = 15;
constexpr int kWarmUpCalls = 5;
constexpr int kWatchedCalls = 200;  // with two samples each: what is subtracted must be well known
constexpr int kEmptyElements = 16;
constexpr char kEmptyPython[] = "class ModelNew:\n    def __call__(self, x):\n        return x\n";

TaskLayout SmallLayout() {
  const nlohmann::json tensor = {{"code", 2}, {"bits", 32}, {"shape", {kEmptyElements}}};
  const nlohmann::json one = nlohmann::json::array({tensor});
  return *MakeLayout({{"inputs", one}, {"parameters", nlohmann::json::array()}, {"outputs", one}}, 1 << 20);
}

}  // namespace

absl::StatusOr<EmptyCall> MeasureEmptyCall(WarmParent& parent, CandidateKind kind,
                                           const std::filesystem::path& share_directory, const Lane& lane) {
  const TaskLayout layout = SmallLayout();
  const std::filesystem::path library = share_directory / "jail" / "libwarpsmith_empty.so";
  const UniqueFd library_fd(open(library.c_str(), O_RDONLY | O_CLOEXEC));
  if (!library_fd.valid()) return ErrnoStatus("open", library.string());
  ASSIGN_OR_RETURN(const UniqueFd source_fd, SharedBuffer::SealedText(kEmptyPython));
  ASSIGN_OR_RETURN(auto process, parent.Fork({"python", int64_t{4} << 30, 60, lane.num_threads()}));
  Buffers buffers;
  ASSIGN_OR_RETURN(buffers.inputs, MakeInputs(layout));
  ASSIGN_OR_RETURN(buffers.outputs, MakeOutputs(layout, kind));
  Jail jail(std::move(process), std::move(buffers), layout, JudgeLimits{});
  Program program;
  program.kind = kind;
  program.library_fd = library_fd.get();
  program.source_fd = source_fd.get();
  Draw draw;
  draw.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
  std::optional<Fault> fault = jail.Begin(program, &lane);
  EmptyCall empty{.median_us = std::numeric_limits<double>::infinity()};
  for (int batch = 0; batch < kBatches && !fault; ++batch) {
    std::vector<double> microseconds;
    for (int call = -kWarmUpCalls; call < kCallsPerBatch && !fault; ++call) {
      jail.Load(draw);
      fault = jail.Run();
      if (call >= 0) microseconds.push_back(jail.seconds() * 1e6);
    }
    // The fastest: what a busy moment adds must not be subtracted from the calls of quiet ones.
    if (!fault) empty.median_us = std::min(empty.median_us, Median(std::move(microseconds)));
  }
  if (fault) return absl::InternalError(absl::StrCat("the empty candidate fails: ", fault->reason));
  ProfileSampler sampler(ProfileSampler::Rate::kDense);
  for (int call = 0; call < kWatchedCalls; ++call) {
    if (!sampler.Attach(jail.process().pid(), lane.core_list()).ok()) return empty;
    jail.Load(draw);
    if (jail.Run()) return absl::InternalError("the empty candidate fails when it is watched");
    sampler.Collect();
  }
  empty.samples = sampler.PerCall();
  return empty;
}

double MeasureMemoryCeiling() {
  constexpr size_t kBytes = size_t{64} << 20;
  std::vector<char> from(kBytes, 1);
  std::vector<char> to(kBytes, 2);
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const absl::Time start = absl::Now();
    std::memcpy(to.data(), from.data(), kBytes);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    from[0] = to[kBytes / 2];  // so that the copy is needed
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds / 1e9);
  }
  return best;
}

}  // namespace warpsmith
