#include "reward_service/referee/process/fault.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace warpsmith {

namespace {

template <size_t kNum>
bool HasAny(const std::string& lower, const std::array<std::string_view, kNum>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

bool SaysWantOfMemory(std::string_view words) {
  // Of Torch's exception, the runtime's and the driver's names, cuBLAS and cuDNN; and what a native program returns
  // that hands cudaErrorMemoryAllocation on.
  constexpr std::array<std::string_view, 6> kWords = {
      "out of memory", "outofmemory", "out_of_memory", "errormemoryallocation", "alloc_failed", "bad_alloc"};
  const std::string lower = absl::AsciiStrToLower({words.data(), words.size()});
  return absl::EndsWith(lower, "run() returned 2") || HasAny(lower, kWords);
}

bool SaysDeviceFailed(std::string_view words) {
  // Of cudaErrorDevicesUnavailable, cudaErrorECCUncorrectable, cudaErrorContained, cudaErrorUnknown: as the runtime and
  // Torch say them, as the driver names them, and as numbers that a native program returns.
  constexpr std::array<std::string_view, 8> kWords = {
      "busy or unavailable",  "devicesunavailable", "device_unavailable", "uncorrectable",
      "cuda_error_contained", "errorcontained",     "cuda_error_unknown", "cuda error: unknown error"};
  constexpr std::array<std::string_view, 4> kReturned = {"run() returned 46", "run() returned 214",
                                                         "run() returned 721", "run() returned 999"};
  const std::string lower = absl::AsciiStrToLower({words.data(), words.size()});
  return HasAny(lower, kWords) ||
         std::any_of(kReturned.begin(), kReturned.end(), [&](std::string_view returned) {
           return absl::EndsWith(lower, {returned.data(), returned.size()});
         });
}

}  // namespace warpsmith
