// The requests that a worker holds: those under way, and those whose groups a client may ask for again.
#ifndef WARPSMITH_ROLLOUT_WORKERS_REQUEST_TABLE_H_
#define WARPSMITH_ROLLOUT_WORKERS_REQUEST_TABLE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "rollout_workers/group_assembly.h"

namespace warpsmith {

// Guarded by the owner of the table.
struct HeldRequest {
  explicit HeldRequest(GroupAssembly groups) : assembly(std::move(groups)) {}

  GroupAssembly assembly;
  // Both have to match for what it has to be given again.
  std::string settings_digest;
  std::string weights_sha256;
  // Of the decoding and grading under way; 0: none is, because it is complete, was left by its readers or
  // failed.
  int64_t job_id = 0;
  absl::Time started;
  // What ended it before it was complete.
  absl::Status failure;
  // Called after a group was completed or the request ended, without the table's lock. One a reader.
  std::list<std::function<void()>> readers;

  bool running() const { return job_id != 0; }
};

struct TableLimits {
  // Requests without a reader and without work in progress; the longest unused go first.
  int num_idle_max = 16;
  int64_t idle_bytes_max = int64_t{512} << 20;
};

// Not thread-safe.
class RequestTable {
 public:
  explicit RequestTable(TableLimits limits) : limits_(limits) {}

  // Null if there is none. Finding by id marks as used.
  std::shared_ptr<HeldRequest> Find(const std::string& request_id);
  std::shared_ptr<HeldRequest> FindJob(int64_t job_id) const;

  // Its id must not be held. Then forgets idle requests beyond the limits.
  void Insert(std::shared_ptr<HeldRequest> request);
  void Erase(const std::string& request_id);
  // Forgets idle requests beyond the limits: to be called when one became idle.
  void EvictIdle();

  int num_running() const;
  std::list<std::shared_ptr<HeldRequest>> all() const { return requests_; }

 private:
  const TableLimits limits_;
  std::list<std::shared_ptr<HeldRequest>> requests_;  // most recently used first; a few dozen at most
};

}  // namespace warpsmith

#endif  // WARPSMITH_ROLLOUT_WORKERS_REQUEST_TABLE_H_
