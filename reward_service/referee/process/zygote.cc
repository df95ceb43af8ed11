#include "reward_service/referee/process/zygote.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "reward_service/jail/malloc_tunables.h"
#include "reward_service/jail/messages.h"
#include "reward_service/referee/process/other_gpus.h"

namespace warpsmith {
namespace {

constexpr int kSocketInside = 3;
constexpr absl::Duration kWarmUpTimeout = absl::Seconds(120);  // a cold disk reads 2 GB of libraries
constexpr absl::Duration kForkTimeout = absl::Seconds(10);
// Others may begin to wait for further ones, so that there is always somebody.
constexpr absl::Duration kAwaitedByOthersMax = absl::Seconds(1);
constexpr int kUnansweredMax = 32;
constexpr size_t kSpares = 3;
constexpr size_t kSparesOnGpu = 4;  // that many are timed, as a rule, while none is made ready
constexpr size_t kSpareKinds = 3;   // sealed, and not sealed with one launch queue or two, by turns
constexpr int64_t kTmpBytesMax = 64 << 20;
constexpr int kThreadsMax = 64;
// Where compilers run: what they make of a large model, and a thread for each core.
constexpr int64_t kProgramsBytesMax = 512 << 20;
constexpr int kCompilerThreadsMax = 1024;
// Children live under uids of their own, so that the limit of threads counts each alone.
constexpr uint32_t kUidMin = 64000;
constexpr uint32_t kNumUids = 1000;
// What an address space holds beside private memory: libraries (Torch's are large), shared buffers, stacks.
constexpr int64_t kMappedBytes = int64_t{24} << 30;

std::vector<std::string> Environment(int num_threads) {
  const std::string threads = absl::StrCat(num_threads);
  // The same malloc on both sides of the comparison: a page fault is no work.
  std::vector<std::string> environment = {
      "PATH=/usr/bin", "HOME=/tmp", "LANG=C.UTF-8", "TMPDIR=/tmp", absl::StrCat("OMP_NUM_THREADS=", threads),
      absl::StrCat("MKL_NUM_THREADS=", threads), "OMP_PROC_BIND=false", kMallocTunables,
      "PYTHONDONTWRITEBYTECODE=1",
      // Of torch.compile; the second because more threads are processes that stay. It asks who the user is, too.
      "TORCHINDUCTOR_CACHE_DIR=/tmp/inductor", "TORCHINDUCTOR_COMPILE_THREADS=1", "LOGNAME=jail"};
  // Programs of a lane with one core have more threads only while they are verified, at first on that core: one that
  // spins there keeps the thread it waits for from running.
  if (num_threads == 1) environment.push_back("OMP_WAIT_POLICY=passive");
  return environment;
}

// What the driver's devices are called is fixed; which of them a context opens, CUDA_VISIBLE_DEVICES decides. But every
// process that sees another GPU's device opens that, too, under a lock of the host's.
void AdmitGpu(const GpuAccess& gpu, SandboxOptions* options) {
  const std::set<std::string> others = DevicesOfOtherGpus("/proc/driver/nvidia/gpus", gpu.uuid);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("nvidia", 0) != 0 || others.count(name) > 0) continue;
    if (entry.is_character_file(error)) options->devices.push_back(entry.path());
  }
  options->read_only_paths.push_back(gpu.driver.parent_path());
  if (!gpu.profiler.empty()) {
    options->read_only_paths.push_back(gpu.profiler);
    options->arguments.push_back(gpu.profiler);  // behind the driver's, and the runtime's
  }
  options->environment.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", gpu.uuid));
  options->environment.push_back("CUDA_CACHE_DISABLE=1");  // what it keeps is no jail's
}

// Behind the profiler's argument.
void AddLibraries(const GpuAccess& gpu, SandboxOptions* options) {
  if (gpu.profiler.empty()) options->arguments.emplace_back();
  for (const std::filesystem::path& library : gpu.libraries) {
    options->arguments.push_back(library.string());
    options->read_only_paths.push_back(library);
  }
}

absl::Status ExplainEnd(const char* what, int output, const absl::Status& status) {
  char text[600] = {};
  const ssize_t n = read(output, text, sizeof(text) - 1);
  return absl::FailedPreconditionError(
      absl::StrCat(what, " did not start: ", status.message(), "; it said: ", n > 0 ? text : "nothing"));
}

bool ProcessorHasVectorUnits() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

