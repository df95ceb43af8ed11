// Where the processes of a run meet: small values by name, in the store of the launcher.
#ifndef WARPSMITH_CORE_DISTRIBUTED_RENDEZVOUS_STORE_H_
#define WARPSMITH_CORE_DISTRIBUTED_RENDEZVOUS_STORE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/wait_lines.h"
#include "core/distributed/process_group_environment.h"

namespace warpsmith {

// A client of c10d's TCPStore: of the launcher's agent where it serves one, else of rank 0, which then serves
// it for as long as its object lives. Not thread-safe.
class RendezvousStore {
 public:
  // Connects within `timeout`; UNAVAILABLE with the address otherwise. `lines` are of this wait and of those of Get.
  static absl::StatusOr<std::unique_ptr<RendezvousStore>> Connect(const ProcessGroupEnvironment& environment,
                                                                  absl::Duration timeout,
                                                                  const WaitLineOptions& lines = {});
  RendezvousStore(const RendezvousStore&) = delete;
  RendezvousStore& operator=(const RendezvousStore&) = delete;
  ~RendezvousStore();

  absl::Status Set(const std::string& key, std::string_view value);

  // Waits until `who` has set `key`. DEADLINE_EXCEEDED after `timeout`.
  absl::StatusOr<std::string> Get(const std::string& key, std::string_view who, absl::Duration timeout);

 private:
  struct Client;
  explicit RendezvousStore(std::unique_ptr<Client> client);

  std::unique_ptr<Client> client_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_DISTRIBUTED_RENDEZVOUS_STORE_H_
