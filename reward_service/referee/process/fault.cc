#include "reward_service/referee/process/fault.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace warpsmith {

bool SaysWantOfMemory(std::string_view words) {
  // Of Torch's exception, the runtime's and the driver's names, cuBLAS and cuDNN; and what a native program returns
  // that hands cudaErrorMemoryAllocation on.
  constexpr std::array<std::string_view, 6> kWords = {
      "out of memory", "outofmemory", "out_of_memory", "errormemoryallocation", "alloc_failed", "bad_alloc"};
  const std::string lower = absl::AsciiStrToLower({words.data(), words.size()});
  return absl::EndsWith(lower, "run() returned 2") ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace warpsmith