// A reference on scalar kernels would make every candidate look several times faster than it is.
absl::Status CheckCapability(const std::string& capability) {
  if (capability != "DEFAULT" || !ProcessorHasVectorUnits()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "Torch uses scalar kernels (DEFAULT) in the sandbox, but this processor has AVX2: is /proc/cpuinfo "
      "readable?");
}

absl::StatusOr<std::shared_ptr<const PermittedCode>> ReadCode(const Packet& warm, const AnyField& field) {
  const nlohmann::json* const files = Find(warm.fields, field);
  if (files == nullptr) return absl::InternalError("a zygote does not say which code is permitted");
  ASSIGN_OR_RETURN(PermittedCode code, PermittedCode::FromJson(*files));
  return std::make_shared<const PermittedCode>(std::move(code));
}

}  // namespace

absl::StatusOr<std::vector<std::filesystem::path>> PythonFolders(const std::filesystem::path& python) {
  const std::string command =
      absl::StrCat("'", python.string(),
                   "' -I -c \"import sys, importlib.util as u; print(sys.prefix); print(sys.base_prefix); "
                   "print(u.find_spec('torch').submodule_search_locations[0] + '/..')\" 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ErrnoStatus("run", python.string());
  std::set<std::filesystem::path> folders;
  std::string text;
  char line[4096];
  while (fgets(line, sizeof(line), pipe) != nullptr) text += line;
  if (pclose(pipe) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        python.string(), " has no package torch: ", text.substr(text.size() > 300 ? text.size() - 300 : 0)));
  }
  std::string path;
  for (const char character : text) {
    if (character != '\n') {
      path += character;
      continue;
    }
    const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
    path.clear();
    if (folder != "/usr" && folder.string().rfind("/usr/", 0) != 0) folders.insert(folder);
  }
  return std::vector<std::filesystem::path>(folders.begin(), folders.end());
}

absl::StatusOr<std::unique_ptr<Zygote>> Zygote::StartNative(const std::filesystem::path& bin_directory,
                                                            const std::optional<GpuAccess>& gpu) {
  ASSIGN_OR_RETURN(auto pair, MakePacketPair());
  SandboxOptions options;
  options.kind = SandboxKind::kZygote;
  const std::string program = (bin_directory / "warpsmith-jail").string();
  options.arguments = {program, absl::StrCat(kSocketInside)};
  options.environment = Environment(1);
  options.read_only_paths = {program};
  if (gpu) {
    options.arguments.insert(options.arguments.end(), {gpu->driver.string(), gpu->runtime.string()});
    options.read_only_paths.push_back(gpu->runtime);
    AdmitGpu(*gpu, &options);
    AddLibraries(*gpu, &options);
  }
  options.descriptors = {{pair.second.get(), kSocketInside}, {STDERR_FILENO, STDERR_FILENO}};
  ASSIGN_OR_RETURN(SandboxedProcess process, SpawnSandboxed(options));
  pair.second.Reset();
  std::unique_ptr<Zygote> zygote(new Zygote(std::move(process), std::move(pair.first)));
  ASSIGN_OR_RETURN(const Packet warm, ReceivePacket(zygote->socket_.get(), absl::Now() + kWarmUpTimeout));
  ASSIGN_OR_RETURN(zygote->code_, ReadCode(warm, zygote::Warm::code));
  return zygote;
}

absl::StatusOr<std::unique_ptr<Zygote>> Zygote::StartPython(
    const std::filesystem::path& python, const std::filesystem::path& share_directory,
    const std::vector<std::filesystem::path>& read_only_paths, int num_threads,
    const std::optional<GpuAccess>& gpu, Products products) {
  ASSIGN_OR_RETURN(WarmingZygote begun,
                   BeginPython(python, share_directory, read_only_paths, num_threads, gpu, products));
  return std::move(begun).Await();
}

