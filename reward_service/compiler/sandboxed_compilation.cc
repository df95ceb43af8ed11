#include "reward_service/compiler/sandboxed_compilation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/file.h"
#include "core/base/memory_file.h"
#include "core/base/status_macros.h"
#include "reward_service/compiler/diagnostics.h"
#include "reward_service/sandbox/sandbox.h"

namespace warpsmith {
namespace {

// Outputs leave the sandbox by descriptors from this one on; input files come by those behind them.
constexpr int kFirstFd = 3;
// How often a running compilation looks whether its result is still wanted.
constexpr double kCancellationSeconds = 0.05;
// Of the private uids: jails have those below.
constexpr uid_t kUidMin = 65000;
constexpr uid_t kNumUids = 500;

int64_t SizeOf(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_size : 0;
}

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

// Files in, the command, files out.
std::string ScriptOf(const Compilation& compilation) {
  std::string script;
  if (!compilation.source_file.empty()) absl::StrAppend(&script, "cat >", compilation.source_file, " && ");
  size_t fd = kFirstFd + compilation.output_files.size();
  for (const auto& [path, unused] : compilation.input_files) {
    absl::StrAppend(&script, "cat <&", fd++, " >", path, " && ");
  }
  absl::StrAppend(&script, "\"$@\"");
  fd = kFirstFd;
  for (const std::string& path : compilation.output_files) {
    absl::StrAppend(&script, " && cat ", path, " >&", fd++);
  }
  return script;
}

SandboxOptions OptionsFor(const Compilation& compilation) {
  SandboxOptions options;
  options.arguments = {"/bin/sh", "-c", ScriptOf(compilation), "sh"};
  options.arguments.insert(options.arguments.end(), compilation.command.begin(), compilation.command.end());
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

CompiledProgram ProgramOf(CompilationResult result) {
  CompiledProgram program;
  program.diagnostics = std::move(result.diagnostics);
  if (result.outputs.empty()) return program;
  program.library_bytes = SizeOf(result.outputs[0].get());
  program.library = std::make_shared<const UniqueFd>(std::move(result.outputs[0]));
  return program;
}

absl::StatusOr<CompilationResult> RunCompilation(const Compilation& compilation, std::string_view source,
                                                 const std::atomic<bool>& cancelled) {
  const CompileLimits& limits = compilation.limits;
  WS_CHECK(compilation.input_files.size() + compilation.output_files.size() <= kFilesMax);
  ASSIGN_OR_RETURN(const UniqueFd input, SealedMemoryFile(source));
  ASSIGN_OR_RETURN(const UniqueFd messages, MakeMemoryFile());
  SandboxOptions options = OptionsFor(compilation);
  options.descriptors = {{input.get(), STDIN_FILENO}, {messages.get(), STDERR_FILENO}};
  CompilationResult result;
  int number = kFirstFd;
  for (size_t i = 0; i < compilation.output_files.size(); ++i) {
    ASSIGN_OR_RETURN(UniqueFd output, MakeMemoryFile());
    options.descriptors.emplace_back(output.get(), number++);
    result.outputs.push_back(std::move(output));
  }
  for (const auto& [path, fd] : compilation.input_files) {
    if (lseek(fd, 0, SEEK_SET) != 0) return ErrnoStatus("cannot rewind", path);
    options.descriptors.emplace_back(fd, number++);
  }
  // The limit of processes counts a uid's, so every compilation that runs has its own: no other has this
  // descriptor. Two share a uid only if theirs are kNumUids apart, or of two services.
  options.uid = kUidMin + static_cast<uid_t>(messages.get()) % kNumUids;
  ASSIGN_OR_RETURN(SandboxedProcess process, SpawnSandboxed(options));
  const absl::StatusOr<int> ended = AwaitEnd(&process, limits.wall_seconds_max, cancelled);
  if (absl::IsDeadlineExceeded(ended.status())) {
    return CompilationResult{
        .diagnostics = absl::StrCat("error: compilation exceeded its ", ended.status().message(), "\n")};
  }
  RETURN_IF_ERROR(ended.status());
  ASSIGN_OR_RETURN(const std::string output, ReadMemoryFile(messages.get(), limits.library_bytes_max));
  result.diagnostics = TrimDiagnostics(output);
  const bool made = std::all_of(result.outputs.begin(), result.outputs.end(),
                                [](const UniqueFd& fd) { return SizeOf(fd.get()) > 0; });
  if (*ended != 0 || !made) {
    if (FirstError(result.diagnostics).empty()) result.diagnostics += LimitText(*ended, limits);
    return CompilationResult{.diagnostics = std::move(result.diagnostics)};
  }
  for (const UniqueFd& fd : result.outputs) {
    RETURN_IF_ERROR(SealMemoryFile(fd.get()));
  }
  return result;
}

}  // namespace warpsmith
