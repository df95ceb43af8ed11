// warpsmith-referee SOCKET: measures and decides on one lane; started by the reward service, one a lane.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/base/log.h"
#include "reward_service/referee/referee_process.h"

int main(int argc, char** argv) {
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