absl::StatusOr<WarmingZygote> Zygote::BeginPython(const std::filesystem::path& python,
                                                  const std::filesystem::path& share_directory,
                                                  const std::vector<std::filesystem::path>& read_only_paths,
                                                  int num_threads, const std::optional<GpuAccess>& gpu,
                                                  Products products) {
  ASSIGN_OR_RETURN(auto pair, MakePacketPair());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus("pipe", "");
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  SandboxOptions options;
  options.kind = SandboxKind::kZygote;
  options.arguments = {python.string(),
                       "-I",
                       "-B",
                       (share_directory / "jail" / "zygote.py").string(),
                       absl::StrCat(kSocketInside),
                       share_directory.string(),
                       products == Products::kByLibraries ? "products" : ""};
  options.environment = Environment(num_threads);
  options.read_only_paths = read_only_paths;
  options.read_only_paths.push_back(share_directory);
  if (gpu) {
    options.arguments.push_back(gpu->driver.string());
    AdmitGpu(*gpu, &options);
    AddLibraries(*gpu, &options);
    // Where Triton looks for it; else it would ask a program that is not there.
    options.environment.push_back(absl::StrCat("TRITON_LIBCUDA_PATH=", gpu->driver.parent_path().string()));
  }
  options.descriptors = {{pair.second.get(), kSocketInside}, {writer.get(), STDERR_FILENO}};
  ASSIGN_OR_RETURN(SandboxedProcess process, SpawnSandboxed(options));
  return WarmingZygote{std::unique_ptr<Zygote>(new Zygote(std::move(process), std::move(pair.first))),
                       std::move(reader)};
}

absl::StatusOr<std::unique_ptr<Zygote>> WarmingZygote::Await() && {
  const absl::StatusOr<Packet> warm = ReceivePacket(zygote->socket_.get(), absl::Now() + kWarmUpTimeout);
  if (!warm.ok()) return ExplainEnd("the Python parent of oracles", words.get(), warm.status());
  zygote->torch_version_ = Read(warm->fields, zygote::Warm::torch_version);
  zygote->triton_version_ = Read(warm->fields, zygote::Warm::triton_version);
  zygote->torch_cpu_capability_ = Read(warm->fields, zygote::Warm::torch_cpu_capability);
  ASSIGN_OR_RETURN(zygote->code_, ReadCode(*warm, zygote::Warm::code));
  ASSIGN_OR_RETURN(zygote->code_with_copies_, ReadCode(*warm, zygote::Warm::code_with_copies));
  RETURN_IF_ERROR(CheckCapability(zygote->torch_cpu_capability_));
  return std::move(zygote);
}

