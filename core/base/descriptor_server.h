// Hands a file descriptor, memory for instance, to other processes of the same user and host.
#ifndef WARPSMITH_CORE_BASE_DESCRIPTOR_SERVER_H_
#define WARPSMITH_CORE_BASE_DESCRIPTOR_SERVER_H_

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace warpsmith {

// Longest text that goes with a descriptor.
inline constexpr size_t kDescriptorTextBytesMax = 4096;

// Owns the thread "ws-descriptor", which gives each client a copy of the descriptor and a text, and never waits for a
// peer. Where this process has no descriptor left for one, it tries again, at most a second later.
class DescriptorServer {
 public:
  // Makes a Unix socket at `path`, in place of one that a process has left there which is gone. INVALID_ARGUMENT: the
  // path or the text is too long; ALREADY_EXISTS: a living process listens there; otherwise the system's error.
  static absl::StatusOr<std::unique_ptr<DescriptorServer>> Start(const std::filesystem::path& path,
                                                                 UniqueFd descriptor, std::string text);
  // Removes the socket. Clients keep what they got.
  ~DescriptorServer();
  DescriptorServer(const DescriptorServer&) = delete;
  DescriptorServer& operator=(const DescriptorServer&) = delete;

 private:
  DescriptorServer(std::filesystem::path path, UniqueFd descriptor, std::string text, UniqueFd listener,
                   UniqueFd stop);
  void Serve();
  bool IsStoppedWithin(absl::Duration pause) const;

  const std::filesystem::path path_;
  const UniqueFd descriptor_;
  const std::string text_;
  const UniqueFd listener_;
  const UniqueFd stop_;  // an eventfd
  std::thread thread_;
};

struct FetchedDescriptor {
  UniqueFd descriptor;  // close-on-exec
  std::string text;
};

// What the DescriptorServer at `path` gives. UNAVAILABLE: no server listens there, or not for this user;
// PERMISSION_DENIED: it is neither this user's nor root's; DEADLINE_EXCEEDED; INVALID_ARGUMENT: the path is too long,
// or what came is no text with one descriptor.
absl::StatusOr<FetchedDescriptor> FetchDescriptor(const std::filesystem::path& path, absl::Time deadline);

}  // namespace warpsmith

#endif  // WARPSMITH_CORE_BASE_DESCRIPTOR_SERVER_H_
