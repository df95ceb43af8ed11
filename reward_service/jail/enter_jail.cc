#include "reward_service/jail/enter_jail.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/fat_binaries.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/withheld_pages.h"
#include "reward_service/sandbox/confinement.h"

namespace warpsmith {
namespace {

constexpr int kBuffersMax = 8;
constexpr int64_t kNearBytes = 1 << 20;
constexpr size_t kSignalStackBytes = 64 << 10;
// A context alone has some forty.
constexpr int kOpenFilesWithGpu = 256;

struct NamedBuffer {
  const char* name;
  const char* start;
  int64_t num_bytes;
};

// A signal handler has no argument of ours: what it reads must lie in static memory.
struct CrashState {
  int socket = -1;
  int num_buffers = 0;
  std::array<NamedBuffer, kBuffersMax> buffers;
};
CrashState crash_state;

const NamedBuffer* FindBuffer(const char* address) {
  for (int i = 0; i < crash_state.num_buffers; ++i) {
    const NamedBuffer& buffer = crash_state.buffers[static_cast<size_t>(i)];
    if (address >= buffer.start - kNearBytes && address < buffer.start + buffer.num_bytes + kNearBytes)
      return &buffer;
  }
  return nullptr;
}

// One packet made by hand: nothing here allocates.
void OnFatalSignal(int signal, siginfo_t* info, void* context) {
  using jail::Crash;
  char frame[256];
  const char* address = static_cast<const char*>(info->si_addr);
  const bool has_address = signal == SIGSEGV || signal == SIGBUS;
  const NamedBuffer* buffer = has_address ? FindBuffer(address) : nullptr;
  const int length = std::snprintf(
      frame + 4, sizeof(frame) - 4, R"({"%s":"%s","%s":%d,"%s":"%s","%s":%lld,"%s":%lld,"%s":%s})", kOp.name,
      Crash::op, Crash::signal.name, signal, Crash::buffer.name, buffer != nullptr ? buffer->name : "",
      Crash::offset.name, static_cast<long long>(buffer != nullptr ? address - buffer->start : 0),
      Crash::bytes.name, static_cast<long long>(buffer != nullptr ? buffer->num_bytes : 0),
      Crash::withheld.name,
      has_address && (IsWithheld(address) || IsInWithheldFatBinary(address)) ? "true" : "false");
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(length >> (8 * i));
  send(crash_state.socket, frame, static_cast<size_t>(length) + 4, MSG_NOSIGNAL | MSG_DONTWAIT);
  _exit(128 + signal);
}

void AdmitGpu(const JailRights& rights, Confinement* confinement) {
  confinement->rights =
      rights.compiles ? ProcessRights::kToolchainWithGpu : ProcessRights::kOneProcessWithGpu;
  confinement->open_gpu = rights.open_gpu;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string path = entry.path().string();
    if (path.rfind("/dev/nvidia", 0) == 0) confinement->writable_paths.push_back(path);
  }
}

// A library that can be read is a library whose kernels can be loaded.
void LimitReading(const JailRights& rights, Confinement* confinement) {
  std::vector<std::string>& readable = confinement->readable_paths;
  readable = rights.code_files;
  readable.insert(readable.end(), rights.importable_paths.begin(), rights.importable_paths.end());
  readable.push_back("/dev/null");
}

}  // namespace

absl::StatusOr<UniqueFd> EnterJail(const JailRights& rights) {
  if (rights.sealed) RETURN_IF_ERROR(ForbidCodeFiles(rights.code_files));
  if (rights.open_gpu != nullptr) RETURN_IF_ERROR(MountOwnProcesses());
  RETURN_IF_ERROR(
      MountPrivateTmp(rights.tmp_bytes_max, rights.compiles ? FolderUse::kPrograms : FolderUse::kData));
  ASSIGN_OR_RETURN(UniqueFd libraries, MountLibraryFolder(rights.tmp_bytes_max));
  Confinement confinement;
  confinement.uid = rights.uid;
  confinement.memory_bytes_max = rights.memory_bytes_max;
  confinement.address_bytes_max = rights.address_bytes_max;
  confinement.file_bytes_max = rights.tmp_bytes_max;
  confinement.cpu_seconds_max = rights.cpu_seconds_max;
  confinement.num_processes_max = rights.num_threads_max;
  confinement.num_open_files_max = rights.open_gpu == nullptr ? 64 : kOpenFilesWithGpu;
  confinement.writable_paths = {"/tmp", kLibraryFolder, "/dev/null"};
  confinement.die_with_parent = true;
  confinement.sealed = rights.sealed;
  if (rights.open_gpu != nullptr) AdmitGpu(rights, &confinement);
  if (rights.sealed && (rights.open_gpu != nullptr || !rights.importable_paths.empty()))
    LimitReading(rights, &confinement);
  if (chdir("/tmp") != 0) return absl::InternalError(absl::StrCat("chdir /tmp: ", std::strerror(errno)));
  RETURN_IF_ERROR(Confine(confinement));
  return libraries;
}

void ReportCrashes(int socket) {
  crash_state.socket = socket;
  stack_t stack{};
  stack.ss_size = kSignalStackBytes;
  // An overflown stack cannot run its own handler.
  stack.ss_sp = mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &OnFatalSignal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigaction(signal, &action, nullptr);
}

void NameBuffer(const char* name, const void* start, int64_t num_bytes) {
  if (crash_state.num_buffers == kBuffersMax) return;
  crash_state.buffers[static_cast<size_t>(crash_state.num_buffers++)] = {
      name, static_cast<const char*>(start), num_bytes};
}

}  // namespace warpsmith
