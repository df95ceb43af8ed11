#include "reward_service/jail/withheld_pages.h"

#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "reward_service/jail/file_identities.h"

namespace warpsmith {
namespace {

constexpr uintptr_t kPageBytes = 4096;

// An executable segment of a loaded file.
struct Segment {
  std::string path;
  uintptr_t start = 0;
  uintptr_t end = 0;
  uintptr_t file_page = 0;  // of the file's pages, the one at `start`
  bool whole = false;
  // One byte a page: 0, or kExecuted or kCopies once it was executed; shared with the child that learns. Null where
  // the segment is whole.
  volatile unsigned char* executed = nullptr;
};

struct Range {
  uintptr_t start;
  uintptr_t end;
};

constexpr unsigned char kExecuted = 1, kCopies = 2;

// The byte of a page that may be executed.
bool IsPermitted(unsigned char page, Copies copies) {
  return page == kExecuted || (page == kCopies && copies == Copies::kByLibraries);
}

// Signal handlers have no argument of ours: what they read must be static.
std::vector<Segment> segments;  // while learning
std::span<volatile unsigned char> executed_pages;
volatile unsigned char learning = kExecuted;
std::vector<Range> withheld[2];  // by Copies; sorted
const std::vector<Range>* volatile closed = nullptr;

absl::Status Failed(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// As the kernel names the file; empty for what is no file.
std::string RealPath(const char* name) {
  const std::unique_ptr<char, decltype(&free)> path(realpath(name, nullptr), &free);
  return path == nullptr ? "" : path.get();
}

int AppendSegments(dl_phdr_info* info, size_t /*bytes*/, void* data) {
  auto* found = static_cast<std::vector<Segment>*>(data);
  // The program itself comes first, and has no name.
  const bool is_program = found->empty();
  const std::string path = RealPath(is_program ? program_invocation_name : info->dlpi_name);
  if (path.empty()) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    Segment segment;
    segment.path = path;
    segment.start = (info->dlpi_addr + header.p_vaddr) / kPageBytes * kPageBytes;
    segment.end =
        (info->dlpi_addr + header.p_vaddr + header.p_memsz + kPageBytes - 1) / kPageBytes * kPageBytes;
    segment.file_page = header.p_offset / kPageBytes;
    segment.whole = is_program || IsKeptWhole(path);
    found->push_back(segment);
  }
  return 0;
}

std::vector<Segment> LoadedSegments() {
  std::vector<Segment> found;
  dl_iterate_phdr(AppendSegments, &found);
  return found;
}

size_t NumPages(const Segment& segment) { return (segment.end - segment.start) / kPageBytes; }

// Calls `visit(first, number)` for each longest run of pages of the segment that are permitted, or are not.
template <typename Visit>
void ForEachRun(const Segment& segment, Copies copies, bool permitted, Visit visit) {
  const size_t num_pages = NumPages(segment);
  for (size_t page = 0; page < num_pages;) {
    const size_t first = page;
    while (page < num_pages && IsPermitted(segment.executed[page], copies) == permitted) ++page;
    if (page > first) visit(first, page - first);
    page += page == first ? 1 : 0;
  }
}

nlohmann::json CodeOf(const std::vector<Segment>& loaded, Copies copies) {
  nlohmann::json files = nlohmann::json::object();
  for (const Segment& segment : loaded) {
    nlohmann::json& pages = files[segment.path];
    if (segment.executed == nullptr) {
      pages = true;
      continue;
    }
    if (pages.is_null()) pages = nlohmann::json::array();
    ForEachRun(segment, copies, /*permitted=*/true, [&](size_t first, size_t number) {
      pages.push_back({segment.file_page + first, number});
    });
  }
  return files;
}

void OnLearningFault(int signal, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Segment& segment : segments) {
    if (segment.whole || address < segment.start || address >= segment.end) continue;
    const uintptr_t page = (address - segment.start) / kPageBytes;
    segment.executed[page] = learning;
    void* const start = reinterpret_cast<void*>(segment.start + page * kPageBytes);
    if (mprotect(start, kPageBytes, PROT_READ | PROT_EXEC) == 0) return;
  }
  // A fault of another kind: let it happen again, and end the process.
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
}

}  // namespace

