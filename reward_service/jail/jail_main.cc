// warpsmith-jail SOCKET [LIBCUDA LIBCUDART LIBCUPTI LIBRARY...]: the zygote of native jails, of those with a GPU where
// the files of driver and runtime are given, of CUPTI (empty where there is none), and of what else programs may be
// linked to. Begins with `warm` (its code: see
// withheld_pages.h). Forks one for every `fork` with two descriptors (the jail's socket and the pipe of its standard
// output) and answers `forked` or `failed`.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "core/base/unique_fd.h"
#include "reward_service/cuda/gpu_memory.h"
#include "reward_service/jail/enter_jail.h"
#include "reward_service/jail/fork_jail.h"
#include "reward_service/jail/launch_trace.h"
#include "reward_service/jail/messages.h"
#include "reward_service/jail/native_runner.h"
#include "reward_service/jail/packet.h"
#include "reward_service/jail/withheld_pages.h"

namespace warpsmith {
namespace {

// What compiled candidates may be linked to. In a sealed jail no other file is code, so they are loaded here.
constexpr const char* kLibraries[] = {"libm.so.6", "libmvec.so.1", "libstdc++.so.6", "libgcc_s.so.1",
                                      "libatomic.so.1"};
// Reads its settings when it is loaded: each candidate loads it by itself.
constexpr char kOpenMp[] = "libgomp.so.1";

// Empty where there is none. Looked up by a child, for what is loaded once stays.
std::string OpenMpFile() {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    Dl_info info{};
    void* const library = dlopen(kOpenMp, RTLD_LAZY);
    const bool found = library != nullptr && dladdr(dlsym(library, "omp_get_num_threads"), &info) != 0;
    const std::unique_ptr<char, decltype(&free)> path(found ? realpath(info.dli_fname, nullptr) : nullptr,
                                                      &free);
    const std::string text = path == nullptr ? "" : path.get();
    _exit(write(writer.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  writer.Reset();
  char path[4096];
  const ssize_t num_bytes = read(reader.get(), path, sizeof(path));
  waitpid(child, nullptr, 0);
  return num_bytes > 0 ? std::string(path, static_cast<size_t>(num_bytes)) : "";
}

JailRights ReadRights(const nlohmann::json& fields, const std::string& open_mp) {
  using zygote::Fork;
  JailRights rights;
  rights.uid = static_cast<uint32_t>(Read(fields, Fork::uid));
  rights.memory_bytes_max = Read(fields, Fork::memory_bytes_max);
  rights.address_bytes_max = Read(fields, Fork::address_bytes_max);
  rights.tmp_bytes_max = Read(fields, Fork::tmp_bytes_max);
  rights.cpu_seconds_max = static_cast<int>(Read(fields, Fork::cpu_seconds_max));
  rights.num_threads_max = static_cast<int>(Read(fields, Fork::num_threads_max));
  rights.sealed = Read(fields, Fork::sealed);
  if (!open_mp.empty()) rights.code_files.push_back(open_mp);
  return rights;
}

// The only GPU that there is for this zygote and its children.
constexpr int kGpu = 0;

// The jail's whole life. Its standard output goes to a pipe that nobody waits for.
[[noreturn]] void LiveAsJail(const Packet& packet, int parent_socket, const std::string& open_mp) {
  const int socket = packet.descriptors[0].get();
  close(parent_socket);
  dup2(packet.descriptors[1].get(), STDOUT_FILENO);
  dup2(packet.descriptors[1].get(), STDERR_FILENO);
  JailRights rights = ReadRights(packet.fields, open_mp);
  std::unique_ptr<cuda::GpuContext> gpu;
  if (Read(packet.fields, zygote::Fork::gpu)) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS",
           std::to_string(Read(packet.fields, zygote::Fork::launch_queues)).c_str(), 1);
    rights.open_gpu = [&gpu]() -> absl::Status {
      ASSIGN_OR_RETURN(gpu, cuda::GpuContext::Open(kGpu));
      return absl::OkStatus();
    };
  }
  absl::StatusOr<UniqueFd> libraries = EnterJail(rights);
  if (!libraries.ok()) {
    (void)SendPacket(socket, Make<child::Failed>({{child::Failed::error, libraries.status().ToString()}}));
    _exit(1);
  }
  if (!SendPacket(socket, Make<child::Hello>()).ok()) _exit(1);
  _exit(RunNativeJail(socket, *std::move(libraries), gpu.get()));
}

nlohmann::json PermittedCode(const std::string& open_mp) {
  nlohmann::json code = nlohmann::json::parse(LoadedCodeText());
  if (!open_mp.empty()) code[open_mp] = true;
  return code;
}

// Mapped by the zygote, for in a sealed jail no file is code. The GPU is opened by each child: a fork would
// break it.
bool LoadCuda(const char* driver, const char* runtime) {
  return cuda::Driver::Load(driver).ok() && dlopen(runtime, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

int ServeForks(int socket) {
  for (const char* library : kLibraries) dlopen(library, RTLD_NOW | RTLD_LOCAL);
  const std::string open_mp = OpenMpFile();
  if (!SendPacket(socket, Make<zygote::Warm>({{zygote::Warm::code, PermittedCode(open_mp)}})).ok()) return 1;
  for (;;) {
    const absl::StatusOr<Packet> packet = ReceivePacket(socket);
    if (!packet.ok()) return packet.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
    if (packet->descriptors.size() != 2) return 1;
    const absl::StatusOr<ForkSide> side = ForkJail();
    if (side.ok() && *side == ForkSide::kJail) LiveAsJail(*packet, socket, open_mp);
    const nlohmann::json answer =
        side.ok() ? Make<zygote::Forked>()
                  : Make<zygote::Failed>({{zygote::Failed::error, side.status().ToString()}});
    if (!SendPacket(socket, answer).ok()) return 1;
  }
}

}  // namespace
}  // namespace warpsmith

int main(int argc, char** argv) {
  constexpr int kFirstLibrary = 5;
  if (argc != 2 && argc < kFirstLibrary) {
    std::fprintf(stderr, "warpsmith-jail: started by the referee only\n");
    return 2;
  }
  if (argc >= kFirstLibrary && !warpsmith::LoadCuda(argv[2], argv[3])) {
    std::fprintf(stderr, "warpsmith-jail: cannot load %s and %s\n", argv[2], argv[3]);
    return 1;
  }
  if (argc >= kFirstLibrary && *argv[4] != '\0') {
    if (const absl::Status loaded = warpsmith::LoadCupti(argv[4]); !loaded.ok())  // jails do without
      std::fprintf(stderr, "warpsmith-jail: %s\n", std::string(loaded.message()).c_str());
  }
  for (int i = kFirstLibrary; i < argc; ++i) {
    if (dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) != nullptr) continue;
    std::fprintf(stderr, "warpsmith-jail: cannot load %s: %s\n", argv[i], dlerror());
    return 1;
  }
  return warpsmith::ServeForks(std::atoi(argv[1]));
}
