// Which code a process of a sealed jail may have. Its own word is worth nothing: the referee reads its
// mappings.
#ifndef WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_WITHHELD_CODE_H_
#define WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_WITHHELD_CODE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reward_service/sandbox/mapped_code.h"

namespace warpsmith {

// Immutable once made.
class PermittedCode {
 public:
  // From a zygote, in the form of FinishLearning() in withheld_pages.h. INVALID_ARGUMENT for any other.
  static absl::StatusOr<PermittedCode> FromJson(const nlohmann::json& files);

  // The first mapping that is neither permitted nor of a candidate's own library; null when there is none.
  // Writable code is never permitted.
  const MappedCode* FindForeign(const std::vector<MappedCode>& mappings) const;

  // Of a stopped process, before which nothing else can become code (RefuseNewCode()): FAILED_PRECONDITION
  // names the first mapping that is not permitted, or whose bytes are not the file's.
  absl::Status Check(pid_t pid) const;

  int64_t num_pages() const;  // of files that are not permitted as a whole

 private:
  struct Pages {
    bool whole = false;
    std::map<uint64_t, uint64_t> end_of;  // by the first page of a run, the one behind it
  };
  bool Permits(const MappedCode& mapping) const;

  std::map<std::string, Pages> files_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_REFEREE_PROCESS_WITHHELD_CODE_H_
