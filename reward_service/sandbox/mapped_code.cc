#include "reward_service/sandbox/mapped_code.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

absl::StatusOr<std::vector<MappedCode>> ParseMappedCode(absl::string_view maps) {
  std::vector<MappedCode> found;
  for (const absl::string_view line : absl::StrSplit(maps, '\n', absl::SkipEmpty())) {
    // start-end rwxp offset device inode path
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    MappedCode mapping;
    const std::pair<absl::string_view, absl::string_view> bounds = absl::StrSplit(fields[0], '-');
    if (fields.size() < 5 || fields[1].size() != 4 || !absl::SimpleHexAtoi(bounds.first, &mapping.start) ||
        !absl::SimpleHexAtoi(bounds.second, &mapping.end) ||
        !absl::SimpleHexAtoi(fields[2], &mapping.file_offset) || mapping.end < mapping.start) {
      return absl::InvalidArgumentError(absl::StrCat("no line of /proc/PID/maps: ", line));
    }
    if (fields[1][2] != 'x') continue;
    mapping.writable = fields[1][1] == 'w';
    absl::string_view path = fields.size() > 5 ? fields[5] : absl::string_view();
    path = absl::StripLeadingAsciiWhitespace(path);
    absl::ConsumeSuffix(&path, " (deleted)");
    mapping.path = std::string(path);
    found.push_back(std::move(mapping));
  }
  return found;
}

absl::StatusOr<std::vector<MappedCode>> ReadMappedCode(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/maps"));
  std::stringstream text;
  text << file.rdbuf();
  if (!file.is_open() || text.str().empty())
    return absl::UnavailableError(absl::StrCat("process ", pid, " has no mappings"));
  return ParseMappedCode(text.str());
}

const MappedCode* FindWritten(pid_t pid, const std::vector<MappedCode>& mappings) {
  const UniqueFd file(open(absl::StrCat("/proc/", pid, "/pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return nullptr;
  std::vector<uint64_t> pages;
  for (const MappedCode& mapping : mappings) {
    pages.resize((mapping.end - mapping.start) / kCodePageBytes);
    const size_t num_bytes = pages.size() * sizeof(uint64_t);
    const auto offset = static_cast<off_t>(mapping.start / kCodePageBytes * sizeof(uint64_t));
    if (pread(file.get(), pages.data(), num_bytes, offset) != static_cast<ssize_t>(num_bytes)) continue;
    // Bits 61 to 63: of the file or shared, in swap, present.
    if (std::any_of(pages.begin(), pages.end(),
                    [](uint64_t page) { return (page >> 62) != 0 && (page >> 61 & 1) == 0; }))
      return &mapping;
  }
  return nullptr;
}

}  // namespace warpsmith
