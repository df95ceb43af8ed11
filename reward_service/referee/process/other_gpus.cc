#include "reward_service/referee/process/other_gpus.h"

#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace warpsmith {
namespace {

struct NamedGpu {
  std::string uuid;
  std::string minor;  // of its device file
};

// From lines as "GPU UUID: \t GPU-7fbf806f-...".
NamedGpu ReadInformation(const std::filesystem::path& file) {
  NamedGpu gpu;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(0, colon);
    const std::string value(absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
    if (key == "GPU UUID") gpu.uuid = value;
    if (key == "Device Minor") gpu.minor = value;
  }
  return gpu;
}

}  // namespace

std::set<std::string> DevicesOfOtherGpus(const std::filesystem::path& folder, const std::string& uuid) {
  std::set<std::string> others;
  bool is_named = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const NamedGpu gpu = ReadInformation(entry.path() / "information");
    if (gpu.uuid == uuid) {
      is_named = true;
    } else if (!gpu.minor.empty()) {
      others.insert(absl::StrCat("nvidia", gpu.minor));
    }
  }
  return is_named ? others : std::set<std::string>();
}

}  // namespace warpsmith
