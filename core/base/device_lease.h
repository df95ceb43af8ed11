// A device that several processes of a host use by turns: a GPU on which a trainer computes its steps, say, and a
// referee times programs between them.
#ifndef WARPSMITH_CORE_BASE_DEVICE_LEASE_H_
#define WARPSMITH_CORE_BASE_DEVICE_LEASE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// Two files that are locked by flock(2), DEVICE.held and DEVICE.next. A process that wants the device locks the second
// while it waits for the first. So of two, the one that waits comes before the one that gave the device up and wants it
// again; of more, chance decides which is next. The kernel releases the locks of a process that ends. The device must
// be idle when it is given up. For one thread; movable.
class DeviceLease {
 public:
  // What is held until it is destroyed. Its lease outlives it.
  class Held {
   public:
    explicit Held(int fd) : fd_(fd) {}
    Held(Held&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Held& operator=(Held&& other) noexcept {
      std::swap(fd_, other.fd_);  // what was held is released with `other`
      return *this;
    }
    ~Held();

   private:
    int fd_;
  };

  // `device` names it among all processes of the host: a GPU's UUID. The files stay. INVALID_ARGUMENT for a name with
  // other characters; PERMISSION_DENIED, NOT_FOUND where `directory` cannot be used.
  static absl::StatusOr<DeviceLease> Open(std::string_view device,
                                          const std::filesystem::path& directory = "/run/lock");

  // Another one of the same device, for another thread: neither has what the other holds.
  absl::StatusOr<DeviceLease> OpenAgain() const { return Open(device_, directory_); }

  // Waits until no other process has the device. Not while this lease holds it, which would end with the second of two
  // holds. DEADLINE_EXCEEDED names the process that has it; INTERNAL where the kernel has no locks left.
  absl::StatusOr<Held> Take(absl::Time deadline);
  // While this lease holds it: whether another process waits for it.
  bool IsWanted() const;

 private:
  DeviceLease(std::string device, std::filesystem::path directory, UniqueFd held, UniqueFd next)
      : device_(std::move(device)),
        directory_(std::move(directory)),
        held_(std::move(held)),
        next_(std::move(next)) {}
  absl::Status Lock(int fd, absl::Time deadline) const;

  std::string device_;
  std::filesystem::path directory_;
  UniqueFd held_;  // its content: the process that took it last
  UniqueFd next_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_DEVICE_LEASE_H_
