#include "reward_service/referee/process/withheld_code.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

// Of the kernel: a few instructions to read a clock, and nothing that a process can put elsewhere.
bool IsOfKernel(const MappedCode& mapping) {
  return mapping.path == "[vdso]" || mapping.path == "[vsyscall]";
}

bool IsOwn(const MappedCode& mapping) {
  return absl::StartsWith(mapping.path, absl::StrCat(kLibraryFolder, "/"));
}

std::string Describe(const MappedCode& mapping) {
  return absl::StrCat(mapping.path.empty() ? "memory of no file" : mapping.path, ", ",
                      (mapping.end - mapping.start) / kCodePageBytes, " pages from offset 0x",
                      absl::Hex(mapping.file_offset), mapping.writable ? ", writable" : "");
}

bool IsRun(const nlohmann::json& run) {
  return run.is_array() && run.size() == 2 && run[0].is_number_unsigned() && run[1].is_number_unsigned();
}

}  // namespace

absl::StatusOr<PermittedCode> PermittedCode::FromJson(const nlohmann::json& files) {
  if (!files.is_object()) return absl::InvalidArgumentError("permitted code is no object of files");
  PermittedCode code;
  for (const auto& [path, runs] : files.items()) {
    Pages pages;
    pages.whole = runs.is_boolean() && runs.get<bool>();
    if (!pages.whole && !runs.is_array())
      return absl::InvalidArgumentError(absl::StrCat("permitted pages of ", path, " are no list"));
    for (const nlohmann::json& run : pages.whole ? nlohmann::json::array() : runs) {
      if (!IsRun(run))
        return absl::InvalidArgumentError(absl::StrCat("no run of pages of ", path, ": ", run.dump()));
      const uint64_t first = run[0].get<uint64_t>();
      pages.end_of[first] = first + run[1].get<uint64_t>();
    }
    code.files_[path] = std::move(pages);
  }
  return code;
}

bool PermittedCode::Permits(const MappedCode& mapping) const {
  const auto file = files_.find(mapping.path);
  if (file == files_.end()) return false;
  if (file->second.whole) return true;
  const uint64_t first = mapping.file_offset / kCodePageBytes;
  const auto& end_of = file->second.end_of;
  const auto after = end_of.upper_bound(first);
  return after != end_of.begin() &&
         first + (mapping.end - mapping.start) / kCodePageBytes <= std::prev(after)->second;
}

const MappedCode* PermittedCode::FindForeign(const std::vector<MappedCode>& mappings) const {
  for (const MappedCode& mapping : mappings) {
    const bool known = IsOfKernel(mapping) || IsOwn(mapping) || Permits(mapping);
    if (!known || mapping.writable) return &mapping;
  }
  return nullptr;
}

absl::Status PermittedCode::Check(pid_t pid) const {
  ASSIGN_OR_RETURN(const std::vector<MappedCode> mappings, ReadMappedCode(pid));
  if (const MappedCode* foreign = FindForeign(mappings); foreign != nullptr)
    return absl::FailedPreconditionError(Describe(*foreign));
  std::vector<MappedCode> of_files;
  std::remove_copy_if(mappings.begin(), mappings.end(), std::back_inserter(of_files), IsOfKernel);
  if (const MappedCode* written = FindWritten(pid, of_files); written != nullptr)
    return absl::FailedPreconditionError(absl::StrCat(Describe(*written), ", was written to"));
  return absl::OkStatus();
}

int64_t PermittedCode::num_pages() const {
  int64_t num_pages = 0;
  for (const auto& [path, pages] : files_) {
    for (const auto& [first, end] : pages.end_of) num_pages += static_cast<int64_t>(end - first);
  }
  return num_pages;
}

}  // namespace warpsmith
