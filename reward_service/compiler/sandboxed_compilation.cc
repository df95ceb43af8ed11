#include "reward_service/compiler/sandboxed_compilation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/sandbox/sandbox.h"

namespace warpsmith {
namespace {

// Inside the sandbox the source is standard input and the library leaves by descriptor 3.
constexpr int kLibraryFd = 3;
constexpr char kScript[] = "\"$@\" && exec cat /tmp/candidate.so >&3";
// How often a running compilation looks whether its result is still wanted.
constexpr double kCancellationSeconds = 0.05;
// Of the private uids: jails have those below.
constexpr uid_t kUidMin = 65000;
constexpr uid_t kNumUids = 500;

absl::StatusOr<UniqueFd> Memfd(const char* name) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus("cannot create memfd", name);
  return fd;
}

int64_t SizeOf(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_size : 0;
}

absl::Status WriteAllAt(int fd, std::string_view content) {
  int64_t offset = 0;
  while (!content.empty()) {
    const ssize_t written = pwrite(fd, content.data(), content.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus("cannot write", "memfd");
    content.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return absl::OkStatus();
}

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// The wait status of a sandboxed compilation, killed when it is cancelled or out of time: DEADLINE_EXCEEDED
// then.
absl::StatusOr<int> AwaitEnd(SandboxedProcess* process, double wall_seconds,
                             const std::atomic<bool>& cancelled) {
  const absl::Time deadline = absl::Now() + absl::Seconds(wall_seconds);
  while (absl::Now() < deadline) {
    const absl::StatusOr<int> status = process->Wait(kCancellationSeconds);
    if (status.ok() || !absl::IsDeadlineExceeded(status.status())) return status;
    if (cancelled.load(std::memory_order_relaxed)) {
      process->Kill();
      return absl::CancelledError("the compilation's result is not wanted any more");
    }
  }
  process->Kill();
  return absl::DeadlineExceededError(absl::StrCat("wall time of ", wall_seconds, " s"));
}

SandboxOptions OptionsFor(const Compilation& compilation) {
  SandboxOptions options;
  options.arguments = {"/bin/sh", "-c", kScript, "sh"};
  const auto append = [&](const std::vector<std::string>& more) {
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  };
  append(compilation.command);
  append({"-x", "c++", "-", "-x", "none"});
  append(compilation.link_flags);
  append({"-o", "/tmp/candidate.so"});
  options.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp"};
  options.system_paths = compilation.system_paths;
  options.read_only_paths = compilation.read_only_paths;
  options.tmp_bytes_max = 4 * compilation.limits.library_bytes_max;
  options.memory_bytes_max = compilation.limits.memory_bytes_max;
  options.file_bytes_max = compilation.limits.library_bytes_max;
  options.cpu_seconds_max = compilation.limits.cpu_seconds_max;
  return options;
}

// What to say of a compiler that wrote no error: it was killed by a limit.
std::string LimitText(int status, const CompileLimits& limits) {
  return absl::StrCat("error: the compiler ended with status ", status, " within its limits of ",
                      limits.cpu_seconds_max, " s, ", limits.memory_bytes_max >> 20, " MiB and ",
                      limits.library_bytes_max >> 20, " MiB a file\n");
}

}  // namespace

absl::StatusOr<UniqueFd> SealedMemfd(const char* name, std::string_view content) {
  ASSIGN_OR_RETURN(UniqueFd fd, Memfd(name));
  RETURN_IF_ERROR(WriteAllAt(fd.get(), content));
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus("cannot seal memfd", name);
  return fd;
}

absl::StatusOr<std::string> ReadMemfd(int fd, int64_t bytes_max) {
  const int64_t size = SizeOf(fd);
  if (size > bytes_max) return absl::InvalidArgumentError(absl::StrCat("memfd holds ", size, " bytes"));
  std::string content(static_cast<size_t>(size), '\0');
  for (size_t done = 0; done < content.size();) {
    const ssize_t num_read =
        pread(fd, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) return ErrnoStatus("cannot read", "memfd");
    done += static_cast<size_t>(num_read);
  }
  return content;
}

CompiledProgram RefusedProgram(std::string diagnostics) {
  CompiledProgram program;
  program.diagnostics = std::move(diagnostics);
  return program;
}

absl::StatusOr<CompiledProgram> RunCompilation(const Compilation& compilation, std::string_view source,
                                               const std::atomic<bool>& cancelled) {
  const CompileLimits& limits = compilation.limits;
  ASSIGN_OR_RETURN(const UniqueFd input, SealedMemfd("source", source));
  ASSIGN_OR_RETURN(UniqueFd library, Memfd("library"));
  ASSIGN_OR_RETURN(const UniqueFd messages, Memfd("diagnostics"));
  SandboxOptions options = OptionsFor(compilation);
  // The limit of processes counts a uid's, so every compilation that runs has its own: no other has this
  // descriptor. Two share a uid only if theirs are kNumUids apart, or of two services.
  options.uid = kUidMin + static_cast<uid_t>(library.get()) % kNumUids;
  options.descriptors = {
      {input.get(), STDIN_FILENO}, {messages.get(), STDERR_FILENO}, {library.get(), kLibraryFd}};
  ASSIGN_OR_RETURN(SandboxedProcess process, SpawnSandboxed(options));
  const absl::StatusOr<int> ended = AwaitEnd(&process, limits.wall_seconds_max, cancelled);
  if (absl::IsDeadlineExceeded(ended.status())) {
    return RefusedProgram(absl::StrCat("error: compilation exceeded its ", ended.status().message(), "\n"));
  }
  RETURN_IF_ERROR(ended.status());
  ASSIGN_OR_RETURN(const std::string output, ReadMemfd(messages.get(), limits.library_bytes_max));
  std::string diagnostics = TrimDiagnostics(output);
  if (*ended != 0 || SizeOf(library.get()) == 0) {
    if (FirstError(diagnostics).empty()) diagnostics += LimitText(*ended, limits);
    return RefusedProgram(std::move(diagnostics));
  }
  if (fcntl(library.get(), F_ADD_SEALS, kSeals) != 0) return ErrnoStatus("cannot seal memfd", "library");
  CompiledProgram program;
  program.library_bytes = SizeOf(library.get());
  program.library = std::make_shared<const UniqueFd>(std::move(library));
  program.diagnostics = std::move(diagnostics);
  return program;
}

}  // namespace warpsmith
