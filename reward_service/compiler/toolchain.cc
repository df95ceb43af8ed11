#include "reward_service/compiler/toolchain.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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

constexpr int kCancellationMs = 50;  // how often a running command looks whether it is still wanted

bool IsTrue(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

std::string ReadAll(int fd, const std::atomic<bool>* cancelled) {
  std::string output;
  char buffer[4096];
  while (output.size() < kOutputBytesMax && !IsTrue(cancelled)) {
    pollfd event{fd, POLLIN, 0};
    if (poll(&event, 1, cancelled == nullptr ? -1 : kCancellationMs) == 0) continue;
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

// Absolute paths in the words of `text`.
std::vector<std::string> PathsIn(const std::string& text) {
  std::vector<std::string> paths;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\n:"), absl::SkipEmpty())) {
    if (word[0] == '/') paths.emplace_back(word);
  }
  return paths;
}

// Answers of the compiler to where it finds what it is asked for: absolute where that exists.
absl::StatusOr<std::vector<std::string>> Places(const char* question,
                                                std::initializer_list<const char*> names) {
  std::vector<std::string> places;
  for (const char* name : names) {
    ASSIGN_OR_RETURN(const std::string answer, OutputOf({kCompiler, absl::StrCat(question, "=", name)}));
    for (std::string& path : PathsIn(answer)) places.push_back(std::move(path));
  }
  return places;
}

absl::StatusOr<std::vector<std::filesystem::path>> SystemPaths() {
  std::vector<std::string> programs = {"/usr/bin/sh", "/usr/bin/cat", kCompiler, "/usr/bin/as",
                                       "/usr/bin/ld"};
  for (const char* path : {kMold, "/usr/bin/ld.mold"}) {
    if (access(path, X_OK) == 0) programs.push_back(path);
  }
  ASSIGN_OR_RETURN(const auto own, Places("-print-prog-name", {"cc1plus", "collect2"}));
  programs.insert(programs.end(), own.begin(), own.end());
  ASSIGN_OR_RETURN(const std::vector<std::filesystem::path> libraries, LibrariesOf(programs));
  // Beside the compiler proper; the GNU linker loads it for every program, mold does not.
  std::vector<std::string> plugins;
  for (const std::string& program : own) {
    plugins.push_back(std::filesystem::path(program).replace_filename("liblto_plugin.so").string());
  }
  ASSIGN_OR_RETURN(
      const auto linked,
      Places("-print-file-name",
             {"crti.o",        "crtn.o",        "crtbeginS.o",       "crtendS.o",       "crtbegin.o",
              "crtend.o",      "crtfastmath.o", "crtoffloadbegin.o", "crtoffloadend.o", "crtoffloadtable.o",
              "crtprec32.o",   "crtprec64.o",   "crtprec80.o",       "libgcc.a",        "libgcc_s.so",
              "libgcc_s.so.1", "libstdc++.so",  "libc.so",           "libc.so.6",       "libc_nonshared.a",
              "libm.so",       "libm.so.6",     "libmvec.so",        "libmvec.so.1",    "libpthread.a",
              "libdl.a",       "librt.a",       "libgomp.so",        "libgomp.spec",    "libatomic.so",
              "include",       "include-fixed"}));
  std::set<std::filesystem::path> paths(libraries.begin(), libraries.end());
  for (const auto& more :
       {programs, plugins, linked, {"/usr/include", "/usr/local/include", "/etc/ld.so.cache"}}) {
    for (const std::string& path : more) {
      std::error_code error;
      if (std::filesystem::exists(path, error)) paths.insert(std::filesystem::canonical(path, error));
    }
  }
  return std::vector<std::filesystem::path>(paths.begin(), paths.end());
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command,
                                     const std::atomic<bool>* cancelled) {
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
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // its own, to be ended as one
  const int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::NotFoundError(absl::StrCat("cannot run ", command[0], ": errno ", error));
  writer.Reset();
  std::string output = ReadAll(reader.get(), cancelled);
  if (IsTrue(cancelled)) kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (IsTrue(cancelled)) return absl::CancelledError(absl::StrCat(command[0], " is not wanted any more"));
  if (status == 0) return output;
  return absl::InternalError(
      absl::StrCat(absl::StrJoin(command, " "), " failed with status ", status, ": ", Escape(output, 500)));
}

absl::StatusOr<std::vector<std::filesystem::path>> LibrariesOf(const std::vector<std::string>& programs) {
  std::vector<std::string> command = {"/usr/bin/ldd"};
  command.insert(command.end(), programs.begin(), programs.end());
  ASSIGN_OR_RETURN(const std::string output, OutputOf(command));
  std::vector<std::filesystem::path> libraries;
  for (const std::string& path : PathsIn(output)) {
    std::error_code error;
    const std::filesystem::path library = std::filesystem::canonical(path, error);
    if (!error) libraries.push_back(library);
  }
  return libraries;
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
  ASSIGN_OR_RETURN(toolchain.system_paths, SystemPaths());
  toolchain.fingerprint = Sha256Hex(absl::StrCat(
      toolchain.version, "\n", absl::StrJoin(toolchain.flags, "\n"), "\n", NativeMeaning(verbose)));
  return toolchain;
}

}  // namespace warpsmith
