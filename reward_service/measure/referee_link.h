// The service's end of one running referee process: several questions at once, each with its own answer.
#ifndef WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_LINK_H_
#define WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_LINK_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "reward_service/jail/packet.h"

namespace warpsmith {

// What no answer in time means: that the referee hangs, and is broken, or that it has much to do,
// and the question alone has failed.
enum class Late { kBreaks, kFails };

// Thread-safe. The process is killed, and its jails with it, when this object is destroyed or broken.
class RefereeLink {
 public:
  // Spawns `program`, sends it `start`, and waits until `deadline` for its first packet, which is
  // moved to `started`. FAILED_PRECONDITION where there is no such program, INTERNAL where it does
  // not answer.
  static absl::StatusOr<std::unique_ptr<RefereeLink>> Open(const std::filesystem::path& program,
                                                           const nlohmann::json& start, absl::Time deadline,
                                                           Packet* started);
  ~RefereeLink();
  RefereeLink(const RefereeLink&) = delete;
  RefereeLink& operator=(const RefereeLink&) = delete;

  // Sends a question, with an id of its own and the seconds that are left, and waits for the answer
  // with that id until a second after `deadline`: a referee says itself that it is late. One
  // that answers what nobody asked is broken: whoever waits has the reason. DEADLINE_EXCEEDED: no
  // answer, which `late` says what to make of. UNAVAILABLE: it is gone, and where `sent` is false
  // it has not been asked.
  absl::StatusOr<Packet> Ask(nlohmann::json question, const std::vector<int>& descriptors,
                             absl::Time deadline, Late late, bool* sent) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends what has no answer.
  absl::Status Tell(const nlohmann::json& message, const std::vector<int>& descriptors);

  // Kills the process. Whoever waits, and whoever asks from now on, has `reason`.
  void Break(absl::Status reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // Not OK once the process is gone or killed: why.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  RefereeLink(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  void ReadAnswers() ABSL_LOCKS_EXCLUDED(mutex_);
  void BreakLocked(absl::Status reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const pid_t pid_;
  const UniqueFd socket_;
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // By id: questions that somebody waits for, and their answers.
  std::map<int64_t, std::optional<Packet>> asked_ ABSL_GUARDED_BY(mutex_);
  std::set<int64_t> given_up_ ABSL_GUARDED_BY(mutex_);  // questions for which nobody waits any more
  std::thread reader_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_MEASURE_REFEREE_LINK_H_
