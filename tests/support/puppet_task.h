// A task, prepared by puppets, and what is judged on it.
#ifndef WARPSMITH_TESTS_SUPPORT_PUPPET_TASK_H_
#define WARPSMITH_TESTS_SUPPORT_PUPPET_TASK_H_

#include <fcntl.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/base/unique_fd.h"
#include "reward_service/referee/lane_task.h"
#include "tests/support/puppet_zygote.h"

namespace warpsmith {

inline TaskLimits PuppetTaskLimits() {
  return {.oracle_memory_bytes_max = int64_t{1} << 30,
          .jail_memory_bytes_max = int64_t{1} << 30,
          .buffer_bytes_max = int64_t{1} << 20};
}

inline TaskSource PuppetTaskSource() { return {"key", "class Model: pass"}; }

// What puppets are given for a program; they do not look at it.
inline const UniqueFd& AnyProgram() {
  static const UniqueFd program(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return program;
}

// A request to judge puppets. None is slow: who does not answer in a second never will.
inline JudgeRequest PuppetRequest(CandidateKind kind) {
  JudgeRequest request;
  request.task = PuppetTaskSource();
  request.kind = kind;
  request.library_fd = AnyProgram().get();
  request.source = "class ModelNew: pass";
  request.limits = {.cpu_seconds_max = 10, .call_seconds_max = 1, .lane_seconds_max = 60};
  return request;
}

// On a CPU, whose baselines are puppets of the zygote.
inline PlaceTask PuppetPlace(Zygote* zygote, const TaskLimits& limits = PuppetTaskLimits()) {
  static const RefereeFacts facts;
  return LaneTask::Place(zygote, limits, 1, HostStore(), facts);
}

// A zygote of puppets and an examined task of it.
struct PuppetTask {
  explicit PuppetTask(const nlohmann::json& script = nlohmann::json::object())
      : zygote(StartPuppets(script)),
        task(std::make_unique<PreparedTask>(PuppetTaskSource(), 7, PuppetTaskLimits(), zygote.get(), 1,
                                            PuppetPlace(zygote.get()))) {
    const absl::Status status = task->Examine();
    WS_CHECK(status.ok()) << status.ToString();
  }

  const std::unique_ptr<Zygote> zygote;
  const std::unique_ptr<PreparedTask> task;
};

}  // namespace warpsmith

#endif  // WARPSMITH_TESTS_SUPPORT_PUPPET_TASK_H_
