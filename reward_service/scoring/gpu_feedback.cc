#include "reward_service/scoring/gpu_feedback.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// As on a CPU: a program this close to the memory ceiling has little to gain.
constexpr double kNearCeilingShare = 0.6;
// Threads that read apart use 4 of the 32 bytes that memory gives at once, an eighth; caches may double that.
constexpr double kFarFromCeilingShare = 0.25;
// With more, fewer than 512 threads fit the 64 Ki registers of a multiprocessor: a quarter of those that it holds.
constexpr int kRegistersMax = 128;
// Of the kernels that a call launched, so many are told, by so much of their names.
constexpr int kKernelsTold = 2;
constexpr size_t kToldNameBytesMax = 48;

// What the rows below look at.
struct Performance {
  const v1::Profile& profile;
  const SourceFacts& source;
  const KernelFacts& kernels;
  double speedup = 0;
  bool distinguishable = false;
  bool faster = false;
  // A call that is too short has no known bandwidth, and its launch costs more than what a kernel's code may save.
  bool too_short = false;
  bool near_ceiling = false;
  bool far_from_ceiling = false;
  // Faster, and near the ceiling.
  bool good = false;
  // The machine code is known, and what it says may be what the call waits for.
  bool code_matters = false;
};

Performance PerformanceOf(const v1::Grade& grade, const SourceFacts& source, const KernelFacts& kernels) {
  Performance p{.profile = grade.profile(), .source = source, .kernels = kernels};
  const double share = CeilingShare(p.profile);
  p.speedup = grade.timing().speedup();
  p.distinguishable = grade.timing().distinguishable();
  p.faster = p.distinguishable && p.speedup > 1;
  p.too_short = p.profile.bound() == "latency";
  p.near_ceiling = share >= kNearCeilingShare && !p.too_short;
  p.far_from_ceiling =
      p.profile.gigabytes_per_second_ceiling() > 0 && share < kFarFromCeilingShare && !p.too_short;
  p.good = p.near_ceiling && p.faster;
  p.code_matters = kernels.num_kernels > 0 && !p.near_ceiling && !p.too_short;
  return p;
}

std::string Count(int number, const char* one, const char* several) {
  return absl::StrFormat(", %d %s", number, number == 1 ? one : several);
}

// Bandwidth and launches, as far as they are known.
std::string PerformanceText(const Performance& p) {
  std::string text;
  if (p.profile.gigabytes_per_second_ceiling() > 0) {
    absl::StrAppendFormat(&text, ", %.0f of %.0f GB/s", p.profile.gigabytes_per_second(),
                          p.profile.gigabytes_per_second_ceiling());
  }
  if (p.source.valid) text += Count(p.source.num_launches, "launch", "launches");
  return text;
}

// "softmax_rows 131 us, grid 4096x1x1, 40 registers"
std::string KernelText(const v1::KernelRun& kernel) {
  std::string text = absl::StrFormat("%s %.*f us", Escape(kernel.name(), kToldNameBytesMax),
                                     kernel.us() < 10 ? 1 : 0, kernel.us());
  if (kernel.num_launches() > 1) absl::StrAppend(&text, " in ", kernel.num_launches(), " launches");
  if (!kernel.grid().empty()) absl::StrAppend(&text, ", grid ", absl::StrJoin(kernel.grid(), "x"));
  return absl::StrCat(text, ", ", kernel.registers(), " registers");
}

// The kernels that took the longest. The program could have said anything, and no row looks at it.
std::string LaunchesText(const v1::Profile& profile) {
  std::string text;
  for (int i = 0; i < std::min(kKernelsTold, profile.kernels_size()); ++i)
    absl::StrAppend(&text, i == 0 ? "; in its own words " : "; ", KernelText(profile.kernels(i)));
  return text;
}

// One block keeps one multiprocessor busy, of more than a hundred; one thread a block one lane in 32.
bool AllLaunchesHave(int num_such_launches, const Performance& p) {
  return p.source.num_launches > 0 && num_such_launches == p.source.num_launches;
}

struct Row {
  const char* finding;
  v1::Advice advice;
  bool (*applies)(const Performance&);
  std::string (*number)(const Performance&);  // that it was chosen for, beside those of PerformanceText()
};

std::string NoNumber(const Performance&) { return ""; }

