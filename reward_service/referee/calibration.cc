#include "reward_service/referee/calibration.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/messages.h"
#include "reward_service/measure/statistics.h"
#include "reward_service/referee/lane_task.h"
#include "reward_service/referee/tensors/uncached_copy.h"
#include "reward_service/referee/timing_plan.h"

namespace warpsmith {
namespace {

constexpr int kCalls = 9;                         // of each measurement
constexpr size_t kMovedBytes = size_t{64} << 20;  // of each measurement of memory
constexpr int64_t kMemoryBytes = int64_t{4} << 30;
constexpr int kCpuSeconds = 86400;  // of a life as long as the referee's
// What it answers lies in memory of its own, as the answers of others do: where that is must be told.
constexpr char kEmptySource[] = R"(
class ModelNew:
    answer = None

    def __call__(self, x):
        if self.answer is None:
            self.answer = x.clone()
        return self.answer
)";

TaskLayout SmallLayout() {
  const nlohmann::json tensor = {
      {oracle::Tensor::code, 2}, {oracle::Tensor::bits, 32}, {oracle::Tensor::shape, {1}}};
  const nlohmann::json one = nlohmann::json::array({tensor});
  return *MakeLayout({{oracle::Loaded::inputs, one},
                      {oracle::Loaded::parameters, nlohmann::json::array()},
                      {oracle::Loaded::outputs, one}},
                     1 << 20);
}

// Has calls made of this jail, some of which warm up first.
absl::StatusOr<EmptyCall> MeasureCalls(const Jail& jail, absl::FunctionRef<absl::Status()> call) {
  std::vector<double> microseconds, after;
  for (int i = -kWarmUpCalls; i < kCalls; ++i) {
    RETURN_IF_ERROR(call());
    if (i < 0) continue;
    microseconds.push_back(jail.seconds() * 1e6);
    after.push_back(jail.after_seconds() * 1e6);
  }
  return EmptyCall{Median(microseconds), Scatter(microseconds), Median(after)};
}

// The best of some runs of `work`, which returns when it began to move so many bytes.
template <typename Work>
double BestGigabytesPerSecond(double num_bytes, Work work) {
  double best = 0;
  for (int call = 0; call < kCalls; ++call) {
    const absl::Time start = work();
    best = std::max(best, num_bytes / absl::ToDoubleNanoseconds(absl::Now() - start));
  }
  return best;
}

// Keeps the compiler from leaving out what was written.
void UseBytes(const std::vector<char>& bytes) { asm volatile("" : : "r"(bytes.data()) : "memory"); }

// Reads and writes added. What is copied lies in memory alone before, as inputs and outputs of a call do, so that its
// length says nothing of the host's caches.
double MeasureCopying() {
  std::vector<char> from(kMovedBytes);
  std::vector<char> to(kMovedBytes);
  return BestGigabytesPerSecond(2.0 * kMovedBytes, [&] {
    FillUncached(from.data(), 1, kMovedBytes);
    FillUncached(to.data(), 2, kMovedBytes);
    const absl::Time start = absl::Now();
    std::memcpy(to.data(), from.data(), kMovedBytes);
    UseBytes(to);
    return start;
  });
}

// Half of the cache that is nearest to a core, written again and again; a page where its size is unknown.
double MeasureNearestCache() {
  std::vector<char> half(
      static_cast<size_t>(std::max(sysconf(_SC_LEVEL1_DCACHE_SIZE) / 2, sysconf(_SC_PAGESIZE))));
  return BestGigabytesPerSecond(kMovedBytes, [&] {
    const absl::Time start = absl::Now();
    for (size_t written = 0; written < kMovedBytes; written += half.size()) {
      std::memset(half.data(), 1, half.size());
      UseBytes(half);
    }
    return start;
  });
}

// How often something is done in this time.
double Spin(double us) {
  const absl::Time end = absl::Now() + absl::Microseconds(us);
  double num_times = 0;
  while (absl::Now() < end) ++num_times;
  return num_times;
}

// What a sample costs whoever is sampled [us]: of the time from one to the next, the share in which nothing was done.
// They come once in the time of an empty call, for as long as a long one.
double MeasureSample(const Lane& lane, double empty_us) {
  std::vector<double> shares;
  for (int call = 0; call < kCalls; ++call) {
    const double undisturbed = Spin(kLongCallFactor * empty_us);
    ProfileSampler sampler(empty_us);
    if (!sampler.AttachThread(0, lane.core_list()).ok()) return 0;
    shares.push_back(1 - Spin(kLongCallFactor * empty_us) / undisturbed);
  }
  return std::max(0.0, Median(std::move(shares)) * empty_us);
}

}  // namespace

