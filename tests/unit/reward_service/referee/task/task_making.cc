#include "tests/unit/reward_service/referee/task/task_making.h"

#include <sys/prctl.h>

#include <filesystem>
#include <memory>

#include "core/base/build_info.h"
#include "core/base/check.h"
#include "core/base/sha256.h"
#include "reward_service/measure/referee.h"
#include "reward_service/referee/lane_task.h"

namespace warpsmith {

Zygote& TestZygote() {
  static const std::unique_ptr<Zygote> zygote = [] {
    WS_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);  // jails are inherited, as in the referee
    const std::filesystem::path python = GetBuildInfo().python;
    const auto folders = PythonFolders(python);
    WS_CHECK(folders.ok()) << folders.status().ToString();
    auto started = Zygote::StartPython(python, ShareDirectory(), *folders, 1);
    WS_CHECK(started.ok()) << started.status().ToString();
    return *std::move(started);
  }();
  return *zygote;
}

TaskLimits TestLimits() {
  return {.oracle_memory_bytes_max = int64_t{8} << 30,
          .jail_memory_bytes_max = int64_t{4} << 30,
          .buffer_bytes_max = int64_t{64} << 20};
}

PlaceTask TestPlace() {
  static const RefereeFacts facts;
  return LaneTask::Place(&TestZygote(), TestLimits(), 1, HostStore(), facts);
}

TaskSource SmallTask(const std::string& constructor, const std::string& forward, const std::string& inputs) {
  const std::string source =
      "import torch\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n  "
      "      " +
      constructor + "\n\n    def forward(self, x):\n        " + forward +
      "\n\ndef get_inputs():\n    return " + inputs + "\n\ndef get_init_inputs():\n    return []\n";
  return {Sha256Hex(source), source};
}

}  // namespace warpsmith
