// Compiled programs by content: what was compiled once is not compiled again.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_CACHE_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_CACHE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/compiler/compiler.h"
#include "reward_service/compiler/lru_cache.h"

namespace warpsmith {

struct CompileCacheOptions {
  int64_t memory_bytes_max = int64_t{256} << 20;
  // In memory, where each holds a file descriptor.
  int num_programs_max = 4096;
  // Folder of compiled programs that outlive the service; empty: none. Written atomically, one file a
  // program.
  std::filesystem::path directory;
  int64_t directory_bytes_max = int64_t{1} << 30;
};

// Thread-safe. The key is the SHA-256 of source, flags and toolchain, so an entry is never stale.
class CompileCache {
 public:
  using CompileFunction = std::function<absl::StatusOr<CompiledProgram>()>;

  explicit CompileCache(CompileCacheOptions options);

  // The program of `key`: from memory, from the folder, or by calling `compile` on this thread. Callers with
  // the same key at the same time wait for the first one's result, as long as `cancelled` is false; if that
  // one fails, the next compiles itself. A failure to write the folder costs the entry, not the result.
  absl::StatusOr<CompiledProgram> GetOrCompile(const std::string& key, const std::atomic<bool>& cancelled,
                                               const CompileFunction& compile);

  static std::string Key(std::string_view fingerprint, std::string_view source);

 private:
  absl::StatusOr<CompiledProgram> Fill(const std::string& key, const CompileFunction& compile);
  absl::StatusOr<CompiledProgram> ReadFromDisk(const std::string& key) const;
  void WriteToDisk(const std::string& key, const CompiledProgram& program) ABSL_LOCKS_EXCLUDED(disk_mutex_);
  void MakeRoomOnDisk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(disk_mutex_);
  std::filesystem::path PathOf(const std::string& key) const;

  const CompileCacheOptions options_;
  absl::Mutex mutex_;
  LruCache<CompiledProgram> memory_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> in_flight_ ABSL_GUARDED_BY(mutex_);
  // Of writing and removing files: two that make room at once would each count what the other removes.
  absl::Mutex disk_mutex_;
  int64_t disk_bytes_ ABSL_GUARDED_BY(disk_mutex_) = 0;
  // One line in the log for a full disk, not one for each program.
  bool outage_logged_ ABSL_GUARDED_BY(disk_mutex_) = false;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_COMPILE_CACHE_H_
