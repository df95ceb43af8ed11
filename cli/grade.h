// `warpsmith grade`: one candidate for one task, graded and shown.
#ifndef WARPSMITH_CLI_GRADE_H_
#define WARPSMITH_CLI_GRADE_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/stop_signals.h"
#include "core/rpc/tls.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

struct GradeOptions {
  // A KernelBench file; a Task in protobuf's JSON form if its name ends in .json; or "FILE.jsonl#ID", a task of
  // a task file: see task_file.h.
  std::filesystem::path task;
  std::filesystem::path candidate;  // a program, or a whole answer if its name ends in .md or .txt
  std::string language;             // by the name of proto/language_names.h
  std::string device;               // by that of proto/device_names.h; empty: what the task says
  std::string format = "text";      // "text" or "json"
  std::string address;              // of a running service; empty: one is started for the call
  ChannelFiles channel;             // for that service
  std::string formula;              // empty: the service's default
  absl::Duration timeout = absl::Minutes(5);
};

// The request for these files. INVALID_ARGUMENT for a task that is no Task; NOT_FOUND.
absl::StatusOr<v1::GradeRequest> MakeGradeRequest(const GradeOptions& options);

// Prints the Grade to standard output, alone; everything else goes to standard error. 0 when there is a
// verdict on the candidate or the task, 3 when the service could not reach one (UNSCORABLE), 1 when there is
// no Grade.
int RunGrade(const GradeOptions& options, StopSignals* signals);

}  // namespace warpsmith

#endif  // WARPSMITH_CLI_GRADE_H_
