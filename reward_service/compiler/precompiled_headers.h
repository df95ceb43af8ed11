// Precompiled headers by text and flags, made when first asked for.
#ifndef WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_
#define WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "reward_service/compiler/toolchain.h"

namespace warpsmith {

struct PrecompilePolicy {
  // Sets of flags that one text is precompiled with.
  size_t num_sets_max = 1;
  // The first compilations with a set do without: what is used once or twice is not worth making.
  int num_plain_uses = 0;
};

// One text under one set of flags at a time is made; callers who want the same wait, others do not.
// Thread-safe.
class PrecompiledHeaders {
 public:
  // Folders are made under `work_directory`; what an earlier service left there is used.
  PrecompiledHeaders(const Toolchain* toolchain, std::filesystem::path work_directory)
      : toolchain_(toolchain), work_directory_(std::move(work_directory)) {}

  // The flags that put the headers of `text` before a source compiled with `flags`; none where they could not
  // be made, or where the policy forbids: the compiler takes a precompiled header only with the flags it was
  // made with. One that an earlier service made is always used.
  std::vector<std::string> Include(const std::string& text, const std::vector<std::string>& flags,
                                   const PrecompilePolicy& policy);

 private:
  struct Header {
    absl::Mutex mutex;
    int num_uses ABSL_GUARDED_BY(mutex) = 0;
    bool tried ABSL_GUARDED_BY(mutex) = false;
    std::filesystem::path path ABSL_GUARDED_BY(mutex);
  };

  Header* Find(const std::string& text, const std::string& key, size_t num_sets_max);

  const Toolchain* const toolchain_;
  const std::filesystem::path work_directory_;
  absl::Mutex mutex_;
  std::map<std::string, std::map<std::string, Header>> headers_ ABSL_GUARDED_BY(mutex_);  // by text, by flags
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_COMPILER_PRECOMPILED_HEADERS_H_
