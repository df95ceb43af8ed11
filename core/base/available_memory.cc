#include "core/base/available_memory.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"

namespace warpsmith {
namespace {

std::optional<int64_t> NumberIn(const std::filesystem::path& file) {
  const absl::StatusOr<std::string> text = ReadFile(file);
  int64_t number = 0;
  if (!text.ok() || !absl::SimpleAtoi(*text, &number)) return std::nullopt;
  return number;
}

int64_t AvailableOnHost(const std::filesystem::path& root) {
  const absl::StatusOr<std::string> facts = ReadFile(root / "proc/meminfo");
  if (!facts.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(*facts, '\n')) {
    if (!absl::StartsWith(line, "MemAvailable:")) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() > 1 && absl::SimpleAtoi(words[1], &kib)) return kib << 10;
  }
  return 0;
}

}  // namespace

int64_t AvailableMemory(const std::filesystem::path& root) {
  int64_t available = AvailableOnHost(root);
  // In a container the group is the root of what it sees; else its path is behind "0::".
  std::string group;
  if (const absl::StatusOr<std::string> groups = ReadFile(root / "proc/self/cgroup"); groups.ok()) {
    for (const absl::string_view line : absl::StrSplit(*groups, '\n')) {
      if (absl::StartsWith(line, "0::/")) group = std::string(line.substr(4));
    }
  }
  for (const std::filesystem::path& folder : {root / "sys/fs/cgroup", root / "sys/fs/cgroup" / group}) {
    const std::optional<int64_t> most = NumberIn(folder / "memory.max");  // or "max"
    const std::optional<int64_t> had = NumberIn(folder / "memory.current");
    if (most && had) available = std::min(available, std::max<int64_t>(0, *most - *had));
  }
  return available;
}

}  // namespace warpsmith
