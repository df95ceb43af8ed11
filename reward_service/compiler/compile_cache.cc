#include "reward_service/compiler/compile_cache.h"

#include <algorithm>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kEntryBytesMax = int64_t{64} << 20;
constexpr int64_t kEntryOverheadBytes = 512;
// How often a waiter looks whether its own caller still wants the result.
constexpr absl::Duration kCancellationPeriod = absl::Milliseconds(50);
// A file is the SHA-256 of the rest, a line; its headers, a line; its diagnostics' length, a line; the
// diagnostics; the library.
constexpr size_t kDigestBytes = 64;

std::string Serialise(const CompiledProgram& program, std::string_view library) {
  const std::string body =
      absl::StrCat(program.headers, "\n", program.diagnostics.size(), "\n", program.diagnostics,
                   absl::string_view(library.data(), library.size()));
  return absl::StrCat(Sha256Hex(body), "\n", body);
}

absl::StatusOr<CompiledProgram> Parse(std::string_view content) {
  const absl::Status corrupt = absl::DataLossError("a compiled program's file is damaged");
  if (content.size() <= kDigestBytes + 1) return corrupt;
  std::string_view body = content.substr(kDigestBytes + 1);
  if (Sha256Hex(body) != content.substr(0, kDigestBytes)) return corrupt;
  const size_t headers_end = body.find('\n');
  if (headers_end == std::string_view::npos) return corrupt;
  CompiledProgram program;
  program.headers = std::string(body.substr(0, headers_end));
  body.remove_prefix(headers_end + 1);
  const size_t line_end = body.find('\n');
  size_t length = 0;
  if (line_end == std::string_view::npos ||
      !absl::SimpleAtoi(std::string(body.substr(0, line_end)), &length) ||
      length > body.size() - line_end - 1) {
    return corrupt;
  }
  program.diagnostics = std::string(body.substr(line_end + 1, length));
  const std::string_view library = body.substr(line_end + 1 + length);
  ASSIGN_OR_RETURN(UniqueFd fd, SealedMemfd("library", library));
  program.library_bytes = static_cast<int64_t>(library.size());
  program.library = std::make_shared<const UniqueFd>(std::move(fd));
  return program;
}

}  // namespace

CompileCache::CompileCache(CompileCacheOptions options)
    : options_(std::move(options)), memory_(options_.memory_bytes_max) {
  if (options_.directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error)
    LogWarning(absl::StrCat("no compile cache in ", options_.directory.string(), ": ", error.message()));
  absl::MutexLock lock(&disk_mutex_);
  MakeRoomOnDisk();
}

std::string CompileCache::Key(std::string_view fingerprint, std::string_view source) {
  Sha256 digest;
  digest.Update(fingerprint);
  digest.Update("\n");
  digest.Update(source);
  return digest.HexDigest();
}

absl::StatusOr<CompiledProgram> CompileCache::GetOrCompile(const std::string& key,
                                                           const std::atomic<bool>& cancelled,
                                                           const CompileFunction& compile) {
  {
    absl::MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return in_flight_.count(key) == 0; };
    while (!mutex_.AwaitWithTimeout(absl::Condition(&free), kCancellationPeriod)) {
      if (cancelled.load(std::memory_order_relaxed)) return absl::CancelledError("not wanted any more");
    }
    if (const CompiledProgram* found = memory_.Find(key); found != nullptr) {
      CompiledProgram program = *found;
      program.cached = true;
      return program;
    }
    in_flight_.insert(key);
  }
  const auto done = absl::MakeCleanup([&] {
    absl::MutexLock lock(&mutex_);
    in_flight_.erase(key);
  });
  ASSIGN_OR_RETURN(CompiledProgram program, Fill(key, compile));
  absl::MutexLock lock(&mutex_);
  const int64_t bytes =
      program.library_bytes + static_cast<int64_t>(program.diagnostics.size()) + kEntryOverheadBytes;
  // Whatever is small costs a descriptor's share, so that there are never too many.
  memory_.Insert(key, program, std::max(bytes, options_.memory_bytes_max / options_.num_programs_max));
  return program;
}

absl::StatusOr<CompiledProgram> CompileCache::Fill(const std::string& key, const CompileFunction& compile) {
  if (!options_.directory.empty()) {
    absl::StatusOr<CompiledProgram> stored = ReadFromDisk(key);
    if (stored.ok()) {
      stored->cached = true;
      return stored;
    }
  }
  ASSIGN_OR_RETURN(CompiledProgram program, compile());
  if (!options_.directory.empty() && program.succeeded()) WriteToDisk(key, program);
  return program;
}

absl::StatusOr<CompiledProgram> CompileCache::ReadFromDisk(const std::string& key) const {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(PathOf(key), kEntryBytesMax));
  absl::StatusOr<CompiledProgram> program = Parse(content);
  if (!program.ok()) {
    LogWarning(absl::StrCat(PathOf(key).string(), ": ", program.status().message(), "; compiling again"));
    std::error_code ignored;
    std::filesystem::remove(PathOf(key), ignored);
  }
  return program;
}

void CompileCache::WriteToDisk(const std::string& key, const CompiledProgram& program) {
  const absl::StatusOr<std::string> library = ReadMemfd(program.library->get(), kEntryBytesMax);
  if (!library.ok()) return;
  const std::string content = Serialise(program, *library);
  absl::MutexLock lock(&disk_mutex_);
  if (disk_bytes_ + static_cast<int64_t>(content.size()) > options_.directory_bytes_max) MakeRoomOnDisk();
  const absl::Status status = WriteFileAtomically(PathOf(key), content);
  if (status.ok()) {
    disk_bytes_ += static_cast<int64_t>(content.size());
    outage_logged_ = false;
  } else if (!std::exchange(outage_logged_, true)) {
    LogWarning(absl::StrCat("compiled programs are not kept on disk: ", status.message()));
  }
}

// Removes the files that were written longest ago until three quarters of the budget are left.
void CompileCache::MakeRoomOnDisk() {
  struct File {
    std::filesystem::file_time_type time;
    int64_t bytes;
    std::filesystem::path path;
  };
  std::vector<File> files;
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, error)) {
    if (!entry.is_regular_file(error)) continue;
    files.push_back(
        {entry.last_write_time(error), static_cast<int64_t>(entry.file_size(error)), entry.path()});
    bytes += files.back().bytes;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.time < b.time; });
  for (const File& file : files) {
    if (bytes <= options_.directory_bytes_max / 4 * 3) break;
    if (std::filesystem::remove(file.path, error)) bytes -= file.bytes;
  }
  disk_bytes_ = bytes;
}

std::filesystem::path CompileCache::PathOf(const std::string& key) const { return options_.directory / key; }

}  // namespace warpsmith