bool IsKeptWhole(absl::string_view path) {
  if (absl::StrContains(path, "/lib-dynload/")) return true;
  const absl::string_view name = path.substr(path.rfind('/') + 1);
  constexpr const char* kKept[] = {
      "ld-linux", "libc.so", "libm.so", "libmvec.so", "libpthread.so", "libdl.so", "librt.so", "libutil.so",
      "libstdc++.so", "libgcc_s.so", "libgomp.so", "libatomic.so", "libpython", "libffi.so",
      // Descriptions of tensors, and the way to the operators, which are elsewhere.
      "libc10.so", "libtorch_python.so", "libwarpsmith_",
      // The same for GPUs, and what launches a program's own kernels: their libraries' are withheld by themselves.
      "libc10_cuda.so", "libcuda.so", "libcudart.so",
      // What tells launches: it has no kernels, and nothing in it computes with tensors.
      "libcupti.so"};
  return std::any_of(std::begin(kKept), std::end(kKept),
                     [&](const char* prefix) { return absl::StartsWith(name, prefix); });
}

absl::Status PrepareLearning(const std::set<std::string>& kept) {
  segments = LoadedSegments();
  const FileIdentities kept_files(kept);
  for (Segment& segment : segments) segment.whole |= kept_files.Have(segment.path);
  size_t num_pages = 0;
  for (const Segment& segment : segments) num_pages += segment.whole ? 0 : NumPages(segment);
  void* const shared = mmap(nullptr, num_pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return Failed("memory to learn in");
  executed_pages = {static_cast<volatile unsigned char*>(shared), num_pages};
  auto* next = executed_pages.data();
  for (Segment& segment : segments) {
    if (segment.whole) continue;
    segment.executed = next;
    next += NumPages(segment);
  }
  return absl::OkStatus();
}

absl::Status LearnPages() {
  struct sigaction action {};
  action.sa_sigaction = &OnLearningFault;
  action.sa_flags = SA_SIGINFO;
  if (sigaction(SIGSEGV, &action, nullptr) != 0) return Failed("sigaction");
  for (const Segment& segment : segments) {
    if (segment.whole) continue;
    if (mprotect(reinterpret_cast<void*>(segment.start), segment.end - segment.start, PROT_READ) != 0)
      return Failed(segment.path.c_str());
  }
  return absl::OkStatus();
}

void LearnCopies() { learning = kCopies; }

std::string FinishLearning() {
  for (const Copies copies : {Copies::kWithheld, Copies::kByLibraries}) {
    std::vector<Range>& ranges = withheld[static_cast<int>(copies)];
    ranges.clear();
    for (const Segment& segment : segments) {
      if (segment.whole) continue;
      ForEachRun(segment, copies, /*permitted=*/false, [&](size_t first, size_t number) {
        ranges.push_back({segment.start + first * kPageBytes, segment.start + (first + number) * kPageBytes});
      });
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  }
  const nlohmann::json code = {CodeOf(segments, Copies::kWithheld), CodeOf(segments, Copies::kByLibraries)};
  // Every mapping makes every later fork a little slower.
  munmap(const_cast<unsigned char*>(executed_pages.data()), executed_pages.size());
  segments.clear();
  return code.dump();
}

std::string LoadedCodeText() { return CodeOf(LoadedSegments(), Copies::kWithheld).dump(); }

absl::Status WithholdPages(Copies copies) {
  closed = &withheld[static_cast<int>(copies)];  // first: other threads may be in the midst of that code
  for (const Range& range : *closed) {
    if (mprotect(reinterpret_cast<void*>(range.start), range.end - range.start, PROT_READ) != 0)
      return Failed("withhold pages");
  }
  return absl::OkStatus();
}

bool IsWithheld(const void* address) {
  const std::vector<Range>* const ranges = closed;
  if (ranges == nullptr) return false;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto after =
      std::upper_bound(ranges->begin(), ranges->end(), at,
                       [](uintptr_t value, const Range& range) { return value < range.start; });
  return after != ranges->begin() && at < std::prev(after)->end;
}

}  // namespace warpsmith
