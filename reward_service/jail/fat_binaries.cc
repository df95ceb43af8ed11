#include "reward_service/jail/fat_binaries.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr uintptr_t kPageBytes = 4096;
// Of kernels that were linked when they were compiled, and of those that are linked with others.
constexpr absl::string_view kSections[] = {".nv_fatbin", "__nv_relfatbin"};

struct Range {
  uintptr_t start;
  uintptr_t end;
};

struct Library {
  std::string path;
  uintptr_t base;
};

// Signal handlers have no argument of ours: what they read must be static.
std::vector<Range> fat_binaries;  // whole pages
volatile bool are_withheld = false;

int AppendLibrary(dl_phdr_info* info, size_t /*bytes*/, void* data) {
  // Without a name: the program itself and what the kernel adds.
  if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
    static_cast<std::vector<Library>*>(data)->push_back({info->dlpi_name, info->dlpi_addr});
  }
  return 0;
}

absl::Status ReadAt(int fd, uint64_t offset, void* to, size_t num_bytes) {
  const ssize_t n = pread(fd, to, num_bytes, static_cast<off_t>(offset));
  if (n == static_cast<ssize_t>(num_bytes)) return absl::OkStatus();
  return absl::InternalError(n < 0 ? std::strerror(errno) : "it ends early");
}

// Appends the library's sections by the layout of "System V Application Binary Interface", ELF-64.
absl::Status AppendFatBinaries(const Library& library, std::vector<Range>* found) {
  const UniqueFd fd(open(library.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return absl::InternalError(std::strerror(errno));
  Elf64_Ehdr file{};
  RETURN_IF_ERROR(ReadAt(fd.get(), 0, &file, sizeof(file)));
  if (file.e_shnum == 0 || file.e_shentsize != sizeof(Elf64_Shdr) || file.e_shstrndx >= file.e_shnum)
    return absl::OkStatus();  // without sections
  std::vector<Elf64_Shdr> sections(file.e_shnum);
  RETURN_IF_ERROR(
      ReadAt(fd.get(), file.e_shoff, sections.data(), sections.size() * sizeof(sections.front())));
  std::string names(sections[file.e_shstrndx].sh_size, '\0');
  RETURN_IF_ERROR(ReadAt(fd.get(), sections[file.e_shstrndx].sh_offset, names.data(), names.size()));
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_ALLOC) == 0 || section.sh_name >= names.size()) continue;
    const absl::string_view name = names.data() + section.sh_name;
    if (std::find(std::begin(kSections), std::end(kSections), name) == std::end(kSections)) continue;
    const uintptr_t start = library.base + section.sh_addr;
    const Range pages{(start + kPageBytes - 1) / kPageBytes * kPageBytes,
                      (start + section.sh_size) / kPageBytes * kPageBytes};
    if (pages.start < pages.end) found->push_back(pages);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FindFatBinaries() {
  std::vector<Library> libraries;
  dl_iterate_phdr(AppendLibrary, &libraries);
  std::vector<Range> found;
  for (const Library& library : libraries) {
    if (const absl::Status status = AppendFatBinaries(library, &found); !status.ok())
      return absl::InternalError(absl::StrCat("sections of ", library.path, ": ", status.message()));
  }
  std::sort(found.begin(), found.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  fat_binaries = std::move(found);
  return absl::OkStatus();
}

int64_t NumFatBinaryBytes() {
  int64_t num_bytes = 0;
  for (const Range& range : fat_binaries) num_bytes += static_cast<int64_t>(range.end - range.start);
  return num_bytes;
}

absl::Status WithholdFatBinaries() {
  are_withheld = true;
  for (const Range& range : fat_binaries) {
    void* const start = reinterpret_cast<void*>(range.start);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(start, range.end - range.start, PROT_NONE, flags, -1, 0) == MAP_FAILED)
      return absl::InternalError(absl::StrCat("withhold libraries' kernels: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

bool IsInWithheldFatBinary(const void* address) {
  if (!are_withheld) return false;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after =
      std::upper_bound(fat_binaries.begin(), fat_binaries.end(), at,
                       [](uintptr_t value, const Range& range) { return value < range.start; });
  return after != fat_binaries.begin() && at < std::prev(after)->end;
}

}  // namespace warpsmith
