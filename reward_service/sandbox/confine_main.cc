// warpsmith-confine UID MEMORY FILE CPU PROCESSES OPEN_FILES WRITABLE[:WRITABLE...] [READABLE[:READABLE...]]
// -- PROGRAM ARGUMENT...
// Gives up every right that a toolchain needs not, then executes the program. Runs inside bubblewrap.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "reward_service/sandbox/confinement.h"

namespace {

std::vector<std::string> Paths(const char* joined) {
  std::vector<std::string> paths;
  std::stringstream stream(joined);
  for (std::string path; std::getline(stream, path, ':');) paths.push_back(path);
  return paths;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kProgram = 10;
  if (argc <= kProgram || std::strcmp(argv[kProgram - 1], "--") != 0) {
    std::fprintf(stderr, "warpsmith-confine: started by the sandbox only\n");
    return 125;
  }
  warpsmith::Confinement confinement;
  confinement.rights = warpsmith::ProcessRights::kToolchain;
  confinement.die_with_parent = true;  // bubblewrap has asked for that, but the change of uid clears it
  confinement.uid = static_cast<uid_t>(std::strtoul(argv[1], nullptr, 10));
  confinement.memory_bytes_max = std::strtoll(argv[2], nullptr, 10);
  confinement.file_bytes_max = std::strtoll(argv[3], nullptr, 10);
  confinement.cpu_seconds_max = std::atoi(argv[4]);
  confinement.num_processes_max = std::atoi(argv[5]);
  confinement.num_open_files_max = std::atoi(argv[6]);
  confinement.writable_paths = Paths(argv[7]);
  confinement.readable_paths = Paths(argv[8]);
  confinement.writable_paths.push_back("/dev/null");
  if (const absl::Status status = warpsmith::Confine(confinement); !status.ok()) {
    std::fprintf(stderr, "warpsmith-confine: %s\n", status.ToString().c_str());
    return 125;
  }
  execv(argv[kProgram], argv + kProgram);
  std::fprintf(stderr, "warpsmith-confine: execute %s: %s\n", argv[kProgram], std::strerror(errno));
  return 126;
}
