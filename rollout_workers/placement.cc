#include "rollout_workers/placement.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace warpsmith {
namespace {

constexpr std::string_view kCuda = "cuda", kCudaWithIndex = "cuda:";
constexpr int kDevicesMax = 64;

}  // namespace

absl::StatusOr<std::optional<CudaPlacement>> ParsePlacement(std::string_view text) {
  if (text == "cpu") return std::nullopt;
  CudaPlacement placement;
  if (text == kCuda) return placement;
  if (text.starts_with(kCudaWithIndex)) {
    const std::string digits(text.substr(kCudaWithIndex.size()));
    const bool is_number = digits.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && absl::SimpleAtoi(digits, &placement.device) && placement.device < kDevicesMax)
      return placement;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", Escape(text, 64), "\" is no device: give cpu, cuda or cuda:N with N below ", kDevicesMax));
}

}  // namespace warpsmith
