// Precompiled headers by text and flags, made in the background once they were asked for.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_

#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

struct PrecompilePolicy {
  // Sets of flags that one text is precompiled with.
  size_t num_sets_max = 1;
  // The first compilations with a set do not ask for it: what is used once or twice is not worth making.
  int num_plain_uses = 0;
};

// Makes one at a time, on a thread of its own that the first need starts: no compilation waits for headers, and
// none pays for them. Thread-safe.
class PrecompiledHeaders {
 public:
  // Folders are made under `work_directory`; what an earlier service left there is used.
  PrecompiledHeaders(const Toolchain* toolchain, std::filesystem::path work_directory)
      : toolchain_(toolchain), work_directory_(std::move(work_directory)) {}
  // Gives up what is being made.
  ~PrecompiledHeaders();
  PrecompiledHeaders(const PrecompiledHeaders&) = delete;
  PrecompiledHeaders& operator=(const PrecompiledHeaders&) = delete;

  // The flags that put the headers of `text` before a source compiled with `flags`; none where they are not, or
  // not yet, made: the compiler takes a precompiled header only with the flags it was made with. One that an
  // earlier service made is always used. Does not wait. `flags` come from a closed list, never from a
  // candidate: they reach a compiler that is not confined.
  std::vector<std::string> Include(const std::string& text, const std::vector<std::string>& flags,
                                   const PrecompilePolicy& policy);

  // Waits until everything that was asked for is made, or could not be.
  void AwaitIdle();

 private:
  struct Header {
    // Fixed when it is added.
    std::string text;
    std::vector<std::string> flags;
    std::filesystem::path folder;
    // Guarded by mutex_.
    int num_uses = 0;
    bool asked = false;
    bool made = false;
  };

  Header* Find(const std::string& text, const std::vector<std::string>& flags, size_t num_sets_max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeAll();
  Header* Next();  // waits for one that was asked for; null when there is to be no more
  void Finish(Header* header, bool made);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !asked_.empty() || stopping_; }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_.empty() && !making_; }

  const Toolchain* const toolchain_;
  const std::filesystem::path work_directory_;
  std::atomic<bool> stopping_{false};
  absl::Mutex mutex_;
  std::map<std::string, std::map<std::string, Header>> headers_ ABSL_GUARDED_BY(mutex_);  // by text, by flags
  std::deque<Header*> asked_ ABSL_GUARDED_BY(mutex_);
  bool making_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread maker_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_
