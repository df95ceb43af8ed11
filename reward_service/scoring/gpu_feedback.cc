#include "reward_service/scoring/gpu_feedback.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

// With more, fewer than 512 threads fit the 64 Ki registers of a multiprocessor: a quarter of those that it holds.
constexpr int kRegistersMax = 128;
// Of the kernels that a call launched, so many are told, by so much of their names.
constexpr int kKernelsTold = 2;
constexpr size_t kToldNameBytesMax = 48;

// Faster, and near the ceiling.
bool Good(const Performance& p) { return p.near_ceiling && p.faster; }

// The machine code is known, and what it says may be what the call waits for.
bool CodeMatters(const Performance& p) {
  return p.kernels->num_kernels > 0 && !p.near_ceiling && !p.too_short;
}

// "softmax_rows 131 us, grid 4096x1x1, 40 registers"
std::string KernelText(const v1::KernelRun& kernel) {
  std::string text = absl::StrFormat("%s %.*f us", Escape(kernel.name(), kToldNameBytesMax),
                                     kernel.us() < 10 ? 1 : 0, kernel.us());
  if (kernel.num_launches() > 1) absl::StrAppend(&text, " in ", kernel.num_launches(), " launches");
  if (!kernel.grid().empty()) absl::StrAppend(&text, ", grid ", absl::StrJoin(kernel.grid(), "x"));
  return absl::StrCat(text, ", ", kernel.registers(), " registers");
}

// One block keeps one multiprocessor busy, of more than a hundred; one thread a block one lane in 32.
bool AllLaunchesHave(int num_such_launches, const Performance& p) {
  return p.facts.num_launches > 0 && num_such_launches == p.facts.num_launches;
}

// In this order: how the work is spread over threads, without which nothing else helps; what the text has the host do
// needlessly; then the machine code, from what costs most.
constexpr Row kRows[] = {
    {"few threads", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return p.far_from_ceiling && AllLaunchesHave(p.facts.num_one_block_launches, p);
     },
     [](const Performance&) { return std::string(", 1 block"); }},
    {"few threads", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return p.far_from_ceiling && AllLaunchesHave(p.facts.num_one_thread_launches, p);
     },
     [](const Performance&) { return std::string(", 1 thread a block"); }},
    {"strided threads", v1::ADVICE_COALESCE,
     [](const Performance& p) { return p.far_from_ceiling && p.facts.strided_threads; }},
    {"memory is allocated", v1::ADVICE_AVOID_TEMPORARY,
     [](const Performance& p) { return p.facts.num_gpu_allocations > 0 && !Good(p); },
     [](const Performance& p) { return Count(p.facts.num_gpu_allocations, "allocation", "allocations"); }},
    {"the host waits", v1::ADVICE_AVOID_SYNCHRONISATION,
     [](const Performance& p) { return p.facts.num_synchronisations > 0 && !Good(p); },
     [](const Performance& p) {
       return Count(p.facts.num_synchronisations, "synchronisation", "synchronisations");
     }},
    {"launches in a loop", v1::ADVICE_FEWER_LAUNCHES,
     [](const Performance& p) { return p.facts.num_looped_launches > 0 && !Good(p); },
     [](const Performance& p) { return absl::StrFormat(", %d in loops", p.facts.num_looped_launches); }},
    {"several kernels", v1::ADVICE_FUSE_KERNELS,
     [](const Performance& p) { return p.facts.num_launches > 1 && !Good(p); }},
    {"unknown", v1::ADVICE_UNSPECIFIED,
     [](const Performance& p) { return p.kernels->num_kernels == 0 && !p.near_ceiling && !p.too_short; },
     [](const Performance&) { return std::string(", machine code unknown"); }},
    {"registers in memory", v1::ADVICE_AVOID_SPILLS,
     [](const Performance& p) { return CodeMatters(p) && p.kernels->spills(); },
     [](const Performance& p) {
       return absl::StrFormat(", %d B of stack a thread, %d local accesses", p.kernels->stack_bytes,
                              p.kernels->num_local_accesses);
     }},
    // Without a loop nothing is read twice by one thread; with shuffles, threads share already.
    {"memory is read again", v1::ADVICE_USE_SHARED_MEMORY,
     [](const Performance& p) {
       return CodeMatters(p) && p.far_from_ceiling && p.facts.loop_depth_max > 0 &&
              !p.kernels->shares_memory && !p.kernels->shuffles;
     },
     [](const Performance&) { return std::string(", 0 B of shared memory"); }},
    {"atomics", v1::ADVICE_REDUCE_BY_WARP,
     [](const Performance& p) { return CodeMatters(p) && p.kernels->num_lone_atomics > 0; },
     [](const Performance& p) {
       return Count(p.kernels->num_lone_atomics, "atomic", "atomics") + ", 0 shuffles";
     }},
    {"narrow loads", v1::ADVICE_VECTORISE_LOADS,
     [](const Performance& p) {
       return CodeMatters(p) && p.kernels->num_narrow_kernels > 0 && p.kernels->num_wide_kernels == 0;
     },
     [](const Performance& p) { return absl::StrFormat(", %d-bit loads", p.kernels->load_bits_max); }},
    // Tiles in registers are how a fast product of matrices is made: only what is slow has too many.
    {"many registers", v1::ADVICE_RAISE_OCCUPANCY,
     [](const Performance& p) {
       return CodeMatters(p) && p.kernels->registers > kRegistersMax && !p.kernels->uses_tensor_cores &&
              !p.faster;
     },
     [](const Performance& p) { return absl::StrFormat(", %d registers a thread", p.kernels->registers); }},
};

}  // namespace

std::string Count(int number, const char* one, const char* several) {
  return absl::StrFormat(", %d %s", number, number == 1 ? one : several);
}

absl::Span<const Row> GpuRows() { return kRows; }

// The program could have said anything, and no row looks at it.
std::string KernelsText(const v1::Profile& profile) {
  std::string text;
  for (int i = 0; i < std::min(kKernelsTold, profile.kernels_size()); ++i)
    absl::StrAppend(&text, i == 0 ? "; in its own words " : "; ", KernelText(profile.kernels(i)));
  return text;
}

}  // namespace warpsmith
