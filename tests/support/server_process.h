// A server of ours as a child process of a test.
#ifndef WARPSMITH_TESTS_SUPPORT_SERVER_PROCESS_H_
#define WARPSMITH_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace warpsmith {

// Starts `program` of the build's bin folder (environment WARPSMITH_BIN_DIR, which CTest sets) with
// `arguments` and waits, at most 30 s, for the line "listening on ADDRESS" on its standard output. Killed and
// reaped on destruction.
class ServerProcess {
 public:
  ServerProcess(const std::string& program, const std::vector<std::string>& arguments);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  // What the server printed: "host:port" or "unix:path". Empty if it did not start.
  const std::string& address() const { return address_; }
  pid_t pid() const { return pid_; }

  // Sends `signal`, waits at most `timeout` for the end and returns the exit status, or 128 + the signal that
  // ended it. -1 when it still runs.
  int Stop(int signal, absl::Duration timeout);

 private:
  void AwaitAddress(int fd);

  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::string address_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_SERVER_PROCESS_H_
