// A running reward service with its real compiler and referee, and one-line grading for tests.
#ifndef WARPSMITH_TESTS_SUPPORT_REWARD_CLIENT_H_
#define WARPSMITH_TESTS_SUPPORT_REWARD_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/server_process.h"
#include "tests/support/temporary_directory.h"
#include "warpsmith/v1/reward_service.grpc.pb.h"

namespace warpsmith {

// Starts warpsmith-reward on a Unix socket with an empty cache folder and short limits. Stops with this
// object.
class RewardClient {
 public:
  // `settings` are further "key=value" of the section reward_service.
  explicit RewardClient(const std::vector<std::string>& settings = {});

  // The service's answer within `limit`. Ids are made up where they are empty.
  absl::StatusOr<v1::Grade> Grade(v1::GradeRequest request, absl::Duration limit = absl::Minutes(1));

  ServerProcess& process() { return *process_; }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TemporaryDirectory folder_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<v1::RewardService::Stub> stub_;
  int num_requests_ = 0;
};

// relu(2 x + 1) squared over `rows` x 256, as a KernelBench file.
std::string ReluSquareReference(int rows = 64);

// A request that sends `answer` for `reference`.
v1::GradeRequest CppAnswer(const std::string& reference, const std::string& answer);

// As CppAnswer, of a program whose `run` has these statements; `x`, `y` and `n` name input, output and their
// size.
v1::GradeRequest CppBody(const std::string& reference, const std::string& statements,
                         const std::string& head = "");

// The same for a KernelBench answer in Python.
v1::GradeRequest PythonAnswer(const std::string& reference, const std::string& program);

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_REWARD_CLIENT_H_