absl::Status Zygote::CollectAnswers() {
  while (num_unanswered_ > 0) {
    const absl::Time deadline =
        num_unanswered_ >= kUnansweredMax ? absl::Now() + kForkTimeout : absl::InfinitePast();
    const absl::StatusOr<Packet> answer = ReceivePacket(socket_.get(), deadline);
    if (absl::IsDeadlineExceeded(answer.status()) && num_unanswered_ < kUnansweredMax)
      return absl::OkStatus();
    if (!answer.ok()) return answer.status();
    --num_unanswered_;
    if (!Is<zygote::Forked>(answer->fields)) {
      return absl::InternalError(
          absl::StrCat("a zygote failed: ", Read(answer->fields, zygote::Failed::error)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Zygote::Fork(const ChildRights& rights) {
  absl::MutexLock lock(&mutex_);
  return ForkLocked(rights);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Zygote::ForkWithSpare(const ChildRights& rights,
                                                                    Spares spares) {
  SparesOfKind unused;  // which end without the lock: that takes a while
  absl::MutexLock lock(&mutex_);
  const auto same = std::find_if(spares_.begin(), spares_.end(),
                                 [&](const SparesOfKind& kind) { return kind.rights == rights; });
  SparesOfKind of_kind{rights, {}};
  if (same != spares_.end()) {
    of_kind = std::move(*same);
    spares_.erase(same);
  }
  spares_.push_front(std::move(of_kind));
  if (spares_.size() > kSpareKinds) {
    unused = std::move(spares_.back());
    spares_.pop_back();
  }
  auto& children = spares_.front().children;
  const size_t num_wanted = spares == Spares::kUsedUp ? 1 : rights.gpu ? kSparesOnGpu + 1 : kSpares + 1;
  while (children.empty() || children.size() + spares_.front().num_awaited < num_wanted) {
    ASSIGN_OR_RETURN(auto spare, ForkLocked(rights));
    children.push_back(std::move(spare));
  }
  std::unique_ptr<ChildProcess> child = std::move(children.front());
  children.pop_front();
  return child;
}

void Zygote::AwaitSpare(const ChildRights& rights, absl::Time deadline) {
  ChildRights found;
  std::unique_ptr<ChildProcess> child = TakeUnready(&rights, &found);
  if (child == nullptr) return;
  const absl::Status hello = child->AwaitHello(deadline);
  if (!hello.ok() && !absl::IsDeadlineExceeded(hello)) child.reset();
  PutBack(std::move(child), rights);
}

void Zygote::AwaitSpares(absl::Time deadline) {
  ChildRights rights;
  for (size_t num_left = NumUnready(); num_left > 0; --num_left) {
    std::unique_ptr<ChildProcess> child = TakeUnready(/*only=*/nullptr, &rights);
    if (child == nullptr) break;
    if (!child->AwaitHello(deadline).ok()) child.reset();
    PutBack(std::move(child), rights);
  }
  absl::MutexLock lock(&mutex_);
  const auto nobody_waits = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::all_of(spares_.begin(), spares_.end(),
                       [](const auto& kind) { return kind.num_awaited == 0; });
  };
  mutex_.AwaitWithDeadline(absl::Condition(&nobody_waits),
                           std::min(deadline, absl::Now() + kAwaitedByOthersMax));
}

size_t Zygote::NumUnready() {
  absl::MutexLock lock(&mutex_);
  size_t num = 0;
  for (const SparesOfKind& kind : spares_) {
    for (const auto& child : kind.children) num += child->pid() > 0 ? 0 : 1;
  }
  return num;
}

Zygote::SparesOfKind* Zygote::FindSpares(const ChildRights& rights) {
  for (SparesOfKind& kind : spares_) {
    if (kind.rights == rights) return &kind;
  }
  return nullptr;
}

std::unique_ptr<ChildProcess> Zygote::TakeUnready(const ChildRights* only, ChildRights* rights) {
  absl::MutexLock lock(&mutex_);
  for (SparesOfKind& kind : spares_) {
    if (only != nullptr && !(kind.rights == *only)) continue;
    for (auto& child : kind.children) {
      if (child->pid() > 0 && only != nullptr) return nullptr;
      if (child->pid() > 0) continue;  // it has said hello
      std::unique_ptr<ChildProcess> taken = std::move(child);
      kind.children.erase(std::find(kind.children.begin(), kind.children.end(), nullptr));
      ++kind.num_awaited;
      *rights = kind.rights;
      return taken;
    }
  }
  return nullptr;
}

// Those that are ready are given first.
void Zygote::PutBack(std::unique_ptr<ChildProcess> child, const ChildRights& rights) {
  absl::MutexLock lock(&mutex_);
  SparesOfKind* const kind = FindSpares(rights);
  if (kind == nullptr) return;  // another kind has taken its place
  if (kind->num_awaited > 0) --kind->num_awaited;
  if (child == nullptr) return;
  const auto unready = std::find_if(kind->children.begin(), kind->children.end(),
                                    [](const auto& other) { return other->pid() <= 0; });
  kind->children.insert(unready, std::move(child));
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Zygote::ForkWithoutSpares(const ChildRights& rights) {
  std::deque<SparesOfKind> unused;
  {
    absl::MutexLock lock(&mutex_);
    unused.swap(spares_);
  }
  unused.clear();  // without the lock: their ends take a while
  return Fork(rights);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> Zygote::ForkLocked(const ChildRights& rights) {
  ASSIGN_OR_RETURN(auto pair, MakePacketPair());
  const int on = 1;
  if (setsockopt(pair.first.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
    return ErrnoStatus("SO_PASSCRED", "jail socket");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return ErrnoStatus("pipe", "jail output");
  UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  RETURN_IF_ERROR(CollectAnswers());
  using zygote::Fork;
  const nlohmann::json fields =
      Make<Fork>({{Fork::role, rights.role},
                  {Fork::uid, kUidMin + num_forks_++ % kNumUids},
                  {Fork::memory_bytes_max, rights.memory_bytes_max},
                  {Fork::address_bytes_max, rights.memory_bytes_max + kMappedBytes},
                  {Fork::tmp_bytes_max, rights.compiles ? kProgramsBytesMax : kTmpBytesMax},
                  {Fork::cpu_seconds_max, rights.cpu_seconds_max},
                  {Fork::num_threads_max, rights.compiles ? kCompilerThreadsMax : kThreadsMax},
                  {Fork::num_threads, rights.num_threads},
                  {Fork::sealed, rights.sealed},
                  {Fork::copies, rights.copies},
                  {Fork::compiles, rights.compiles},
                  {Fork::gpu, rights.gpu},
                  {Fork::launch_queues, rights.launch_queues},
                  {Fork::records, rights.records}});
  RETURN_IF_ERROR(SendPacket(socket_.get(), fields, {pair.second.get(), writer.get()}));
  ++num_unanswered_;
  return std::make_unique<ChildProcess>(std::move(pair.first), std::move(reader),
                                        rights.copies ? code_with_copies_ : code_, reaper_);
}

}  // namespace warpsmith
