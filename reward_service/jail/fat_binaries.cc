#include "reward_service/jail/fat_binaries.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "reward_service/jail/file_identities.h"

namespace warpsmith {
namespace {

constexpr uintptr_t kPageBytes = 4096;
// Of kernels that were linked when they were compiled, of those that are linked with others, and of a library of their
// own of matrix kernels.
constexpr absl::string_view kSections[] = {".nv_fatbin", "__nv_relfatbin", ".cask_resource"};
// What is read of a library that is never called: by the dynamic linker, by who unwinds a stack, and by CUDA's runtime,
// which knows where it registered kernels.
constexpr absl::string_view kStay[] = {
    ".interp", ".init", ".fini", ".plt", ".got", ".eh_frame", ".nvFatBinSegment", ".gcc_except_table"};

struct Range {
  uintptr_t start;
  uintptr_t end;
};

// A part of a page, which others have parts of.
struct Part {
  Range range;
  int protection;
};

struct Library {
  std::string path;
  uintptr_t base;
  std::vector<Elf64_Phdr> segments;
};

struct Kernels {
  std::vector<Range> whole_pages;  // sorted, when all are found
  std::vector<Part> parts;
};

// Signal handlers have no argument of ours: what they read must be static.
Kernels kernels;
volatile bool are_withheld = false;

int AppendLibrary(dl_phdr_info* info, size_t /*bytes*/, void* data) {
  // Without a name: the program itself and what the kernel adds.
  if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
    static_cast<std::vector<Library>*>(data)->push_back(
        {info->dlpi_name, info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum}});
  }
  return 0;
}

bool IsOneOf(absl::Span<const absl::string_view> names, absl::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool HasKernels(absl::string_view section) { return IsOneOf(kSections, section); }

bool MayGo(const Elf64_Shdr& section, absl::string_view name) {
  const bool stays = std::any_of(std::begin(kStay), std::end(kStay),
                                 [name](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
  return section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_TLS) == 0 && !stays;
}

// Of a page of data; PROT_NONE where there is code on it, or nothing. Data may lie in a segment of code.
int ProtectionOf(const Library& library, const std::vector<Elf64_Shdr>& sections, uintptr_t page) {
  for (const Elf64_Shdr& section : sections) {
    const uintptr_t start = library.base + section.sh_addr;
    const bool is_code = (section.sh_flags & SHF_EXECINSTR) != 0;
    if (is_code && start < page + kPageBytes && page < start + section.sh_size) return PROT_NONE;
  }
  for (const Elf64_Phdr& segment : library.segments) {
    const uintptr_t start = (library.base + segment.p_vaddr) / kPageBytes * kPageBytes;
    if (segment.p_type != PT_LOAD || page < start || page >= library.base + segment.p_vaddr + segment.p_memsz)
      continue;
    return PROT_READ | ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0);
  }
  return PROT_NONE;
}

// Takes down what lies in these bytes: whole pages, and parts of those at both ends.
void Append(const Library& library, const std::vector<Elf64_Shdr>& sections, Range bytes, Kernels* found) {
  const Range pages{(bytes.start + kPageBytes - 1) / kPageBytes * kPageBytes,
                    bytes.end / kPageBytes * kPageBytes};
  if (pages.start < pages.end) found->whole_pages.push_back(pages);
  const uintptr_t head_end = std::min(pages.start, bytes.end);
  for (const Range part : {Range{bytes.start, head_end}, Range{std::max(pages.end, head_end), bytes.end}}) {
    if (part.start >= part.end) continue;
    const int protection = ProtectionOf(library, sections, part.start / kPageBytes * kPageBytes);
    if (protection != PROT_NONE) found->parts.push_back({part, protection});
  }
}

absl::Status ReadAt(int fd, uint64_t offset, void* to, size_t num_bytes) {
  const ssize_t n = pread(fd, to, num_bytes, static_cast<off_t>(offset));
  if (n == static_cast<ssize_t>(num_bytes)) return absl::OkStatus();
  return absl::InternalError(n < 0 ? std::strerror(errno) : "it ends early");
}

// Appends the library's sections by the layout of "System V Application Binary Interface", ELF-64.
absl::Status AppendKernels(const Library& library, bool is_unused, Kernels* found) {
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
  const auto name_of = [&names](const Elf64_Shdr& section) -> absl::string_view {
    return section.sh_name < names.size() ? names.data() + section.sh_name : "";
  };
  const bool has_kernels = std::any_of(sections.begin(), sections.end(),
                                       [&](const auto& section) { return HasKernels(name_of(section)); });
  for (const Elf64_Shdr& section : sections) {
    const absl::string_view name = name_of(section);
    if (!has_kernels || (section.sh_flags & SHF_ALLOC) == 0 || section.sh_type == SHT_NOBITS) continue;
    if (!HasKernels(name) && !(is_unused && MayGo(section, name))) continue;
    const uintptr_t start = library.base + section.sh_addr;
    Append(library, sections, {start, start + section.sh_size}, found);
  }
  return absl::OkStatus();
}

absl::Status PutZeros(const Part& part) {
  char* const page = reinterpret_cast<char*>(part.range.start / kPageBytes * kPageBytes);
  char kept[kPageBytes];
  std::memcpy(kept, page, kPageBytes);
  std::memset(kept + part.range.start % kPageBytes, 0, part.range.end - part.range.start);
  // Zeros in the file's own page would go when the kernel is told that the page is not needed.
  if (mmap(page, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    return absl::InternalError(absl::StrCat("zeros for libraries' kernels: ", std::strerror(errno)));
  std::memcpy(page, kept, kPageBytes);
  if (mprotect(page, kPageBytes, part.protection) != 0)
    return absl::InternalError(absl::StrCat("zeros for libraries' kernels: ", std::strerror(errno)));
  return absl::OkStatus();
}

}  // namespace

absl::Status FindFatBinaries(const std::set<std::string>& unused, const std::set<std::string>& kept) {
  std::vector<Library> libraries;
  dl_iterate_phdr(AppendLibrary, &libraries);
  Kernels found;
  const FileIdentities kept_files(kept);
  for (const Library& library : libraries) {
    std::error_code error;
    if (kept_files.Have(library.path)) continue;
    const bool is_unused = unused.count(std::filesystem::canonical(library.path, error).string()) != 0;
    const absl::Status status = AppendKernels(library, is_unused, &found);
    if (!status.ok())
      return absl::InternalError(absl::StrCat("sections of ", library.path, ": ", status.message()));
  }
  if (found.whole_pages.empty())
    return absl::InternalError(absl::StrCat(
        "none of ", libraries.size(), " loaded libraries has GPU kernels: use a torch package with CUDA"));
  std::sort(found.whole_pages.begin(), found.whole_pages.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  kernels = std::move(found);
  return absl::OkStatus();
}

absl::Status WithholdFatBinaries() {
  are_withheld = true;
  for (const Part& part : kernels.parts) RETURN_IF_ERROR(PutZeros(part));
  for (const Range& range : kernels.whole_pages) {
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
      std::upper_bound(kernels.whole_pages.begin(), kernels.whole_pages.end(), at,
                       [](uintptr_t value, const Range& range) { return value < range.start; });
  return after != kernels.whole_pages.begin() && at < std::prev(after)->end;
}

}  // namespace warpsmith