EmptyCandidate::EmptyCandidate(std::unique_ptr<ChildProcess> process, Buffers buffers,
                               const TaskLayout& layout, const Lane& lane)
    : lane_(lane), jail_(std::move(process), std::move(buffers), layout, JudgeLimits{}) {
  draw_.inputs = std::make_unique<char[]>(static_cast<size_t>(layout.input_buffer_bytes));
}

absl::StatusOr<std::unique_ptr<EmptyCandidate>> EmptyCandidate::Start(
    Zygote& parent, CandidateKind kind, const std::filesystem::path& share_directory, const Lane& lane,
    TensorStore& store) {
  const TaskLayout layout = SmallLayout();
  const std::filesystem::path library = share_directory / "jail" / "libwarpsmith_empty.so";
  const UniqueFd library_fd(open(library.c_str(), O_RDONLY | O_CLOEXEC));
  if (!library_fd.valid()) return ErrnoStatus("open", library.string());
  ASSIGN_OR_RETURN(const UniqueFd source_fd, SealedMemoryFile(kEmptySource));
  ASSIGN_OR_RETURN(auto process, parent.Fork({.role = zygote::Fork::kPython,
                                              .memory_bytes_max = kMemoryBytes,
                                              .cpu_seconds_max = kCpuSeconds,
                                              .num_threads = lane.num_threads(),
                                              .gpu = store.on_gpu()}));
  ASSIGN_OR_RETURN(Buffers buffers,
                   MakeBuffers(store, layout, kind, BatchedCallsMax(store, layout, RefereeFacts())));
  auto empty = absl::WrapUnique(new EmptyCandidate(std::move(process), std::move(buffers), layout, lane));
  Program program;
  program.kind = kind;
  program.library_fd = library_fd.get();
  program.source_fd = source_fd.get();
  ASSIGN_OR_RETURN(const std::optional<Fault> fault, empty->jail_.Begin(program, &lane));
  if (fault) return absl::InternalError(absl::StrCat("the empty candidate does not start: ", fault->reason));
  return empty;
}

absl::StatusOr<EmptyCall> MeasureTurns(Jail& jail) {
  return MeasureCalls(jail, [&jail] {
    jail.Load(Batch());
    const std::optional<Fault> fault = jail.Run();
    return fault ? BrokenReference(*fault) : absl::OkStatus();
  });
}

absl::StatusOr<EmptyCall> EmptyCandidate::Measure() {
  return MeasureCalls(jail_, [this] { return Call(); });
}

absl::StatusOr<EmptyCall> EmptyCandidate::MeasureOnce(size_t num_calls) {
  RETURN_IF_ERROR(Call(num_calls));
  return EmptyCall{.us = jail_.seconds() * 1e6, .after_us = jail_.after_seconds() * 1e6};
}

absl::StatusOr<EmptyCall> EmptyCandidate::MeasureTurns() {
  absl::StatusOr<EmptyCall> turns = warpsmith::MeasureTurns(jail_);
  if (absl::IsInvalidArgument(turns.status()))
    return absl::InternalError(absl::StrCat("the empty candidate fails: ", turns.status().message()));
  return turns;
}

absl::Status EmptyCandidate::Call(size_t num_calls) {
  jail_.Load(std::vector<const Draw*>(num_calls, &draw_));
  if (auto fault = jail_.Run())
    return absl::InternalError(absl::StrCat("the empty candidate fails: ", fault->reason));
  return absl::OkStatus();
}

absl::StatusOr<double> MeasurePace(EmptyCandidate* python, EmptyCandidate* native) {
  ASSIGN_OR_RETURN(const EmptyCall of_python, python->MeasureOnce(kPaceCalls));
  ASSIGN_OR_RETURN(const EmptyCall of_native, native->MeasureOnce(kPaceCalls));
  return of_python.us - of_native.us;
}

absl::Status LearnPace(EmptyCandidate* python, EmptyCandidate* native, CorePace* pace) {
  std::vector<double> us;
  for (int i = -kWarmUpCalls; i < kCalls; ++i) {
    ASSIGN_OR_RETURN(const double now_us, MeasurePace(python, native));
    if (i >= 0) us.push_back(now_us);
  }
  pace->Learn(us);
  return absl::OkStatus();
}

absl::Status MeasureHost(const Lane& lane, EmptyCandidate* python, RefereeFacts* facts) {
  facts->gigabytes_per_second_ceiling = MeasureCopying();  // first, when all lanes do
  facts->nearest_cache_gigabytes_per_second = MeasureNearestCache();
  ASSIGN_OR_RETURN(const EmptyCall empty, python->Measure());
  facts->empty_call_us = empty.us;
  facts->sample_us = facts->profile ? MeasureSample(lane, empty.us) : 0;
  return absl::OkStatus();
}

}  // namespace warpsmith
