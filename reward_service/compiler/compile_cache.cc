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
#include "core/base/memory_file.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"

namespace warpsmith {
namespace {

constexpr int64_t kEntryBytesMax = int64_t{64} << 20;
constexpr int64_t kEntryOverheadBytes = 512;
// How often a waiter looks whether its own caller still wants the result.
constexpr absl::Duration kCancellationPeriod = absl::Milliseconds(50);
// A file is the SHA-256 of the rest, a line; the form, the headers and the compiler, a line each; the number of
// cubins, a line, and for each of them its architecture and its length, a line each; the diagnostics' length, a
// line; the diagnostics; the cubins; the library. Files of another form are compiled again.
constexpr size_t kDigestBytes = 64;
constexpr std::string_view kForm = "2";

std::string Serialise(const CompiledProgram& program, std::string_view library) {
  std::string body = absl::StrCat(absl::string_view(kForm.data(), kForm.size()), "\n", program.headers, "\n",
                                  program.compiler, "\n", program.cubins.size(), "\n");
  for (const Cubin& cubin : program.cubins) {
    absl::StrAppend(&body, cubin.architecture, "\n", cubin.bytes.size(), "\n");
  }
  absl::StrAppend(&body, program.diagnostics.size(), "\n", program.diagnostics);
  for (const Cubin& cubin : program.cubins) body += cubin.bytes;
  body += library;
  return absl::StrCat(Sha256Hex(body), "\n", body);
}

// Takes what Serialise() wrote apart, from the begin; not OK once something is missing.
class Parts {
 public:
  explicit Parts(std::string_view rest) : rest_(rest) {}

  std::string Line() {
    const size_t end = rest_.find('\n');
    ok_ = ok_ && end != std::string_view::npos;
    return ok_ ? Take(end, 1) : "";
  }

  size_t Number() {
    size_t number = 0;
    ok_ = absl::SimpleAtoi(Line(), &number) && ok_;
    return number;
  }

  std::string Bytes(size_t length) {
    ok_ = ok_ && length <= rest_.size();
    return ok_ ? Take(length, 0) : "";
  }

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string Take(size_t length, size_t more) {
    std::string part(rest_.substr(0, length));
    rest_.remove_prefix(length + more);
    return part;
  }

  std::string_view rest_;
  bool ok_ = true;
};

absl::StatusOr<CompiledProgram> Parse(std::string_view content) {
  const absl::Status corrupt = absl::DataLossError("a compiled program's file is damaged or of another form");
  if (content.size() <= kDigestBytes + 1) return corrupt;
  const std::string_view body = content.substr(kDigestBytes + 1);
  if (Sha256Hex(body) != content.substr(0, kDigestBytes)) return corrupt;
  Parts parts(body);
  if (parts.Line() != kForm) return corrupt;
  CompiledProgram program;
  program.headers = parts.Line();
  program.compiler = parts.Line();
  const size_t num_cubins = parts.Number();
  std::vector<size_t> lengths;
  for (size_t i = 0; i < num_cubins && parts.ok(); ++i) {
    program.cubins.push_back({.architecture = parts.Line(), .bytes = ""});
    lengths.push_back(parts.Number());
  }
  program.diagnostics = parts.Bytes(parts.Number());
  for (size_t i = 0; i < lengths.size() && parts.ok(); ++i) {
    program.cubins[i].bytes = parts.Bytes(lengths[i]);
  }
  if (!parts.ok()) return corrupt;
  ASSIGN_OR_RETURN(UniqueFd fd, SealedMemoryFile(parts.rest()));
  program.library_bytes = static_cast<int64_t>(parts.rest().size());
  program.library = std::make_shared<const UniqueFd>(std::move(fd));
  return program;
}

int64_t BytesOf(const CompiledProgram& program) {
  int64_t bytes = program.library_bytes + static_cast<int64_t>(program.diagnostics.size());
  for (const Cubin& cubin : program.cubins) bytes += static_cast<int64_t>(cubin.bytes.size());
  return bytes;
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
  const int64_t bytes = BytesOf(program) + kEntryOverheadBytes;
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
  const absl::StatusOr<std::string> library = ReadMemoryFile(program.library->get(), kEntryBytesMax);
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
