#include "cli/system_facts.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "cli/child_process.h"
#include "cli/scratch_directory.h"
#include "core/base/available_memory.h"
#include "core/base/build_info.h"
#include "core/base/file.h"
#include "core/base/unique_fd.h"

namespace warpsmith {
namespace {

constexpr absl::Duration kProgramTimeout = absl::Seconds(60);

struct ProgramResult {
  int status = 127;
  std::string output;  // both streams, without white space at its ends
};

ProgramResult RunProgram(std::vector<std::string> arguments) {
  absl::StatusOr<ScratchDirectory> scratch = ScratchDirectory::Create();
  if (!scratch.ok()) return {.output = std::string(scratch.status().message())};
  const std::filesystem::path log = scratch->path() / "output";
  absl::StatusOr<LaunchedProcess> child =
      LaunchedProcess::Start({.name = arguments[0], .arguments = std::move(arguments), .log_path = log});
  if (!child.ok()) return {.output = std::string(child.status().message())};
  child->AwaitEnd(kProgramTimeout);
  const int status = child->Stop(absl::ZeroDuration());
  return {status, std::string(absl::StripAsciiWhitespace(ReadFile(log).value_or("")))};
}

// Output of a program that succeeds, else nothing.
std::string OutputOf(std::vector<std::string> arguments) {
  const ProgramResult result = RunProgram(std::move(arguments));
  return result.status == 0 ? result.output : "";
}

// The first value after a key in a file of "KEY<separator>VALUE" lines; empty if there is none.
std::string ValueIn(const std::filesystem::path& path, const std::string& key, char separator) {
  // Files of /proc have no size, but end.
  const std::string text = ReadFile(path, 1 << 24).value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(separator, 1));
    if (absl::StripAsciiWhitespace(parts.first) == key) {
      return std::string(
          absl::StripPrefix(absl::StripSuffix(absl::StripAsciiWhitespace(parts.second), "\""), "\""));
    }
  }
  return "";
}

int IntegerAt(const std::filesystem::path& path, int otherwise) {
  const absl::StatusOr<std::string> text = ReadFile(path, 4096);
  return text.ok() ? std::atoi(text->c_str()) : otherwise;
}

// Runs `attempt` in a child of its own, since its success would change this process. The errno it returns, in
// words.
Obstacle TryInChild(const std::string& what, const std::function<int()>& attempt) {
  const pid_t pid = fork();
  if (pid == 0) _exit(attempt());
  int wait_status = 0;
  if (pid < 0 || waitpid(pid, &wait_status, 0) != pid || !WIFEXITED(wait_status))
    return absl::StrCat(what, ": no answer");
  const int error = WEXITSTATUS(wait_status);
  if (error == 0) return std::nullopt;
  return absl::StrCat(what, ": ", std::strerror(error));
}

Obstacle TryUserNamespace() {
  return TryInChild("user namespace", [] { return unshare(CLONE_NEWUSER) == 0 ? 0 : errno; });
}

Obstacle TryRealtime() {
  return TryInChild("SCHED_FIFO", [] {
    const sched_param parameter = {.sched_priority = 20};  // what the reward service's judges take
    return sched_setscheduler(0, SCHED_FIFO, &parameter) == 0 ? 0 : errno;
  });
}

Obstacle TryPerfEvent() {
  return TryInChild("perf_event_open", [] {
    perf_event_attr attributes = {};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof(attributes);
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.exclude_kernel = 1;
    return syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0 ? 0 : errno;
  });
}

int LandlockAbi() {
  constexpr int kVersionQuery = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  const long abi = syscall(444 /* landlock_create_ruleset */, nullptr, 0, kVersionQuery);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

void TryBubblewrap(SystemFacts* facts) {
  facts->bubblewrap_installed = RunProgram({"bwrap", "--version"}).status == 0;
  if (!facts->bubblewrap_installed) return;
  // As the reward service's jails: root makes no user namespace.
  std::vector<std::string> command{
      "bwrap", "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-pid", "--cap-drop", "ALL"};
  if (geteuid() != 0) command.insert(command.end(), {"--unshare-user"});
  command.insert(command.end(), {"--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "true"});
  const ProgramResult run = RunProgram(command);
  if (run.status != 0) facts->bubblewrap = run.output.empty() ? DescribeExitStatus(run.status) : run.output;
}

// "13.0.88" of the nvcc that the reward service takes: the machine's, else the one of torch's Python packages.
std::string NvccVersion() {
  const std::filesystem::path packages = std::filesystem::path(GetBuildInfo().torch_dir).parent_path();
  for (const std::filesystem::path& home :
       {std::filesystem::path("/usr/local/cuda"), packages / "nvidia/cu13"}) {
    const std::string output = OutputOf({(home / "bin/nvcc").string(), "--version"});
    if (const size_t begin = output.find(", V"); begin != std::string::npos) {
      return output.substr(begin + 3, output.find_first_not_of("0123456789.", begin + 3) - begin - 3);
    }
  }
  return "";
}

// A line each: "NVIDIA H200, 580.159.04, 4, 143771".
std::vector<GpuFact> ListGpus() {
  std::vector<GpuFact> gpus;
  const std::string output =
      OutputOf({"nvidia-smi", "--query-gpu=name,driver_version,memory.used,memory.total",
                "--format=csv,noheader,nounits"});
  for (absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByString(", "));
    if (parts.size() != 4) continue;
    gpus.push_back({parts[0], parts[1], std::atoll(parts[2].c_str()), std::atoll(parts[3].c_str())});
  }
  return gpus;
}

Obstacle TryLeaseFolder() {
  constexpr char kFolder[] = "/run/lock";  // see core/base/device_lease.h
  if (access(kFolder, W_OK | X_OK) == 0) return std::nullopt;
  return absl::StrCat(kFolder, ": ", std::strerror(errno));
}

void MeasureResources(SystemFacts* facts) {
  facts->distribution = ValueIn("/etc/os-release", "PRETTY_NAME", '=');
  facts->cpu_model = ValueIn("/proc/cpuinfo", "model name", ':');
  cpu_set_t cores;
  facts->num_cores = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  facts->memory_available_gb = 1e-9 * static_cast<double>(AvailableMemory());
  facts->disk_path = ExecutableDirectory().string();
  struct statvfs disk = {};
  if (statvfs(facts->disk_path.c_str(), &disk) == 0) {
    facts->disk_free_gb = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize) / 1e9;
  }
}

}  // namespace

SystemFacts GatherSystemFacts() {
  SystemFacts facts;
  MeasureResources(&facts);
  facts.user_namespace = TryUserNamespace();
  facts.apparmor_restricts = IntegerAt("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1;
  facts.clone_forbidden = IntegerAt("/proc/sys/kernel/unprivileged_userns_clone", 1) == 0;
  TryBubblewrap(&facts);
  facts.landlock_abi = LandlockAbi();
  facts.realtime = TryRealtime();
  facts.perf_event = TryPerfEvent();
  facts.compiler_version = OutputOf({"g++", "-dumpfullversion"});
  facts.python = GetBuildInfo().python;
  facts.torch_version = OutputOf({facts.python, "-c", "import torch; print(torch.__version__)"});
  facts.has_nvidia_device = std::filesystem::exists("/dev/nvidiactl");
  if (facts.has_nvidia_device) facts.gpus = ListGpus();
  facts.lease = TryLeaseFolder();
  facts.nvcc_version = NvccVersion();
  return facts;
}

}  // namespace warpsmith
