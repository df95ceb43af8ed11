// warpsmith-referee SOCKET: measures and decides on one lane; started by the reward service, one a lane.
// warpsmith-referee --gpus: the GPUs of this machine as a list of JSON, empty where there is no driver or no GPU.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "reward_service/cuda/driver.h"
#include "reward_service/measure/request_json.h"
#include "reward_service/referee/referee_process.h"

namespace {

int PrintGpus() {
  const absl::StatusOr<std::vector<warpsmith::cuda::GpuFacts>> gpus = warpsmith::cuda::ListGpus();
  if (!gpus.ok() && !absl::IsNotFound(gpus.status())) {
    std::printf("%s\n", std::string(gpus.status().message()).c_str());
    return 1;
  }
  const nlohmann::json list = gpus.value_or(std::vector<warpsmith::cuda::GpuFacts>());
  std::printf("%s\n", list.dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--gpus") return PrintGpus();
  if (argc != 2) {
    std::fprintf(stderr, "warpsmith-referee: started by the reward service only\n");
    return 2;
  }
  warpsmith::SetUpLogging("referee", "info");
  const absl::Status status = warpsmith::ServeReferee(std::atoi(argv[1]));
  if (!status.ok()) warpsmith::LogError(status.ToString());
  // Not a return: threads still use what destructors would take away. Jails and parents die with this
  // process.
  _exit(status.ok() ? 0 : 1);
}
