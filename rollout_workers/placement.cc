#include "rollout_workers/placement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/absl_view.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr std::string_view kCuda = "cuda", kCudaWithIndex = "cuda:";
constexpr int kDevicesMax = 64;

// A number below kDevicesMax, of digits alone.
std::optional<int> ParseIndex(const std::string& digits) {
  int index = 0;
  const bool is_number = digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || !absl::SimpleAtoi(digits, &index) || index >= kDevicesMax) return std::nullopt;
  return index;
}

// "N" or "N-M", upwards.
std::vector<int> ParseRange(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  const std::optional<int> first = ParseIndex(ends.front()), last = ParseIndex(ends.back());
  if (ends.size() > 2 || !first.has_value() || !last.has_value()) return {};
  std::vector<int> devices;
  for (int device = *first; device <= *last; ++device) devices.push_back(device);
  return devices;
}

// None where `text` is no list of ranges.
std::vector<int> ParseDevices(const std::string& text) {
  std::vector<int> devices;
  const std::vector<std::string> ranges = absl::StrSplit(text, ',');
  for (const std::string& range : ranges) {
    const std::vector<int> of_range = ParseRange(range);
    if (of_range.empty()) return {};
    devices.insert(devices.end(), of_range.begin(), of_range.end());
  }
  return devices;
}

std::optional<int> NamedTwice(std::vector<int> devices) {
  std::sort(devices.begin(), devices.end());
  const auto twice = std::adjacent_find(devices.begin(), devices.end());
  return twice == devices.end() ? std::nullopt : std::optional(*twice);
}

absl::StatusOr<DeviceDtype> ParseDtype(std::string_view text, DeviceDtype of_auto) {
  if (text == "auto") return of_auto;
  for (const DeviceDtype dtype : {DeviceDtype::kBfloat16, DeviceDtype::kFloat16, DeviceDtype::kFloat32}) {
    if (text == DtypeName(dtype)) return dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", Escape(text, 64), "\" is no dtype: give auto, bfloat16, float16 or float32"));
}

absl::StatusOr<std::vector<int>> ParseGpus(std::string_view text) {
  if (text == kCuda) return std::vector<int>{0};
  std::vector<int> devices;
  if (text.starts_with(kCudaWithIndex)) {
    devices = ParseDevices(std::string(text.substr(kCudaWithIndex.size())));
  }
  if (devices.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", Escape(text, 64), "\" is no device: give cpu, cuda or cuda:N with N below ",
                     kDevicesMax, ", or several that share a model as cuda:0,1"));
  }
  if (const std::optional<int> twice = NamedTwice(devices); twice.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", Escape(text, 64), "\" names GPU ", *twice, " twice: name each once"));
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::optional<CudaPlacement>> ParsePlacement(std::string_view device, std::string_view dtype) {
  const bool on_cpu = device == "cpu";
  ASSIGN_OR_RETURN(const DeviceDtype stored,
                   ParseDtype(dtype, on_cpu ? DeviceDtype::kFloat32 : DeviceDtype::kBfloat16));
  if (on_cpu && stored != DeviceDtype::kFloat32) {
    return absl::InvalidArgumentError(
        "the CPU computes in float32: give the dtype auto or float32, or a GPU");
  }
  if (on_cpu) return std::nullopt;
  ASSIGN_OR_RETURN(std::vector<int> devices, ParseGpus(device));
  return CudaPlacement{.devices = std::move(devices), .dtype = stored};
}

absl::StatusOr<std::optional<CudaPlacement>> ParsePlacementWords(std::string_view text) {
  constexpr double kShareMin = 0.01;
  const std::vector<std::string> words = absl::StrSplit(AbslView(text), ' ');
  ASSIGN_OR_RETURN(std::optional<CudaPlacement> placement,
                   ParsePlacement(words[0], words.size() > 1 ? words[1] : "auto"));
  if (words.size() <= 2) return placement;
  double share = 0;
  const bool is_share = absl::SimpleAtod(words[2], &share) && share >= kShareMin && share <= 1;
  if (words.size() > 3 || !is_share || !placement.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", Escape(text, 64),
                                                   "\" has no share of a GPU's memory from ", kShareMin,
                                                   " to 1 behind the dtype: write it as in cuda:0 auto 0.6"));
  }
  placement->memory_share = share;
  return placement;
}

}  // namespace warpsmith
