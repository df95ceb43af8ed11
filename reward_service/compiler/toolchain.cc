#include "reward_service/compiler/toolchain.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr char kCompiler[] = "/usr/bin/g++";
constexpr char kMold[] = "/usr/bin/mold";
constexpr size_t kOutputBytesMax = 1 << 20;

std::string ReadAll(int fd) {
  std::string output;
  char buffer[4096];
  while (output.size() < kOutputBytesMax) {
    const ssize_t num_read = read(fd, buffer, sizeof(buffer));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) break;
    output.append(buffer, static_cast<size_t>(num_read));
  }
  return output;
}

// The compiler proper's command line, on which the driver writes out what "native" is.
std::string NativeMeaning(const std::string& verbose) {
  const size_t begin = verbose.find("cc1plus");
  return begin == std::string::npos ? verbose : verbose.substr(begin, verbose.find('\n', begin) - begin);
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus("cannot make a pipe for", command[0]);
  UniqueFd reader(fds[0]), writer(fds[1]);
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  char path[] = "PATH=/usr/bin:/bin", language[] = "LC_ALL=C";
  char* environment[] = {path, language, nullptr};
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError(absl::StrCat("cannot run ", command[0], ": errno ", error));
  writer.Reset();
  std::string output = ReadAll(reader.get());
  int status = 0;
  waitpid(pid, &status, 0);
  if (status == 0) return output;
  return absl::InternalError(
      absl::StrCat(absl::StrJoin(command, " "), " failed with status ", status, ": ", Escape(output, 500)));
}

absl::StatusOr<Toolchain> ProbeToolchain() {
  if (access(kCompiler, X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(kCompiler, " is missing: apt-get install g++"));
  }
  Toolchain toolchain;
  toolchain.compiler = kCompiler;
  toolchain.flags = {"-O3",
                     "-march=native",
                     "-fopenmp",
                     "-std=c++17",
                     "-shared",
                     "-fPIC",
                     "-pipe",
                     "-fdiagnostics-color=never",
                     "-fmax-errors=20",
                     "-fno-diagnostics-show-caret"};
  if (access(kMold, X_OK) == 0) toolchain.link_flags = {"-fuse-ld=mold"};
  toolchain.flags.insert(toolchain.flags.end(), toolchain.link_flags.begin(), toolchain.link_flags.end());
  ASSIGN_OR_RETURN(std::string version, OutputOf({kCompiler, "-dumpfullversion"}));
  version.erase(version.find_last_not_of('\n') + 1);
  toolchain.version = absl::StrCat("g++ ", version);
  ASSIGN_OR_RETURN(const std::string verbose,
                   OutputOf({kCompiler, "-march=native", "-fsyntax-only", "-v", "-x", "c++", "/dev/null"}));
  toolchain.fingerprint = Sha256Hex(absl::StrCat(
      toolchain.version, "\n", absl::StrJoin(toolchain.flags, "\n"), "\n", NativeMeaning(verbose)));
  return toolchain;
}

}  // namespace warpsmith