// In this order: how the work is spread over threads, without which nothing else helps; what the text has the host do
// needlessly; then the machine code, from what costs most. Advice to keep comes after every row that has something to
// do, and never below 1. The last row always applies.
constexpr Row kRows[] = {
    {"few threads", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return p.far_from_ceiling && AllLaunchesHave(p.source.num_one_block_launches, p);
     },
     [](const Performance&) { return std::string(", 1 block"); }},
    {"few threads", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return p.far_from_ceiling && AllLaunchesHave(p.source.num_one_thread_launches, p);
     },
     [](const Performance&) { return std::string(", 1 thread a block"); }},
    {"strided threads", v1::ADVICE_COALESCE,
     [](const Performance& p) { return p.far_from_ceiling && p.source.strided_threads; }, NoNumber},
    {"memory is allocated", v1::ADVICE_AVOID_TEMPORARY,
     [](const Performance& p) { return p.source.num_gpu_allocations > 0 && !p.good; },
     [](const Performance& p) { return Count(p.source.num_gpu_allocations, "allocation", "allocations"); }},
    {"the host waits", v1::ADVICE_AVOID_SYNCHRONISATION,
     [](const Performance& p) { return p.source.num_synchronisations > 0 && !p.good; },
     [](const Performance& p) {
       return Count(p.source.num_synchronisations, "synchronisation", "synchronisations");
     }},
    {"launches in a loop", v1::ADVICE_FEWER_LAUNCHES,
     [](const Performance& p) { return p.source.num_looped_launches > 0 && !p.good; },
     [](const Performance& p) { return absl::StrFormat(", %d in loops", p.source.num_looped_launches); }},
    {"several kernels", v1::ADVICE_FUSE_KERNELS,
     [](const Performance& p) { return p.source.num_launches > 1 && !p.good; }, NoNumber},
    {"unknown", v1::ADVICE_UNSPECIFIED,
     [](const Performance& p) { return p.kernels.num_kernels == 0 && !p.near_ceiling && !p.too_short; },
     [](const Performance&) { return std::string(", machine code unknown"); }},
    {"registers in memory", v1::ADVICE_AVOID_SPILLS,
     [](const Performance& p) { return p.code_matters && p.kernels.spills(); },
     [](const Performance& p) {
       return absl::StrFormat(", %d B of stack a thread, %d local accesses", p.kernels.stack_bytes,
                              p.kernels.num_local_accesses);
     }},
    // Without a loop nothing is read twice by one thread; with shuffles, threads share already.
    {"memory is read again", v1::ADVICE_USE_SHARED_MEMORY,
     [](const Performance& p) {
       return p.code_matters && p.far_from_ceiling && p.source.loop_depth_max > 0 &&
              !p.kernels.shares_memory && !p.kernels.shuffles;
     },
     [](const Performance&) { return std::string(", 0 B of shared memory"); }},
    {"atomics", v1::ADVICE_REDUCE_BY_WARP,
     [](const Performance& p) { return p.code_matters && p.kernels.num_lone_atomics > 0; },
     [](const Performance& p) {
       return Count(p.kernels.num_lone_atomics, "atomic", "atomics") + ", 0 shuffles";
     }},
    {"narrow loads", v1::ADVICE_VECTORISE_LOADS,
     [](const Performance& p) {
       return p.code_matters && p.kernels.num_narrow_kernels > 0 && p.kernels.num_wide_kernels == 0;
     },
     [](const Performance& p) { return absl::StrFormat(", %d-bit loads", p.kernels.load_bits_max); }},
    // Tiles in registers are how a fast product of matrices is made: only what is slow has too many.
    {"many registers", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return p.code_matters && p.kernels.registers > kRegistersMax && !p.kernels.uses_tensor_cores &&
              !p.faster;
     },
     [](const Performance& p) { return absl::StrFormat(", %d registers a thread", p.kernels.registers); }},
    {"at the memory ceiling", v1::ADVICE_KEEP,
     [](const Performance& p) { return p.near_ceiling && p.speedup >= 1; }, NoNumber},
    {"nothing to gain found", v1::ADVICE_KEEP, [](const Performance& p) { return p.faster; }, NoNumber},
    {"slower than the reference", v1::ADVICE_UNSPECIFIED,
     [](const Performance& p) { return p.distinguishable; }, NoNumber},
    {"no faster than the reference", v1::ADVICE_UNSPECIFIED, [](const Performance&) { return true; },
     NoNumber},
};

}  // namespace

GpuFinding FindOnGpu(const v1::Grade& grade, const SourceFacts& source, const KernelFacts& kernels) {
  const Performance performance = PerformanceOf(grade, source, kernels);
  const Row* row = std::begin(kRows);
  while (!row->applies(performance)) ++row;
  std::string numbers =
      absl::StrCat(PerformanceText(performance), row->number(performance), LaunchesText(grade.profile()));
  return {row->finding, std::move(numbers), row->advice};
}

}  // namespace warpsmith
